"""BayesClassifier: what fits, predictions and cross-validation take, from small tables to wide, long and many-classed.

Predictions are beside those of HistGradientBoosting on the same rows, in turns; of the rest the limit is asked.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.accuracy import bayes, boosting, folds, read
from benchmarks.measure import seconds
from benchmarks.scale import mixed


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line for name in ("adult_train", *(() if quick else ("letter",))) for line in _table(name)]
        lines += _long(quick) + _wide(quick) + _classes(quick) + _validation(quick)
    return results.table(["work", "seconds", "other", "ratio", "asked"], lines)


def _table(name: str) -> list[list[str]]:
    """One fold of a real table, each row of it predicted as the frame gives it."""
    X, y = read(name)
    train, test = folds(y)[0]
    ours, theirs = bayes(X.iloc[train], y[train]), boosting(X.iloc[train], y[train])
    fit = seconds(lambda: bayes(X.iloc[train], y[train]), repeat=3)[0]
    rows = X.iloc[test]
    mine, other = seconds(lambda: ours.predict_proba(rows), lambda: theirs.predict_proba(rows), repeat=15)
    return [
        _line(f"{name}: fit {len(train):,} rows", fit, asked="at most 1.5 s" if name == "adult_train" else ""),
        _line(f"{name}: predict {len(test):,} rows, beside boosting", mine, other, other / mine, "at least 5"),
    ]


def _long(quick: bool) -> list[list[str]]:
    n, rng = 50_000 if quick else 1_000_000, np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 50)) + 0.1 * y[:, None]
    return [_line(f"fit {n:,} x 50 numbers in memory", _fit(X, y), asked="at most 10 s")]


def _wide(quick: bool) -> list[list[str]]:
    p, rng = 200 if quick else 2000, np.random.default_rng(0)
    y = np.arange(1000) % 2
    X = rng.normal(size=(1000, p)) + (np.arange(p) < 20) * 0.3 * y[:, None]
    return [_line(f"fit 1,000 rows x {p:,} columns", _fit(X, y), asked="at most 20 s")]


def _classes(quick: bool) -> list[list[str]]:
    n, k, rng = 2000 if quick else 20_000, 100, np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.normal(size=(n, 10)) + rng.normal(size=(k, 10))[y]
    return [_line(f"fit {n:,} x 10 numbers, {k} classes", _fit(X, y))]


def _validation(quick: bool) -> list[list[str]]:
    """Five folds of a file, against five fits of as many rows as weights are learned from, and two passes."""
    from candide.data.table import LIMITS
    from candide.fit_source import fit_model
    from candide.validation.cross_validation import cross_validate

    rows = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path, sample = (mixed(Path(folder) / f"{n}.parquet", n) for n in (rows, min(rows, LIMITS.rows)))
        whole, fit, two = seconds(
            lambda: cross_validate(path, "y", folds=5),
            lambda: fit_model(sample, "y"),
            lambda: fit_model(path, "y", model="naive"),
            repeat=2,
        )
    cost = 5 * fit + 2 * two
    name = f"5-fold cross-validation of {rows:,} x 20 mixed columns, against 5 fits of the sample and two passes"
    return [_line(name, whole, cost, whole / cost, "at most 3")]


def _fit(X: Any, y: Any) -> float:
    import candide as cd

    return seconds(lambda: cd.BayesClassifier().fit(X, y), repeat=2)[0]


def _line(name: str, ours: float, other: float | None = None, ratio: float | None = None, asked: str = "") -> list[str]:
    line = [name, f"{ours:.3g}", *("" if x is None else f"{x:.3g}" for x in (other, ratio)), asked]
    print(" | ".join(line), flush=True)
    return line
