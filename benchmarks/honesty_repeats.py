"""Repeated rows: log-loss on new rows against that of the rows once, and against the figure that is printed.

Tables of 500 rows: numbers and levels with two and three classes, and the same of a bootstrap sample against its
distinct rows. Where one class is repeated, its probability is corrected for that. New rows are weighted by class as
the table is.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np

import candide as cd
from benchmarks import results
from candide.tasks.learn import learn

TABLES = 30
ROWS, NEW = 500, 4_000
Rows = dict[str, np.ndarray]


def run(*, quick: bool = False) -> str:
    """Measure and print; return a table."""
    lines = []
    for name, repeat in REPEATS.items():
        found = np.array(list(_tables(repeat, 2 if quick else TABLES)))
        ratio, printed = found[:, 0], found[:, 1]
        line = [
            name,
            f"{ratio.mean():.3f}",
            f"{ratio.max():.3f}",
            "within 3 %",
            f"{printed.mean():.3f}",
            f"{np.abs(printed - 1).mean():.3f}",
            "within 10 %",
        ]
        print(" | ".join(line), flush=True)
        lines.append(line)
    lines.append(_exclusive_or())
    headings = ["rows", "log-loss / once", "worst", "asked", "printed / true", "mean error", "asked"]
    return results.table(headings, lines)


def _tables(repeat: Callable[..., np.ndarray], n: int) -> Iterator[tuple[float, float]]:
    for seed in range(n):
        classes = 2 + seed % 2
        (X, y), (asked, truth) = _draw(ROWS, seed, classes), _draw(NEW, 1000 + seed, classes)
        rows = repeat(y, np.random.default_rng(seed))
        alone = np.unique(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once = cd.BayesClassifier().fit(_pick(X, alone), y[alone])
            many = cd.BayesClassifier().fit(_pick(X, rows), y[rows])
            printed = learn({**_pick(X, rows), "y": y[rows]}, "y", trust=True).held_out
        shares = np.bincount(y[alone]) / np.bincount(y[rows])
        per_class = 1.0 / (shares / shares.mean())
        true = _loss(many.predict_proba(asked), truth, per_class[truth])
        assert printed is not None
        yield (
            _loss(many.predict_proba(asked) * shares, truth) / _loss(once.predict_proba(asked), truth),
            printed.scores.log_loss / true,
        )


def _draw(n: int, seed: int, classes: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    numbers = rng.normal(size=(n, 4)) + np.outer(y, [0.8, 0.4, 0.0, 0.0])
    levels = (rng.integers(0, 4, (n, 2)) + (rng.random((n, 2)) < 0.3) * y[:, None]) % 4
    X = {f"x{j}": numbers[:, j] for j in range(4)}
    return {**X, **{f"c{j}": np.array(list("abcd"))[levels[:, j]] for j in range(2)}}, y


def _pick(X: Rows, rows: np.ndarray) -> Rows:
    return {name: column[rows] for name, column in X.items()}


def _loss(p: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    p = p / p.sum(axis=1, keepdims=True)
    return float(np.average(-np.log(p[np.arange(len(y)), y]), weights=weight))


def _exclusive_or() -> list[str]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 1000))
    X, y = {"a": a, "b": b}, ((a ^ b) ^ (rng.random(1000) < 0.1)).astype(int)
    found = learn({**X, "y": y}, "y", trust=True).held_out
    assert found is not None
    line = ["XOR of 1,000 rows that repeat by chance", f"log-loss {found.scores.log_loss:.3f}", "", "below .40"]
    print(" | ".join(line), flush=True)
    return [*line, "", "", ""]


REPEATS: dict[str, Callable[..., np.ndarray]] = {
    "once": lambda y, rng: np.arange(len(y)),
    "twice": lambda y, rng: np.repeat(np.arange(len(y)), 2),
    "three times": lambda y, rng: np.tile(np.arange(len(y)), 3),
    "ten times": lambda y, rng: np.repeat(np.arange(len(y)), 10),
    "a bootstrap sample": lambda y, rng: rng.integers(0, len(y), len(y)),
    "one class five times": lambda y, rng: np.concatenate([np.arange(len(y)), *[np.flatnonzero(y == 1)] * 4]),
}
