"""Tables from files: one pass of DuckDB against pandas + scikit-learn; the bare query and scan are the limits."""

import tempfile
from pathlib import Path

import duckdb

from benchmarks import results
from benchmarks.measure import child, seconds

NUMBERS = [f"n{i}" for i in range(10)]
TEXTS = [f"c{i}" for i in range(10)]

_MAKE = """
COPY (
  SELECT {numbers}, {texts}, ['alpha', 'beta', 'gamma'][1 + i % 3] AS y FROM range({rows}) t(i)
) TO '{path}' (FORMAT parquet)
"""

_OURS_FIT = """
import time
from candide.fit_source import fit_model
start = time.perf_counter()
fit_model({path!r}, "y", model="naive")
print("seconds", time.perf_counter() - start)
"""

_THEIRS_FIT = """
import numpy as np, pandas as pd
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OrdinalEncoder
import time
start = time.perf_counter()
frame = pd.read_parquet({path!r})
y = frame.pop("y")
texts = [c for c in frame if c.startswith("c")]
numbers = [c for c in frame if c.startswith("n")]
encoder = OrdinalEncoder(dtype=int)
codes = encoder.fit_transform(frame[texts])
gauss, cats = GaussianNB().fit(frame[numbers], y), CategoricalNB().fit(codes, y)
print("seconds", time.perf_counter() - start)
"""

_THEIRS_PREDICT = (
    _THEIRS_FIT
    + """
start = time.perf_counter()
frame = pd.read_parquet({path!r})
joint = gauss.predict_joint_log_proba(frame[numbers]) + cats.predict_joint_log_proba(encoder.transform(frame[texts]))
joint -= np.log(gauss.class_prior_)
p = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
out = pd.DataFrame(p, columns=["p_" + c for c in gauss.classes_])
out.insert(0, "prediction", gauss.classes_[p.argmax(axis=1)])
out.to_parquet({out!r})
print("seconds", time.perf_counter() - start)
"""
)

_OURS_PREDICT = """
import time
from candide.fit_source import fit_model
fitted = fit_model({path!r}, "y", model="naive").fitted
start = time.perf_counter()
cd.predict_table(fitted, {path!r}, out={out!r})
print("seconds", time.perf_counter() - start)
"""


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    rows = 200_000 if quick else 4_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _make(path, rows)
        lines = _parquet(path, rows) + _csv(path, rows) + _predict(path, rows)
    lines += _wide(quick)
    return results.table(["work", "candide", "other", "ratio", "asked"], lines)


def _make(path: Path, rows: int) -> None:
    numbers = ", ".join(
        f"(random() + random() + random()) * {i + 1} + (i % 3) * 0.3 AS {n}" for i, n in enumerate(NUMBERS)
    )
    texts = ", ".join(
        f"'lv' || CAST(floor(power(random(), 2) * {4 + 4 * j}) AS INT) AS {c}" for j, c in enumerate(TEXTS)
    )
    duckdb.sql(_MAKE.format(numbers=numbers, texts=texts, rows=rows, path=path))


def _bare(path: Path) -> str:
    moments = ", ".join(f"count({n}), favg({n}), var_pop({n})" for n in NUMBERS)
    levels = ", ".join(f"histogram({c})" for c in TEXTS)
    return f"SELECT y, count(*), {moments}, {levels} FROM '{path}' GROUP BY y"


def _parquet(path: Path, rows: int) -> list[list[str]]:
    from candide.fit_source import fit_model
    from candide.validation.cross_validation import cross_validate

    bare, ours = seconds(
        lambda: duckdb.sql(_bare(path)).fetchall(), lambda: fit_model(str(path), "y", model="naive"), repeat=4
    )
    folds = seconds(lambda: cross_validate(str(path), "y", folds=10, model="naive"), repeat=2)[0]
    mine, theirs = child(_OURS_FIT.format(path=str(path))), child(_THEIRS_FIT.format(path=str(path)))
    less = theirs.megabytes / mine.megabytes
    return [
        _line(f"fit {rows:,} rows from Parquet: seconds, against the bare query", ours, bare, ours / bare, "at most 2"),
        _line("the same, against pandas + scikit-learn", ours, theirs.said, theirs.said / ours, "at least 30"),
        _line("peak memory of the process, MB", mine.megabytes, theirs.megabytes, less, "at most 600 MB"),
        _line("10-fold cross-validation, against one fit", folds, ours, folds / ours, "at most 6"),
    ]


def _csv(path: Path, rows: int) -> list[list[str]]:
    from candide.fit_source import fit_model

    csv = path.with_suffix(".csv")
    duckdb.sql(f"COPY (FROM '{path}') TO '{csv}' (HEADER)")
    counted = ", ".join(f"count({c})" for c in NUMBERS + TEXTS)
    scan = f"SELECT {counted} FROM '{csv}'"
    bare, ours = seconds(lambda: duckdb.sql(scan).fetchall(), lambda: fit_model(str(csv), "y", model="naive"), repeat=2)
    csv.unlink()
    return [
        _line(
            f"fit {rows:,} rows from CSV: seconds, against DuckDB's scan of it", ours, bare, ours / bare, "at most 1.5"
        )
    ]


def _predict(path: Path, rows: int) -> list[list[str]]:
    out = str(path.with_name("out.parquet"))
    mine = child(_OURS_PREDICT.format(path=str(path), out=out))
    theirs = child(_THEIRS_PREDICT.format(path=str(path), out=out))
    return [
        _line(
            f"predict {rows:,} rows to Parquet: seconds", mine.said, theirs.said, theirs.said / mine.said, "at least 10"
        ),
        _line(
            "peak memory of the process, MB",
            mine.megabytes,
            theirs.megabytes,
            theirs.megabytes / mine.megabytes,
            "at most 800 MB",
        ),
    ]


def _wide(quick: bool) -> list[list[str]]:
    from candide.fit_source import fit_model

    lines, before = [], None
    for width in (250, 500, 1000) if quick else (500, 1000, 2000):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/wide.parquet"
            columns = ", ".join(f"random() + i % 2 AS x{j}" for j in range(width))
            duckdb.sql(f"COPY (SELECT {columns}, i % 2 AS y FROM range(20000) t(i)) TO '{path}' (FORMAT parquet)")
            [took] = seconds(lambda path=path: fit_model(path, "y", model="naive"), repeat=2)
        if before is not None:
            name = f"fit 20,000 rows x {width:,} columns, against half as many"
            lines.append(_line(name, took, before, took / before, "about 2"))
        before = took
    return lines


def _line(name: str, ours: float, other: float, ratio: float, asked: str) -> list[str]:
    line = [name, f"{ours:,.3g}", f"{other:,.3g}", f"{ratio:.2f}", asked]
    print(" | ".join(line), flush=True)
    return line
