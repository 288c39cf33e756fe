"""The weighted model of a source equals that of the same rows in memory; settings, and the chain of calls."""

import json
import sys
import traceback
from dataclasses import fields
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import candide as cd
from candide.cli.group import cli
from candide.data.notes import DataWarning
from candide.data.table import Table
from candide.errors import InputError, UnknownNameError
from candide.events.text import DEFAULT_TEXT
from candide.fit_source import fit_model
from candide.model.settings import Settings, WeightedSettings
from candide.weighted import optimizer

RNG = np.random.default_rng


def frame(n=900, seed=0):
    """Numbers, counts, dates, truths, codes, levels and gaps; a pair that decides together."""
    rng = RNG(seed)
    a, b = rng.integers(0, 2, (2, n))
    x = rng.normal(size=n) + 0.8 * a
    y = np.where((a ^ b) == (rng.random(n) < 0.15), "no", "yes")
    job = np.array(["cook", "smith", "clerk"], object)[(a + rng.integers(0, 2, n)) % 3]
    job[rng.random(n) < 0.1] = None
    return pd.DataFrame({
        "x": np.where(rng.random(n) < 0.05, np.nan, x), "z": rng.normal(size=n) ** 2 + (y == "yes"),
        "visits": rng.poisson(2.0, n), "day": pd.Timestamp("2024-01-31") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
        "owns": rng.random(n) < 0.4, "flag": rng.integers(0, 2, n), "a": np.array(["m", "w"])[a],
        "b": np.array(["old", "new"])[b], "job": job, "y": y,
    })  # fmt: skip


def inputs(data, *others):
    return data.drop(columns=["y", *others])


def same(found, want, asked, atol=1e-9):
    np.testing.assert_array_equal(found.classes_, want.classes_)
    np.testing.assert_allclose(found.predict_proba(asked), want.predict_proba(asked), atol=atol)


@pytest.fixture(scope="module")
def known():
    data = frame()
    return data, cd.BayesClassifier().fit(inputs(data), data["y"])


def door(kind, data, folder):
    if kind == "csv":
        data.to_csv(folder / "rows.csv", index=False)
        return folder / "rows.csv"
    if kind == "duckdb":
        with duckdb.connect(str(folder / "rows.duckdb")) as con:
            con.execute("CREATE TABLE t AS SELECT * FROM data")
        return folder / "rows.duckdb"
    data.to_parquet(folder / "rows.parquet", row_group_size=100)
    doors = {"query": f"SELECT * FROM '{folder}/rows.parquet'", "stream": pa.Table.from_pandas(data).to_reader()}
    return {"parquet": folder / "rows.parquet", "frame": data, "table": Table.from_data(data), **doors}[kind]


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "query", "stream", "frame", "table"])
def test_every_source_gives_the_model_of_the_rows_in_memory(kind, known, tmp_path):
    data, want = known
    found = cd.fit(door(kind, data, tmp_path), "y", model="bayes")
    assert type(found) is cd.BayesClassifier
    same(found, want, inputs(frame(100, seed=1)))
    assert found.fitted_.term_weights.n_learned_rows == len(data)
    assert [part.event.name for part in found.fitted_.plan.parts] == [p.event.name for p in want.fitted_.plan.parts]


def test_columns_keep_the_order_of_the_source(known, tmp_path):
    data = known[0][["job", "x", "a", "z", "b", "y"]]  # words among the numbers
    model = cd.fit(door("csv", data, tmp_path), "y")
    assert model.feature_names_in_.tolist() == ["job", "x", "a", "z", "b"]
    in_memory = cd.BayesClassifier().fit(inputs(data), data["y"])
    assert [one.title for one in model.terms_] == [one.title for one in in_memory.terms_]
    rows = inputs(data)[:50]
    with pytest.warns(UserWarning, match="feature names"):  # so that rows without names go by position
        found = model.predict_proba(rows.to_numpy(object))
    np.testing.assert_allclose(found, model.predict_proba(rows), atol=1e-12)


def test_a_file_keeps_the_model_and_its_parameters(known, tmp_path):
    data, _ = known
    model = cd.fit(data, "y", model="bayes", events={"x": "gaussian"}, class_prior="uniform")
    model.save(tmp_path / "m.candide")
    again = cd.load(tmp_path / "m.candide")
    same(again, model, inputs(data))
    same(again.fit(inputs(data), data["y"]), model, inputs(data))  # its parameters fit the same again


