"""Random small tables: columns of many types under odd names, gaps, repeated rows, class names that need quoting."""

import datetime as dt
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ODD = ["it's", "'x'", "x", 'say "hi"', "a,b", "semi;colon", "back\\slash", "two  spaces", "tab\there", "ünïcode", "%d"]
NAMES = [
    "x",
    "it's a 'name'",
    'say "hi"',
    "select",
    "a,b",
    "Größe",
    "row #",
    "a.b",
    "x;y",
    "100%",
    "{name}",
    "q1",
    "名",
]
CLASSES = [
    ["no", "yes"],
    ["it's", 'say "hi"'],
    ["back\\slash", "a,b", "'quoted'"],
    ["line\nend", "tab\there"],
    [False, True],
    [3, 12, 40],
    ["é", "日本", "x"],
]
WORDS = ["tea", "milk", "don't", "'free'", "call", "now", "12", "été", "the-end", "PRIZE", "you", "a.b", "it's", "no"]
START = dt.datetime(2024, 2, 28, 22, 30)
ZONE = dt.timezone(dt.timedelta(hours=2))


def _moments(rng, n):
    return [START + dt.timedelta(minutes=int(i)) for i in rng.integers(-5000, 5000, n)]


def _some(values, rng, n):
    held = [values[i] for i in rng.permutation(len(values))[: int(rng.integers(2, 6))]]
    return [held[i] for i in rng.integers(0, len(held), n)]


KINDS = {  # each: values of a column
    "float": lambda rng, n: pa.array(rng.normal(size=n).round(int(rng.integers(1, 9)))),
    "whole": lambda rng, n: pa.array(rng.integers(-500, 500, n)),
    "few": lambda rng, n: pa.array(rng.integers(0, int(rng.integers(3, 9)), n)),
    "zero one": lambda rng, n: pa.array(rng.integers(0, 2, n)),
    "boolean": lambda rng, n: pa.array(rng.random(n) < 0.4),
    "yes or no": lambda rng, n: pa.array(_some(["yes", "no", "Yes", "n", "y", "t", "maybe"], rng, n)),
    "date": lambda rng, n: pa.array([moment.date() for moment in _moments(rng, n)]),
    "timestamp": lambda rng, n: pa.array(_moments(rng, n), pa.timestamp("us")),
    "zone": lambda rng, n: pa.array([one.replace(tzinfo=ZONE) for one in _moments(rng, n)], pa.timestamp("us", "UTC")),
    "time": lambda rng, n: pa.array([moment.time() for moment in _moments(rng, n)], pa.time64("us")),
    "duration": lambda rng, n: pa.array(
        [dt.timedelta(minutes=int(i)) for i in rng.integers(0, 5000, n)], pa.duration("us")
    ),
    "level": lambda rng, n: pa.array(_some(ODD, rng, n)),
    "prose": lambda rng, n: pa.array([" ".join(rng.choice(WORDS, int(rng.integers(4, 9)))) for _ in range(n)]),
}
MAY_BE_LEVELS = ("few", "boolean", "date", "timestamp", "time", "yes or no", "level")


@dataclass(frozen=True)
class Case:
    """Rows to fit with their classes ``y``, the event models that are asked for, and rows to predict."""

    seed: int
    table: pa.Table
    events: dict
    rows: pa.Table

    @property
    def kinds(self):
        return {name: str(self.table.schema.field(name).type) for name in self.rows.column_names}


def random_case(seed, estimator):
    """The table of a seed: the same again for the same estimator."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 90))
    kinds = ["prose"] if estimator == "text" else [*rng.choice(list(KINDS), int(rng.integers(1, 5))), "float"]
    names = ["text"] if estimator == "text" else [NAMES[i] for i in rng.permutation(len(NAMES))[: len(kinds)]]
    columns = {name: _with_gaps(KINDS[kind](rng, n), rng) for name, kind in zip(names, kinds, strict=True)}
    table = pa.table(columns)
    table = table.append_column("y", _classes(table, rng))
    if rng.random() < 0.3:  # rows that are there several times
        table = table.take(np.sort(np.append(np.arange(n), rng.integers(0, n, n // 2))))
    events = {}
    for name, kind in zip(names, kinds, strict=True):
        if estimator != "text" and kind in MAY_BE_LEVELS and rng.random() < 0.3:
            events[name] = "categorical"
    return Case(seed, table, events, _rows(table.drop(["y"]), kinds, rng))


def _with_gaps(column, rng):
    gaps = rng.random(len(column)) < float(rng.choice([0.0, 0.0, 0.15]))
    values = [None if gap else value for value, gap in zip(column.to_pylist(), gaps, strict=True)]
    return pa.array(values, column.type)


def _classes(table, rng):
    """Classes that follow from the columns, with noise; none of them is rare."""
    classes = CLASSES[int(rng.integers(len(CLASSES)))]
    score = rng.normal(0, 0.3, len(table))
    for column in table.columns:
        values = column.to_pylist()
        place = {value: i for i, value in enumerate(sorted({value for value in values if value is not None}))}
        score = score + rng.normal() * np.array([place.get(value, 0) / max(1, len(place)) for value in values])
    order = np.argsort(np.argsort(score))
    return pa.array([classes[i] for i in order * len(classes) // len(table)])


def _rows(table, kinds, rng):
    """Some of the rows, with more gaps, and levels that no row had."""
    rows = table.take(rng.integers(0, len(table), 12))
    out = {}
    for (name, column), kind in zip(zip(rows.column_names, rows.columns, strict=True), kinds, strict=True):
        values = [None if rng.random() < 0.1 else value for value in column.to_pylist()]
        if kind == "level":
            values[0] = "new 'level'"
        out[name] = pa.array(values, column.type)
    return pa.table(out)
