"""The scorers at work: rows are put to Node and to a bare Python, and what they say is set beside ``predict_proba``."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import candide as cd
from candide import export
from candide.data.labels import is_absent

CLOSE = 1e-9  # of probabilities
_DRIVE = """
import { readFileSync } from "node:fs";
const { default: model } = await import(process.argv[2]);
const rows = JSON.parse(readFileSync(0, "utf8"));
const out = rows.map((row) => {
  const { probabilities, scores, label, terms, log_prior } = model.score(row);
  const sums = log_prior.map((start, c) => terms.reduce((sum, term) => sum + term.contributions[c], start));
  return { probabilities, scores: scores.map(String), sums: sums.map(String), label };
});
process.stdout.write(JSON.stringify(out));
"""


_DRIVE_PYTHON = """
import json, sys
sys.path.insert(0, sys.argv[1])
import model
assert not any(name.startswith(("candide", "numpy")) for name in sys.modules)
out = []
for row in json.load(sys.stdin):
    found = model.score(row)
    sums = found["log_prior"]
    for term in found["terms"]:
        sums = [a + b for a, b in zip(sums, term["contributions"])]
    out.append({**found, "terms": None, "sums": sums})
json.dump(out, sys.stdout)
"""


def node():
    """Where Node is; the test is skipped where it is not."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed")
    return path


def by_node(fitted, rows, folder):
    """What the exported module says of rows, in a process of Node."""
    module, drive = Path(folder) / "model.mjs", Path(folder) / "drive.mjs"
    module.write_text(export.to_javascript(fitted), "utf-8")
    drive.write_text(_DRIVE)
    given = json.dumps(rows)
    done = subprocess.run([node(), drive, module], input=given, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def by_python(fitted, rows, folder):
    """What the exported module says of rows, in a process of Python that has no packages."""
    (Path(folder) / "model.py").write_text(export.to_python(fitted), "utf-8")
    alone = [sys.executable, "-I", "-S", "-c", _DRIVE_PYTHON, folder]
    done = subprocess.run(alone, input=json.dumps(rows), capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


SCORERS = {"js": by_node, "python": by_python}


def enormous_counts(event):
    """A model of counts, and rows with counts that are near the largest double."""
    X, y = {"a": [1.0, 1.0, 1.0, 5.0, 3.0, 8.0], "b": [4.0, 2.0, 3.0, 2.0, 1.0, 4.0]}, [0, 0, 0, 1, 1, 1]
    model = cd.NaiveBayes(event, estimate="mean").fit(X, y)
    return model, {"a": np.array([1e290, 1e300, 1e307, 1.7e308, 3.0]), "b": np.array([1.0, 0.0, 2.0, 3.0, 1.0])}


def rows_of(data, columns):
    """Rows as a web page has them: dictionaries of plain values; dates as text, and nothing where a value is absent."""
    if isinstance(data, list):  # of documents
        return [{str(columns[0]): text} for text in data]
    if isinstance(data, np.ndarray):
        data = dict(enumerate(data.T))
    held = data.to_pydict() if isinstance(data, pa.Table) else data
    each = {str(name): [_plain(value) for value in np.asarray(held[name], object).tolist()] for name in columns}
    return [dict(zip(each, values, strict=True)) for values in zip(*each.values(), strict=True)]


def _plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    return None if is_absent(value) else value if isinstance(value, str | int | float) else str(value)


def check(said, model, data):
    """That the scorer said what the model says, and that contributions add up to its scores."""
    p, labels = model.predict_proba(data), model.predict(data)
    q = np.array([one["probabilities"] for one in said], float)
    assert np.abs(p - q).max() <= CLOSE
    plain = (int, float, str, bool, type(None))
    assert [one["label"] for one in said] == [v if isinstance(v, plain) else str(v) for v in labels.tolist()]
    scores, sums = (np.array([[float(x) for x in one[name]] for one in said]) for name in ("scores", "sums"))
    assert (scores == sums).all()
