"""What is served is what ``predict`` says of the same rows, in every format, one row at a time and many."""

import json
import warnings

import numpy as np
import pytest
from tests.serve.client import ask
from tests.serve.conftest import documents, table

import candide as cd
from candide.data.table import Table
from candide.serve import app, endpoints

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


@pytest.mark.parametrize("name", ["naive", "bayes", "laws", "decides", "numbers", "documents"])
def test_json_rows_one_or_many(models, name):
    served, rows = app(models[name]), rows_for(name)
    wanted = expected(models[name], rows)
    same(ask(served, "/predict", rows).json, wanted)
    for again in range(2):  # at first what is read, then what was kept
        same([ask(served, "/predict", row).json for row in rows[: 40 // (again + 1)]], wanted[: 40 // (again + 1)])


def test_notes_come_with_the_response(served):
    answer = ask(served, "/predict", {"height": 12.0, "soil": "Clay", "Age": 3})
    assert answer.status == 200
    absent, unseen = answer.notes
    assert absent["code"] == "column-absent"
    assert "'Age' for 'age'" in absent["text"]
    assert (unseen["code"], unseen["column"]) == ("unseen", "soil")
    assert answer.json["warnings"] == answer.notes
    whole = dict.fromkeys(("height", "age", "soil", "wet", "site", "kind"))
    answer = ask(served, "/predict", whole)
    assert (answer.notes, "warnings" in answer.json) == ([], False)


def test_warnings_in_every_json_response(served):
    """On the columns of the request: in a list the first row has them, and CSV and Arrow have the header alone."""
    rows = [{"height": 12.0, "soil": "clay", "Age": 3}] * 3
    [note, *_] = ask(served, "/predict", rows).notes
    for path in ("/predict", "/explain"):
        for media in ("application/json", LINES) if path == "/predict" else ("application/json",):
            answer = ask(served, path, rows, accept=media)
            told = answer.json if media != LINES else [json.loads(line) for line in answer.body.splitlines()]
            assert [one.get("warnings") for one in told] == [[note], None, None]
        assert ask(served, path, rows[0]).json["warnings"] == [note]
    assert ask(served, "/invocations", {"dataframe_records": rows}).json["warnings"] == [note]
    inputs = [{"name": "height", "shape": [1], "datatype": "FP64", "data": [12.0]}]
    assert "lacks 'age'" in ask(served, "/v2/models/trees/infer", {"inputs": inputs}).json["parameters"]["warnings"]
    text = ask(served, "/predict", rows, accept=CSV)
    assert text.notes == [note]
    assert b"warnings" not in text.body


def test_explain_as_the_estimator_does(models):
    from candide.explain.rows import explain_table

    rows = rows_for("bayes")[:6]
    told = ask(app(models["bayes"]), "/explain", rows).json
    columns = {str(n): [row.get(n) for row in rows] for n in models["bayes"].plan.columns}
    for one, wanted in zip(told, explain_table(models["bayes"], columns), strict=True):
        assert one["prediction"] == wanted.prediction
        assert one["log_odds"] == pytest.approx(wanted.log_odds)
        assert [c["log_odds"] for c in one["contributions"]] == pytest.approx(
            [c.log_odds for c in wanted.contributions]
        )
    alone = ask(app(models["bayes"]), "/explain?by=column", {**rows[0], "kind": "oak"}).json
    assert {c["column"] for c in alone["contributions"]} <= set(columns)
    assert alone["log_odds"] == pytest.approx(sum(c["log_odds"] for c in alone["contributions"]) + alone["class_prior"])


def test_the_name_of_a_downloaded_model_is_plain_and_exact():
    expected = "attachment; filename=\"my__best_.candide\"; filename*=UTF-8''my%20%22best%22.candide"
    assert endpoints._content_disposition('my "best"') == expected
