"""Model files load, and their predictions are the numbers that were recorded."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import candide as cd
from candide import store

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import make  # noqa: E402

FILE = HERE / f"format-{store.FORMAT}.candide"


@pytest.mark.parametrize("detail", ["", ".explain", ".score"])
def test_the_golden_file_predicts_as_it_did(detail):
    model = cd.load(HERE / f"format-{store.FORMAT}{detail}.candide")
    expected = json.loads((HERE / "numbers.json").read_text())
    X, _ = make.rows()
    assert model.predict(X).tolist() == expected["predictions"]
    np.testing.assert_allclose(model.predict_log_proba(X), expected["log_posterior"], rtol=1e-12, atol=1e-12)


def test_what_is_written_now_is_the_golden_file(tmp_path):
    """A change of the bytes is a new format: raise the version and make another golden file."""
    make.model().save(tmp_path / "m.candide", provenance={"source": "tests/golden/make.py"})
    old, new = (path.read_bytes() for path in (FILE, tmp_path / "m.candide"))
    assert _without_rounding(new) == _without_rounding(old)


def _without_rounding(file):
    """The header without the package's version, and the arrays to ten digits: sums may round otherwise elsewhere."""
    header, arrays = store.container.unpack_container(memoryview(file), verify=True)
    arrays = {name: a for name, a in arrays.items() if not name.endswith(".rest")}  # what rounding took
    rounded = {
        n: [f"{v:.9e}" for v in a.ravel().tolist()] if a.dtype.kind == "f" else a.tolist() for n, a in arrays.items()
    }
    return {k: v for k, v in header.items() if k != "version"}, rounded


def test_update_works_on_the_golden_file(tmp_path):
    path = tmp_path / "m.candide"
    path.write_bytes(FILE.read_bytes())
    store.update_file(path, lambda fitted: fitted + fitted)
    assert store.load(path).counts.n_rows == 80
