"""Rows and predictions in JSON, JSON lines, CSV and Arrow; tables too large to be read are rejected."""

import io
import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from tests.serve.client import ask, stream
from tests.serve.conftest import documents, table
from tests.serve.test_http import problem

import candide as cd
from candide.data.table import Table
from candide.serve import Limits, app

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


@pytest.mark.parametrize(
    "text",
    [
        "height\n1\n\n3\n",
        "height\n\n1\n\n\n",
        "height,soil\n1,clay\n\n3,sand\n",
        "height,soil\r\n1,clay\r\n\r\n3,sand",
        '"height","soil"\n1,"cl\nay"\n2,"sa""nd"\n3,c"lay\n',
        "\n\nheight,soil\n1,clay\n",
        "height,soil",
        ' height ,soil , kind,"wet "\n1,clay,oak,1\n',
    ],
)
def test_rows_of_csv_are_those_that_predict_finds(models, served, text, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = cd.predict_table(models["naive"], str(path)).to_pylist()
    found = ask(served, "/predict", text.encode(), CSV, accept="application/json").json
    assert [row["prediction"] for row in found] == [row["prediction"] for row in wanted]
    assert [row["p_cut"] for row in found] == pytest.approx([row["p_cut"] for row in wanted])


@pytest.mark.parametrize("body", [b"", b"\r\n \n", b"\xef\xbb\xbf"])
def test_a_csv_without_anything(served, body):
    assert problem(ask(served, "/predict", body, CSV), 400)["detail"] == "the body is empty"


BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4), pa.dictionary(pa.int8(), pa.binary())]


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_are_text(served, kind):
    for words in (["clay", "sand", None, "loam"], ["clay"] * 9):
        rows = [{"soil": word, "height": 1.0} for word in words]
        column = pa.array([word and word.encode() for word in words])
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        sent = stream({"soil": column, "height": [1.0] * len(words)})
        for path in ("/predict", "/explain"):
            assert ask(served, path, sent, ARROW, accept="application/json").json == ask(served, path, rows).json


def test_bytes_that_are_not_text(served):
    columns = {"height": [1.0], "soil": pa.array([b"cl\xff"]), "of another": pa.array([b"\xff"])}
    told = problem(ask(served, "/predict", stream(columns), ARROW), 422)
    assert (told["column"], told["value"]) == ("soil", "binary")
    del columns["soil"]
    assert ask(served, "/predict", stream(columns), ARROW).status == 200


@pytest.mark.parametrize("last", ['2,"sand\n', '2,"sand\n3,clay\n', '2,"sand\n3,"clay"\n', '2,"sa"nd\n'])
def test_a_quote_that_is_not_closed(served, last):
    told = problem(ask(served, "/predict", f'height,soil\n1,"clay"\n{last}'.encode(), CSV), 400)
    assert (told["value"], "line 3" in told["detail"]) == (3, True)


def test_columns_are_counted_before_they_are_made(models):
    served = app(models["naive"], limits=Limits(max_columns=5, max_cells=12))
    names = [f"c{i}" for i in range(6)]
    row = dict.fromkeys(names, 1)
    split = {"dataframe_split": {"columns": names, "data": [[1] * 6]}}
    tensors = [{"name": name, "shape": [1], "datatype": "INT64", "data": [1]} for name in names]
    for path, body, media in [
        ("/predict", ",".join(names).encode(), CSV),
        ("/predict", stream({name: [1] for name in names}), ARROW),
        ("/predict", row, "application/json"),
        ("/predict", [row], "application/json"),
        ("/invocations", split, "application/json"),
        ("/invocations", {"inputs": {name: [1] for name in names}}, "application/json"),
        ("/v2/models/model/infer", {"inputs": tensors}, "application/json"),
    ]:
        told = problem(ask(served, path, body, media), 413)
        assert (told["value"], "6 columns" in told["detail"]) == (6, True)
    told = problem(ask(served, "/predict", [{str(i): 1} for i in range(4)]), 413)
    assert told["value"] == 16
    assert ask(served, "/predict", [{"height": 1, str(i): 1} for i in range(3)]).status == 200


def test_keys_of_each_row_its_own(served):
    """A megabyte of JSON that names ten thousand million cells."""
    told = problem(ask(served, "/predict", [{str(i): 1} for i in range(100_000)]), 413)
    assert told["value"] == 10**10


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
def test_text_that_is_stored_once_for_many_rows(models, kind):
    served = app(models["naive"], limits=Limits(max_body_bytes=200_000))
    text = pa.array(["x" * 1000, "clay"]).cast(kind)
    for at, status in [(0, 413), (1, 200)]:
        coded = pa.DictionaryArray.from_arrays(pa.array([at, None] * 300, pa.int8()), text)
        for path in ("/predict", "/explain"):
            answer = ask(served, path, stream({"soil": coded, "height": [1.0] * 600}), ARROW, accept="*/*")
            assert answer.status == status, answer.body[:200]
    assert ask(served, "/explain", stream({"soil": pa.array(["x" * 100_000]).cast(kind)}), ARROW).status == 200


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.RunEndEncodedArray.from_arrays([1], ["clay"]),
    ],
)
def test_values_that_are_many_in_one(served, column):
    told = problem(ask(served, "/predict", stream({"height": [1.0], "soil": column}), ARROW), 422)
    assert (told["column"], told["value"]) == ("soil", str(column.type))


def test_what_begins_many_columns_is_done_on_a_thread(models, monkeypatch):
    """And so is whatever is to be explained: others are answered meanwhile."""
    served, handed = app(models["naive"]), []
    submit = served._workers.submit
    monkeypatch.setattr(
        served._workers, "submit", lambda work, *given: handed.append(work.__name__) or submit(work, *given)
    )
    ask(served, "/predict", {"height": 1.0})
    assert handed == []
    ask(served, "/predict", b"height\n1\n", "Text/CSV")
    ask(served, "/explain", {"height": 1.0})
    assert handed == ["predict", "explain"]


def test_a_line_of_json_is_named_by_its_row(served):
    for line in (b'{"height": [1]}', b"{", b'{"height": 1e400}'):
        told = ask(served, "/predict", b'{"height": 1}\n\n{"height": 2}\n' + line, LINES).json
        assert told["row"] == 2
