"""Stability: how much copies of a column and columns of noise change the log-loss of BayesClassifier on real tables."""

import numpy as np
import pandas as pd

import candide as cd
from benchmarks import results
from benchmarks.accuracy import folds, read, scores

TABLES = ("pima_diabetes", "german_credit", "adult_train")


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    lines = []
    for name in TABLES[:1] if quick else TABLES:
        X, y = read(name)
        plain = _loss(X, y)
        for what, (changed, asked) in _changes(X).items():
            found = _loss(changed, y)
            line = [name, what, f"{plain:.4f}", f"{found:.4f}", f"{100 * (found / plain - 1):+.2f} %", asked]
            print(" | ".join(line), flush=True)
            lines.append(line)
    return results.table(["table", "with", "log-loss", "then", "change", "asked"], lines)


def _changes(X: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, str]]:
    rng, numbers = np.random.default_rng(1), [c for c in X if X[c].dtype.kind in "if"]
    levels = [c for c in X if c not in numbers]
    copied = [*numbers[:1], *levels[:1]]
    copies = {
        f"ten copies of {c}": (X.assign(**{f"copy {i}": X[c] for i in range(10)}), "less than 2 %") for c in copied
    }
    noise = {
        f"noise of {n:,} {'level' if n == 1 else 'levels'}": (
            X.assign(noise=rng.integers(0, n, len(X)).astype(str)),
            "less than 1 %",
        )
        for n in (1, 10, 10_000)
    }
    return copies | noise | {"noise of numbers": (X.assign(noise=rng.normal(size=len(X))), "less than 1 %")}


def _loss(X: pd.DataFrame, y: np.ndarray) -> float:
    classes, code = np.unique(y, return_inverse=True)
    p = np.zeros((len(y), len(classes)))
    for train, test in folds(y):
        p[test] = cd.BayesClassifier().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    return scores(p, code)["log-loss"]
