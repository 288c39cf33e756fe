"""Rows and predictions in JSON, JSON lines, CSV and Arrow."""

import io
import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from tests.serve.client import ask
from tests.serve.conftest import documents, table

import candide as cd
from candide.data.table import Table
from candide.serve import app

ARROW, CSV, LINES = "application/vnd.apache.arrow.stream", "text/csv", "application/x-ndjson"


def rows_for(name):
    """Rows as a client may send them: gaps, new levels, columns of no use, and such as lack some."""
    if name == "numbers":
        return [dict(zip("012", row, strict=True)) for row in np.random.default_rng(2).normal(size=(40, 3)).tolist()]
    columns = documents()[0] if name == "documents" else table(60, seed=5)[0]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if name != "documents":
        rows[3] |= {"soil": "peat", "site": "s99", "colour": "green"}
        rows[4] = {"height": 12, "age": 30.5, "soil": "clay"}
        rows[5] |= {"wet": None, "kind": None}
        rows[6] |= {"wet": 1.0}
        rows[7] |= {"height": 1e9, "age": 0}
        rows[8] |= {"site": "x" * 200}
    return rows


def expected(model, rows):
    """The scored table of ``predict``, of rows in memory."""
    names = dict.fromkeys(name for row in rows for name in row)
    known = {str(name): name for name in model.plan.columns}
    columns = {known.get(name, name): [row.get(name) for row in rows] for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cd.predict_table(model, Table.from_data(columns)).to_pylist()


def same(found, wanted):
    """Whether answers are these, but for warnings."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert [name for name in one if name != "warnings"] == list(other)
        for name in other:
            if name == "prediction" or other[name] is None:
                assert one[name] == other[name]
            else:
                assert one[name] == pytest.approx(other[name], rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("name", ["naive", "bayes"])
def test_predictions_in_every_format(models, name, tmp_path):
    served, rows = app(models[name]), rows_for(name)
    wanted = expected(models[name], rows)
    lines = b"\n".join(json.dumps(row).encode() for row in rows)
    answer = ask(served, "/predict", lines, LINES, accept="*/*")
    assert answer.headers["content-type"] == LINES
    same([json.loads(line) for line in answer.body.splitlines()], wanted)
    held, sent = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_stream(sent, held.schema) as stream:
        stream.write_table(held)
    answer = ask(served, "/predict", sent.getvalue(), ARROW, chunks=7)
    same(pa.ipc.open_stream(answer.body).read_all().to_pylist(), wanted)
    pc.write_csv(held, tmp_path / "rows.csv")
    answer = ask(served, "/predict", (tmp_path / "rows.csv").read_bytes(), CSV, accept="application/json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(answer.json, cd.predict_table(models[name], str(tmp_path / "rows.csv")).to_pylist())
    answer = ask(served, "/predict", (tmp_path / "rows.csv").read_bytes(), CSV)
    assert answer.body.splitlines()[0] == b'"prediction","p_cut","p_stay","log_density"'


def test_no_rows(served):
    assert ask(served, "/predict", []).json == []
    assert ask(served, "/explain", []).json == []


def test_numbers_and_booleans_differ(models):
    """1, 1.0, true and "1" are kept apart, though they are equal as keys."""
    served = app(models["naive"])
    for wet in (1, True, 1.0, "1", 0, False, "0", 2, "wet"):
        row = {"height": 9.0, "wet": wet}
        same([ask(served, "/predict", row).json], expected(models["naive"], [row]))
