"""Lookups: constants for the levels of a column, or for the bins of its numbers.

A value is first given a code, by a join for levels and by comparisons for numbers. All constants of the column then
come from one table with a row for every code, including unseen levels and missing values.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from candide.export.python_js.numbers import count_below, decode_numbers
from candide.export.sql.columns import QueryColumn
from candide.export.sql.layers import ConstantTable, Layers, format_number

MISSING_CODE = -1


class _Lookup:
    """The constants of a column for each code from 0 to n - 1; the first row is for missing values."""

    def __init__(self, column: QueryColumn, n: int, width: int):
        self.column, self.layers, self.n, self.width = column, column.layers, n, width  # approximate, of the table

    @cached_property
    def _code(self) -> str:
        raise NotImplementedError

    @cached_property
    def _table(self) -> ConstantTable:
        return self.layers.join_by_code(self._code, range(MISSING_CODE, self.n), self.width)

    def column_of(self, values: Sequence[float]) -> str:
        """The name of a looked-up number, given for each row."""
        return self._table.numbers(values)

    @property
    def place(self) -> str:
        """The place of a row's code among the codes, from 0 on."""
        return f"{self._code} - ({MISSING_CODE})"

    def codes_of(self, codes: Sequence[int], n: int) -> str:
        """The name of the code of another encoding, NULL where it is not one of its n levels."""
        return self._table.codes([code if 0 <= code < n else None for code in codes])


class CellLookup(_Lookup):
    """The bins of numbers, between the edges of all ways in which the column is read."""

    def __init__(self, column: QueryColumn, reads: Sequence[dict[str, Any]], width: int = 1):
        self.edges = sorted({edge for read in reads for edge in _edges(read)})
        super().__init__(column, len(self.edges) + 1, width)

    @cached_property
    def _code(self) -> str:
        x = self.column.number_name
        code = count_edges_below(x, self.edges)
        return self.layers.add_value(f"CASE WHEN {x} IS NULL THEN {MISSING_CODE} ELSE {code} END")

    def codes(self, read: dict[str, Any]) -> list[int]:
        """The code of every row by one way to read."""
        edges = _edges(read)
        return [MISSING_CODE, *(count_below(edges, edge) for edge in self.edges), len(edges)]


class KnownLevels(_Lookup):
    """The levels of a column, and last one code for all others."""

    def __init__(self, column: QueryColumn, width: int = 1):
        self.levels = column.schema.get("levels", [])
        super().__init__(column, len(self.levels) + 1, width)

    @cached_property
    def _code(self) -> str:
        key = self.column.level_key(self.levels)
        unseen = f"CASE WHEN {key} IS NULL THEN {MISSING_CODE} ELSE {self.n - 1} END"
        if not self.levels:
            return self.layers.add_value(unseen)
        keys, places = zip(*self.column.level_keys(self.levels), strict=True)
        return self.layers.add_value(f"COALESCE({self.layers.join_by_key(key, keys).codes(places)}, {unseen})")

    def codes(self, read: dict[str, Any]) -> list[int]:
        code = {place: code for code, place in enumerate(read["levels"])}
        return [MISSING_CODE, *(code.get(place, len(code)) for place in range(self.n))]


def _edges(read: dict[str, Any]) -> list[float]:
    return decode_numbers(read["edges"] if read["read"] == "grid" else read["values"])


def line_segments(knots: Sequence[float], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The segments of linear interpolation, constant beyond the ends: value at the start, slope and start of each.

    Knots so close that the slope would overflow have a step between them, to the value of the second.
    """
    at, y = np.array(knots), np.array(values)
    with np.errstate(over="ignore"):
        rise = np.diff(y) / np.diff(at)
    steep = np.isinf(rise)
    base = np.concatenate([y[:1], np.where(steep, y[1:], y[:-1]), y[-1:]])
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
        self.layers, self.parameters, self.reads = layers, parameters, parameters["reads"]
        self.n_classes = len(parameters["classes"])
        na = parameters.get("na", ())
        self.columns = [QueryColumn(layers, schema, na) for schema in parameters["columns"]]
        self.class_terms: list[list[str]] = [[] for _ in range(self.n_classes)]
        self.has_impossible = False  # whether a score may be impossible
        self.complete_groups: list[list[Any]] = []  # columns that must not be missing
        self._lookups: dict[tuple[int, bool], CellLookup | KnownLevels] = {}

    def number(self, read: int) -> str:
        return self.columns[self.reads[read]["column"]].number_name

    def find_lookup(self, read: int) -> CellLookup | KnownLevels:
        """The table of constants of the column that is read: as a number, or as a level."""
        at, has_levels = self.reads[read]["column"], "levels" in self.reads[read]
        if (at, has_levels) not in self._lookups:
            column, k = self.columns[at], self.n_classes
            reads = [other for other in self.reads if other["column"] == at and other["read"] in ("grid", "score")]
            self._lookups[at, has_levels] = KnownLevels(column, k) if has_levels else CellLookup(column, reads, k)
        return self._lookups[at, has_levels]

    def score(self, read: int) -> str:
        """The name of a normal score, by linear interpolation; 0 where the value is missing."""
        lookup, schema = self.find_lookup(read), self.reads[read]
        codes = np.array(lookup.codes(schema))[1:]
        segments = line_segments(_edges(schema), self.scores[schema["scores"]])
        a, b, c = (lookup.column_of([0.0, *values[codes].tolist()]) for values in segments)
        return self.layers.add_value(f"COALESCE({a} + {b} * ({lookup.column.number_name} - {c}), 0e0)")

    @cached_property
    def scores(self) -> list[list[float]]:
        return list(map(decode_numbers, self.parameters["scores"]))

    def add_terms(self, terms: Sequence[str]) -> None:
        for summands, term in zip(self.class_terms, terms, strict=True):
            summands.append(term)
