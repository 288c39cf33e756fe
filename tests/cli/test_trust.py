"""What `candide fit` says of a weighted model, in one line."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.test_cli import ask, run

from candide import demo
from candide.evaluate import cross_validate


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "herbs.parquet"
    columns, y = demo.rows(400, seed=1)
    pq.write_table(pa.table({**{n: pa.array(c, from_pandas=True) for n, c in columns.items()}, "herb": y}), path)
    return path


def test_a_fit_says_what_it_may_be_trusted_for(herbs):
    found = ask("fit", herbs, "-t", "herb", "--model", "bayes")["held_out"]
    assert (found["rows"], found["folds"]) == (400, 3)
    assert found["voices"]["column"] >= 4
    assert found["baseline"]["auc"] == 0.5
    assert found["model"]["log_loss"] < found["baseline"]["log_loss"]
    plain = cross_validate(str(herbs), "herb", model="naive", folds=3).total
    assert found["plain"]["accuracy"] == pytest.approx(plain.accuracy, abs=0.03)  # other folds
    text = " ".join(run("fit", herbs, "-t", "herb", "--model", "bayes").output.split())
    assert f"accuracy {found['model']['accuracy']:.3f}" in text
    assert "3 folds of 400" in text


@pytest.mark.parametrize("typed", [["--model", "bayes", "--quick"], ["--model", "naive"]])
def test_or_nothing_of_it(herbs, typed):
    assert "held_out" not in ask("fit", herbs, "-t", "herb", *typed)
    assert "Heard" not in run("fit", herbs, "-t", "herb", *typed).output


def test_a_weighted_model_is_cross_validated(herbs):
    folds = ask("evaluate", herbs, "-t", "herb", "--model", "bayes", "--folds", "3")
    fitted = ask("fit", herbs, "-t", "herb", "--model", "bayes", "--folds", "3")["cross_validation"]
    assert folds["log_loss"] == fitted["log_loss"]
    assert folds["weighted_auc"]["value"] > 0.9
    wanted = cross_validate(str(herbs), "herb", model="bayes", folds=3).total.log_loss
    assert folds["log_loss"]["value"] == pytest.approx(wanted, rel=1e-12)


def test_a_calibrated_model_is_kept_and_not_cross_validated(herbs, tmp_path):
    found = ask(
        "fit", herbs, "-t", "herb", "--model", "bayes", "--calibration", "logistic", "-o", tmp_path / "m.candide"
    )
    assert found["held_out"]["model"]["log_loss"] > 0
    assert ask("evaluate", tmp_path / "m.candide", herbs)["accuracy"]["value"] > 0.9
    refused = run("fit", herbs, "-t", "herb", "--model", "bayes", "--calibration", "logistic", "--folds", "3")
    assert refused.exit_code == 1
    assert refused.exception.value == 3
