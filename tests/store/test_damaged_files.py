"""Forged and damaged files: each is refused with one line, quickly, and nothing else happens."""

import sys
import zlib

import fuzz
import numpy as np
import pytest
from tests.model_cases import MODELS, labels_of
from tests.store.forged_files import forge, put, set_field

from candide import BayesClassifier, TextNB, store
from candide.errors import ModelFileError


@pytest.fixture(scope="module")
def originals():
    return fuzz.originals()


@pytest.mark.parametrize("seed", range(6))
def test_damaged_and_forged_files_are_rejected(seed, originals, tmp_path):
    found = fuzz.run(100, seed, tmp_path, *originals)
    assert found["damaged", "refused"] > 40
    assert found["forged", "refused"] > 5


def test_the_fuzz_would_notice(originals, tmp_path, monkeypatch):
    monkeypatch.setattr(zlib, "crc32", lambda data, start=0: 0)  # no checksum, no way to tell a flipped bit
    with pytest.raises(AssertionError, match="was loaded"):
        fuzz.run(1000, 0, tmp_path, {n: _unsealed(f) for n, f in originals[0].items()}, originals[1])


def _unsealed(file):
    return file[:-8] + bytes(8)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_field(2, "format"), "format 2; this version of Candide"),
        (set_field(1, "unheard"), "an object with the fields"),
        (set_field("parameters", "detail"), "unknown detail 'parameters'"),
        (set_field(-1, "rows"), "the field 'rows' of its header is -1; expected a whole number"),
        (set_field(True, "rows"), "wrong type"),
        (set_field(10**9, "columns"), "more columns or classes than fit"),
        (set_field(4, "classes"), "ascending"),
        (set_field(2, "classes"), "ascending"),
        (set_field("gausian", "parts", 0, "event", "event"), "unknown event 'gausian'"),
        (set_field("os.system", "parts", 0, "event", "settings", "prior", "prior"), "unknown prior 'os.system'"),
        (set_field("x", "parts", 0, "event", "settings", "fixed"), "wrong type"),
        (set_field(0, "parts", 0, "event", "settings", "fixed"), "not a valid variance"),
        (set_field(1, "parts", 0, "event", "settings", "wings"), "an object with the fields"),
        (set_field("best", "settings", "estimate"), "the setting .estimate. is not valid"),
        (set_field("flat", "settings", "class_prior"), "the setting .class_prior. is not valid"),
        (
            set_field({"name": "os.system", "params": {}, "n_features": 1}, "estimator"),
            "unknown estimator 'os.system'",
        ),
        (set_field({"name": "NaiveBayes", "params": {}}, "estimator"), "an object with the fields"),
        (set_field({"name": "NaiveBayes", "params": {}, "n_features": -1}, "estimator"), "n_features is"),
        (
            set_field({"name": "NaiveBayes", "params": {"a": [1]}, "n_features": 1}, "estimator"),
            "a plain value or an object",
        ),
        (set_field("NaiveBayes", "estimator"), "wrong type"),
        (set_field({"x": {"decimal": "x"}}, "text_formats"), "not a valid format"),
        (set_field({"x": {"date": "%s'; DROP"}}, "text_formats"), "not a valid format"),
        (set_field({"x": {"unit": "(a+)+"}}, "text_formats"), "not a valid format"),
        (set_field({"x": {"decimal": 1}}, "text_formats"), "not text"),
        (set_field({"x": {"missing": [1]}}, "text_formats"), "not text"),
        (set_field({"x": {"missing": "na"}}, "text_formats"), "not text"),
        (set_field({"x": {"wings": ""}}, "text_formats"), "expected a text format"),
        (set_field([1], "na"), "not text"),
        (set_field("na", "na"), "wrong type"),
        (set_field([], "parts"), "no parts"),
        (put("0.n", (0, 0), np.nan), "not finite"),
        (put("0.m2", (0, 0), -1.0), "negative"),
        (put("class_weight", 0, np.inf), "not finite"),
        (put("2.sizes", 0, -1), "numbers of levels do not match"),
        (put("2.sizes", 0, 2**62), "fewer names and labels"),
        (put("0.columns", 0, 2), "leave a column out"),
        (put("0.columns", 0, -1), "leave a column out, or name an unknown one"),
        (put("text.ends", 0, -5), "not in order"),
        (put("text.ends", 0, 10**12), "not in order"),
        (put("text.kinds", 0, 9), "unknown type"),
        (put("text", 0, 0xFF), "UTF-8"),
        (lambda h, a: a.update(extra=np.zeros(3)), "unexpected array 'extra'"),
        (lambda h, a: a.pop("0.mean"), "'0.mean' of 2 axes is missing"),
        (lambda h, a: a.update({"0.mean": np.zeros((3, 3))}), "shape"),
        (lambda h, a: a.update({"0.mean": np.zeros((3, 2), np.int64)}), "missing"),
    ],
)
def test_an_invalid_field_is_reported(path, change, complaint):
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint) as caught:
        store.load(path)
    assert str(caught.value).startswith(str(path))


@pytest.fixture(scope="module")
def calibrated():
    like, X = MODELS["voices"]
    return BayesClassifier(like=like, calibration="isotonic").fit(X, labels_of("str"))


def test_a_pattern_that_could_take_very_long_is_rejected(tmp_path):
    path, slow = tmp_path / "m.candide", r"(\w+)+\d"
    TextNB(pattern=r"\w+").fit(["free prize", "see you"], [1, 0]).save(path)
    forge(path, set_field(slow, "parts", 0, "event", "settings", "pattern"))
    with pytest.raises(ModelFileError) as caught:
        store.load(path)
    assert repr(slow) in str(caught.value)


def test_offsets_are_never_read_from_the_file(path):
    forge(path, lambda header, arrays: arrays.update({"2.offsets": np.array([0, 3, 10**9])}))
    with pytest.raises(ModelFileError, match=r"2\.offsets"):
        store.load(path)


def test_a_forged_file_with_code_in_it_runs_none(path):
    for where in ("event", "prior"):
        forge(path, set_field({where: "builtins.exec", "settings": {"code": "import this"}}, "settings", "class_prior"))
        with pytest.raises(ModelFileError, match="unknown"):
            store.load(path)
    assert "this" not in sys.modules
