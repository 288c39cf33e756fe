"""Encodings to codes: the levels of categories, and the cells of a grid over numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting, kernels
from candide.data.blocks import Floats, check_finite
from candide.data.labels import Labels, as_column
from candide.data.table import to_numbers
from candide.encoding.base import CodeMapping, Encoding, distinct_numbers
from candide.errors import MERGE_REMEDY, InputError, MergeError
from candide.kernels import threads
from candide.numerics import is_right_skewed, nearest_indices

MAX_CELLS = 255
_SEARCH_COST = 8  # of finding a number's cell, in products
_MIN_DIGITS = 4  # of an edge in print
_MAX_INTEGER_DIGITS = 12  # longer edges are printed with a power of ten


@dataclass(frozen=True)
class LevelEncoding(Encoding):
    """The levels of a category, numbers before text; none before anything was learned.

    ``gapless``: they are the whole numbers from 0, and what is below a known level is known as well. ``fixed``: no
    level is ever added or dropped, and any other stays unseen.
    """

    labels: Labels = Labels(())
    gapless: bool = False
    fixed: bool = False

    block_kind = "codes"
    is_read_as_text: ClassVar[bool] = True

    @classmethod
    def from_size(cls, n: int, declared: int = 0) -> "LevelEncoding":
        """Levels that are their own codes, 0 to n - 1, the first of them declared."""
        return cls(Labels(tuple(range(n)), frozenset(range(declared))), gapless=True)

    @classmethod
    def most_frequent(cls, column: Any, max_levels: int, weight: Floats | None = None) -> "LevelEncoding":
        """The most frequent levels of a column, fixed."""
        known = Labels.from_values(column)
        if len(known) > max_levels:
            code = known.encode(column)
            n = np.bincount(code[code >= 0], None if weight is None else weight[code >= 0], len(known))
            known = Labels(tuple(known.values[i] for i in np.sort(np.argsort(-n, kind="stable")[:max_levels])))
        return cls(known, fixed=True)

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        return len(self.labels)

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        if self.fixed:
            return self
        labels = Labels.from_values(column)
        for value in labels.values:
            if isinstance(value, float) and np.isinf(value):
                remedy = "make it missing (NaN), or drop the row"
                raise InputError("infinity is not a usable level", value=value, remedy=remedy)
        return replace(self, labels=labels)

    def _read(self, column: Any) -> NDArray[np.intp]:
        return self.labels.match_codes(column)

    def decode(self, x: NDArray) -> NDArray:
        return self.labels.array[x] if self.n_levels else np.full(len(x), np.nan)

    def union(self, other: Self) -> tuple[Self, CodeMapping, CodeMapping]:
        if self.fixed or other.fixed:
            return super().union(other)
        both, mine, theirs = self.labels.union(other.labels)
        return replace(self, labels=both), CodeMapping(mine, len(both)), CodeMapping(theirs, len(both))

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if self.fixed:
            return super().retained_mask(seen)
        stays = self.labels.retained_mask(seen)
        return np.logical_or.accumulate(stays[::-1])[::-1] if self.gapless else stays

    def retain_levels(self, seen: NDArray[np.bool_]) -> Self:
        labels = self.labels.retain(self.retained_mask(seen))
        return self if labels is self.labels else replace(self, labels=labels)

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        return tuple(map(str, self.labels.values))

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "levels", "levels": self.labels.values}

    def sql(self, x: Any, dialect: Any) -> Any:
        """The code of a value: -1 where it is NULL, ``n_levels`` where it is unseen."""
        from sqlglot import exp

        known = [
            exp.If(this=exp.EQ(this=x.copy(), expression=exp.convert(value)), true=exp.Literal.number(code))
            for code, value in enumerate(self.labels.values)
        ]
        return exp.Case(ifs=[_absent_sql(x), *known], default=exp.Literal.number(self.n_levels))


@dataclass(frozen=True)
class Grid(Encoding):
    """Cells between ascending edges; the code of a number is how many edges are below it.

    ``edges`` is None before they are learned, at most ``cells`` - 1 of them. ``raw``: the block keeps the numbers, and
    the tally's loops compare them with the only edge.
    """

    edges: tuple[float, ...] | None = None
    cells: int = MAX_CELLS
    raw: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= MAX_CELLS:
            raise InputError(f"{self.cells} cells", value=self.cells, remedy=f"pass 2 to {MAX_CELLS}")
        if self.edges is None:
            return
        edges = tuple(float(edge) for edge in self.edges)
        if np.isnan(edges).any() or any(a >= b for a, b in pairwise(edges)):
            raise InputError("expected ascending edges", value=self.edges, remedy="pass such as (27.0, 41.0)")
        if self.raw and len(edges) != 1:
            raise InputError(f"{len(edges)} edges where numbers are kept", value=edges, remedy="pass one edge")
        object.__setattr__(self, "edges", edges)

    @property
    def block_kind(self) -> str:  # type: ignore[override]
        return "numbers" if self.raw else "codes"

    @property
    def threshold(self) -> float | None:  # type: ignore[override]
        return self._edges[0] if self.raw else None

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        return 0 if self.edges is None else len(self.edges) + 1

    @property
    def labels(self) -> Labels:
        """The cells as levels, by their names."""
        return Labels(self.level_names())

    @property
    def _edges(self) -> tuple[float, ...]:
        if self.edges is None:
            raise InputError("a grid without edges", remedy="let it learn them from a column")
        return self.edges

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """Edges between a column's distinct values, or between its quantiles where these are too many.

        An edge is midway between two values, and whole between whole numbers. The negated column has the negated edges:
        a whole number midway between two others goes with the one nearer to the longer tail.
        """
        if self.edges is not None:
            return self
        distinct, n = distinct_numbers(column, weight)
        right = is_right_skewed(distinct, n)
        below, above = distinct[:-1], distinct[1:]
        if len(distinct) > self.cells:
            proportions, quantiles = np.cumsum(n)[:-1] / n.sum(), np.arange(1, self.cells) / self.cells
            last = np.unique(nearest_indices(proportions, quantiles, prefer_low=right))
            below, above = below[last], above[last]
        middle = below / 2 + above / 2
        if (distinct == np.floor(distinct)).all():
            middle = np.ceil(middle) - 1 if right else np.floor(middle)
        edges = np.where((below <= middle) & (middle < above), middle, below)  # of neighbouring floats the lower
        return replace(self, edges=tuple(edges.tolist()))

    def _read(self, column: Any) -> NDArray:
        numbers = to_numbers(as_column(column))
        return numbers if self.raw else self._codes(check_finite(numbers))

    def tally_values(self, x: NDArray) -> NDArray:
        return self._codes(x) if self.raw else x

    def _codes(self, x: NDArray) -> NDArray[np.int32]:
        edges, out = self._edge_array, np.empty(x.shape, np.int32)
        flat, codes = x.reshape(-1), out.reshape(-1)
        threads.map_rows(lambda rows: kernels.grid_codes(flat[rows], edges, codes[rows]), len(flat), cost=_SEARCH_COST)
        return out

    @cached_property
    def _edge_array(self) -> NDArray:
        return np.array(self._edges)

    def decode(self, x: NDArray) -> NDArray:
        """A number of each cell: its middle, and at the ends the outermost edge."""
        if self.raw or not self.edges:
            return x
        edges = np.array(self.edges)
        middles = np.concatenate([edges[:1], edges[1:] / 2 + edges[:-1] / 2, edges[-1:]])
        return np.where(x < 0, np.nan, middles[x])

    def union(self, other: Self) -> tuple[Self, CodeMapping, CodeMapping]:
        if self != other:
            texts = ("none" if e is None else ", ".join(f"{x:g}" for x in e[:5]) for e in (self.edges, other.edges))
            what = f"the edges of its cells differ between these models ({' and '.join(texts)})"
            raise MergeError(what, remedy=f"{MERGE_REMEDY}, or count both with the same edges")
        same = CodeMapping(np.arange(self.n_levels, dtype=np.intp), self.n_levels)
        return self, same, same

    def coarsen(self, group: Sequence[int]) -> Self:
        """The grid in which neighbouring cells of the same group are one; ``group`` has a number for each cell."""
        steps = np.diff(np.asarray(group))
        if len(steps) != len(self._edges) or not np.isin(steps, (0, 1)).all():
            raise InputError(f"groups that do not number {self.n_levels} cells in ascending order", value=tuple(group))
        return replace(self, edges=tuple(np.array(self._edges)[steps == 1].tolist()))

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        """The cells by their edges, with enough digits to differ, or as dates where they are days since 1970."""
        return _cell_names(self.edges, dates)

    def value_range(self) -> tuple[float, float] | None:
        return (self.edges[0], self.edges[-1]) if self.edges and len(self.edges) > 1 else None

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "number"} if self.raw else {"read": "grid", "edges": self._edges}

    def sql(self, x: Any, dialect: Any) -> Any:
        """The code of a number by binary search; -1 where it is NULL."""
        from sqlglot import exp

        def code(low: int, high: int) -> Any:
            if low == high:
                return exp.Literal.number(low)
            middle = (low + high) // 2
            edge = exp.Literal.number(repr(self._edges[middle]))
            below = exp.If(this=exp.LTE(this=x.copy(), expression=edge), true=code(low, middle))
            return exp.Case(ifs=[below], default=code(middle + 1, high))

        return exp.Case(ifs=[_absent_sql(x)], default=code(0, len(self._edges)))


def _absent_sql(x: Any) -> Any:
    from sqlglot import exp

    return exp.If(this=exp.Is(this=x.copy(), expression=exp.Null()), true=exp.Literal.number(-1))


@lru_cache(1024)
def _cell_names(edges: tuple[float, ...] | None, dates: bool) -> tuple[str, ...]:
    if not edges:
        return () if edges is None else ("any",)
    halves = np.diff(np.array(edges) / 2, prepend=-np.inf, append=np.inf)
    tolerances = np.minimum(halves[:-1], halves[1:]).tolist()
    names = [str(formatting.date_from_days(edge)) for edge in edges] if dates else []
    if len(set(names)) < len(edges):
        names = [_format_edge(edge, tolerance) for edge, tolerance in zip(edges, tolerances, strict=True)]
    between = (f"{a} to {b}" for a, b in pairwise(names))
    return (f"<= {names[0]}", *between, f"> {names[-1]}")


def _format_edge(edge: float, tolerance: float) -> str:
    """A number in four digits, or as many as it has before the point, or more: until it is near enough."""
    n_integer = len(f"{abs(edge):.0f}")
    for digits in range(max(_MIN_DIGITS, n_integer if n_integer <= _MAX_INTEGER_DIGITS else 0), 17):
        text = f"{edge:.{digits}g}"
        if abs(float(text) - edge) < tolerance:
            return text
    return repr(edge)


def join_cell_names(first: str, last: str) -> str:
    """The name of all cells from one to another, by their names: "<= 7" for "<= 3" and "3 to 7"."""
    if first == last:
        return first
    low, high = first.partition(" to ")[0], last.rpartition(" to ")[2]
    if first.startswith("<="):
        return "any" if last.startswith(">") else f"<= {high}"
    return f"> {low}" if last.startswith(">") else f"{low} to {high}"
