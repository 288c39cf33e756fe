"""Invariance: the largest change of a probability when something changes that carries no information."""

import warnings
from collections.abc import Iterator

import numpy as np

import candide as cd
from benchmarks import results

TABLES = 30
NEW = 500
Rows = dict[str, np.ndarray]


def run(*, quick: bool = False, n_tables: int | None = None) -> str:
    """Measure and print; return a table."""
    worst: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(n_tables or (3 if quick else TABLES)):
            for what, change in _changes(seed):
                worst[what] = max(worst.get(what, 0.0), change)
    lines = [[what, f"{change:.2g}", _asked(what)] for what, change in worst.items()]
    for line in lines:
        print(" | ".join(line), flush=True)
    return results.table(["changed", "largest change", "asked"], lines)


def _asked(what: str) -> str:
    return "log-loss within 3 %" if what.startswith("weights times") else "below 1e-6"


def _changes(seed: int) -> Iterator[tuple[str, float]]:
    classes, n = 2 + seed % 2, (150, 400, 1500)[seed % 3]
    (X, y), (asked, truth) = draw_table(n, seed, classes), draw_table(NEW, 1000 + seed, classes)
    rng, want = np.random.default_rng(seed), _p(X, y, asked)

    def change(found: np.ndarray) -> float:
        return float(np.abs(found - want).max())

    rows, names = rng.permutation(n), list(rng.permutation(list(X)))
    yield "order of rows", change(_p({name: column[rows] for name, column in X.items()}, y[rows], asked))
    yield "order of columns", change(_p({name: X[name] for name in names}, y, {name: asked[name] for name in names}))
    labels = np.array(["zeta", "alpha", "mu"])
    model = cd.BayesClassifier().fit(X, labels[y])
    at = [list(model.classes_).index(label) for label in labels[:classes]]
    yield "names and order of labels", change(model.predict_proba(asked)[:, at])
    for what, value in (("a constant column", 3.0), ("an empty column", np.nan)):
        more = [{**one, "more": np.full(len(one["x0"]), value)} for one in (X, asked)]
        yield what, change(_p(more[0], y, more[1]))
    for name in ("x0", "x2", "count", "gaps", "sign"):
        yield "a negated column", change(_p({**X, name: -X[name]}, y, {**asked, name: -asked[name]}))
    weight = rng.integers(0, 4, n)
    copies = np.repeat(np.arange(n), weight)
    copied = _p({name: column[copies] for name, column in X.items()}, y[copies], asked)
    weighted = cd.BayesClassifier().fit(X, y, sample_weight=weight).predict_proba(asked)
    yield "weight k instead of k copies", float(np.abs(copied - weighted).max())
    for factor in (3.0, 1e6):
        found = cd.BayesClassifier().fit(X, y, sample_weight=np.full(n, factor)).predict_proba(asked)
        yield f"weights times {factor:g}", abs(_loss(found, truth) / _loss(want, truth) - 1)


def _p(X: Rows, y: np.ndarray, asked: Rows) -> np.ndarray:
    return cd.BayesClassifier().fit(X, y).predict_proba(asked)


def _loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(p[np.arange(len(y)), y]).mean())


def draw_table(n: int, seed: int, classes: int) -> tuple[Rows, np.ndarray]:
    """Draw a table of numbers, counts, gaps, signs and categories, and the class of each row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = {f"x{j}": rng.normal(size=n) + s * y for j, s in enumerate((0.8, 0.3, 0.0))}
    X["count"] = rng.poisson(5, n) + y
    X["gaps"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + 0.3 * y)
    X["sign"] = np.where(rng.random(n) < 0.4 + 0.1 * y, 1.0, -1.0)
    X["job"] = np.array(list("abcd"))[(rng.integers(0, 4, n) + (rng.random(n) < 0.3) * y) % 4]
    return X, y
