"""Binned: numbers of any shape, by how often they fall into each of some bins.

The column is counted in the cells of a grid, at most 255 of them, which no label has drawn. Neighbouring cells that say
the same of the class are merged when the counts become a law, so that other counts may have other bins. A column that
says nothing is one bin. Within a bin the classes do not differ.

>>> tally = LevelTally(np.array([[9.0, 9.0, 8.0, 0.0], [0.0, 1.0, 0.0, 19.0]]), np.array([0, 4]))
>>> law = Binned().estimate(tally)
>>> law.bins.tolist(), law.parameters()["probability"].round(3).tolist()
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

_COMPARISON_CELLS = 10  # cells in which two tallies are compared


@dataclass(frozen=True)
class Binned(EventModel):
    """The probability of each bin in each class.

    The prior is that of a bin; by default even shares that weigh one row in all.

    >>> import candide as cd
    >>> hours, y = [1, 2, 3, 9, 10, 11, 20, 21, 22] * 9, ["night", "day", "night"] * 27
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
        """In few cells that hold as many values each, over both: what seems to move in many is chance.

        >>> one = LevelTally(np.ones((1, 40)), np.array([0, 40]))
        >>> Binned().prepare_comparison(one, one, [Grid(tuple(range(39)))])[1].counts.tolist()
        [[4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]]
        """
        offsets, n = a.offsets, (a.counts + b.counts).sum(axis=0)
        groups = [_equal_weight_groups(n[start:stop]) for start, stop in pairwise(offsets.tolist())]
        coarse = tuple(e.coarsen(group) for e, group in zip(encodings, groups, strict=True))  # type: ignore[attr-defined]
        return Categorical(), a.coarsen(groups), b.coarsen(groups), coarse

    def information(self, tally: LevelTally) -> Floats | None:
        """That of the bins: cells are so many that chance would seem to tell of the class."""
        return super().information(tally.coarsen(self._bins(tally)))

    def free_parameters(self, tally: LevelTally, n_features: int) -> Floats:
        """(feature,) the bins of each feature but one.

        >>> tally = LevelTally(np.array([[9.0, 9.0, 8.0, 0.0], [0.0, 1.0, 0.0, 19.0]]), np.array([0, 4]))
        >>> Binned().free_parameters(tally, 1).tolist()
        [1.0]
        """
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
        """(row, class, feature) the terms of each row under the law without it, in the bins of all rows.

        >>> codes, y = np.array([[0], [0], [1], [1]] * 9), np.array([0, 0, 1, 1] * 9)
        >>> tally = LevelTally.from_rows(codes, y, n_classes=2, spec=Binned().spec(1, (Grid((0.5,)),)))
        >>> Binned().held_out_contributions(tally, None, "predictive", codes[:1], y[:1]).round(2).tolist()
        [[[-0.03], [-3.64]]]
        """
        return super(Binned, self.freeze_structure(tally)).held_out_contributions(tally, *args, **kwargs)

    def _held_out_contributions(
        self, tally: LevelTally, prior: Prior | None, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """The bins stay: what a row is taken from are the counts of its bin, and of its cell within that."""
        bins, codes = self._bins(tally), to_dense(block)
        binned, place = tally.coarsen(bins), _number_bins(tally, bins)
        coarse = np.column_stack([np.where(c < 0, -1, b[c]) for c, b in zip(codes.T, bins, strict=True)])
        cell = tally.offsets[:-1] + np.maximum(codes, 0)
        gone = np.where(codes < 0, 0.0, 1.0 if weight is None else weight[:, None])
        weights, rows = _cell_weights(tally, place, binned.offsets[-1])
        own, whole = (np.maximum(subtract_sums(n[cell], gone), 0.0) for n in weights)
        out = conjugate.dirichlet.held_out_levels(binned, _alpha(prior, binned), how, coarse, y, weight)
        return out + np.where(codes < 0, 0.0, np.log((own + 1.0) / (whole + rows[cell])))[:, None, :]

    def _bins(self, tally: LevelTally) -> list[Codes]:
        """The bin of each cell of each column."""
        return [
            conjugate.bins.merge_cells(tally.counts[:, a:b])
            for a, b in zip(tally.offsets[:-1], tally.offsets[1:], strict=True)
        ]


@dataclass(frozen=True)
class _FixedBins(Binned):
    bins: tuple[Codes, ...] = ()

    def _bins(self, tally: LevelTally) -> list[Codes]:
        return list(self.bins)


def _equal_weight_groups(n: Floats) -> Codes:
    """(cell,) neighbouring cells in groups of about as much weight, numbered in order."""
    middle = (np.cumsum(n) - n / 2) / max(float(n.sum()), 1e-300)
    return np.unique((_COMPARISON_CELLS * middle).astype(np.intp), return_inverse=True)[1].astype(np.intp)


def _number_bins(tally: LevelTally, bins: list[Codes]) -> Codes:
    """(cell,) the bin of each cell of all columns, numbered over all columns."""
    sizes = np.array([int(b.max(initial=-1)) + 1 for b in bins], np.intp)
    return np.repeat(np.cumsum(sizes) - sizes, np.diff(tally.offsets)) + np.concatenate(bins)


def _alpha(prior: Prior | None, binned: LevelTally) -> Floats:
    sizes = np.diff(binned.offsets)
    if prior is None:
        return np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    alpha = dirichlet_alpha(prior)
    if alpha.ndim:
        raise InputError(
            "a Dirichlet prior of several values for bins", value=prior, remedy="pass one alpha for all bins"
        )
    return np.full(binned.offsets[-1], float(alpha))


def _cell_weights(tally: LevelTally, place: Codes, n_bins: int) -> tuple[tuple[Floats, Floats], Codes]:
    """(cell,) the weight of each cell over all classes and of its bin; and the rows added to that: one a cell."""
    own: Floats = tally.counts.sum(axis=0)
    whole: Floats = np.bincount(place, own, n_bins).astype(np.float64)
    return (own, whole[place]), np.bincount(place, minlength=n_bins)[place]