def test_rows_without_a_label_are_left_out(known):
    data, want = known
    gap = pd.DataFrame({"y": [None, None], "z": [99.0, -99.0], "job": ["thief", "cook"]})
    learned = fit_model(pd.concat([gap, data], ignore_index=True), "y", model="bayes")
    assert learned.fitted.counts.n_rows == len(data)
    assert "2 rows have no value of 'y' and were left out" in learned.note_texts
    np.testing.assert_allclose(learned.fitted.posterior(inputs(data)), want.predict_proba(inputs(data)), atol=1e-9)


def test_a_column_of_weights_is_sample_weight(known):
    data = known[0].assign(w=RNG(5).choice([0.0, 0.5, 1.0, 3.0], len(known[0])))
    want = cd.BayesClassifier().fit(inputs(data, "w"), data["y"], sample_weight=data["w"])
    same(cd.fit(data, "y", model="bayes", weight="w"), want, inputs(data, "w"))
    assert np.abs(want.predict_proba(inputs(data, "w")) - known[1].predict_proba(inputs(data, "w"))).max() > 1e-3


def test_columns_can_be_dropped_and_have_event_models(known):
    data, _ = known
    events = {"z": "lognormal", "visits": "poisson", "flag": "whole"}
    want = cd.BayesClassifier(events).fit(inputs(data, "day"), data["y"])
    found = cd.fit(data, "y", model="bayes", drop=["day"], events=events)
    same(found, want, inputs(data))
    assert {part.event.name for part in found.counts_.select_density_parts().plan.parts} == {
        "lognormal", "poisson", "binned", "categorical"
    }  # fmt: skip


def test_the_class_prior_comes_after_the_weights(known):
    data, model = known
    want = model.with_prior(class_prior={"no": 0.9, "yes": 0.1})
    for found in (
        cd.fit(data, "y", model="bayes", class_prior={"no": 0.9, "yes": 0.1}),
        cd.BayesClassifier(class_prior={"no": 0.9, "yes": 0.1}).fit(inputs(data), data["y"]),
    ):
        same(found, want, inputs(data))
    odds = np.diff(np.log(want.predict_proba(inputs(data)) / model.predict_proba(inputs(data))))
    assert np.ptp(odds) < 1e-9  # nothing but the prior


def test_numbers_as_people_write_them(tmp_path):
    data = frame(400)
    data["z"] = [f"{v:.3f}".replace(".", ",") for v in data["z"]]
    data.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    found = cd.fit(tmp_path / "rows.csv", "y", model="bayes")
    plain = data.assign(z=[float(v.replace(",", ".")) for v in data["z"]])
    same(found, cd.BayesClassifier().fit(inputs(plain), plain["y"]), inputs(plain))
    np.testing.assert_allclose(found.predict_proba(inputs(data)), found.predict_proba(inputs(plain)), atol=1e-12)


# More rows than are looked at


def fit_source(data, sample_rows, weight=None, events="auto"):
    """Fit to all rows of a source, with weights learned from a sample of these."""
    options = WeightedSettings(sample_rows=sample_rows)
    return fit_model(data, "y", events=events, weight=weight, weighted=options).fitted


def test_weights_come_from_some_rows_and_counts_from_all(known, tmp_path):
    data = frame(3000)
    data.loc[len(data)] = {**data.iloc[0], "job": "astronaut", "y": "perhaps"}  # neither is looked at
    want = cd.BayesClassifier(sample_rows=500).fit(inputs(data), data["y"])
    data.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    found = fit_source(str(tmp_path / "rows.parquet"), 500)
    assert found.term_weights.n_learned_rows == 500
    assert found.counts.n_rows == 3001
    assert found.labels.values == ("no", "perhaps", "yes")
    jobs = next(part for part in found.counts.plan.parts if "job" in part.columns)
    assert "astronaut" in jobs.levels[jobs.columns.index("job")].values
    np.testing.assert_allclose(found.posterior(inputs(data)), want.predict_proba(inputs(data)), atol=1e-9)


def test_token_weights_are_learned_from_more_rows():
    texts = [f"{'free prize' if i % 2 else 'see you'} word{i % 17} word{i % 23}" for i in range(300)]
    found = fit_source({"text": texts, "y": ["a", "b"] * 150}, 40, events={"text": DEFAULT_TEXT})
    assert found.term_weights.n_learned_rows == 200  # five times as many


def test_row_weights_of_a_sample_are_used():
    data = frame(2000).assign(w=RNG(6).choice([0.0, 1.0, 2.0], 2000))
    want = cd.BayesClassifier(sample_rows=400).fit(inputs(data, "w"), data["y"], sample_weight=data["w"])
    found = fit_source(data, 400, "w")
    np.testing.assert_allclose(found.posterior(inputs(data)), want.predict_proba(inputs(data, "w")), atol=1e-9)


