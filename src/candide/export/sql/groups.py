"""Groups: columns under one normal or t law, of which some may be missing.

Which of them are there decides which constants hold: few columns have a row of constants for each way to be, and of
more columns none may be missing: a row in which one is has no prediction.
"""

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.export.scorer.numbers import decode_numbers, lower_triangles, split_rows
from candide.export.sql.expressions import log1p, sum_of
from candide.export.sql.layers import format_number
from candide.export.sql.scoring import ScoringQuery

Part = dict[str, Any]
_MIN_SQUARABLE, _MAX_SQUARABLE = "1e-140", "1e120"
MAX_OPTIONAL_COLUMNS = 6  # columns whose values may be missing: 2**6 ways to be


def conditional(scoring: ScoringQuery, part: Part, numbers: list[list[str]]) -> list[list[str]]:
    """The contributions of the columns given those before them, added up: one of the first column, 0 of the others."""
    columns = [scoring.columns[scoring.reads[read]["column"]].name for read in part["reads"]]
    if len(set(decode_numbers(part.get("weight", [])))) > 1:
        what = "cannot be exported to SQL: columns modelled together have weights that differ"
        raise InputError(what, column=columns, remedy="export it to python or js")
    law = _GroupDistribution(part, scoring.n_classes)
    x = {j: scoring.layers.add_value(numbers[j][0]) for j in range(law.p) if not part["constant"][j]}
    if len(x) > MAX_OPTIONAL_COLUMNS:
        scoring.complete_groups.append([columns[j] for j in x])
    group = _ColumnGroup(scoring, law, x)
    return [[group.term(c) for c in range(scoring.n_classes)]] + [["0e0"] * scoring.n_classes for _ in columns[1:]]


class _GroupDistribution:
    """The numbers of a normal or t law, for some of its columns."""

    def __init__(self, part: Part, k: int):
        held = decode_numbers(part["loc"])
        self.p = len(held) // k
        self.loc, self.factor = split_rows(held, self.p), decode_numbers(part["factor"])
        self.matrices = lower_triangles(decode_numbers(part["matrix"]), self.p)
        self.df, self.log_rising = (
            decode_numbers(part.get("df", [])),
            split_rows(decode_numbers(part.get("rising", [])), self.p),
        )

    def root(self, c: int, present: Sequence[int]) -> tuple[dict[tuple[int, int], float], float]:
        """What makes the columns that are there unrelated, by pairs of columns; and the log of its determinant."""
        if not present:
            return {}, 0.0
        lower = self.matrices[min(c, len(self.matrices) - 1)]
        matrix = np.array([[lower[max(i, j)][min(i, j)] for j in present] for i in present])
        unit = 1 / np.sqrt(np.diag(matrix))
        root = np.linalg.cholesky(matrix * np.outer(unit, unit))
        inverse = np.linalg.inv(root) * unit
        held = {(i, j): float(inverse[a, b]) for a, i in enumerate(present) for b, j in enumerate(present[: a + 1])}
        return held, float(np.log(unit).sum() - np.log(np.diag(root)).sum())

    def peak(self, c: int, n: int, log_root: float) -> float:
        """The log of the density of n columns at their centre."""
        whole = log_root - n / 2 * math.log(self.factor[c])
        if not self.df:
            return whole - n / 2 * math.log(2 * math.pi)
        return whole + sum(self.log_rising[c][:n]) - n / 2 * math.log(math.pi * self.df[c])


def _clamp(x: str) -> str:
    """A number whose square can be added up."""
    cases = f"WHEN ABS({x}) < {_MIN_SQUARABLE} THEN 0e0 WHEN {x} > {_MAX_SQUARABLE} THEN {_MAX_SQUARABLE} WHEN {x} < -{_MAX_SQUARABLE} THEN -{_MAX_SQUARABLE}"
    return f"CASE {cases} ELSE {x} END"


class _ColumnGroup:
    """A law, and the names of its columns in a query."""

    def __init__(self, scoring: ScoringQuery, distribution: _GroupDistribution, x: dict[int, str]):
        self.layers, self.distribution, self.x = scoring.layers, distribution, x
        self.allows_missing = len(x) <= MAX_OPTIONAL_COLUMNS
        self.presence_patterns = [list(x)]  # to be there
        if self.allows_missing:
            self.presence_patterns = [
                list(compress(x, [way >> a & 1 for a in range(len(x))])) for way in range(1 << len(x))
            ]
            code = sum_of([f"CASE WHEN {one} IS NULL THEN 0 ELSE {1 << a} END" for a, one in enumerate(x.values())])
            self._table = self.layers.join_by_code(self.layers.add_value(code), range(len(self.presence_patterns)))

    def _constant_by_presence(self, values: Sequence[float]) -> str:
        """A constant that holds for those columns that are there."""
        return self._table.numbers(values) if self.allows_missing else format_number(values[0])

    def term(self, c: int) -> str:
        law, let = self.distribution, self.layers.add_value
        roots = [law.root(c, way) for way in self.presence_patterns]
        away = {j: f"{one} - {format_number(law.loc[c][j])}" for j, one in self.x.items()}
        away = {j: let(f"COALESCE({one}, 0e0)" if self.allows_missing else one) for j, one in away.items()}
        away = {j: let(_clamp(one)) for j, one in away.items()}
        squares = []
        for i in self.x:
            factors = {
                j: self._constant_by_presence([root.get((i, j), 0.0) for root, _ in roots]) for j in self.x if j <= i
            }
            z = let(sum_of([f"{factor} * {away[j]}" for j, factor in factors.items()]))
            squares.append(f"{z} * {z}")
        size = let(f"({sum_of(squares)}) / {format_number(law.factor[c])}")
        peak = self._constant_by_presence(
            [law.peak(c, len(way), log) for way, (_, log) in zip(self.presence_patterns, roots, strict=True)]
        )
        if not law.df:
            return f"{peak} - 5e-1 * {size}"
        exponent = self._constant_by_presence([(law.df[c] + len(way)) / 2 for way in self.presence_patterns])
        return f"{peak} - {exponent} * {log1p(self.layers, f'{size} / {format_number(law.df[c])}', law.df[c] + law.p)}"
