"""Binned: log-probabilities of the cells of a grid, and the bin of each cell.

>>> binned = Binned(np.log([[0.2], [0.2], [0.6]]), np.array([0, 3]), np.zeros((1, 1)), np.array([0, 0, 1]))
>>> rows, values = binned.describe(0, levels=["<= 3", "3 to 7", "> 7"])
>>> rows, values.round(2).tolist()
(['<= 7', '> 7'], [[0.4], [0.6]])
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from candide.data.blocks import Codes
from candide.distributions.arrays import LOG_PROBABILITIES, NON_NEGATIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, LevelScores, Names, Rows
from candide.distributions.categorical import Categorical
from candide.encoding.grid import join_cell_names
from candide.errors import InputError


@dataclass(frozen=True, eq=False)
class Binned(Categorical):
    bins: Codes  # (cells of all features) the bin of each cell, numbered within the feature

    name: ClassVar[str] = "binned"

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The bins in their order."""
        own = slice(*self.offsets[j : j + 2])
        starts = np.flatnonzero(np.diff(self.bins[own], prepend=-1))
        ends = np.append(starts[1:], len(self.bins[own])) - 1
        names = [join_cell_names(levels[a], levels[b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return names, np.add.reduceat(np.exp(self.table[own]), starts, axis=0)

    def level_scores(self) -> LevelScores:
        return LevelScores(self.table, self.offsets, self.bins)

    def to_export_dict(self) -> dict[str, Any]:
        """One table row for each bin, that of its first cell: cells of a bin differ by a constant over classes."""
        each = [np.flatnonzero(np.diff(bins, prepend=-1)) for bins in np.split(self.bins, self.offsets[1:-1])]
        first = [start + own for start, own in zip(self.offsets, each, strict=False)]
        offsets = np.concatenate([[0], np.cumsum([len(own) for own in first], dtype=np.intp)])
        coarse = Categorical(self.table[np.concatenate(first)], offsets, self.unseen)
        return {**coarse.to_export_dict(), "bins": np.split(self.bins, self.offsets[1:-1])}

    def arrays(self) -> dict[str, Any]:
        return super().arrays() | {"bins": self.bins.astype(np.int64)}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        cells = sum(shape.sizes)
        table = read_array(arrays, "table", (cells, shape.n_classes), LOG_PROBABILITIES)
        unseen = read_array(arrays, "unseen", (shape.n_features, shape.n_classes), LOG_PROBABILITIES)
        bins, starts = read_array(arrays, "bins", (cells,), NON_NEGATIVE, np.int64), shape.offsets[:-1]
        steps = np.diff(bins, prepend=0)
        steps[starts[starts < cells]] = bins[starts[starts < cells]]  # each feature begins anew, at 0
        if not np.isin(steps, (0, 1)).all() or steps[starts[starts < cells]].any():
            raise InputError("array 'bins' does not number the bins of each column in order")
        return cls(table, shape.offsets, unseen, bins.astype(np.intp))
