"""Ranks: the rows in order of their log-odds, as a tally that adds.

The area under the ROC curve is the proportion of pairs, a row of the class and a row of another, that are in the right
order. Ties count half (Hanley and McNeil, 1982); the weight of a pair is the product of the weights of its rows. Up to
2**20 rows all are kept and the area is exact. Beyond, neighbouring log-odds share a bin in which all are tied, so that
memory is bounded. The error is at most half the weight of the pairs within bins: below 1e-6 for two classes.

Bins are dyadic intervals of floating-point numbers: of any two, one contains the other or they are disjoint. So tallies
with different bins add, too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SortKeys = NDArray[np.uint64]

_SIGN_BIT, _ALL_BITS = np.uint64(1 << 63), np.uint64(2**64 - 1)


@dataclass(frozen=True)
class RankLimits:
    """How much is kept: log-odds of rows as they are, and bins. The more classes, the fewer of each."""

    max_rows: int = 1 << 20  # unless there are so many classes that they exceed ...
    max_values: int = 1 << 24  # log-odds of all rows
    max_bins: int = 1 << 22

    def rows_per_curve(self, curves: int) -> int:
        return min(max(self.max_rows, (self.max_values >> 3) // curves), self.max_values // curves)

    def bins_per_curve(self, curves: int) -> int:
        return max(min(self.max_bins >> 1, self.max_bins // curves), 1 << 12)


DEFAULT_LIMITS = RankLimits()


class LogOddsBins(NamedTuple):
    """Disjoint intervals of log-odds in ascending order, with both ends, and the weight of their rows."""

    start: SortKeys
    end: SortKeys
    other_weight: Floats
    class_weight: Floats

    def join_bins(self, max_bins: int) -> "LogOddsBins":
        return _join_bins(LogOddsBins._make(map(np.copy, self)), max_bins) if len(self.start) > max_bins else self

    def weights_within(self, wider: "LogOddsBins") -> tuple[Floats, Floats]:
        """Weights of others and of the class in wider bins, each of which contains some of these."""
        at, n = np.searchsorted(wider.start, self.start, side="right") - 1, len(wider.start)
        other, own = (np.bincount(at, w, n).astype(float) for w in (self.other_weight, self.class_weight))
        return other, own


class RowChunk(NamedTuple):
    log_odds: Floats  # (row, curve)
    y: NDArray[np.intp]
    weight: Floats | None


@dataclass(frozen=True, eq=False, repr=False)
class Ranks:
    """Rows as they came while they are few, in bins beyond; a curve for every class, or for the second of two."""

    chunks: tuple[RowChunk, ...]
    bins: tuple[LogOddsBins, ...] = ()
    limits: RankLimits = DEFAULT_LIMITS

    @classmethod
    def from_log_odds(
        cls, log_odds: Floats, y: NDArray[np.intp], weight: Floats | None = None, *, limits: RankLimits = DEFAULT_LIMITS
    ) -> Self:
        """From log-odds of each class, (row, class), or of the second of two, (row, 1), and class codes."""
        return cls((RowChunk(log_odds, y, weight),), limits=limits)._limit_size(log_odds.shape[1])

    def __add__(self, other: Self) -> Self:
        if self.bins and other.bins:
            bins = tuple(_unite_bins(a, b) for a, b in zip(self.bins, other.bins, strict=True))
        else:
            bins = self.bins or other.bins
        return type(self)(self.chunks + other.chunks, bins, self.limits)._limit_size(self.n_curves)

    def __repr__(self) -> str:
        return f"Ranks(areas={self.areas.tolist()}, errors={self.area_errors.tolist()})"

    @property
    def n_curves(self) -> int:
        return len(self.bins) or self.chunks[0].log_odds.shape[1]

    @property
    def areas(self) -> Floats:
        """(curve,) the area under each ROC curve; NaN where all rows are of the class, or none is."""
        return self._figures[0]

    @property
    def area_errors(self) -> Floats:
        """(curve,) bound on the error of each area; 0 while all rows are kept."""
        return self._figures[1]

    @property
    def average_precisions(self) -> Floats:
        """(curve,) the area under each precision-recall curve; NaN where no row is of the class."""
        return self._figures[2]

    @cached_property
    def _figures(self) -> Floats:
        curves = [self.curve(c) for c in range(self.n_curves)]
        figures = [(roc_area(*bins[2:]), _area_error(bins), average_precision(*bins[2:])) for bins in curves]
        return np.array(figures, float).T

    def curve(self, c: int) -> LogOddsBins:
        """All rows of a curve in bins; one for each value, unless they have been joined."""
        if not self.chunks:
            return self.bins[c]
        rows = _make_bins(self.chunks, c, c if self.n_curves > 1 else 1)
        return _unite_bins(self.bins[c], rows) if self.bins else rows

    def class_curve(self, c: int) -> LogOddsBins:
        """The curve of a class; of two classes that of the first is the other one reversed."""
        if self.n_curves > 1:
            return self.curve(c)
        start, end, other, own = self.curve(0)
        if c:
            return LogOddsBins(start, end, other, own)
        return LogOddsBins(~end[::-1], ~start[::-1], own[::-1], other[::-1])

    def _limit_size(self, curves: int) -> Self:
        most, chunks, bins = self.limits.bins_per_curve(curves), self.chunks, self.bins
        if sum(len(chunk.y) for chunk in chunks) > self.limits.rows_per_curve(curves):
            chunks, bins = (), tuple(map(self.curve, range(curves)))
        if all(len(b.start) <= most for b in bins):
            return self if bins is self.bins else type(self)(chunks, bins, self.limits)
        joined = (_join_bins(b, most // 2) if len(b.start) > most else b for b in bins)
        return type(self)(chunks, tuple(joined), self.limits)


def _make_bins(chunks: tuple[RowChunk, ...], curve: int, c: int) -> LogOddsBins:
    """A bin for every value of a curve, whose class is ``c``."""
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
    """Integers in the order of the floating-point numbers: those below zero have their bits inverted."""
    bits = (x + 0.0).view(np.uint64)  # no -0.0
    return bits ^ np.where(bits & _SIGN_BIT, _ALL_BITS, _SIGN_BIT)


def log_odds_from_keys(key: SortKeys) -> Floats:
    return (key ^ np.where(key & _SIGN_BIT, _SIGN_BIT, _ALL_BITS)).view(np.float64)


def _unite_bins(a: LogOddsBins, b: LogOddsBins) -> LogOddsBins:
    """The bins of two tallies: a bin within one of the other falls into it."""
    start = np.concatenate([a.start, b.start])
    order = np.argsort(start, kind="stable")  # a merge: both are in order
    start, (end, other, own) = start[order], (np.concatenate(pair)[order] for pair in zip(a[1:], b[1:], strict=True))
    if not len(start):
        return a
    apart = start[1:] > np.maximum.accumulate(end)[:-1]
    first = np.flatnonzero(np.concatenate([[True], apart]))
    return _sum_bins(start[first], np.maximum.reduceat(end, first), other, own, first)


def _join_bins(bins: LogOddsBins, most: int) -> LogOddsBins:
    """At most so many bins, by joining neighbours, those first whose ties cost least.

    Bins with the longer common prefix of bits are closer: a pair may be joined if neither has a closer neighbour, so
    that the result is a dyadic interval again.
    """
    start, end, other, own = bins
    few = (other.sum() + own.sum()) / most  # a bin of one class may get rows of the others later
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


def _area_error(bins: LogOddsBins) -> float:
    wide = bins.end > bins.start
    pairs = bins.other_weight.sum() * bins.class_weight.sum()
    return float(0.5 * bins.class_weight[wide] @ bins.other_weight[wide] / pairs) if pairs else 0.0


def ratio(part: Floats, whole: Floats | float, default: float = 0.0) -> Floats:
    """A part of a whole; ``default`` where there is nothing."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, default), where=whole > 0)


