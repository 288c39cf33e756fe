"""Binned: numbers of any shape, by their frequencies in bins.

A column is counted in the cells of a grid, at most 255 of them, that is drawn without labels. Neighbouring cells whose
classes do not differ are merged when the counts become a distribution, so other counts may have other bins. A column
without association to the class is one bin. Within a bin the classes do not differ.

Cells are merged by Fayyad and Irani's criterion: an interval is cut where the information gained about the class pays
for the bits needed to describe the cut and the classes on both sides. The best cut is tried first, then both halves.

>>> tally = LevelTally(np.array([[9.0, 9.0, 8.0, 0.0], [0.0, 1.0, 0.0, 19.0]]), np.array([0, 4]))
>>> binned = Binned().estimate(tally)
>>> binned.bins.tolist(), binned.parameters()["probability"].round(3).tolist()
([0, 0, 0, 1], [[0.327, 0.36, 0.294, 0.019], [0.024, 0.026, 0.021, 0.929]])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import conjugate, distributions
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.encoding import Encoding, Grid
from candide.errors import InputError
from candide.events.base import EventModel, Support, TallyComparison
from candide.events.categorical import Categorical, dirichlet_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform
from candide.tally import LevelTally
from candide.tally.base import subtract_sums

if TYPE_CHECKING:
    from candide.tally.association import AssociationTest

_COMPARISON_CELLS = 10  # in which two tallies are compared
_DIGITS = 6  # of weights that are compared
_RELATIVE_TOLERANCE = 1e-9  # of the bits by which two equally good cuts may differ


@dataclass(frozen=True)
class Binned(EventModel):
    """The probability of each bin in each class.

    The prior is that of a bin; by default equal proportions that count for one row in all.

    >>> import candide as cd
    >>> hours = [1, 2, 3, 9, 10, 11, 20, 21, 22] * 9
    >>> y = ["day" if 8 < hour < 12 else "night" for hour in hours]
    >>> cd.NaiveBayes({"hour": "binned"}).fit({"hour": hours}, y).predict({"hour": [2, 10, 21]}).tolist()
    ['night', 'day', 'night']
    """

    name: ClassVar[str] = "binned"
    kind: ClassVar[str] = "levels"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None
    has_learned_structure: ClassVar[bool] = True

    prior: Prior | str | None = None
    cells: int = 255

    def __post_init__(self) -> None:
        self.encoding  # noqa: B018  too many cells are an error now

    @property
    def encoding(self) -> Encoding:
        return Grid(cells=self.cells)

    def freeze_structure(self, tally: LevelTally) -> "Binned":
        """The same in the bins of a tally, whatever the counts."""
        return _FixedBins(self.prior, self.cells, bins=tuple(self._bins(tally)))

    def prepare_comparison(self, a: LevelTally, b: LevelTally, encodings: Sequence[Encoding]) -> TallyComparison:
        """In a few cells of equal weight over both tallies: changes in many small cells are chance."""
        offsets, n = a.offsets, (a.counts + b.counts).sum(axis=0)
        groups = [_equal_weight_groups(n[start:stop]) for start, stop in pairwise(offsets.tolist())]
        coarse = tuple(e.coarsen(group) for e, group in zip(encodings, groups, strict=True))  # type: ignore[attr-defined]
        return Categorical(), a.coarsen(groups), b.coarsen(groups), coarse

    def information(self, tally: LevelTally) -> Floats | None:
        """That of the bins: with so many cells chance would seem to be information."""
        return super().information(tally.coarsen(self._bins(tally)))

    def free_parameters(self, tally: LevelTally, n_features: int) -> Floats:
        """(feature,) the number of bins less one."""
        return super().free_parameters(tally.coarsen(self._bins(tally)), n_features)

    def association_test(self, tally: LevelTally) -> "AssociationTest | None":
        return super().association_test(tally.coarsen(self._bins(tally)))

    def _estimate(self, tally: LevelTally, prior: Prior | None, how: str) -> "distributions.Binned":
        bins = self._bins(tally)
        binned, place = tally.coarsen(bins), _number_bins(tally, bins)
        log_prob = conjugate.dirichlet.level_log_prob(binned, _alpha(prior, binned), how)
        [own, whole], rows = _cell_weights(tally, place, binned.offsets[-1])
        unseen = np.zeros((len(bins), len(tally.counts)))  # every number lies in a cell
        within = np.log((own + 1.0) / (whole + rows))
        return distributions.Binned(log_prob.T[place] + within[:, None], tally.offsets, unseen, np.concatenate(bins))

    def held_out_contributions(self, tally: LevelTally, *args: Any, **kwargs: Any) -> NDArray:
        """(row, class, feature) contributions of rows under the distribution without each, in the bins of all rows."""
        return super(Binned, self.freeze_structure(tally)).held_out_contributions(tally, *args, **kwargs)

    def _held_out_contributions(
        self, tally: LevelTally, prior: Prior | None, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """The row is taken out of the counts of its bin, and of its cell within that."""
        bins, codes = self._bins(tally), to_dense(block)
        binned, place = tally.coarsen(bins), _number_bins(tally, bins)
        coarse = np.column_stack([np.where(c < 0, -1, b[c]) for c, b in zip(codes.T, bins, strict=True)])
        cell = tally.offsets[:-1] + np.maximum(codes, 0)
        removed = np.where(codes < 0, 0.0, 1.0 if weight is None else weight[:, None])
        weights, rows = _cell_weights(tally, place, binned.offsets[-1])
        own, whole = (np.maximum(subtract_sums(n[cell], removed), 0.0) for n in weights)
        out = conjugate.dirichlet.held_out_levels(binned, _alpha(prior, binned), how, coarse, y, weight)
        return out + np.where(codes < 0, 0.0, np.log((own + 1.0) / (whole + rows[cell])))[:, None, :]

    def _bins(self, tally: LevelTally) -> list[Codes]:
        """The bin of each cell of each column."""
        return [merge_cells(tally.counts[:, a:b]) for a, b in pairwise(tally.offsets.tolist())]


@dataclass(frozen=True)
class _FixedBins(Binned):
    bins: tuple[Codes, ...] = ()

    def _bins(self, tally: LevelTally) -> list[Codes]:
        return list(self.bins)


def _equal_weight_groups(n: Floats) -> Codes:
    """(cell,) neighbouring cells in groups of about equal weight, numbered in order."""
    middle = (np.cumsum(n) - n / 2) / max(float(n.sum()), 1e-300)
    return np.unique((_COMPARISON_CELLS * middle).astype(np.intp), return_inverse=True)[1].astype(np.intp)


def _number_bins(tally: LevelTally, bins: list[Codes]) -> Codes:
    """(cell,) the bin of each cell, numbered over all columns."""
    sizes = np.array([int(b.max(initial=-1)) + 1 for b in bins], np.intp)
    return np.repeat(np.cumsum(sizes) - sizes, np.diff(tally.offsets)) + np.concatenate(bins)


def _alpha(prior: Prior | None, binned: LevelTally) -> Floats:
    sizes = np.diff(binned.offsets)
    if prior is None:
        return np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    alpha = dirichlet_alpha(prior)
    if alpha.ndim:
        what, remedy = "a Dirichlet prior of several values for bins", "pass one alpha for all bins"
        raise InputError(what, value=prior, remedy=remedy)
    return np.full(binned.offsets[-1], float(alpha))


def _cell_weights(tally: LevelTally, place: Codes, n_bins: int) -> tuple[tuple[Floats, Floats], Codes]:
    """(cell,) the weight of each cell over all classes and of its bin; and the rows added to that: one a cell."""
    own: Floats = tally.counts.sum(axis=0)
    whole: Floats = np.bincount(place, own, n_bins).astype(np.float64)
    return (own, whole[place]), np.bincount(place, minlength=n_bins)[place]


def merge_cells(counts: Floats) -> Codes:
    """(cell,) the bin of each cell of counts (class, cell), numbered in order; empty cells join the bin before them.

    Cells are read in the direction in which their weights, and then those of the classes, come first in lexical order:
    the bins of a negated column are the same, reversed.
    """
    if _profile(counts[:, ::-1]) < _profile(counts):
        bins = _merge_ordered(counts[:, ::-1])
        return bins[-1] - bins[::-1]
    return _merge_ordered(counts)


def _profile(counts: Floats) -> tuple[list[float], list[list[float]]]:
    """The rounded weights of the cells, and of the cells of each class in any order of classes."""
    rounded = np.round(counts, _DIGITS) + 0.0
    return rounded.sum(axis=0).round(_DIGITS).tolist(), sorted(rounded.tolist())


def _merge_ordered(counts: Floats) -> Codes:
    running = np.pad(np.cumsum(counts, axis=1), [(0, 0), (1, 0)]).T  # (cell + 1, class): rows below each edge
    total = running.sum(axis=1)
    edges = np.flatnonzero(np.diff(total) > 0)[1:]  # before each cell with rows but the first
    below = running[edges]
    cuts: list[int] = []
    intervals = [(running[0], running[-1], 0, len(edges))]  # rows below both ends, and the edges in between
    while intervals:
        low, high, first, last = intervals.pop()
        cut = _find_cut(high - low, below[first:last] - low) if first < last else None
        if cut is not None:
            at = first + cut
            cuts.append(edges[at])
            intervals += [(low, below[at], first, at), (below[at], high, at + 1, last)]
    return np.searchsorted(np.sort(cuts), np.arange(counts.shape[1]), side="right").astype(np.intp)


def _find_cut(whole: Floats, left: Floats) -> int | None:
    """The most informative cut, if it pays; ``left`` (cut, class) has the rows below each."""
    right, m = whole - left, len(left)
    every = _class_bits(np.concatenate([left, right, whole[None]]))
    n, bits, left_bits, right_bits = whole.sum(), every[-1], every[:m], every[m:-1]
    both = left_bits + right_bits
    best = int(np.argmax(both <= both.min() + _RELATIVE_TOLERANCE * bits))  # the first of equally good ones
    gain = bits - left_bits[best] - right_bits[best]  # over all rows
    k, k_left, k_right = (float((a > 0).sum()) for a in (whole, left[best], right[best]))
    sides = k * bits / n - k_left * left_bits[best] / left[best].sum() - k_right * right_bits[best] / right[best].sum()
    price = np.log2(m) + k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - sides  # log2(m) + log2(3^k - 2) - sides
    return best if gain > price + _RELATIVE_TOLERANCE * bits else None


def _class_bits(counts: Floats) -> Floats:
    """n times the entropy of the classes, in bits, along the last axis."""
    n = counts.sum(axis=-1, keepdims=True)
    share = np.divide(counts, n, out=np.ones(counts.shape), where=counts > 0)
    return -(counts * np.log2(share)).sum(axis=-1)