def test_a_column_with_open_levels_is_in_no_pair():
    """Of levels that keep coming the look has met a part: a pair would take room for all of them."""
    data = frame(3000)
    data["town"] = [f"t{i}" if i % 3 == 0 else f"{job} town" for i, job in enumerate(data["b"])]

    def pairs(fitted):
        return {name for part in fitted.plan.parts if part.spec.sets for name in part.columns}

    assert {"a", "town"} <= pairs(fit_source(data, 3000))  # all rows are seen, and so all towns
    some = fit_source(data, 2000)
    assert "town" not in pairs(some)
    assert {"a", "b"} <= pairs(some)
    towns = next(part for part in some.counts.plan.parts if "town" in part.columns)
    assert len(towns.levels[towns.columns.index("town")]) == 1002  # alone it is counted whole


def test_nan_labels_are_missing():
    y = np.where(np.arange(90) % 9 == 0, np.nan, np.arange(90) % 2)
    data = pa.table({"x": RNG(0).normal(size=90), "c": RNG(1).choice(["u", "v"], 90), "y": y})
    model = cd.fit(data, "y", model="bayes")
    assert model.classes_.tolist() == [0, 1]
    assert model.counts_.n_rows == 80


# Text


def test_a_text_column_is_one_term():
    rng, n = RNG(0), 600
    y = rng.integers(0, 2, n)
    words = np.array([["pay", "money", "free", "offer"], ["meet", "lunch", "friend", "home"]])
    pick = np.where(rng.random((n, 9)) < 0.3, y[:, None], rng.integers(0, 2, (n, 9)))
    notes = [" ".join(list(line) * 5) for line in words[pick, rng.integers(0, 4, (n, 9))]]  # each word five times
    data = pd.DataFrame({"note": notes, "x": rng.normal(size=n) + y, "y": np.array(["spam", "ham"])[y]})
    train, test = data[:400], data[400:]
    found = cd.fit(train, "y", model="bayes")
    same(found, cd.BayesClassifier().fit(inputs(train), train["y"]), inputs(test))
    assert (found.predict(inputs(test)) == test["y"]).mean() > 0.75
    p, plain = (
        np.log(m.predict_proba(inputs(test)))[np.arange(200), np.searchsorted(m.classes_, test["y"])]
        for m in (found, cd.fit(train, "y", model="naive"))
    )
    assert p.mean() > plain.mean() + 0.1


# What is asked for


def test_naive_models_have_no_weights(known):
    data, _ = known
    same(cd.fit(data, "y", model="naive"), cd.NaiveBayes().fit(inputs(data), data["y"]), inputs(data))


@pytest.mark.parametrize("setting", [{"select": 3}, {"estimate": "map"}])
def test_settings_of_naive_bayes_are_refused(setting, known):
    with pytest.raises(InputError) as error:
        cd.fit(known[0], "y", model="bayes", **setting)
    assert [error.value.value] == list(setting.values())


def test_an_unknown_model_is_an_error(known):
    with pytest.raises(UnknownNameError) as error:
        cd.fit(known[0], "y", model="bays")
    assert error.value.value == "bays"


