"""Repeated rows: log-loss on new rows against that of the rows once, and against the figure that is printed.

Tables of 500 rows: numbers and levels with two and three classes, and the same of a bootstrap sample against its
distinct rows. Where one class is repeated, its probability is corrected for that. New rows are weighted by class as
the table is. Bootstrap samples also of tables with one column of measurements beside levels, of many levels, and of
texts. Tables of few categories are compared with the counts of their cells as weights, whole and not.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np

import candide as cd
from benchmarks import results
from candide.fit_source import fit_model

TABLES = 30
ROWS, NEW = 500, 4_000
Rows = dict[str, np.ndarray]


def run(*, quick: bool = False, n_tables: int | None = None) -> str:
    """Measure and print; return a table."""
    n_tables = n_tables or (2 if quick else TABLES)
    lines = []
    cases = [(name, repeat, _draw) for name, repeat in REPEATS.items()]
    cases += [(f"{kind}, {name}", repeat, draw) for kind, draw in KINDS.items() for name, repeat in BOOTSTRAPS.items()]
    for name, repeat, draw in cases:
        found = np.array(list(_tables(repeat, n_tables, draw)))
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
    lines += [_counts_of_cells(name, change, n_tables) for name, change in CHANGES.items()]
    lines.append(_exclusive_or())
    headings = ["rows", "log-loss / once", "worst", "asked", "printed / true", "mean error", "asked"]
    return results.table(headings, lines)


def _tables(
    repeat: Callable[..., np.ndarray], n: int, draw: Callable[..., tuple[Rows, np.ndarray]]
) -> Iterator[tuple[float, float]]:
    for seed in range(n):
        classes = 2 + seed % 2
        (X, y), (asked, truth) = draw(ROWS, seed, classes), draw(NEW, 1000 + seed, classes)
        rows = repeat(y, np.random.default_rng(seed))
        alone = np.unique(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            events = {name: "text" for name in X if name == "text"} or "auto"  # categories, if each is there often
            once = cd.BayesClassifier(events=events).fit(_pick(X, alone), y[alone])
            many = cd.BayesClassifier(events=events).fit(_pick(X, rows), y[rows])
            printed = fit_model({**_pick(X, rows), "y": y[rows]}, "y", keep_held_out=True, events=events).held_out
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


def _draw_one_measurement(n: int, seed: int, classes: int) -> tuple[Rows, np.ndarray]:
    X, y = _draw(n, seed, classes)
    return {name: X[name] for name in ("x0", "c0", "c1")}, y


def _draw_levels(n: int, seed: int, classes: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    levels = (rng.integers(0, 6, (n, 4)) + (rng.random((n, 4)) < 0.3) * y[:, None]) % 6
    return {f"c{j}": np.array(list("abcdef"))[levels[:, j]] for j in range(4)}, y


def _draw_texts(n: int, seed: int, classes: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, classes, n), np.ones((classes, 100 * classes))
    for c in range(classes):
        p[c, 100 * c : 100 * (c + 1)] = 2.0
    words = np.array([f"w{i}" for i in range(p.shape[1])])
    return {"text": np.array([" ".join(rng.choice(words, 15, p=p[c] / p[c].sum())) for c in y], object)}, y


def _draw_few_categories(n: int, seed: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return {name: np.where(rng.random(n) < 0.3, y, rng.integers(0, k, n)).astype(str) for name, k in SIZES.items()}, y


def _counts_of_cells(name: str, change: Callable[[np.ndarray], np.ndarray], n: int) -> list[str]:
    """Counts of the cells of a table of few categories as weights, against its rows; and what is printed for rows."""
    ratio, printed = [], []
    for seed in range(n):
        rows = (500, 1_500, 5_000, 15_000)[seed % 4]
        (X, y), (asked, truth) = _draw_few_categories(rows, seed), _draw_few_categories(20_000, 1000 + seed)
        cells, count = np.unique(np.array([*X.values(), y.astype(str)]), axis=1, return_counts=True)
        counted = dict(zip(X, cells, strict=False)), cells[-1].astype(int)
        once = cd.BayesClassifier().fit(X, y)
        many = cd.BayesClassifier().fit(*counted, sample_weight=change(count.astype(float)))
        true = _loss(once.predict_proba(asked), truth)
        found = fit_model({**X, "y": y}, "y", keep_held_out=True).held_out
        assert found is not None
        ratio.append(_loss(many.predict_proba(asked), truth) / true)
        printed.append(found.scores.log_loss / true)
    off = np.abs(np.array(printed) - 1.0).mean()
    line = [f"few categories, {name}", f"{np.mean(ratio):.3f}", f"{np.max(ratio):.3f}", "within 3 %"]
    line += [f"{np.mean(printed):.3f}", f"{off:.3f}", "within 10 %"]
    print(" | ".join(line), flush=True)
    return line


def _pick(X: Rows, rows: np.ndarray) -> Rows:
    return {name: column[rows] for name, column in X.items()}


def _loss(p: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    p = p / p.sum(axis=1, keepdims=True)
    return float(np.average(-np.log(p[np.arange(len(y)), y]), weights=weight))


def _exclusive_or() -> list[str]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 1000))
    X, y = {"a": a, "b": b}, ((a ^ b) ^ (rng.random(1000) < 0.1)).astype(int)
    found = fit_model({**X, "y": y}, "y", keep_held_out=True).held_out
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
BOOTSTRAPS: dict[str, Callable[..., np.ndarray]] = {
    "a bootstrap sample of three times as many": lambda y, rng: rng.integers(0, len(y), 3 * len(y)),
    "a bootstrap sample of ten times as many": lambda y, rng: rng.integers(0, len(y), 10 * len(y)),
}
KINDS = {
    "numbers and levels": _draw,
    "one measurement": _draw_one_measurement,
    "levels": _draw_levels,
    "texts": _draw_texts,
}
SIZES = {"a": 2, "b": 3}  # levels of the columns of few categories
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cells with their counts as weights": lambda n: n,
    "counts times 1.001": lambda n: 1.001 * n,
    "counts and a half": lambda n: n + 0.5,
}
