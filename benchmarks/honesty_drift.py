"""Drift: how often a column is named that has not changed, and one that has, by type of column and numbers of rows.

Every table has one column of each type. Numbers are there twice: in bins, as the default model counts them, and as the
mean and variance of a Gaussian. A column counts as named when a list of this column alone would name it; the last row
is the list of all columns together.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import candide as cd
from benchmarks import results

Draw = Callable[[np.random.Generator, int, bool], Any]  # of so many rows, changed or not
SIZES = ((500, 300), (2_000, 200), (300, 3_000))  # rows learned from, new rows
TABLES = 500
_NAMED = 0.01
_LIST = "the whole list"


def _zipf(rng: np.random.Generator, n: int, changed: bool) -> np.ndarray:
    """Levels of a long tail; changed, the most frequent has half its share and the others the rest of it."""
    p = np.arange(1, 5001) ** -1.3
    p[0] *= 0.5 if changed else 1.0
    return _names("level", rng.choice(5000, n, p=p / p.sum()))


def _tail(rng: np.random.Generator, n: int, changed: bool) -> np.ndarray:
    """Levels of a long tail; changed, the rare ones are others than before."""
    p = np.arange(1, 1001) ** -1.0
    code = rng.choice(1000, n, p=p / p.sum())
    return _names("level", np.where(changed & (code >= 20), code + 1000, code))


def _names(word: str, codes: np.ndarray) -> np.ndarray:
    return np.array([f"{word} {code}" for code in codes])


NUMBERS: dict[str, Draw] = {
    "normal": lambda rng, n, changed: rng.normal(0.4 * changed, 1.0, n),
    "normal, variance": lambda rng, n, changed: rng.normal(0.0, 1.5 if changed else 1.0, n),
    "heavy-tailed (t, 3 d.f.)": lambda rng, n, changed: rng.standard_t(3, n) + 0.6 * changed,
    "lognormal": lambda rng, n, changed: rng.lognormal(0.6 * changed, 1.0, n),
    "counts": lambda rng, n, changed: rng.poisson(25.0 if changed else 22.0, n),
    "zero-inflated": lambda rng, n, changed: np.where(
        rng.random(n) < (0.5 if changed else 0.7), 0.0, rng.lognormal(size=n)
    ),
    "dates": lambda rng, n, changed: (
        np.datetime64("2020-01-01") + (rng.integers(0, 1000, n) + 120 * changed).astype("timedelta64[D]")
    ),
}
LEVELS: dict[str, Draw] = {
    "two levels": lambda rng, n, changed: np.where(rng.random(n) < (0.45 if changed else 0.3), "yes", "no"),
    "two levels, one rare": lambda rng, n, changed: np.where(rng.random(n) < (0.07 if changed else 0.01), "yes", "no"),
    "five levels": lambda rng, n, changed: rng.choice(
        list("abcde"), n, p=(0.25, 0.3, 0.2, 0.15, 0.1) if changed else (0.4, 0.3, 0.15, 0.1, 0.05)
    ),
    "200 levels": lambda rng, n, changed: _names(
        "level", (200 * rng.random(n) ** (2.0 if changed else 1.0)).astype(int)
    ),
    "long tail (Zipf)": _zipf,
    "long tail, other rare levels": _tail,
    "identifiers": lambda rng, n, changed: _names("id", rng.integers(0, 10 if changed else 10**9, n)),
    "missing values": lambda rng, n, changed: np.where(rng.random(n) < (0.25 if changed else 0.1), np.nan, 1.0),
}
WORDS = _names("word", np.arange(300))
TEXT: dict[str, Draw] = {"text": lambda rng, n, changed: [" ".join(rng.choice(WORDS, 8)) for _ in range(n)]}
COLUMNS: dict[str, Draw] = {
    **{f"{name}, in bins": draw for name, draw in NUMBERS.items()},
    **{f"{name}, as Gaussian": draw for name, draw in NUMBERS.items()},
    **LEVELS,
    **TEXT,
}
EVENTS: Any = {
    **{f"{name}, in bins": "binned" for name in NUMBERS},
    **{f"{name}, as Gaussian": "gaussian" for name in NUMBERS},
    **dict.fromkeys(LEVELS, "categorical"),
    **dict.fromkeys(TEXT, "text"),
}


def run(*, quick: bool = False, n_tables: int | None = None) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    sizes = SIZES[:1] if quick else SIZES
    n_tables = n_tables or (20 if quick else TABLES)
    measured = [measure(*size, n_tables) for size in sizes]
    lines = []
    for name in [*COLUMNS, _LIST]:
        cells = [_cells(found, name, n_tables) for found in measured]
        lines.append([name, *(cell[i] for i in range(3) for cell in cells)])
        print(" | ".join(lines[-1]), flush=True)
    heads = ["unchanged", "unchanged, rows before given", "changed"]
    return (
        f"Share of {n_tables} tables in which `candide drift` names a column (asked: at most 2 % where it is "
        "unchanged), by rows learned from / new rows.\n\n"
        + results.table(["column", *(f"{head}: {n:,}/{m:,}" for head in heads for n, m in sizes)], lines)
    )


def measure(n: int, m: int, n_tables: int) -> dict[str, Counter[str]]:
    """How often each column is named: unchanged, unchanged with the rows before given, and changed."""
    found = {name: Counter[str]() for name in ("compared", "counts", "rows", "changed")}
    for seed in range(n_tables):
        rng = np.random.default_rng([n, m, seed])
        before, same, other = (_table(rng, rows, changed) for rows, changed in ((n, 0), (m, 0), (m, 1)))
        model = cd.fit(before | {"class": rng.choice(["a", "b"], n)}, "class", model="naive", events=EVENTS)
        for name, drift in (
            ("counts", cd.detect_drift(model, same)),
            ("rows", cd.detect_drift(model, same, before=before)),
            ("changed", cd.detect_drift(model, other)),
        ):
            found[name].update(str(column.column) for column in drift.columns if column.p_value < _NAMED)
            found[name].update([_LIST] * bool(drift.drifted_columns))
        found["compared"].update([str(column.column) for column in drift.columns] + [_LIST])
    return found


def _table(rng: np.random.Generator, n: int, changed: int) -> dict[str, Any]:
    return {name: draw(rng, n, bool(changed)) for name, draw in COLUMNS.items()}


def _cells(found: dict[str, Counter[str]], name: str, n_tables: int) -> list[str]:
    if not found["compared"][name]:
        return ["not compared"] * 3
    return [f"{100 * found[kind][name] / n_tables:.1f} %" for kind in ("counts", "rows", "changed")]
