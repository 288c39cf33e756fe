"""Leukaemia from 7129 genes: genes are chosen on the 38 training samples, and the 34 official test samples judge."""

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests import tables

import candide as cd

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "golub.py"
GOLUB = "golub_leukemia.parquet"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("golub", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.all_cases
def test_at_most_three_errors(example):
    found = example.run(tables.table(GOLUB))
    assert len(found.genes) == 7129
    assert len(found.y) == 34
    assert found.errors <= 3
    assert found.model.counts_.n_rows == 38
    assert len(found.model.fitted_.plan.columns) == found.model.select


@pytest.mark.all_cases
def test_the_test_samples_do_not_affect_the_choice(example, tmp_path):
    table = pq.read_table(tables.table(GOLUB))
    train = pc.equal(table["split"], "train")
    nonsense = [pc.if_else(train, table[name], 0) for name in table.column_names[:-2]]
    spoiled = pa.table([*nonsense, table["split"], table["class"]], names=table.column_names)
    pq.write_table(spoiled, tmp_path / "spoiled.parquet")
    honest, other = example.run(tables.table(GOLUB)), example.run(tmp_path / "spoiled.parquet")
    assert honest.log_loss == other.log_loss
    assert honest.model.fitted_.plan.columns == other.model.fitted_.plan.columns


def test_evidence_needs_no_tuning():
    table = pq.read_table(tables.table(GOLUB))
    y, train = np.array(table["class"]), np.array(table["split"]) == "train"
    X = table.drop_columns(["class", "split"])
    model = cd.NaiveBayes(select="evidence").fit(X.filter(train), y[train])
    assert 0 < len(model.fitted_.plan.columns) < 7129
    needed = X.filter(~train).select(list(model.fitted_.plan.columns))
    assert (model.predict(needed) != y[~train]).sum() <= 3


@pytest.mark.all_cases
def test_the_script_says_what_it_found_and_draws_every_test_sample(example, tmp_path, capsys, monkeypatch):
    tables.table(GOLUB)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from candide import plot

    drawn = []
    draw = plot.discriminant
    monkeypatch.setattr(plot, "discriminant", lambda *a, **k: drawn.append(draw(*a, **k)) or drawn[-1])
    found = example.main(tmp_path)
    assert f"{found.errors} errors in 34 test samples" in capsys.readouterr().out
    assert (tmp_path / "golub.png").stat().st_size > 5000
    [ax] = drawn
    heights = sorted(bar.get_height() for bar in ax.patches)
    log_p = found.model.predict_joint_log_proba(found.X)
    np.testing.assert_allclose(heights, sorted(log_p[:, 1] - log_p[:, 0]), rtol=1e-6)
