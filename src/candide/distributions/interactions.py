"""Interactions: a table of what each combination of levels says, for sets of columns.

>>> law = Interactions(np.array([[0.5], [-0.5], [-0.5], [0.5]]), CellLayout(((0, 1),), (2, 2)))
>>> law.log_prob(np.array([[0, 0], [0, 1], [1, -1], [1, 2]])).ravel().tolist()  # absent, and new: 0
[0.5, -0.5, 0.0, 0.0]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import FINITE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, LevelScores, multiply_contributions, to_dense
from candide.tally.cells import CellLayout

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class Interactions(Distribution):
    table: Floats  # (cells of all sets, class)
    layout: CellLayout

    name: ClassVar[str] = "interactions"
    block_kind = "codes"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it says what columns say together; use NaiveBayes"
    min_batch_rows: ClassVar[int] = 512

    @property
    def n_classes(self) -> int:
        return self.table.shape[1]

    @property
    def n_features(self) -> int:
        return len(self.layout.sets)

    @cached_property
    def _padded(self) -> Floats:
        return kernels.pad_columns(self.table)

    @cached_property
    def _sets(self) -> Any:
        return kernels.Sets(*self.layout.arrays)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_cells(to_dense(block), self._sets, self._padded, out)

    def _contributions(self, x: NDArray) -> Floats:
        place = self.layout.locate_rows(x)
        known = (place >= 0) & (place < np.diff(self.layout.offsets))
        cell = np.where(known, self.layout.offsets[:-1] + place, 0)
        return np.where(known[:, None, :], self.table[cell].transpose(0, 2, 1), 0.0)

    def scale_tables(self, weight: Floats) -> "Interactions":
        by_cell = np.repeat(weight, np.diff(self.layout.offsets))[:, None]
        return Interactions(multiply_contributions(self.table, by_cell), self.layout)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no rows to draw: it is no law of its columns", "draw from the laws of the columns")

    def level_scores(self) -> LevelScores:
        return LevelScores.from_table(self.table, self.layout.offsets)

    def parameters(self) -> dict[str, NDArray]:
        """What each cell says (class, cells), ragged over sets by ``offsets``."""
        return {"log_ratio": self.table.T, "offsets": self.layout.offsets}

    def describe(
        self,
        j: int,
        columns: Sequence[Any] = (),
        levels: Sequence[str] = (),
        level_weights: Any = None,
        max_rows: int = 12,
    ) -> tuple[list[str], Floats]:
        """The cells that say most."""
        own = slice(*self.layout.offsets[j : j + 2])
        table = self.table[own]
        spread = np.ptp(table, axis=1)
        order = np.argsort(-spread, kind="stable")[:max_rows]
        names = [" & ".join(map(str, self.layout.levels[:, own][:, i].tolist())) for i in order]
        return names, table[order]

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import UnavailableForm

        return UnavailableForm("columns speak together; use NaiveBayes")

    def to_export_dict(self) -> dict[str, Any]:
        """A class says the same of all cells of a set that it never showed: that once, and which cells are others."""
        columns, sizes = self.layout.arrays
        held = {"rule": "cells", "order": self.layout.order, "sets": columns, "sizes": sizes}
        own = np.split(self.table, self.layout.offsets[1:-1])
        usual = np.array([[_most_frequent(values) for values in cells.T] for cells in own])
        odd = self.table != np.repeat(usual, np.diff(self.layout.offsets), axis=0)
        return {**held, "usual": usual, "odd": np.packbits(odd, bitorder="little").tobytes(), "table": self.table[odd]}

    def arrays(self) -> dict[str, NDArray]:
        """The sets follow from the plan, and are not kept."""
        return {"table": self.table}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        layout = CellLayout(shape.sets, shape.sizes)
        return cls(read_array(arrays, "table", (layout.n_cells, shape.n_classes), FINITE), layout)


def _most_frequent(values: Floats) -> float:
    met, n = np.unique(values, return_counts=True)
    return float(met[n.argmax()]) if len(met) else 0.0
