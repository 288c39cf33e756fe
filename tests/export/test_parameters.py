"""Parameters: plain data that keeps every bit, and an error that names the column where a model cannot be data."""

import base64
import json
import math
import struct
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model_cases import MODELS

import candide as cd
import candide.export.python_js
from candide import export
from candide.errors import InputError
from candide.export.parameters import _to_plain
from candide.export.python_js.numbers import decode_numbers

ROOT = Path(__file__).parents[2]


def numbers_in(value):
    if isinstance(value, dict):
        return [one for each in value.values() for one in numbers_in(each)]
    if isinstance(value, list):
        return [one for each in value for one in numbers_in(each)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", MODELS)
def test_they_are_json(name):
    model, _ = MODELS[name]
    found = export.export_parameters(model.fitted_)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(map(math.isfinite, numbers_in(found)))


@given(st.lists(st.floats(), max_size=30))
def test_packed_numbers_keep_every_bit(values):
    plain = _to_plain(values)
    read = decode_numbers(json.loads(export.pack_json(plain)))
    assert struct.pack(f"{len(values)}d", *read) == struct.pack(
        f"{len(values)}d", *(v if v == v else math.nan for v in values)
    )


def test_packed_numbers_are_the_base64_of_doubles():
    values = [i / 7 for i in range(1, 20)]
    assert base64.b64decode(json.loads(export.pack_json(values))) == np.array(values, "<f8").tobytes()


def test_names_and_levels_stand_once():
    model, _ = MODELS["voices"]
    text = export.pack_json(export.export_parameters(model.fitted_))
    for word in ('"age"', '"smith"', '"\\u65e5\\u672c"'):
        assert text.count(word) == 1


def test_columns_are_described():
    rng = np.random.default_rng(0)
    data = {
        "age": rng.normal(40.0, 9.0, 300),
        "job": rng.choice(["cook", "smith"], 300).astype(object),
        "flag": rng.random(300) < 0.5,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 100, 300),
        "words": np.array(["tea", "milk please"] * 150, object),
    }
    events = {"words": cd.events.Text(), "flag": "categorical"}
    for make in (cd.NaiveBayes, cd.BayesClassifier):
        columns = export.export_parameters(make(events).fit(data, rng.integers(0, 2, 300)).fitted_)["columns"]
        assert [column["kind"] for column in columns] == ["number", "level", "boolean", "date", "text"]
        low, high = columns[0]["range"]
        assert 10 < low < 25
        assert 55 < high < 75
        assert columns[1]["levels"] == ["cook", "smith"]


class Own(cd.events.EventModel):
    """A law of which nothing but a function is known."""

    name, kind = "own", "moments"

    def parameters(self, tally, prior, how):
        return {"centre": tally.mean}

    def log_density(self, x, centre):
        return -np.abs(x - centre) - np.log(2.0)


class Tilted(Own):
    """One that is linear in the value, and says so."""

    def log_density(self, x, centre):
        return x * centre - centre**2 / 2

    def natural(self, centre):
        return centre, -(centre**2) / 2


DATA = {"age": [30.0, 41.0, 8.0, 22.0], "size": [1.0, 2.0, 3.0, 4.0]}


@pytest.mark.parametrize("write", [export.export_parameters, export.to_javascript, export.to_python])
def test_an_own_event_model_without_a_form_is_refused(write):
    model = cd.NaiveBayes({"size": Own()}).fit(DATA, ["a", "b", "a", "b"])
    with pytest.raises(InputError) as caught:
        write(model.fitted_)
    assert caught.value.column == "size"
    assert caught.value.value == "own"


def test_an_own_event_model_with_a_form_is_exported():
    model = cd.NaiveBayes({"size": Tilted()}).fit(DATA, ["a", "b", "a", "b"])
    scorer = {}
    exec(export.to_python(model.fitted_), scorer)
    found = scorer["score"]({"age": 25.0, "size": 2.5})["probabilities"]
    assert found == pytest.approx(model.predict_proba({"age": [25.0], "size": [2.5]})[0].tolist(), abs=1e-12)


def test_what_a_scorer_cannot_use_is_an_error_that_names_the_column():
    model = cd.NaiveBayes().fit(DATA, ["a", "b", "a", "b"])
    scorer = {}
    exec(export.to_python(model.fitted_), scorer)
    for value in ("forty", "inf", math.inf):
        with pytest.raises(ValueError, match="'age'"):
            scorer["score"]({"age": value, "size": 1.0})


def test_an_installed_package_has_the_javascript():
    held = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["candide"]
    written = set((ROOT / "src/candide/export").rglob("*.js"))
    assert written <= {path for pattern in held for path in (ROOT / "src/candide").glob(pattern)}
    assert {path.name for path in Path(candide.export.python_js.__file__).parent.glob("*.js")} == {
        p.name for p in written
    }
