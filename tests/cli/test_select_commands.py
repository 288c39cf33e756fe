"""Choosing columns from the command line, and the scores that ``candide show`` prints."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.feature_selection import f_classif
from tests.cli.typed import ask, run


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    columns = {f"noise{i}": rng.normal(size=400).round(4) for i in range(5)}
    columns["signal"] = rng.normal(y).round(4)
    path = tmp_path_factory.mktemp("select") / "rows.csv"
    pyarrow.csv.write_csv(pa.table({**columns, "kind": pa.array(y).cast(pa.string())}), path)
    return path, columns, y


def test_show_prints_the_scores_and_marks_the_chosen(table, tmp_path):
    path, columns, y = table
    model = tmp_path / "m.candide"
    assert (
        "6 columns, 1 of them selected"
        in run("fit", "--model=naive", path, "-t", "kind", "--select", "1", "-o", model).output
    )
    output = run("show", model).output
    assert output.count("not selected") == 5
    facts = ask("show", model)
    assert facts["select"] == 1
    assert [c["column"] for c in facts["columns"] if c["conditionals"]] == ["signal"]
    scores = {score["column"]: score for score in facts["scores"]}
    assert set(scores) == set(columns)
    assert [name for name, score in scores.items() if score["is_selected"]] == ["signal"]
    f, p = f_classif(columns["signal"][:, None], y)
    assert scores["signal"]["statistic"] == pytest.approx(f[0], rel=1e-9)
    assert scores["signal"]["p_value"] == pytest.approx(p[0], rel=1e-6)
    assert f"F = {f[0]:.2f}" in output


def test_a_chosen_model_reads_only_its_columns_and_goes_on_counting_all(table, tmp_path):
    path, columns, _ = table
    model, alone = tmp_path / "m.candide", tmp_path / "alone.csv"
    assert run("fit", "--model=naive", path, "-t", "kind", "--select", "evidence", "-o", model).exit_code == 0
    pyarrow.csv.write_csv(pa.table({"signal": columns["signal"]}), alone)
    assert run("predict", model, alone).output == run("predict", model, path).output
    assert ask("update", model, path)["rows_in_model"] == 800
    assert ask("show", model)["select"] == "evidence"


def test_evaluate_chooses_in_every_fold(table):
    path, _, _ = table
    chosen, all_columns = (
        ask("evaluate", "--model=naive", path, "-t", "kind", *more) for more in (("--select", "1"), ())
    )
    assert chosen["metrics"]["accuracy"]["value"] > 0.5
    assert chosen["metrics"]["log_loss"]["value"] < all_columns["metrics"]["log_loss"]["value"]


@pytest.mark.parametrize("select", ["0", "-2", "0.5", "best"])
def test_what_is_not_a_choice(table, select):
    result = run("fit", "--model=naive", table[0], "-t", "kind", f"--select={select}")
    assert result.exit_code == 1
    assert result.exception.value == select
    assert result.exception.remedy == "pass a number of columns >= 1, or 'evidence'"