def roc_area(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the ROC curve, from the weights of a class and of others in ascending order of score."""
    below = np.cumsum(other_weight, axis=-1) - other_weight
    pairs = other_weight.sum(axis=-1) * class_weight.sum(axis=-1)
    return ratio((class_weight * (below + 0.5 * other_weight)).sum(axis=-1), pairs, np.nan)


def average_precision(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the precision-recall curve by steps: the mean precision at each row of the class."""
    correct, rows = (np.cumsum(v[..., ::-1], axis=-1)[..., ::-1] for v in (class_weight, class_weight + other_weight))
    return ratio((class_weight * ratio(correct, rows)).sum(axis=-1), class_weight.sum(axis=-1), np.nan)


def true_class_ranks(log_posterior: Floats, y: NDArray[np.intp], true: Floats) -> NDArray[np.intp]:
    """(row,) the number of classes above the true one: those more probable, and of equals those before it."""
    if log_posterior.shape[1] == 2:
        other = log_posterior[np.arange(len(y)), 1 - y]
        return ((other > true) | ((other == true) & (y == 1))).astype(np.intp)
    before = np.arange(log_posterior.shape[1]) < y[:, None]
    return ((log_posterior > true[:, None]) | ((log_posterior == true[:, None]) & before)).sum(axis=1)


def log_odds(log_posterior: Floats, p: Floats, winner: NDArray[np.intp]) -> Floats:
    """log p / (1 - p) of each class, or of the second of two.

    That of the winner is computed from the others, because 1 - p is lost where p rounds to 1.
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
        odds.ravel()[winner] -= np.logaddexp.reduce(rest, axis=1)  # of logs: p itself underflows at -745
    return odds
