"""Binned: numbers of any shape, by how often they fall into each of some bins.

The column is counted in the cells of a grid, at most 255 of them, which no label has drawn. Neighbouring cells that say
the same of the class are merged when the counts become a law, so that other counts may have other bins. A column that
says nothing is one bin. Within a bin the classes do not differ.

>>> tally = Levels(np.array([[9.0, 9.0, 8.0, 0.0], [0.0, 1.0, 0.0, 19.0]]), np.array([0, 4]))
>>> law = Binned().estimate(tally)
>>> law.bins.tolist(), law.parameters()["probability"].round(3).tolist()
([0, 0, 0, 1], [[0.327, 0.36, 0.294, 0.019], [0.024, 0.026, 0.021, 0.929]])
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from candide import distributions as laws
from candide import numerics
from candide.conjugate.bins import merged
from candide.conjugate.dirichlet import held_out_levels, level_log_prob
from candide.distributions.base import dense
from candide.encode import Encoding, Grid
from candide.events.base import EventModel, Support
from candide.events.categorical import dirichlet_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform
from candide.rows.blocks import Block, Codes, Floats
from candide.tally import Levels


@dataclass(frozen=True)
class Binned(EventModel):
    """The probability of each bin in each class.

    The prior is that of a bin; by default even shares that weigh one row in all.

    >>> import candide as cd
    >>> hours, y = [1, 2, 3, 9, 10, 11, 20, 21, 22] * 9, ["night", "day", "night"] * 27
    >>> y = ["day" if 8 < hour < 12 else "night" for hour in hours]
    >>> cd.NaiveBayes({"hour": Binned()}).fit({"hour": hours}, y).predict({"hour": [2, 10, 21]}).tolist()
    ['night', 'day', 'night']
    """

    name: ClassVar[str] = "binned"
    kind: ClassVar[str] = "levels"
    accepts: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None

    prior: Prior | str | None = None
    cells: int = 255

    @property
    def encoding(self) -> Encoding:
        return Grid(cells=self.cells)

    def _estimate(self, tally: Levels, prior: Prior | None, how: str) -> laws.Binned:
        bins, binned = self._bins(tally)
        log_prob = level_log_prob(binned, _alpha(prior, binned), how)
        place = np.repeat(binned.offsets[:-1], np.diff(tally.offsets)) + np.concatenate(bins)
        table = log_prob.T[place] + _within(tally, place, binned.offsets[-1])[:, None]
        return laws.Binned(table, tally.offsets, np.zeros((len(bins), len(tally.counts))), np.concatenate(bins))

    def _held_out(
        self, tally: Levels, prior: Prior | None, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """The bins stay, and the shares within them: what a row is taken from are the counts of its bin."""
        bins, binned = self._bins(tally)
        codes = dense(block)
        coarse = np.column_stack([np.where(c < 0, -1, b[c]) for c, b in zip(codes.T, bins, strict=True)])
        place = np.repeat(binned.offsets[:-1], np.diff(tally.offsets)) + np.concatenate(bins)
        within = _within(tally, place, binned.offsets[-1])[tally.offsets[:-1] + np.maximum(codes, 0)]
        out = held_out_levels(binned, _alpha(prior, binned), how, coarse, y, weight)
        return out + np.where(codes < 0, 0.0, within)[:, None, :]

    def _bins(self, tally: Levels) -> tuple[list[Codes], Levels]:
        """The bin of each cell of each column, and the counts of the bins."""
        bins = [merged(tally.counts[:, a:b]) for a, b in zip(tally.offsets[:-1], tally.offsets[1:], strict=True)]
        return bins, tally.coarsen(bins)


def _alpha(prior: Prior | None, binned: Levels) -> Floats:
    sizes = np.diff(binned.offsets)
    if prior is None:
        return np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return np.broadcast_to(dirichlet_alpha(prior), binned.offsets[-1:]).astype(np.float64)


def _within(tally: Levels, place: Codes, n_bins: int) -> Floats:
    """(cell,) log share of each cell in its bin, over all classes."""
    counts = tally.counts.sum(axis=0) + 1.0
    return numerics.log(counts / np.bincount(place, counts, n_bins)[place])
