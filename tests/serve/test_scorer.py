"""Names with characters that JSON, CSV, HTML or a shell treat specially, and the cache of encoded values."""

import csv
import html
import io
import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.serve.client import ask

import candide as cd
from candide.errors import InputError
from candide.serve import app

ARROW, CSV, LINES = "application/vnd.apache.arrow.stream", "text/csv", "application/x-ndjson"
NAMES = ['say "hi"', "back\\slash", "tab\there", "nul\0", "new\nline", "\x7f\u2028\u00e9", "a,b", "</script>", "it's"]


def model_with(name):
    """A model with a class, a column and a level of this name."""
    columns = {name: [1.5, 2.0, 3.2, 5.0] * 5, "soil": [name, "clay", "clay", name] * 5}
    return cd.NaiveBayes().fit(columns, [name, "other", "other", name] * 5).fitted_


@pytest.mark.parametrize("name", NAMES)
def test_answers_in_every_format(name):
    served, rows = app(model_with(name), name="m"), [{name: 1.5, "soil": name}, {name: 2.0, "soil": "clay"}]
    alone = [ask(served, "/predict", row).json for row in rows]
    assert set(alone[0]) == {"prediction", f"p_{name}", "p_other", "log_density"}
    assert alone[0]["prediction"] == name
    assert ask(served, "/predict", rows).json == alone
    lines = ask(served, "/predict", rows, accept=LINES).body.splitlines()
    assert [json.loads(line) for line in lines] == alone
    table = pa.ipc.open_stream(ask(served, "/predict", rows, accept=ARROW).body).read_all()
    assert table.to_pylist() == alone
    text = ask(served, "/predict", rows, accept=CSV).body.decode()
    records = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(one["prediction"], float(one[f"p_{name}"])) for one in records] == [
        (one["prediction"], pytest.approx(one[f"p_{name}"])) for one in alone
    ]
    assert ask(served, "/invocations", {"dataframe_records": rows}).json["predictions"] == [name, "other"]
    tensors = [{"name": name, "shape": [1], "datatype": "FP64", "data": [1.5]}]
    inferred = ask(served, "/v2/models/m/infer", {"inputs": tensors}).json
    assert f"p_{name}" in [one["name"] for one in inferred["outputs"]]


@pytest.mark.parametrize("name", NAMES)
def test_explanations_descriptions_and_the_page(name):
    served, row = app(model_with(name), name="m"), {name: 1.5, "soil": name}
    why = ask(served, "/explain", row).json
    assert why["prediction"] == name
    assert ask(served, "/explain?by=column", [row]).json[0]["prediction"] == name
    known = ask(served, "/openapi.json").json["components"]["schemas"]
    assert f"p_{name}" in known["Prediction"]["properties"]
    assert name in known["Row"]["properties"]
    assert name in [one["name"] for one in ask(served, "/columns").json["columns"]]
    assert name in [one["name"] for one in ask(served, "/v2/models/m").json["inputs"]]
    page = ask(served, "/").body.decode()
    assert name in json.loads(page.partition('id="settings">')[2].partition("</script>")[0])["classes"]
    shell = html.unescape(re.search(r"<pre>(.*)</pre>", ask(served, "/docs").body.decode(), re.DOTALL)[1])
    assert name in json.loads(shlex.split(shell)[4])
    assert [ask(served, path).status for path in ("/model", "/report", "/metrics")] == [200] * 3


@pytest.mark.parametrize("name", NAMES)
def test_notes_in_a_header(name):
    answer = ask(app(model_with(name)), "/predict", {name: 1.5, "soil": f"new {name}"})
    assert answer.headers["candide-notes"].isascii()
    assert [(one["code"], one["column"]) for one in answer.notes] == [("unseen", "soil")]


@pytest.mark.parametrize("name", NAMES)
def test_a_learned_class(name, path):
    base = cd.NaiveBayes().fit({"a": [1.5, 2.0, 3.2, 5.0] * 5}, ["x", "y", "y", "x"] * 5).fitted_
    served = app(replace(base, target="kind"), journal_path=path, allow_new_classes=True)
    try:
        for _ in range(3):
            assert ask(served, "/learn", {"a": 90.0, "kind": name}).status == 200
        [answer] = ask(served, "/predict", [{"a": 2.0}]).json
        assert set(answer) == {"prediction", f"p_{name}", "p_x", "p_y", "log_density"}
    finally:
        served.close()


def test_two_classes_written_the_same():
    """The number 1 and the text "1" would both be reported as p_1."""
    two = cd.NaiveBayes().fit({"a": [1.0, 2.0, 3.5, 4.0] * 3}, np.array([1, "1"] * 6, object)).fitted_
    with pytest.raises(InputError) as error:
        app(two)
    assert error.value.value == "p_1"
    assert error.value.remedy


def test_a_learned_class_written_like_another(path):
    base = cd.NaiveBayes().fit({"a": [1.5, 2.0, 3.2, 5.0] * 5}, ["x", "y", "y", "x"] * 5).fitted_
    served = app(replace(base, target="kind"), journal_path=path, allow_new_classes=True)
    try:
        for rows in ([{"a": 1.0, "kind": 7}, {"a": 1.0, "kind": "7"}], {"a": 1.0, "kind": 7}, {"a": 1.0, "kind": "7"}):
            assert ask(served, "/learn", rows).status in (200, 422)
        answer = ask(served, "/predict", {"a": 2.0})
        assert sum(value for key, value in answer.json.items() if key.startswith("p_")) == pytest.approx(1.0)
        assert ask(served, "/predict", [{"a": 2.0}]).json == [answer.json]
    finally:
        served.close()


@pytest.mark.parametrize("where", ["class", "column", "level"])
def test_text_that_is_not_unicode_is_refused_at_the_start(where):
    bad = {one: "\ud800" if one == where else "good" for one in ("class", "column", "level")}
    columns = {bad["column"]: [1.0, 2.0, 3.5, 4.0] * 3, "soil": [bad["level"], "clay", "clay", "sand"] * 3}
    fitted = cd.NaiveBayes().fit(columns, [bad["class"], "b"] * 6).fitted_
    with pytest.raises(InputError) as error:
        app(fitted)
    assert error.value.value == "\ud800"


def test_the_cache_of_values_is_bounded(models):
    from candide.serve.scorer import RowReader

    reader = RowReader(models["naive"])
    for i in range(10_000):
        reader.read_row({"height": float(i), "site": f"x{i}", "soil": "y" * 200})
    assert max(len(column._cache) for column in reader._columns) <= 4096
    assert not any(type(key) is str and len(key) > 100 for column in reader._columns for key in column._cache)
