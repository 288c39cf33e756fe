"""What `candide fit` says of a weighted model: how it does on rows held out, and how strong each column is."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.typed import ask, run

import candide as cd
from candide import demo, formatting
from candide.metrics.formulas import METRICS
from candide.report.summary import HeldOutSummary


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "herbs.parquet"
    columns, y = demo.garden_rows(400, seed=1)
    pq.write_table(pa.table({**{n: pa.array(c, from_pandas=True) for n, c in columns.items()}, "herb": y}), path)
    return path


def test_a_fit_states_what_it_may_be_trusted_for(herbs):
    found = ask("fit", herbs, "-t", "herb", "--model", "bayes")["held_out"]
    assert (found["rows"], found["folds"]) == (400, 3)
    assert found["term_counts"]["column"] >= 4
    assert found["baseline_metrics"]["auc"] == 0.5
    assert found["model_metrics"]["log_loss"] < found["baseline_metrics"]["log_loss"]
    plain = cd.cross_validate(str(herbs), "herb", model="naive", folds=3).total
    assert found["naive_bayes_metrics"]["accuracy"] == pytest.approx(plain.accuracy, abs=0.03)  # other folds
    text = " ".join(run("fit", herbs, "-t", "herb", "--model", "bayes").output.split())
    for who, of in (
        ("this model", "model_metrics"),
        ("naive Bayes", "naive_bayes_metrics"),
        ("class prior", "baseline_metrics"),
    ):
        assert f"{who} {' '.join(f'{found[of][name]:.3f}' for name in ('accuracy', 'auc', 'log_loss'))}" in text
    assert f"Held-out accuracy {formatting.format_percent(found['model_metrics']['accuracy'])}." in text
    assert "3-fold cross-validation on 400 rows" in text


@pytest.mark.parametrize(
    ("own", "plain", "verdict"),
    [
        (0.3, 0.4, "lower than that of naive Bayes"),
        (0.4, 0.3, "--model naive"),
        (0.7, 0.8, "no better than that of the class prior"),
    ],
)
def test_and_what_that_is_worth(own, plain, verdict):
    each = ({"accuracy": 0.8, "auc": 0.9, "log_loss": loss} for loss in (own, plain, 0.6))
    assert verdict in " ".join(str(HeldOutSummary(100, 3, {"column": 2}, *each)).split())


def test_the_strength_of_a_column_is_the_one_that_is_shown(herbs, tmp_path):
    found = ask("fit", herbs, "-t", "herb", "-o", tmp_path / "m.candide")
    assert found["importances"].keys() == {one["column"] for one in found["columns"]}
    known = ask("show", tmp_path / "m.candide")
    assert known["importances"] == found["importances"]
    total = {one["column"]: one["importance"] for one in known["effects"]}
    assert total.items() <= found["importances"].items()
    assert list(found["importances"].values()) == sorted(found["importances"].values(), reverse=True)


def test_what_metrics_mean_fits_an_ordinary_terminal(herbs):
    output = run("evaluate", herbs, "-t", "herb", "--folds", "3", width=80).output
    assert all(meaning in output for meaning in (metric.meaning for metric in METRICS.values()))


@pytest.mark.parametrize("typed", [["--model", "bayes", "--quick"], ["--model", "naive"]])
def test_or_nothing_of_it(herbs, typed):
    assert ask("fit", herbs, "-t", "herb", *typed)["held_out"] is None
    assert "Held-out" not in run("fit", herbs, "-t", "herb", *typed).output


def test_a_weighted_model_is_cross_validated(herbs):
    folds = ask("evaluate", herbs, "-t", "herb", "--model", "bayes", "--folds", "3")
    fitted = ask("fit", herbs, "-t", "herb", "--model", "bayes", "--folds", "3")["validation"]
    assert folds["metrics"]["log_loss"] == fitted["metrics"]["log_loss"]
    assert folds["metrics"]["weighted_auc"]["value"] > 0.9
    wanted = cd.cross_validate(str(herbs), "herb", model="bayes", folds=3).total.log_loss
    assert folds["metrics"]["log_loss"]["value"] == pytest.approx(wanted, rel=1e-12)


def test_a_calibrated_model_is_kept_and_not_cross_validated(herbs, tmp_path):
    found = ask(
        "fit", herbs, "-t", "herb", "--model", "bayes", "--calibration", "logistic", "-o", tmp_path / "m.candide"
    )
    assert found["held_out"]["model_metrics"]["log_loss"] > 0
    assert ask("evaluate", tmp_path / "m.candide", herbs)["metrics"]["accuracy"]["value"] > 0.9
    refused = run("fit", herbs, "-t", "herb", "--model", "bayes", "--calibration", "logistic", "--folds", "3")
    assert refused.exit_code == 1
    assert refused.exception.value == "logistic"


def test_a_prior_unlike_the_rows_is_named_and_no_column_is_blamed(tmp_path):
    rng = np.random.default_rng(2)
    y = rng.random(600) < 0.05
    path = tmp_path / "rows.csv"
    path.write_text(
        "x,y\n" + "".join(f"{x:.2f},{'ab'[c]}\n" for x, c in zip(rng.normal(y * 0.3), y.astype(int), strict=True))
    )
    for command in (["evaluate", path, "--target", "y"], ["evaluate", path, "--target", "y", "--model", "naive"]):
        notes = " ".join(ask(*command, "--class-prior", "uniform")["notes"])
        assert "the class prior of" in notes, notes
        assert "redundant columns" not in notes
        assert "uniform" not in notes
