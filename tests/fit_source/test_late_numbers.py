"""Columns with 0 and 1 only in their first rows, and other numbers later: found, or named in a note."""

import gzip
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import candide as cd
from candide.data.notes import DataWarning

N = 60_000
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.integers(0, 2, N // 2), RNG.integers(0, 400, N // 2)])
FRAME = pd.DataFrame({
    "x": X,
    "smokes": RNG.integers(0, 2, N),
    "z": RNG.normal(size=N).round(6),
    "y": np.where(RNG.random(N) < 1 / (1 + np.exp(-(X - 100) / 100)), "a", "b"),
})  # fmt: skip


def fitted(data, **how):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = cd.fit(data, target="y", model="naive", **how) if not callable(data) else data()
    notes = [w.message.note for w in told if isinstance(w.message, DataWarning)]
    kinds = {name: part.event.name for part in model.counts_.plan.parts for name in part.columns}
    return kinds, [note.column for note in notes if note.code == "decided-early"]


def stored(kind, folder):
    path = folder / f"rows.{kind}"
    if kind == "csv":
        FRAME.to_csv(path, index=False)
    elif kind == "floats.csv":
        FRAME.astype({"x": float}).to_csv(path, index=False)
    elif kind == "parquet":
        FRAME.to_parquet(path)
    elif kind == "duckdb":
        with duckdb.connect(path) as con:
            con.execute("CREATE TABLE t AS SELECT * FROM FRAME")
    else:
        return {"pandas": FRAME, "polars": pl.DataFrame(FRAME), "mapping": dict(FRAME)}[kind]
    return path


@pytest.mark.parametrize("kind", ["csv", "floats.csv", "parquet", "duckdb", "pandas", "polars", "mapping"])
def test_numbers_further_down_are_found(kind, tmp_path):
    kinds, early = fitted(stored(kind, tmp_path))
    assert kinds == {"x": "gaussian", "smokes": "categorical", "z": "gaussian"}
    assert early == []


def test_a_source_read_from_its_start_only_has_a_note(tmp_path):
    packed, folded = tmp_path / "rows.csv.gz", tmp_path / "rows.csv"
    packed.write_bytes(gzip.compress(FRAME.to_csv(index=False).encode()))
    FRAME.assign(note='two\nlines, "quoted"').to_csv(folded, index=False)
    query = f"SELECT * FROM '{stored('parquet', tmp_path)}'"
    for data in (packed, folded, query):
        kinds, early = fitted(data, drop=["note"] if data is folded else [])
        assert kinds["x"] == "categorical"
        assert early == ["x"]
        assert fitted(data, events={"x": "categorical"}, drop=["note"] if data is folded else [])[1] == []


def test_estimators_issue_the_note():
    """NaiveBayes decides by the first rows, as partial_fit must; BayesClassifier by rows drawn from all."""
    X, y = FRAME[["x", "smokes"]], FRAME["y"]
    assert fitted(lambda: cd.NaiveBayes().fit(X, y))[1] == ["x"]
    assert fitted(lambda: cd.NaiveBayes({"x": "categorical"}).fit(X, y))[1] == []
    assert fitted(lambda: cd.NaiveBayes().fit(X[-40_000:], y[-40_000:]))[1] == []
    kinds, early = fitted(lambda: cd.BayesClassifier().fit(X, y))
    assert kinds["x"] != "categorical"
    assert early == []
