"""Term weights, distributions and calibrators in files that are damaged."""

import numpy as np
import pytest
from tests.model_cases import MODELS, labels_of

from candide import BayesClassifier, store
from candide.demo import garden
from candide.errors import InputError, ModelFileError
from candide.model.fitted import FittedModel
from candide.store import container


@pytest.fixture
def path(tmp_path):
    store.save(FittedModel(garden()), tmp_path / "m.candide")
    return tmp_path / "m.candide"


def forge(path, change):
    """Rewrite a file after ``change`` has had its header and arrays, with the right checksums."""
    header, arrays = container.unpack_container(memoryview(path.read_bytes()), verify=True)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    path.write_bytes(b"".join(bytes(piece) for piece in container.pack_container(header, arrays)))


def put(name, at, value):
    def change(header, arrays):
        arrays[name][at] = value

    return change


def tell(value, *keys):
    def change(header, arrays):
        box = header
        for key in keys[:-1]:
            box = box[key]
        box[keys[-1]] = value

    return change


@pytest.fixture(scope="module")
def calibrated():
    like, X = MODELS["voices"]
    return BayesClassifier(like=like, calibration="isotonic").fit(X, labels_of("str"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (tell(-1, "terms", "learned_rows"), "learned from -1 rows"),
        (tell(1, "terms", "wings"), "an object with the fields"),
        (lambda h, a: h["terms"].pop("removed_rows"), "an object with the fields"),
        (lambda h, a: a.pop("terms.bias"), "'terms.bias' of 1 axes is missing"),
        (put("terms.weights", 0, np.nan), "not finite"),
        (put("terms.strength", 0, 0.0), "not above 0"),
        (tell({"sequence": [{"sequence": [0, 9]}]}, "parts", 4, "event", "settings", "sets"), "a set of columns"),
        (tell(263, "parts", 0, "event", "settings", "cells"), "263 cells"),
    ],
)
def test_invalid_term_weights_are_rejected(change, complaint, tmp_path):
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path)
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put("0.base.bins", 0, 1), "in order"),
        (put("0.base.bins", -1, 2**62), "in order"),
        (put("0.base.table", (0, 0), 1e308), "logs of probabilities"),
        (put("2.base.root", (slice(None), 0), 0.0), "singular"),
        (put("2.base.roots", (0, slice(None)), 0.0), "singular"),
        (put("2.base.means", (0, 0), 1e308), "up to 1e70"),
        (put("2.base.df", 0, 0.5), "numbers > 1"),
        (put("2.base.rows", 0, 1e308), "up to 1e150"),
        (put("log_prior", slice(None), -np.inf), "log_prior"),
    ],
)
def test_invalid_distributions_of_terms_are_rejected(change, complaint, tmp_path):
    """Of those that would answer, and then take all memory or end in another's error where they are explained."""
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path, detail="score")
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put("calibrator.sizes", 0, 0), "not above 0"),
        (put("calibrator.sizes", 0, 10**6), "shape"),
        (lambda h, a: a.update({"calibrator.sizes": np.array([1])}), "calibrator.sizes"),
        (put("calibrator.frequencies", 0, 1.0), "not rising"),
        (put("calibrator.frequencies", 0, -0.1), "not rising"),
        (put("calibrator.log_odds", 0, 1e6), "not rising"),
        (put("calibrator.log_odds", 0, np.nan), "not finite"),
        (lambda h, a: a.pop("calibrator.log_odds"), "'calibrator.log_odds' of 1 axes is missing"),
    ],
)
@pytest.mark.parametrize("detail", ["tally", "score"])
def test_an_invalid_calibrator_is_rejected(change, complaint, detail, tmp_path, calibrated):
    path = tmp_path / "m.candide"
    calibrated.save(path, detail=detail)
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


def test_products_of_no_rows_are_rejected_when_they_are_used(tmp_path):
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path)
    forge(path, lambda h, a: a["2.scatter"].__imul__(-1.0))
    with pytest.raises(InputError):
        _ = store.load(path).model
