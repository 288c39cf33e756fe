"""Lookups: constants for the levels of a column, or for the bins of its numbers.

A value is first given a code, by a join for levels and by comparisons for numbers. All constants of the column then
come from one table with a row for every code, including unseen levels and missing values.

>>> from candide.engines.sql.dialects.registry import get_dialect
>>> layers = Layers(get_dialect("duckdb"), "t")
>>> age = CellLookup(QueryColumn(layers, {"name": "age", "kind": "number"}), [{"read": "grid", "edges": [27, 41]}])
>>> age.codes({"read": "grid", "edges": [41]})
[-1, 0, 0, 1]
>>> count_edges_below("x", [27.0, 41.0])
'CASE WHEN x <= 41e0 THEN CASE WHEN x <= 27e0 THEN 0 ELSE 1 END ELSE 2 END'
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from candide.export.scorer.numbers import count_below, decode_numbers
from candide.export.sql.columns import QueryColumn
from candide.export.sql.layers import ConstantList, Join, Layers, format_number

__all__ = ["CellLookup", "KnownLevels", "Layers", "count_edges_below", "line_segments"]

MISSING_CODE = -1


class _Lookup:
    """The constants of a column; the first row is for missing values."""

    def __init__(self, column: QueryColumn, n: int):
        self.column, self.layers, self.n = column, column.layers, n  # n: number of codes from 0
        self.width = 1  # approximate, of the table

    @cached_property
    def _code(self) -> str:
        raise NotImplementedError

    @cached_property
    def _table(self) -> Join | ConstantList:
        return self.layers.join_by_code(self._code, range(MISSING_CODE, self.n), self.width)

    def column_of(self, values: Sequence[float]) -> str:
        """The name of a looked-up number, given for each row."""
        return self._table.numbers(values)

    def codes_of(self, codes: Sequence[int], n: int) -> str:
        """The name of the code of another encoding, NULL where it is not one of its n levels."""
        return self._table.codes([code if 0 <= code < n else None for code in codes])


class CellLookup(_Lookup):
    """The bins of numbers, between the edges of all ways in which the column is read."""

    def __init__(self, column: QueryColumn, reads: Sequence[dict[str, Any]]):
        self.edges = sorted({edge for read in reads for edge in _edges(read)})
        super().__init__(column, len(self.edges) + 1)

    @cached_property
    def _code(self) -> str:
        x = self.column.number_name
        return self.layers.add_value(
            f"CASE WHEN {x} IS NULL THEN {MISSING_CODE} ELSE {count_edges_below(x, self.edges)} END"
        )

    def codes(self, read: dict[str, Any]) -> list[int]:
        """The code of every row by one way to read."""
        own = _edges(read)
        return [MISSING_CODE, *(count_below(own, edge) for edge in self.edges), len(own)]

    def score(self, read: dict[str, Any], scores: Sequence[float]) -> str:
        """The name of a normal score, by linear interpolation; 0 where the value is missing."""
        at = np.array(self.codes(read))[1:]
        a, b, c = (self.column_of([0.0, *one[at].tolist()]) for one in line_segments(_edges(read), scores))
        return self.layers.add_value(f"COALESCE({a} + {b} * ({self.column.number_name} - {c}), 0e0)")


class KnownLevels(_Lookup):
    """The levels of a column, and last one code for all others."""

    def __init__(self, column: QueryColumn):
        self.levels = column.schema.get("levels", [])
        super().__init__(column, len(self.levels) + 1)

    @cached_property
    def _code(self) -> str:
        key = self.column.level_key(self.levels)
        new = f"CASE WHEN {key} IS NULL THEN {MISSING_CODE} ELSE {self.n - 1} END"
        if not self.levels:
            return self.layers.add_value(new)
        keys = self.column.level_keys(self.levels)
        place = self.layers.join_by_key(key, [spelled for spelled, _ in keys]).codes([place for _, place in keys])
        return self.layers.add_value(f"COALESCE({place}, {new})")

    def codes(self, read: dict[str, Any]) -> list[int]:
        own = {place: code for code, place in enumerate(read["levels"])}
        return [MISSING_CODE, *(own.get(place, len(own)) for place in range(self.n))]


def _edges(read: dict[str, Any]) -> list[float]:
    return decode_numbers(read["edges"] if read["read"] == "grid" else read["values"])


def line_segments(knots: Sequence[float], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The segments of linear interpolation, constant beyond the ends: value at the start, slope and start of each.

    Knots so close that the slope would overflow have a step between them, to the value of the second.

    >>> [one.tolist() for one in line_segments([0.0, 2.0, 4.0], [1.0, 2.0, 6.0])]
    [[1.0, 1.0, 2.0, 6.0], [0.0, 0.5, 2.0, 0.0], [0.0, 0.0, 2.0, 4.0]]
    """
    at, own = np.array(knots), np.array(values)
    with np.errstate(over="ignore"):
        rise = np.diff(own) / np.diff(at)
    steep = np.isinf(rise)
    base = np.concatenate([own[:1], np.where(steep, own[1:], own[:-1]), own[-1:]])
    slope = np.concatenate([[0.0], np.where(steep, 0.0, rise), [0.0]])
    return base, slope, np.concatenate([at[:1], at[:-1], at[-1:]])


def count_edges_below(x: str, edges: Sequence[float], low: int = 0, high: int | None = None) -> str:
    """SQL for the number of ascending edges below a number, by bisection."""
    high = len(edges) if high is None else high
    if low == high:
        return str(low)
    middle = (low + high) // 2
    left, right = count_edges_below(x, edges, low, middle), count_edges_below(x, edges, middle + 1, high)
    return f"CASE WHEN {x} <= {format_number(edges[middle])} THEN {left} ELSE {right} END"


class ScoringQuery:
    """The columns of a model as its distributions read them, and the summands of the score of each class."""

    def __init__(self, layers: Layers, parameters: dict[str, Any]):
        self.layers, self.parameters = layers, parameters
        self.n_classes = len(parameters["classes"])
        self.reads = parameters["reads"]
        na = parameters.get("na", ())
        self.columns = [QueryColumn(layers, about, na) for about in parameters["columns"]]
        self.class_terms: list[list[str]] = [[] for _ in range(self.n_classes)]
        self.has_impossible = False  # whether a score may be impossible
        self.complete_groups: list[list[Any]] = []  # columns that must not be missing
        self._lookups: dict[tuple[int, bool], CellLookup | KnownLevels] = {}

    def number(self, read: int) -> str:
        """The number that is read."""
        return self.columns[self.reads[read]["column"]].number_name

    def find_lookup(self, read: int) -> CellLookup | KnownLevels:
        """The table of constants of the column that is read: as a number, or as a level."""
        at, of_levels = self.reads[read]["column"], "levels" in self.reads[read]
        if (at, of_levels) not in self._lookups:
            others = [one for one in self.reads if one["column"] == at and one["read"] in ("grid", "score")]
            column = self.columns[at]
            self._lookups[at, of_levels] = found = KnownLevels(column) if of_levels else CellLookup(column, others)
            found.width = self.n_classes
        return self._lookups[at, of_levels]

    def score(self, read: int) -> str:
        """A normal score."""
        found, about = self.find_lookup(read), self.reads[read]
        assert isinstance(found, CellLookup)
        return found.score(about, self.scores[about["scores"]])

    @cached_property
    def scores(self) -> list[list[float]]:
        return [decode_numbers(one) for one in self.parameters["scores"]]

    def add_terms(self, terms: Sequence[str]) -> None:
        """Add a summand for each class."""
        for own, term in zip(self.class_terms, terms, strict=True):
            own.append(term)
