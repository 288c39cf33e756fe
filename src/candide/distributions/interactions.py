"""Interactions: a table of what each combination of levels says, for sets of columns.

>>> law = Interactions(np.array([[0.5], [-0.5], [-0.5], [0.5]]), Layout(((0, 1),), (2, 2)))
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
from candide.distributions.arrays import FINITE, Found, Shape, take
from candide.distributions.base import Answers, Distribution, dense, times
from candide.rows.blocks import Block, Codes, Floats
from candide.tally.cells import Layout

if TYPE_CHECKING:
    from candide.distributions.form import Form


@dataclass(frozen=True, eq=False)
class Interactions(Distribution):
    table: Floats  # (cells of all sets, class)
    layout: Layout

    name: ClassVar[str] = "interactions"
    reads = "codes"
    has_density = False
    not_linear: ClassVar[str] = "it says what columns say together; use NaiveBayes"
    rows_at_once: ClassVar[int] = 512

    @property
    def n_classes(self) -> int:
        return self.table.shape[1]

    @property
    def n_features(self) -> int:
        return len(self.layout.sets)

    @cached_property
    def _padded(self) -> Floats:
        return kernels.padded(self.table)

    @cached_property
    def _sets(self) -> Any:
        return kernels.Sets(*self.layout.arrays)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_cells(dense(block), self._sets, self._padded, out)

    def _terms(self, x: NDArray) -> Floats:
        place = self.layout.place(x)
        known = (place >= 0) & (place < np.diff(self.layout.offsets))
        cell = np.where(known, self.layout.offsets[:-1] + place, 0)
        return np.where(known[:, None, :], self.table[cell].transpose(0, 2, 1), 0.0)

    def scaled(self, weight: Floats) -> "Interactions":
        by_cell = np.repeat(weight, np.diff(self.layout.offsets))[:, None]
        return Interactions(times(self.table, by_cell), self.layout)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no rows to draw: it is no law of its columns", "draw from the laws of the columns")

    def answers(self) -> Answers:
        return Answers.each(self.table, self.layout.offsets)

    def parameters(self) -> dict[str, NDArray]:
        """What each cell says (class, cells), ragged over sets by ``offsets``."""
        return {"log_ratio": self.table.T, "offsets": self.layout.offsets}

    def describe(
        self, j: int, columns: Sequence[Any] = (), levels: Sequence[str] = (), often: Any = None, most: int = 12
    ) -> tuple[list[str], Floats]:
        """The cells that say most."""
        own = slice(*self.layout.offsets[j : j + 2])
        table = self.table[own]
        spread = np.ptp(table, axis=1)
        order = np.argsort(-spread, kind="stable")[:most]
        names = [" & ".join(map(str, self.layout.levels[:, own][:, i].tolist())) for i in order]
        return names, table[order]

    def form(self) -> "Form":
        from candide.distributions.form import Unwritten

        return Unwritten("columns speak together; use NaiveBayes")

    def exported(self) -> dict[str, Any]:
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
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        layout = Layout(shape.sets, shape.sizes)
        return cls(take(arrays, "table", (layout.n_cells, shape.n_classes), FINITE), layout)


def _most_frequent(values: Floats) -> float:
    met, n = np.unique(values, return_counts=True)
    return float(met[n.argmax()]) if len(met) else 0.0
