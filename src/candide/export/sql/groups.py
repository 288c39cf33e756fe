"""Groups: columns under one normal or t law, of which some may be missing.

Which of them are there decides which constants hold: few columns have a row of constants for each way to be, and of
more columns none may be missing: a row in which one is has no prediction.
"""

import math
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.export.scorer.numbers import numbers, rows, triangles
from candide.export.sql.expressions import added, log1p
from candide.export.sql.scoring import Scoring
from candide.export.sql.words import number

Part = dict[str, Any]
_NEAR, _FAR = "1e-140", "1e120"
MOST = 6  # columns whose values may be missing: 2**6 ways to be


def together(scoring: Scoring, part: Part, of_number: Callable[[str], str] = lambda x: x) -> None:
    """One term a class: the terms of the columns given those before them, added up."""
    columns = [scoring.columns[scoring.reads[read]["column"]].name for read in part["reads"]]
    weight = set(numbers(part.get("weight", [1.0])))
    if len(weight) > 1:
        what = "cannot be exported to SQL: columns modelled together have weights that differ"
        raise InputError(what, column=columns, remedy="export it to python or js")
    law = _Law(part, scoring.k)
    x = {j: of_number(scoring.x(part["reads"][j])) for j in range(law.p) if not part["constant"][j]}
    if len(x) > MOST:
        scoring.whole.append([columns[j] for j in x])
    group = _Group(scoring, law, x)
    [w] = weight
    scoring.add([f"{number(w)} * ({group.term(c)})" for c in range(scoring.k)])


class _Law:
    """The numbers of a normal or t law, for some of its columns."""

    def __init__(self, part: Part, k: int):
        held = numbers(part["loc"])
        self.p = len(held) // k
        self.loc, self.factor = rows(held, self.p), numbers(part["factor"])
        self.matrices = triangles(numbers(part["matrix"]), self.p)
        self.df, self.rising = numbers(part.get("df", [])), rows(numbers(part.get("rising", [])), self.p)

    def root(self, c: int, some: Sequence[int]) -> tuple[dict[tuple[int, int], float], float]:
        """What makes the columns that are there unrelated, by pairs of columns; and the log of its determinant."""
        if not some:
            return {}, 0.0
        lower = self.matrices[min(c, len(self.matrices) - 1)]
        matrix = np.array([[lower[max(i, j)][min(i, j)] for j in some] for i in some])
        unit = 1 / np.sqrt(np.diag(matrix))
        root = np.linalg.cholesky(matrix * np.outer(unit, unit))
        inverse = np.linalg.inv(root) * unit
        held = {(i, j): float(inverse[a, b]) for a, i in enumerate(some) for b, j in enumerate(some[: a + 1])}
        return held, float(np.log(unit).sum() - np.log(np.diag(root)).sum())

    def peak(self, c: int, n: int, log_root: float) -> float:
        """The log of the density of n columns at their centre."""
        whole = log_root - n / 2 * math.log(self.factor[c])
        if not self.df:
            return whole - n / 2 * math.log(2 * math.pi)
        return whole + sum(self.rising[c][:n]) - n / 2 * math.log(math.pi * self.df[c])


def _within(x: str) -> str:
    """A number whose square can be added up."""
    cases = f"WHEN ABS({x}) < {_NEAR} THEN 0e0 WHEN {x} > {_FAR} THEN {_FAR} WHEN {x} < -{_FAR} THEN -{_FAR}"
    return f"CASE {cases} ELSE {x} END"


class _Group:
    """A law, and the names of its columns in a query."""

    def __init__(self, scoring: Scoring, law: _Law, x: dict[int, str]):
        self.layers, self.law, self.x = scoring.layers, law, x
        self.some_missing = len(x) <= MOST
        self.ways = [list(x)]  # to be there
        if self.some_missing:
            self.ways = [list(compress(x, [way >> a & 1 for a in range(len(x))])) for way in range(1 << len(x))]
            code = added([f"CASE WHEN {one} IS NULL THEN 0 ELSE {1 << a} END" for a, one in enumerate(x.values())])
            self._table = self.layers.by_code(self.layers.let(code), range(len(self.ways)))

    def _by_way(self, values: Sequence[float]) -> str:
        """A constant that holds for those columns that are there."""
        return self._table.numbers(values) if self.some_missing else number(values[0])

    def term(self, c: int) -> str:
        law, let = self.law, self.layers.let
        roots = [law.root(c, way) for way in self.ways]
        away = {j: f"{one} - {number(law.loc[c][j])}" for j, one in self.x.items()}
        away = {j: let(f"COALESCE({one}, 0e0)" if self.some_missing else one) for j, one in away.items()}
        away = {j: let(_within(one)) for j, one in away.items()}
        squares = []
        for i in self.x:
            factors = {j: self._by_way([root.get((i, j), 0.0) for root, _ in roots]) for j in self.x if j <= i}
            z = let(added([f"{factor} * {away[j]}" for j, factor in factors.items()]))
            squares.append(f"{z} * {z}")
        size = let(f"({added(squares)}) / {number(law.factor[c])}")
        peak = self._by_way([law.peak(c, len(way), log) for way, (_, log) in zip(self.ways, roots, strict=True)])
        if not law.df:
            return f"{peak} - 5e-1 * {size}"
        exponent = self._by_way([(law.df[c] + len(way)) / 2 for way in self.ways])
        return f"{peak} - {exponent} * {log1p(self.layers, f'{size} / {number(law.df[c])}', law.df[c] + law.p)}"
