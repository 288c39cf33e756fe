"""Grid: numbers between edges. A code is how many edges lie below the number.

A grid that has no edges yet learns them from a column: between all distinct values where they are few, else between
quantiles, so that its cells hold about as many values each. It never sees labels. Edges that are there stay: they are
encoding.

>>> age = Grid((27.0, 41.0))
>>> age.level_names(), age.apply([27, 28, 99, None]).tolist()
(('<= 27', '27 to 41', '> 41'), [0, 1, 2, -1])
>>> Grid(cells=4).learn(np.arange(1.0, 101.0)).edges, Grid().learn([0, 5, 5, 7]).edges, Grid().learn([0.5, 2]).edges
((25.0, 50.0, 75.0), (2.0, 6.0), (1.25,))
>>> Grid((0.5,), raw=True).block_kind, age.coarsen([0, 0, 1]).level_names()
('numbers', ('<= 41', '> 41'))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting, kernels
from candide.data.blocks import Floats, check_finite
from candide.data.labels import Labels, as_column
from candide.data.quantiles import distinct_numbers, is_right_skewed, nearest_indices
from candide.data.table import to_numbers
from candide.encoding.base import CodeMapping, Encoding
from candide.errors import MERGE_REMEDY, InputError, MergeError
from candide.kernels import threads

MAX_CELLS = 255
_SEARCH_COST = 8  # what finding a number's cell costs, in products
_MIN_DIGITS, _MAX_INTEGER_DIGITS = (
    4,
    12,
)  # of an edge at least; and before the point, beyond which it is written with a power of ten


@dataclass(frozen=True)
class Grid(Encoding):
    """Ascending edges, or None before they are learned, at most ``cells`` - 1 of them.

    ``raw``: the block keeps the numbers, and the tally's loops compare them with the only edge as they read.
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
            raise InputError(
                "edges that are no ascending numbers", value=self.edges, remedy="pass such as (27.0, 41.0)"
            )
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
        """The cells as levels, known by their names."""
        return Labels(self.level_names())

    @property
    def _edges(self) -> tuple[float, ...]:
        if self.edges is None:
            raise InputError("a grid without edges", remedy="let it learn them from a column")
        return self.edges

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """Edges between a column's distinct values, or between its quantiles where these are too many.

        Each is midway between the two values that it parts, so that a value near one of them is not taken for the
        other; between whole numbers it is whole. The edges of the negated column are the same, negated: a whole number
        midway between two others goes with the one that is nearer to the longer tail.
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
        return type(self)(tuple(edges.tolist()), self.cells, self.raw)

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
        """Grids merge where their edges agree."""
        if self != other:
            raise MergeError(
                f"the edges of its cells differ between these models ({_list_edges(self)} and {_list_edges(other)})",
                remedy=f"{MERGE_REMEDY}, or count both with the same edges",
            )
        stay = CodeMapping(np.arange(self.n_levels, dtype=np.intp), self.n_levels)
        return self, stay, stay

    def coarsen(self, group: Sequence[int]) -> Self:
        """The grid in which neighbouring cells of the same group are one; ``group`` has a number for each cell."""
        steps = np.diff(np.asarray(group))
        if len(steps) != len(self._edges) or not np.isin(steps, (0, 1)).all():
            raise InputError(f"groups that do not number {self.n_levels} cells in ascending order", value=tuple(group))
        return type(self)(tuple(e for e, step in zip(self._edges, steps, strict=True) if step), self.cells, self.raw)

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        """The cells by their edges, in figures that tell these apart, or as dates where they are days since 1970.

        >>> Grid((0.123456, 0.5)).level_names(), Grid((19782.0,)).level_names(dates=True)
        (('<= 0.1235', '0.1235 to 0.5', '> 0.5'), ('<= 2024-02-29', '> 2024-02-29'))
        """
        return self._date_names if dates else self._number_names

    @cached_property
    def _number_names(self) -> tuple[str, ...]:
        return self._build_names(dates=False)

    @cached_property
    def _date_names(self) -> tuple[str, ...]:
        return self._build_names(dates=True)

    def _build_names(self, dates: bool) -> tuple[str, ...]:
        if not self.edges:
            return () if self.edges is None else ("any",)
        halves = np.diff(np.array(self.edges) / 2, prepend=-np.inf, append=np.inf)
        tolerances = np.minimum(halves[:-1], halves[1:]).tolist()
        shown = [str(formatting.date_from_days(edge)) for edge in self.edges] if dates else []
        if len(set(shown)) < len(self.edges):
            shown = [_format_edge(edge, tolerance) for edge, tolerance in zip(self.edges, tolerances, strict=True)]
        between = (f"{a} to {b}" for a, b in pairwise(shown))
        return (f"<= {shown[0]}", *between, f"> {shown[-1]}")

    def value_range(self) -> tuple[float, float] | None:
        return (self.edges[0], self.edges[-1]) if self.edges and len(self.edges) > 1 else None

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "number"} if self.raw else {"read": "grid", "edges": self._edges}

    def sql(self, x: Any, dialect: Any) -> Any:
        """The code of a number, found by halving; -1 where it is NULL."""
        from sqlglot import exp

        def code(low: int, high: int) -> Any:
            if low == high:
                return exp.Literal.number(low)
            middle = (low + high) // 2
            edge = exp.Literal.number(repr(self._edges[middle]))
            below = exp.If(this=exp.LTE(this=x.copy(), expression=edge), true=code(low, middle))
            return exp.Case(ifs=[below], default=code(middle + 1, high))

        absent = exp.If(this=exp.Is(this=x.copy(), expression=exp.Null()), true=exp.Literal.number(-1))
        return exp.Case(ifs=[absent], default=code(0, len(self._edges)))


def _format_edge(edge: float, gap: float) -> str:
    """A number in four figures, or all that it has before the point, or more: until it is near enough.

    >>> (
    ...     _format_edge(0.57364712, 0.1),
    ...     _format_edge(0.57364712, 1e-6),
    ...     _format_edge(256263.25, 10.0),
    ...     _format_edge(1.5e300, 1e299),
    ... )
    ('0.5736', '0.573647', '256263', '1.5e+300')
    """
    before = len(f"{abs(edge):.0f}")
    for digits in range(max(_MIN_DIGITS, before if before <= _MAX_INTEGER_DIGITS else 0), 17):
        text = f"{edge:.{digits}g}"
        if abs(float(text) - edge) < gap:
            return text
    return repr(edge)


def _list_edges(grid: Grid) -> str:
    return "none" if grid.edges is None else ", ".join(f"{edge:g}" for edge in grid.edges[:5])


def join_cell_names(first: str, last: str) -> str:
    """The name of all cells from one to another, by their names.

    >>> (
    ...     join_cell_names("<= 3", "3 to 7"),
    ...     join_cell_names("3 to 7", "7 to 9"),
    ...     join_cell_names("3 to 7", "> 7"),
    ...     join_cell_names("<= 3", "> 7"),
    ... )
    ('<= 7', '3 to 9', '> 3', 'any')
    """
    if first == last:
        return first
    low, high = first.partition(" to ")[0], last.rpartition(" to ")[2]
    if first.startswith("<="):
        return "any" if last.startswith(">") else f"<= {high}"
    return f"> {low}" if last.startswith(">") else f"{low} to {high}"
