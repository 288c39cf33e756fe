"""The scores of interactions: a table of the contribution of every combination of levels, and its estimate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.distributions.arrays import FINITE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, LevelScores, Names, Rows, multiply_contributions
from candide.distributions.score_expression import Expression, joint
from candide.kernels import threads
from candide.tally.levels import CellLayout, CellTally

MARGIN_ROWS = 10.0  # m: rows that the product of the margins counts for in a cell
UNIFORM_ROWS = 1.0  # rows that the uniform distribution counts for in a margin
LOG_COST = 8  # of a logarithm, in multiplications


@dataclass(frozen=True, eq=False)
class InteractionScores(Distribution):
    table: Floats  # (cells of all sets, class)
    layout: CellLayout

    name: ClassVar[str] = "interaction"
    block_kind = "codes"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it is an interaction of columns; use NaiveBayes"
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

    def scale_tables(self, weight: Floats) -> "InteractionScores":
        by_cell = np.repeat(weight, np.diff(self.layout.offsets))[:, None]
        return InteractionScores(multiply_contributions(self.table, by_cell), self.layout)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no density to sample from", "sample from the distributions of the columns")

    def level_scores(self) -> LevelScores:
        return LevelScores.from_table(self.table, self.layout.offsets)

    def parameters(self) -> dict[str, NDArray]:
        """The contribution of each cell (class, cells), ragged over sets by ``offsets``."""
        return {"log_ratio": self.table.T, "offsets": self.layout.offsets}

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The cells whose contributions differ most between classes."""
        own = slice(*self.layout.offsets[j : j + 2])
        table = self.table[own]
        order = np.argsort(-np.ptp(table, axis=1), kind="stable")[:max_rows]
        names = [" & ".join(map(str, self.layout.levels[:, own][:, i].tolist())) for i in order]
        return names, table[order]

    def score_expression(self, x: Expression) -> Expression:
        """A class gives all cells of a set that it never had one score: that once, and the cells that differ."""
        columns, sizes = self.layout.arrays
        tables = np.split(self.table, self.layout.offsets[1:-1])
        usual = np.array([[_most_frequent(values) for values in cells.T] for cells in tables])
        odd = self.table != np.repeat(usual, np.diff(self.layout.offsets), axis=0)
        bits = np.packbits(odd, bitorder="little").tobytes()
        sets = {"order": self.layout.order, "sets": columns, "sizes": sizes}
        return joint("cells", **sets, usual=usual, odd=bits, table=self.table[odd])

    def arrays(self) -> dict[str, NDArray]:
        """The sets follow from the plan, and are not kept."""
        return {"table": self.table}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        layout = CellLayout(shape.sets, shape.sizes)
        return cls(read_array(arrays, "table", (layout.n_cells, shape.n_classes), FINITE), layout)


def _most_frequent(values: Floats) -> float:
    distinct, n = np.unique(values, return_counts=True)
    return float(distinct[n.argmax()]) if len(distinct) else 0.0


def log_ratio(tally: CellTally) -> Floats:
    """(class, cell) the contribution of every cell."""
    layout, out = tally.layout, np.empty_like(tally.counts)

    def work(sets: slice) -> None:
        columns, sizes = layout.arrays
        cells = slice(layout.offsets[sets.start], layout.offsets[sets.stop])
        out[:, cells] = kernels.cell_terms(tally.counts[:, cells], columns[sets], sizes, MARGIN_ROWS, UNIFORM_ROWS)

    threads.map_rows(work, len(layout.sets), cost=LOG_COST * tally.counts.size // max(1, len(layout.sets)))
    return out


def held_out_ratios(
    tally: CellTally, table: Floats, codes: NDArray, y: Codes, weight: Floats | None, out: NDArray | None = None
) -> NDArray:
    """(row, class, set) contributions, each row left out of its cell and margins; ``table`` is that of the tally."""
    layout, (columns, sizes) = tally.layout, tally.layout.arrays
    n, k = len(codes), len(tally.counts)
    out = np.empty((n, k, len(columns))) if out is None else out
    own_class, others = np.empty((len(columns), n)), np.ascontiguousarray(table.T)
    unseen = np.zeros((len(columns), k))

    def leave_out(sets: slice) -> None:
        counts = tally.counts[:, layout.offsets[sets.start] : layout.offsets[sets.stop]]
        cells = kernels.held_out_cells(counts, codes, y, weight, columns[sets], sizes, MARGIN_ROWS, UNIFORM_ROWS)
        own_class[sets] = cells.T

    def collect(rows: slice) -> None:
        kernels.take_cells(codes[rows], columns, sizes, others, unseen, y[rows], own_class.T[rows], out[rows])

    threads.map_rows(leave_out, len(columns), cost=LOG_COST * n)
    threads.map_rows(collect, n, cost=k * len(columns))
    return out
