"""The scores of decision tables: the mean over chains of the values of the cells that a row is in."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.distributions.arrays import ArraySource, DistributionShape
from candide.distributions.base import Distribution, Names, Rows
from candide.distributions.score_expression import Expression, joint
from candide.kernels import threads
from candide.weighted.terms.table_growth import byte_codes, segment_bounds


@dataclass(frozen=True, eq=False)
class TableScores(Distribution):
    """Tables chain by chain, ``n_tables`` in each; the terms are the segments of a chain."""

    columns: NDArray[np.int32]  # (table, question), -1 after the last
    sides: NDArray[np.uint8]  # (table, question, 256) the answer of each code
    cell_rows: NDArray[np.float32]  # (table, cell)
    values: NDArray[np.float32]  # (table, cell, class)
    n_tables: int
    sizes: tuple[int, ...]  # (column) levels
    importances: Floats  # (segment) of training rows, without weights
    weight: Floats | None = None  # (segment)

    name: ClassVar[str] = "decision_tables"
    block_kind = "codes"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it has decision tables of several columns; use NaiveBayes"
    min_batch_rows: ClassVar[int] = 1024

    @property
    def n_classes(self) -> int:
        return self.values.shape[2]

    @property
    def n_features(self) -> int:
        return len(self._segments)

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        return segment_bounds(self.n_tables)

    @cached_property
    def _kernel_tables(self) -> Any:
        return kernels.Tables(self.columns, self.sides, self.values)

    @cached_property
    def _sizes(self) -> Codes:
        return np.array(self.sizes, np.intp)

    @cached_property
    def _table_weights(self) -> Floats:
        """(table,)"""
        weight = np.ones(self.n_features) if self.weight is None else self.weight
        masks = (w * self._mask(j, self._all_chains) for j, w in enumerate(weight.tolist()))
        return sum(masks, np.zeros(len(self.columns)))

    @property
    def _all_chains(self) -> NDArray[np.bool_]:
        return np.ones(len(self.columns) // max(1, self.n_tables), bool)

    def _mask(self, segment: int, chains: NDArray[np.bool_]) -> Floats:
        """(table,) the weight of each table in the mean of some chains, in one segment."""
        out = np.zeros((len(chains), self.n_tables))
        out[chains, slice(*self._segments[segment])] = 1.0 / max(1, int(np.count_nonzero(chains)))
        return out.ravel()

    def add_log_prob(self, block: Block, out: Floats) -> int:
        kernels.add_tables(to_dense(block), self._sizes, self._kernel_tables, self._table_weights, out)
        return 0  # a missing value is an answer

    def _contributions(self, x: NDArray) -> Floats:
        out = self.contributions_of_chains(x, self._all_chains)
        return out if self.weight is None else out * self.weight

    def contributions_of_chains(self, x: NDArray, chains: NDArray[np.bool_]) -> Floats:
        """(row, class, segment) the mean of some chains."""
        out = np.zeros((self.n_features, len(x), self.n_classes))
        masks = [self._mask(j, chains) for j in range(self.n_features)]

        def work(rows: slice) -> None:
            for part, mask in zip(out, masks, strict=True):
                kernels.add_tables(x[rows], self._sizes, self._kernel_tables, mask, part[rows])

        threads.map_rows(work, len(x), cost=len(self.columns) * (8 + self.n_classes))
        return out.transpose(1, 2, 0)

    def scale_tables(self, weight: Floats) -> "TableScores":
        return replace(self, weight=weight if self.weight is None else self.weight * weight)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no density to sample from", "sample from the distributions of the columns")

    def parameters(self) -> dict[str, NDArray]:
        return {}

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        return [], np.zeros((0, self.n_classes))

    def feature_importances(self) -> Floats | None:
        if len(self.importances) < self.n_features:
            return None
        return self.importances if self.weight is None else self.importances * np.abs(self.weight)

    def column_effects(self, j: int) -> Floats:
        """By the mean value of the training rows with the answers that a code of the column gives."""
        codes, depth = self.sizes[j] + 1, self.columns.shape[1]
        out = np.zeros((codes, self.n_classes, self.n_features))
        masks = np.array([self._mask(s, self._all_chains) for s in range(self.n_features)])  # (segment, table)
        made = (self.columns >= 0).sum(axis=1)
        for t in np.flatnonzero((self.columns == j).any(axis=1)).tolist():
            agrees = np.ones((codes, 1 << depth), bool)  # (code, cell)
            for q in np.flatnonzero(self.columns[t] == j).tolist():
                bit = np.arange(1 << depth) >> (made[t] - 1 - q) & 1
                agrees &= self.sides[t, q, :codes, None] == bit
            rows = agrees @ self.cell_rows[t].astype(np.float64)
            total = agrees @ (self.cell_rows[t][:, None] * self.values[t].astype(np.float64))
            mean = np.divide(total, rows[:, None], out=np.zeros_like(total), where=rows[:, None] > 0)
            out += mean[:, :, None] * masks[:, t]
        return out if self.weight is None else out * self.weight

    def column_contributions(self, block: Block) -> Iterator[Floats]:
        """For each row (column, class, segment) the Shapley values of the questions of each column.

        In a table, a set of known answers is worth the mean value of the rows with these answers. The values of a
        segment's columns add up to its contribution, for the mean over all rows is 0.
        """
        cells = kernels.table_cells(byte_codes(to_dense(block), self.sizes), self._kernel_tables)
        masks = [self._mask(j, self._all_chains) for j in range(self.n_features)]
        for row in range(cells.shape[1]):
            by_question = self._shapley(cells[:, row])
            out = np.zeros((len(self.sizes), self.n_classes, self.n_features))
            for j, mask in enumerate(masks):
                np.add.at(out[:, :, j], np.maximum(self.columns, 0), by_question * mask[:, None, None])
            yield out if self.weight is None else out * self.weight

    def _shapley(self, cells: NDArray[np.uint8]) -> Floats:
        """(table, question, class) of a row in these cells."""
        n_tables, depth = self.columns.shape
        made = (self.columns >= 0).sum(axis=1)
        rows = self.cell_rows.astype(np.float64)[:, :, None]
        state = np.concatenate([rows * self.values, rows], axis=2)  # sums over the rows of sets of cells
        answers = np.zeros((n_tables, depth), np.intp)  # aligned to the right, as cells number them
        for t in range(depth):
            answers[:, depth - 1 - t] = cells >> t & 1
        for level in range(depth):
            split = state.reshape(n_tables, 1 << level, 2, 1 << (depth - 1 - level), -1)
            known = np.take_along_axis(split, answers[:, level][:, None, None, None, None], axis=2)[:, :, 0]
            state = np.stack([split.sum(axis=2), known], axis=2).reshape(n_tables, 1 << depth, -1)
        mean = np.divide(
            state[:, :, :-1], state[:, :, -1:], out=np.zeros(state[:, :, :-1].shape), where=state[:, :, -1:] > 0
        )
        mean[:, 0] = 0.0  # of all rows, to rounding
        mean[:, -1] = self.values[np.arange(n_tables), cells]  # all answers are known
        out = np.zeros((n_tables, depth, self.n_classes))
        for n in np.unique(made[made > 0]).tolist():
            out[made == n] = _shapley_values(mean[made == n], n, depth)
        return out

    def score_expression(self, x: Expression) -> Expression:
        """The tables segment by segment: answers of the codes that exist, and values of the cells that had rows."""
        places = np.arange(len(self.columns)).reshape(-1, self.n_tables)
        order = np.concatenate([places[:, slice(*bounds)].ravel() for bounds in self._segments])
        sides, filled, values = [np.zeros(0, np.uint8)], [], []
        for t in order.tolist():
            columns = self.columns[t][self.columns[t] >= 0]
            sides += [side[: self.sizes[j] + 1] for j, side in zip(columns.tolist(), self.sides[t], strict=False)]
            filled.append(self.cell_rows[t, : 1 << len(columns)] > 0)
            values.append(self.values[t, : 1 << len(columns)][filled[-1]])
        return joint(
            "tables",
            chains=len(places),
            stops=[stop * len(places) for _, stop in self._segments],
            questions=self.columns[order],
            sizes=self.sizes,
            sides=np.packbits(np.concatenate(sides), bitorder="little").tobytes(),
            filled=np.packbits(np.concatenate(filled), bitorder="little").tobytes(),
            values=np.concatenate(values).astype("<f4").tobytes(),
        )

    def arrays(self) -> dict[str, NDArray]:
        """All of it is in the event model of the plan."""
        return {}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        return shape.event.distribution(shape.sizes)


def _shapley_values(mean: Floats, n: int, depth: int) -> Floats:
    """(table, question, class) of tables with n questions, by the means (table, set of the last n bits, class)."""
    from math import factorial

    out = np.zeros((len(mean), depth, mean.shape[2]))
    sets = np.arange(1 << n)
    size = np.array([int(s).bit_count() for s in sets])
    share = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    for question in range(n):
        bit = 1 << (n - 1 - question)
        without = sets[(sets & bit) == 0]
        gained = mean[:, without | bit] - mean[:, without]
        out[:, question] = np.einsum("s,tsc->tc", share[size[without]], gained)
    return out
