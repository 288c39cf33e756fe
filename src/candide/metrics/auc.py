"""Ranks: how far the rows of a class stand above the others by their log-odds, as a tally that adds.

The area under the ROC curve is the share of pairs, a row of the class and a row of another, that are in the right
order. Ties count half (Hanley and McNeil, 1982), and a pair weighs the product of the weights of its rows. While rows
are few, to 2**20 of them, all are kept and the area is exact. Beyond, neighbouring log-odds share a cell in which all
are tied, so that memory is bounded. Half the weight of the pairs within cells is the most that this can cost: it is
known, and for two classes below 1e-6.

Cells are dyadic intervals of floating-point numbers: of any two, one holds the other or they are apart. So tallies
that have cells of their own add, too.

>>> ranks = Ranks.from_log_odds(np.array([[0.3], [2.0], [-1.0], [0.3]]), np.array([1, 1, 0, 0]))
>>> ranks.areas().tolist(), ranks.area_errors().tolist(), (ranks + ranks).areas().tolist()
([0.875], [0.0], [0.875])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from candide.metrics.formulas import average_precision, roc_area

Floats = NDArray[np.float64]
SortKeys = NDArray[np.uint64]

_SIGN_BIT, _ALL_BITS = np.uint64(1 << 63), np.uint64(2**64 - 1)


@dataclass(frozen=True)
class RankLimits:
    """How much is kept: log-odds of rows as they are, and cells. The more classes, the fewer of each."""

    max_rows: int = 1 << 20  # as long as there are not so many classes that ...
    max_values: int = 1 << 24  # log-odds of rows in all, if they were kept
    max_bins: int = 1 << 22

    def rows_per_curve(self, curves: int) -> int:
        return min(max(self.max_rows, (self.max_values >> 3) // curves), self.max_values // curves)

    def bins_per_curve(self, curves: int) -> int:
        return max(min(self.max_bins >> 1, self.max_bins // curves), 1 << 12)


DEFAULT_LIMITS = RankLimits()


class LogOddsBins(NamedTuple):
    """Intervals of log-odds that are apart, in ascending order, with both their ends, and the weight of their rows."""

    start: SortKeys
    end: SortKeys
    other_weight: Floats
    class_weight: Floats

    def join_bins(self, max_bins: int) -> "LogOddsBins":
        """So many cells at most."""
        own = LogOddsBins(self.start.copy(), self.end.copy(), self.other_weight.copy(), self.class_weight.copy())
        return _join_bins(own, max_bins) if len(self.start) > max_bins else self

    def weights_within(self, wider: "LogOddsBins") -> tuple[Floats, Floats]:
        """Weights of others and of the class in cells of which each of these lies in one."""
        at, n = np.searchsorted(wider.start, self.start, side="right") - 1, len(wider.start)
        return np.bincount(at, self.other_weight, n).astype(float), np.bincount(at, self.class_weight, n).astype(float)


class RowChunk(NamedTuple):
    """Rows as they came."""

    log_odds: Floats  # (row, curve)
    y: NDArray[np.intp]
    weight: Floats | None


@dataclass(frozen=True, eq=False, repr=False)
class Ranks:
    """Rows as they came while they are few, in cells beyond; for every class a curve, or one for the second of two."""

    chunks: tuple[RowChunk, ...]
    bins: tuple[LogOddsBins, ...] = ()
    limits: RankLimits = DEFAULT_LIMITS

    @classmethod
    def from_log_odds(
        cls, log_odds: Floats, y: NDArray[np.intp], weight: Floats | None = None, *, limits: RankLimits = DEFAULT_LIMITS
    ) -> Self:
        """Rows by log-odds of each class, (row, class), or of the second of two, (row, 1), and by class code."""
        return cls((RowChunk(log_odds, y, weight),), limits=limits)._limit_size(log_odds.shape[1])

    def __add__(self, other: Self) -> Self:
        if self.bins and other.bins:
            cells = tuple(_unite_bins(a, b) for a, b in zip(self.bins, other.bins, strict=True))
        else:
            cells = self.bins or other.bins
        return type(self)(self.chunks + other.chunks, cells, self.limits)._limit_size(self.n_curves)

    def __repr__(self) -> str:
        return f"Ranks(areas={self.areas().tolist()}, errors={self.area_errors().tolist()})"

    @property
    def n_curves(self) -> int:
        return len(self.bins) or self.chunks[0].log_odds.shape[1]

    def areas(self) -> Floats:
        """(curve,) the area under each; NaN where all rows are of the class, or none is."""
        return self._areas[0]

    def average_precisions(self) -> Floats:
        """(curve,) the area under each precision-recall curve; NaN where no row is of the class."""
        return np.array(
            [
                float(average_precision(cells.other_weight, cells.class_weight))
                for cells in map(self.curve, range(self.n_curves))
            ]
        )

    def area_errors(self) -> Floats:
        """(curve,) how far its area can be off at most; 0 while all rows are kept."""
        return self._areas[1]

    @cached_property
    def _areas(self) -> tuple[Floats, Floats]:
        found = [
            (float(roc_area(cells.other_weight, cells.class_weight)), _area_error(cells))
            for cells in map(self.curve, range(self.n_curves))
        ]
        areas, errors = np.array(found).T
        return areas, errors

    def curve(self, c: int) -> LogOddsBins:
        """All rows of a curve in cells; one a value, unless they have been joined."""
        if not self.chunks:
            return self.bins[c]
        rows = _make_bins(self.chunks, c, c if self.n_curves > 1 else 1)
        return _unite_bins(self.bins[c], rows) if self.bins else rows

    def class_curve(self, c: int) -> LogOddsBins:
        """The curve of a class; of two classes that of the first is the other one backwards."""
        if self.n_curves > 1:
            return self.curve(c)
        start, end, other, own = self.curve(0)
        return (
            LogOddsBins(start, end, other, own) if c else LogOddsBins(~end[::-1], ~start[::-1], own[::-1], other[::-1])
        )

    def _limit_size(self, curves: int) -> Self:
        """The same in no more than the room there is."""
        most, chunks, cells = self.limits.bins_per_curve(curves), self.chunks, self.bins
        if sum(len(chunk.y) for chunk in chunks) > self.limits.rows_per_curve(curves):
            chunks, cells = (), tuple(map(self.curve, range(curves)))
        if all(len(one.start) <= most for one in cells):
            return self if cells is self.bins else type(self)(chunks, cells, self.limits)
        joined = (_join_bins(one, most // 2) if len(one.start) > most else one for one in cells)
        return type(self)(chunks, tuple(joined), self.limits)


def _make_bins(chunks: tuple[RowChunk, ...], curve: int, c: int) -> LogOddsBins:
    """A cell for every value of a curve, whose class is ``c``."""
    key = np.concatenate([_sort_key(chunk.log_odds[:, curve]) for chunk in chunks])
    order = np.argsort(key)
    key, own = key[order], np.concatenate([chunk.y == c for chunk in chunks])[order]
    if all(chunk.weight is None for chunk in chunks):
        weight = np.ones(len(key))
    else:
        weight = np.concatenate([np.ones(len(k.y)) if k.weight is None else k.weight for k in chunks])[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.intp)
    return _sum_bins(key[first], key[first], np.where(own, 0.0, weight), np.where(own, weight, 0.0), first)


def _sum_bins(start: SortKeys, end: SortKeys, other: Floats, own: Floats, first: NDArray[np.intp]) -> LogOddsBins:
    if len(first) == len(other):
        return LogOddsBins(start, end, other, own)
    return LogOddsBins(start, end, np.add.reduceat(other, first), np.add.reduceat(own, first))


def _sort_key(x: Floats) -> SortKeys:
    """Whole numbers in the order of the floating-point numbers: those below zero have their bits turned round."""
    bits = (x + 0.0).view(np.uint64)  # no -0.0
    return bits ^ np.where(bits & _SIGN_BIT, _ALL_BITS, _SIGN_BIT)


def log_odds_from_keys(key: SortKeys) -> Floats:
    """The log-odds that have these keys.

    >>> log_odds_from_keys(_sort_key(np.array([-2.5, 0.0, 3.0]))).tolist()
    [-2.5, 0.0, 3.0]
    """
    return (key ^ np.where(key & _SIGN_BIT, _SIGN_BIT, _ALL_BITS)).view(np.float64)


def _unite_bins(a: LogOddsBins, b: LogOddsBins) -> LogOddsBins:
    """The cells of two tallies: what lies in a cell of the other falls into it."""
    start = np.concatenate([a.start, b.start])
    order = np.argsort(start, kind="stable")  # a merge, for both are in order
    start, (end, other, own) = start[order], (np.concatenate(pair)[order] for pair in zip(a[1:], b[1:], strict=True))
    if not len(start):
        return a
    apart = start[1:] > np.maximum.accumulate(end)[:-1]
    first = np.flatnonzero(np.concatenate([[True], apart]))
    return _sum_bins(start[first], np.maximum.reduceat(end, first), other, own, first)


def _join_bins(cells: LogOddsBins, most: int) -> LogOddsBins:
    """So many cells at most, of which neighbours are joined: those first whose ties cost the least.

    Cells that share the longer head of their bits are the closer ones: a pair may be joined if each has no neighbour
    that is closer still, and so what is joined is a dyadic interval again.
    """
    start, end, other, own = cells
    few = (other.sum() + own.sum()) / most  # a cell of one class may have rows of the others later
    while (excess := len(start) - most) > 0:
        gap = start[1:] ^ start[:-1]
        walled = np.concatenate([[_ALL_BITS], gap, [_ALL_BITS]])
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
    return LogOddsBins(start, end, other, own)


def _area_error(cells: LogOddsBins) -> float:
    wide = cells.end > cells.start
    pairs = cells.other_weight.sum() * cells.class_weight.sum()
    return float(0.5 * cells.class_weight[wide] @ cells.other_weight[wide] / pairs) if pairs else 0.0


def true_class_ranks(log_posterior: Floats, y: NDArray[np.intp], true: Floats) -> NDArray[np.intp]:
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
