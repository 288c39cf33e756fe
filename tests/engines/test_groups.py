"""A group of columns modelled together, through every source, the commands and the report."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

import candide as cd
from candide.cli import cli
from candide.errors import InputError, UnknownNameError
from candide.events import Gaussian
from candide.explain import columns as explain
from candide.fit_source import fit_model
from candide.report import summary
from candide.store.update import count_like
from candide.validation.cross_validation import cross_validate

PETAL = ("petal_length", "petal_width")
EVENTS = {PETAL: Gaussian(covariance="full", shrinkage="ledoit-wolf")}


def flowers():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.05] = np.nan
    names = ("sepal_length", "sepal_width", *PETAL)
    rows = {name: pa.array(column, from_pandas=True) for name, column in zip(names, X.T, strict=True)}
    colour = np.array(["blue", "white", "pink"], object)[rng.integers(0, 3, 150)]
    species = np.array(["setosa", "versicolor", "virginica"], object)[y]
    weight = rng.integers(1, 4, 150).astype(float)
    return pa.table({**rows, "colour": colour, "weight": weight, "species": species}).take(rng.permutation(150))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("flowers"), flowers()
    pq.write_table(table, folder / "flowers.parquet", row_group_size=40)
    table.to_pandas().to_csv(folder / "flowers.csv", index=False)
    return folder


def by_arrays(weight):
    table = flowers().to_pandas()
    X = table.drop(columns=["species", "weight"])
    return cd.NaiveBayes(EVENTS).fit(X, table["species"], sample_weight=table["weight"] if weight else None), X


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("source", ["flowers.parquet", "flowers.csv", "frame", "arrow"])
def test_every_source_counts_a_group_as_the_array_engine_does(files, source, weight):
    data = {"frame": flowers().to_pandas(), "arrow": flowers()}.get(source, str(files / source))
    model = cd.fit(data, "species", events=EVENTS, weight=weight, drop=[] if weight else ["weight"], model="naive")
    want, X = by_arrays(weight)
    np.testing.assert_allclose(model.predict_log_proba(X), want.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    scored = model.predict_table(data)
    p = np.column_stack([scored[f"p_{label}"] for label in model.classes_])
    np.testing.assert_allclose(p, want.predict_proba(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scored["log_density"], want.log_density(X), rtol=1e-9)


def test_cross_validation_scores_each_fold_with_the_model_of_the_others(files):
    path = str(files / "flowers.parquet")
    found = cross_validate(path, "species", folds=5, events=EVENTS, drop=["weight"], model="naive")
    assert found.total.n == 150
    assert found.total.metrics()["accuracy"] > 0.9
    # The same without a group but with every column joined: another model, so other scores.
    plain = cross_validate(path, "species", folds=5, drop=["weight"], model="naive")
    assert plain.total.metrics()["log_loss"] != pytest.approx(found.total.metrics()["log_loss"], rel=1e-3)


def test_counting_more_and_less_as_the_model_was_counted(files):
    path = str(files / "flowers.parquet")
    fitted = fit_model(path, "species", events=EVENTS, drop=["weight"], model="naive").fitted
    more = count_like(fitted, path)
    twice = fitted.counts + more
    np.testing.assert_allclose((twice - more).tallies[0].mean, fitted.counts.tallies[0].mean, rtol=1e-9)


def test_the_command_line_models_columns_together(files):
    model = str(files / "m.candide")
    command = ["fit", str(files / "flowers.csv"), "-t", "species", "--drop", "weight", "-o", model, "--folds", "3"]
    command += ["--estimate", "mle", "--model", "naive"]
    result = CliRunner().invoke(cli, [*command, "--event", "petal_length,petal_width=gaussian-full"])
    assert result.exit_code == 0, result.output
    event = cd.load(model).counts_.plan.parts
    assert [part.columns for part in event if part.event.is_joint] == [PETAL]
    shown = CliRunner().invoke(cli, ["show", model])
    assert shown.exit_code == 0, shown.output
    assert "correlation with petal_width" in shown.output
    facts = json.loads(CliRunner().invoke(cli, ["show", model, "--json"]).output)
    given = next(c["conditionals"] for c in facts["columns"] if c["column"] == "petal_length")
    X = flowers().to_pandas()
    setosa = X[X["species"] == "setosa"][list(PETAL)].dropna()
    assert given["correlation with petal_width"][0] == pytest.approx(setosa.corr().iloc[0, 1], rel=1e-9)
    assert given["mean"][0] == pytest.approx(setosa["petal_length"].mean(), rel=1e-12)
    assert given["sd"][0] == pytest.approx(setosa["petal_length"].std(ddof=0), rel=1e-9)
    assert "gaussian-full" in CliRunner().invoke(cli, ["fit", "--help"]).output


@pytest.mark.parametrize("detail", ["explain", "score"])
def test_a_model_without_counts_is_shown_and_scores(files, detail):
    path, model = files / f"{detail}.candide", by_arrays(None)[0]
    model.save(path, detail=detail)
    result = CliRunner().invoke(cli, ["show", str(path)])
    assert result.exit_code == 0, result.output
    assert "correlation with petal_length" in result.output
    scored = CliRunner().invoke(cli, ["predict", str(path), str(files / "flowers.csv"), "--json"])
    assert scored.exit_code == 0, scored.output


def test_strengths_of_a_group_are_finite_and_correlations_of_many_columns_are_left_out(files):
    model, _ = by_arrays(None)
    rows = {given.column: given.row_names for given in explain.iterate_conditionals(model.fitted_)}
    assert rows["petal_width"] == ["df", "loc", "scale", "correlation with petal_length"]
    assert rows["sepal_width"] == ["df", "loc", "scale"]
    assert all(np.isfinite(value) for value in summary.summarize_model(model, 5).importances.values())
    wide = np.random.default_rng(1).normal(size=(40, 12))
    many = cd.GaussianBayes().fit(wide, np.arange(40) % 2)
    assert next(explain.iterate_conditionals(many.fitted_)).row_names == ["df", "loc", "scale"]


def test_text_in_a_group_is_named(files):
    with pytest.raises(InputError, match="is not a number") as error:
        cd.fit(
            str(files / "flowers.csv"), "species", events={("petal_width", "colour"): "gaussian-full"}, model="naive"
        )
    assert error.value.column == "colour"
    assert "modelled jointly ('petal_width', 'colour')" in error.value.remedy
    with pytest.raises(UnknownNameError, match="'petal_witdh'; did you mean 'petal_width'"):
        cd.fit(
            str(files / "flowers.csv"),
            "species",
            events={("petal_length", "petal_witdh"): "gaussian-full"},
            model="naive",
        )
