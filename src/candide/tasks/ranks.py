"""Ranks: how far the rows of a class stand above the others by their log-odds, as a tally that adds.

The area under the ROC curve is the share of pairs, a row of the class and a row of another, that are in the right
order. Ties count half (Hanley and McNeil, 1982), and a pair weighs the product of the weights of its rows. While rows
are few, to 2**20 of them, all are kept and the area is exact. Beyond, neighbouring log-odds share a cell in which all
are tied, so that memory is bounded. Half the weight of the pairs within cells is the most that this can cost: it is
known, and for two classes below 1e-6.

Cells are dyadic intervals of floating-point numbers: of any two, one holds the other or they are apart. So tallies
that have cells of their own add, too.

>>> ranks = Ranks.of(np.array([[0.3], [2.0], [-1.0], [0.3]]), np.array([1, 1, 0, 0]))
>>> ranks.areas().tolist(), ranks.errors().tolist(), (ranks + ranks).areas().tolist()
([0.875], [0.0], [0.875])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from candide.tasks.metrics import area, average_precision

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

_SIGN, _ALL = np.uint64(1 << 63), np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Room:
    """How much is kept: log-odds of rows as they are, and cells. The more classes, the fewer of each."""

    rows: int = 1 << 20  # as long as there are not so many classes that ...
    values: int = 1 << 24  # log-odds of rows in all, if they were kept
    cells: int = 1 << 22

    def rows_of(self, curves: int) -> int:
        return min(max(self.rows, (self.values >> 3) // curves), self.values // curves)

    def cells_of(self, curves: int) -> int:
        return max(min(self.cells >> 1, self.cells // curves), 1 << 12)


ROOM = Room()


class Cells(NamedTuple):
    """Intervals of log-odds that are apart, in ascending order, with both their ends, and the weight of their rows."""

    start: Keys
    end: Keys
    other: Floats
    own: Floats

    def joined(self, most: int) -> "Cells":
        """So many cells at most."""
        own = Cells(self.start.copy(), self.end.copy(), self.other.copy(), self.own.copy())
        return _joined(own, most) if len(self.start) > most else self

    def within(self, wider: "Cells") -> tuple[Floats, Floats]:
        """Weights of others and of the class in cells of which each of these lies in one."""
        at, n = np.searchsorted(wider.start, self.start, side="right") - 1, len(wider.start)
        return np.bincount(at, self.other, n).astype(float), np.bincount(at, self.own, n).astype(float)


class Chunk(NamedTuple):
    """Rows as they came."""

    odds: Floats  # (row, curve)
    y: NDArray[np.intp]
    weight: Floats | None


@dataclass(frozen=True, eq=False, repr=False)
class Ranks:
    """Rows as they came while they are few, in cells beyond; for every class a curve, or one for the second of two."""

    chunks: tuple[Chunk, ...]
    cells: tuple[Cells, ...] = ()
    room: Room = ROOM

    @classmethod
    def of(cls, odds: Floats, y: NDArray[np.intp], weight: Floats | None = None, *, room: Room = ROOM) -> Self:
        """Rows by log-odds of each class, (row, class), or of the second of two, (row, 1), and by class code."""
        return cls((Chunk(odds, y, weight),), room=room)._bounded(odds.shape[1])

    def __add__(self, other: Self) -> Self:
        if self.cells and other.cells:
            cells = tuple(_united(a, b) for a, b in zip(self.cells, other.cells, strict=True))
        else:
            cells = self.cells or other.cells
        return type(self)(self.chunks + other.chunks, cells, self.room)._bounded(self.curves)

    def __repr__(self) -> str:
        return f"Ranks(areas={self.areas().tolist()}, errors={self.errors().tolist()})"

    @property
    def curves(self) -> int:
        return len(self.cells) or self.chunks[0].odds.shape[1]

    def areas(self) -> Floats:
        """(curve,) the area under each; NaN where all rows are of the class, or none is."""
        return self._measured[0]

    def average_precisions(self) -> Floats:
        """(curve,) the area under each precision-recall curve; NaN where no row is of the class."""
        return np.array(
            [float(average_precision(cells.other, cells.own)) for cells in map(self.curve, range(self.curves))]
        )

    def errors(self) -> Floats:
        """(curve,) how far its area can be off at most; 0 while all rows are kept."""
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[Floats, Floats]:
        found = [(float(area(cells.other, cells.own)), _error(cells)) for cells in map(self.curve, range(self.curves))]
        areas, errors = np.array(found).T
        return areas, errors

    def curve(self, c: int) -> Cells:
        """All rows of a curve in cells; one a value, unless they have been joined."""
        if not self.chunks:
            return self.cells[c]
        rows = _cells(self.chunks, c, c if self.curves > 1 else 1)
        return _united(self.cells[c], rows) if self.cells else rows

    def of_class(self, c: int) -> Cells:
        """The curve of a class; of two classes that of the first is the other one backwards."""
        if self.curves > 1:
            return self.curve(c)
        start, end, other, own = self.curve(0)
        return Cells(start, end, other, own) if c else Cells(~end[::-1], ~start[::-1], own[::-1], other[::-1])

    def _bounded(self, curves: int) -> Self:
        """The same in no more than the room there is."""
        most, chunks, cells = self.room.cells_of(curves), self.chunks, self.cells
        if sum(len(chunk.y) for chunk in chunks) > self.room.rows_of(curves):
            chunks, cells = (), tuple(map(self.curve, range(curves)))
        if all(len(one.start) <= most for one in cells):
            return self if cells is self.cells else type(self)(chunks, cells, self.room)
        joined = (_joined(one, most // 2) if len(one.start) > most else one for one in cells)
        return type(self)(chunks, tuple(joined), self.room)


def _cells(chunks: tuple[Chunk, ...], curve: int, c: int) -> Cells:
    """A cell for every value of a curve, whose class is ``c``."""
    key = np.concatenate([_key(chunk.odds[:, curve]) for chunk in chunks])
    order = np.argsort(key)
    key, own = key[order], np.concatenate([chunk.y == c for chunk in chunks])[order]
    if all(chunk.weight is None for chunk in chunks):
        weight = np.ones(len(key))
    else:
        weight = np.concatenate([np.ones(len(k.y)) if k.weight is None else k.weight for k in chunks])[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.intp)
    return _summed(key[first], key[first], np.where(own, 0.0, weight), np.where(own, weight, 0.0), first)


def _summed(start: Keys, end: Keys, other: Floats, own: Floats, first: NDArray[np.intp]) -> Cells:
    if len(first) == len(other):
        return Cells(start, end, other, own)
    return Cells(start, end, np.add.reduceat(other, first), np.add.reduceat(own, first))


def _key(x: Floats) -> Keys:
    """Whole numbers in the order of the floating-point numbers: those below zero have their bits turned round."""
    bits = (x + 0.0).view(np.uint64)  # no -0.0
    return bits ^ np.where(bits & _SIGN, _ALL, _SIGN)


def odds_of(key: Keys) -> Floats:
    """The log-odds that have these keys.

    >>> odds_of(_key(np.array([-2.5, 0.0, 3.0]))).tolist()
    [-2.5, 0.0, 3.0]
    """
    return (key ^ np.where(key & _SIGN, _SIGN, _ALL)).view(np.float64)


def _united(a: Cells, b: Cells) -> Cells:
    """The cells of two tallies: what lies in a cell of the other falls into it."""
    start = np.concatenate([a.start, b.start])
    order = np.argsort(start, kind="stable")  # a merge, for both are in order
    start, (end, other, own) = start[order], (np.concatenate(pair)[order] for pair in zip(a[1:], b[1:], strict=True))
    if not len(start):
        return a
    apart = start[1:] > np.maximum.accumulate(end)[:-1]
    first = np.flatnonzero(np.concatenate([[True], apart]))
    return _summed(start[first], np.maximum.reduceat(end, first), other, own, first)


def _joined(cells: Cells, most: int) -> Cells:
    """So many cells at most, of which neighbours are joined: those first whose ties cost the least.

    Cells that share the longer head of their bits are the closer ones: a pair may be joined if each has no neighbour
    that is closer still, and so what is joined is a dyadic interval again.
    """
    start, end, other, own = cells
    few = (other.sum() + own.sum()) / most  # a cell of one class may have rows of the others later
    while (excess := len(start) - most) > 0:
        gap = start[1:] ^ start[:-1]
        walled = np.concatenate([[_ALL], gap, [_ALL]])
        at = np.flatnonzero((walled[:-2] > gap) & (gap < walled[2:]))
        cost = (other[at] + other[at + 1] + few) * (own[at] + own[at + 1] + few)
        n = min(excess, max(len(at) * 3 // 4, 1))
        if n < len(at):
            at = at[np.argpartition(cost, n)[:n]]
        inside = gap[at]
        for shift in (1, 2, 4, 8, 16, 32):  # all bits below the first in which the two differ
            inside |= inside >> np.uint64(shift)
        start[at], end[at] = start[at] & ~inside, start[at] | inside
        other[at] += other[at + 1]
        own[at] += own[at + 1]
        left = np.ones(len(start), bool)
        left[at + 1] = False
        start, end, other, own = start[left], end[left], other[left], own[left]
    return Cells(start, end, other, own)


def _error(cells: Cells) -> float:
    wide = cells.end > cells.start
    pairs = cells.other.sum() * cells.own.sum()
    return float(0.5 * cells.own[wide] @ cells.other[wide] / pairs) if pairs else 0.0


def places(log_posterior: Floats, y: NDArray[np.intp], true: Floats) -> NDArray[np.intp]:
    """(row,) how many classes stand above the true one: those more probable, and of equals those before it."""
    if log_posterior.shape[1] == 2:
        other = log_posterior[np.arange(len(y)), 1 - y]
        return ((other > true) | ((other == true) & (y == 1))).astype(np.intp)
    before = np.arange(log_posterior.shape[1]) < y[:, None]
    return ((log_posterior > true[:, None]) | ((log_posterior == true[:, None]) & before)).sum(axis=1)


def log_odds(log_posterior: Floats, p: Floats, winner: NDArray[np.intp]) -> Floats:
    """log p / (1 - p) of each class, of two of the second alone.

    That of the winner comes from the others, for 1 - p is lost where p rounds to 1.
    """
    if p.shape[1] == 2:
        with np.errstate(invalid="ignore"):  # both impossible
            return np.nan_to_num(log_posterior[:, 1:] - log_posterior[:, :1], nan=0.0, posinf=np.inf, neginf=-np.inf)
    others = p.copy()
    others.ravel()[winner] = 0.0
    rest = log_posterior.copy()
    rest.ravel()[winner] = -np.inf
    with np.errstate(divide="ignore"):
        odds = log_posterior - np.log1p(-others)
        odds.ravel()[winner] -= np.logaddexp.reduce(rest, axis=1)  # of logs: p itself falls to 0 at 745 nats
    return odds