def test_through_the_command_line(known, tmp_path):
    data, want = known
    data.to_csv(tmp_path / "rows.csv", index=False)
    csv, model, out = (str(tmp_path / name) for name in ("rows.csv", "m.candide", "out.parquet"))

    def run(*words):
        result = CliRunner().invoke(cli, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    run("fit", csv, "--target", "y", "--model", "bayes", "-o", model)
    same(cd.load(model), want, inputs(data))
    run("predict", model, csv, "-o", out)
    np.testing.assert_allclose(pd.read_parquet(out)["p_yes"], want.predict_proba(inputs(data))[:, 1], atol=1e-9)
    scores = json.loads(run("evaluate", model, csv, "--json"))
    assert "0.8" in str(scores)  # of rows that are told rightly in 85 cases of 100
    assert "a x b" in run("explain", model, csv, "--row", "1")
    shown = run("show", model)
    assert "a x b" in shown
    assert "--model bayes" in shown


# Tables that tell nothing, or nearly


N = 60
HALF = np.array(["a", "b"])[np.arange(N) % 2]
ODD = {
    "all columns constant": ({"x": [1.0] * N, "c": ["k"] * N}, HALF),
    "one number": ({"x": np.linspace(0, 1, N) ** 2 + (HALF == "b")}, HALF),
    "one level column": ({"c": np.where(HALF == "a", "u", "v")}, HALF),
    "missing values only": ({"x": [np.nan] * N, "c": np.array([None] * N)}, HALF),
    "a number that is never there": ({"x": [np.nan] * N, "z": np.linspace(0, 1, N) ** 2}, HALF),
    "two rows a class": ({"x": [1.5, 2.0, 8.0, 9.5], "c": ["u", "u", "v", "v"]}, np.array(list("aabb"))),
    "one row a class": ({"x": [1.5, 9.0], "c": ["u", "v"]}, np.array(list("ab"))),
    "a class of one row": ({"x": RNG(0).normal(size=N), "c": RNG(1).choice(["u", "v"], N)}, np.array(["z", *HALF[1:]])),
    "a class a row": ({"x": RNG(0).normal(size=30), "c": ["u", "v", "w"] * 10}, np.arange(30)),
}


@pytest.mark.parametrize("name", ODD)
def test_degenerate_tables_give_finite_probabilities(name):
    X, y = ODD[name]
    want, found = cd.BayesClassifier().fit(X, y), cd.fit(pd.DataFrame({**X, "y": y}), "y", model="bayes")
    same(found, want, X)
    p = want.predict_proba(X)
    assert np.isfinite(p).all()
    shares = np.bincount(np.searchsorted(want.classes_, y)) / len(y)
    loss = -np.log(p[np.arange(len(y)), np.searchsorted(want.classes_, y)]).mean()
    assert loss < -(shares * np.log(shares)).sum() + 0.1  # hardly worse than the class shares


def test_a_balanced_design_gives_class_proportions():
    """Every combination once: a row that is left out is missed in its class, which must not be taken for knowledge."""
    rows = np.array(list(product(range(3), range(3), range(3), range(2))))
    X = {f"c{j}": np.array(["u", "v", "w"])[rows[:, j]] for j in range(4)}
    y = np.where(rows[:, 0] == rows[:, 1], "same", "other")
    model = cd.BayesClassifier().fit(X, y)
    assert (model.predict_proba(X)[np.arange(54), (y == "same").astype(int)] > 0.9).all()
    assert np.abs(np.concatenate(model.fitted_.term_weights.weight)).max() < 5
    assert {one.column for one in model.terms_.inactive} == set(X)


def test_infinity_is_an_error():
    X = {"x": RNG(0).normal(size=N), "z": RNG(1).normal(size=N)}
    model = cd.BayesClassifier().fit(X, HALF)
    far = {**X, "z": np.where(np.arange(N) == 7, np.inf, X["z"])}
    for work in (
        lambda: cd.BayesClassifier().fit(far, HALF),
        lambda: cd.fit(pd.DataFrame({**far, "y": HALF}), "y", model="bayes"),
        lambda: model.predict(far),
    ):
        with pytest.raises(InputError) as error:
            work()
        assert (error.value.column, error.value.row, error.value.value) == ("z", 7, np.inf)


@pytest.mark.parametrize("y", [["a"] * N, [None] * N])
def test_fewer_than_two_classes_are_an_error(y):
    with pytest.raises(InputError) as error:
        cd.fit(pd.DataFrame({"x": RNG(0).normal(size=N), "y": np.array(y, object)}), "y", model="bayes")
    assert error.value.column == "y"


def test_levels_of_a_csv_are_indicators(tmp_path):
    """Levels that are alike and tell by their difference: of text that may stand for numbers."""
    rng = RNG(0)
    codes = np.where(rng.random((600, 6)) < 0.7, rng.integers(0, 3, (600, 1)), rng.integers(0, 3, (600, 6)))
    names = np.array([["low", "mid", "high"], ["1", "2", "more"]])
    columns = {f"c{j}": names[j % 2][codes[:, j]] for j in range(6)}
    gap = (codes * [1, -1, 1, -1, 1, -1]).sum(axis=1)
    data = pd.DataFrame({**columns, "y": np.where(gap + 0.5 * rng.normal(size=600) > 0, "yes", "no")})
    data.to_csv(tmp_path / "t.csv", index=False)
    found, want = cd.fit(tmp_path / "t.csv", "y"), cd.BayesClassifier().fit(inputs(data), data["y"])
    assert "linear discriminant of 6 categories" in {voice.title for voice in found.terms_}
    same(found, want, inputs(data))


def test_naive_cannot_be_like_a_weighted_model(known):
    data, model = known
    with pytest.raises(InputError) as error:
        cd.fit(data, "y", model="naive", like=model)
    assert error.value.value == "naive"


def test_notes_name_the_columns_left_out():
    data = frame(60).assign(id=[f"customer {i}" for i in range(60)])
    with pytest.warns(DataWarning, match="'id' is left out"):
        cd.BayesClassifier().fit(inputs(data), data["y"])


# Settings


@pytest.mark.parametrize("terms", ["columns", "interactions", "all", "tables"])
def test_terms_limit_the_kinds_of_terms(terms):
    rng = RNG(0)
    a, b = rng.integers(0, 2, (2, 600))
    x = rng.normal(size=(600, 2))
    y = np.where((x**2).sum(axis=1) < 1.4, a ^ b, a)
    X = {"a": np.array(["m", "w"])[a], "b": np.array(["old", "new"])[b], "x": x[:, 0], "z": x[:, 1]}
    model = cd.BayesClassifier(terms=terms).fit(X, y)
    events = {part.event.name for part in model.counts_.plan.parts}
    assert events >= {"categorical", "binned"}
    assert ("interaction" in events, "discriminant" in events, "prototype" in events) == (
        terms in ("interactions", "all"),  # what a pair shows, the tables show first
        terms in ("all", "tables"),
        terms in ("all", "tables"),
    )
    assert ("decision_tables" in events) == (terms == "tables")
    with pytest.raises(UnknownNameError) as error:
        cd.BayesClassifier(terms="pairs").fit(X, y)
    assert error.value.value == "pairs"


def test_parameters_are_those_of_the_settings():
    params = cd.BayesClassifier().get_params()
    assert params.keys() - {"class_prior", "param_priors", "like"} == {f.name for f in fields(WeightedSettings)[1:]}
    assert all(params[field.name] == field.default for field in fields(WeightedSettings)[1:])


@pytest.mark.parametrize("prior", ["uniform", {0: 0.5, 1: 0.5}, np.array([0.5, 0.5])])
def test_calibration_needs_the_class_proportions_of_the_rows(prior):
    with pytest.raises(InputError) as error:
        WeightedSettings(Settings(class_prior=prior), calibration="logistic")
    assert error.value.value is prior


def test_settings_of_the_weighted_model_reach_it_from_every_function(known):
    data, _ = known
    options = {"terms": "columns", "sample_rows": 300, "random_state": 7}
    want = cd.BayesClassifier(**options).fit(inputs(data), data["y"])
    found = cd.fit(data, "y", **options)
    same(found, want, inputs(frame(100, seed=1)))
    assert {name: found.get_params()[name] for name in options} == options
    assert {term.kind for term in found.terms_} == {"column"}
    fitted = cd.cross_validate(data, "y", folds=3, **options).fit_result.fitted
    assert fitted.term_weights.n_learned_rows == 300
    with pytest.raises(UnknownNameError):
        cd.fit(data, "y", terms="pairs")
    with pytest.raises(InputError) as error:
        cd.fit(data, "y", model="naive", sample_rows=300)
    assert error.value.value == 300


# The chain of calls


def call_chains(fit):
    """The functions of the package between a call and the optimiser, for every way there."""
    chains, learn_weights = set(), optimizer.learn_weights
    root = str(Path(cd.__file__).parent)

    def record(*args, **options):
        codes = [frame.f_code for frame, _ in traceback.walk_stack(sys._getframe(1))]
        chain = [code.co_name for code in codes if code.co_filename.startswith(root)]
        chains.add(tuple(reversed(chain)))
        return learn_weights(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizer, "learn_weights", record)
        fit()
    return chains


def test_the_optimiser_is_five_calls_from_the_public_function(tmp_path):
    data = frame(700)
    data.to_parquet(tmp_path / "rows.parquet")
    chains = call_chains(lambda: cd.BayesClassifier(sample_rows=300).fit(inputs(data), data["y"]))
    [chain] = [chain for chain in chains if "learn_term_weights" in chain]
    assert chain == ("fit", "_fit_rows", "fit_weighted", "learn_term_weights", "learn_non_text_weights")
    selecting = ("fit", "_fit_rows", "fit_weighted", "select_terms", "learn_non_text_weights")
    assert chains == {chain, selecting}
    chains = call_chains(lambda: cd.fit(tmp_path / "rows.parquet", "y"))
    assert chains == {("fit", "fit_model", "fit_weighted", "select_terms", "learn_non_text_weights")}
    model = cd.BayesClassifier().fit(inputs(data), data["y"])
    chains = call_chains(lambda: cd.fit(tmp_path / "rows.parquet", "y", like=model))
    [chain] = [chain for chain in chains if "learn_term_weights" in chain]
    assert chain == ("fit", "fit_model", "fit_weighted", "learn_term_weights", "learn_non_text_weights")
