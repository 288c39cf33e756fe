"""Categorical: a table of log-probabilities, one for every level of every column; and binned, of cells of a grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting, kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import LOG_PROBABILITIES, NON_NEGATIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import (
    Distribution,
    LevelComparison,
    LevelScores,
    Names,
    Rows,
    multiply_contributions,
    symmetric_divergence,
    to_dense,
)
from candide.distributions.score_expression import Expression, joint
from candide.encoding.codes import join_cell_names
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    table: Floats  # (levels of all features, class) log-probabilities
    offsets: Codes  # (features + 1) feature j has the rows offsets[j]:offsets[j+1]
    unseen: Floats  # (feature, class) log-probability of a level never seen

    name: ClassVar[str] = "categorical"
    block_kind = "codes"

    @property
    def _shape(self) -> tuple[int, int]:
        return self.table.shape[1], len(self.offsets) - 1

    @cached_property
    def _kernel_arrays(self) -> tuple[Codes, Floats, Floats]:
        offsets = np.ascontiguousarray(self.offsets, np.intp)
        return offsets, kernels.pad_columns(self.table), kernels.pad_columns(self._unseen_scores)

    @cached_property
    def _unseen_scores(self) -> Floats:
        """(feature, class) what a level never seen adds: 0 where it is impossible in every class."""
        return zero_if_impossible(self.unseen)

    def impossible_rows(self, block: Block) -> NDArray[np.bool_] | None:
        """(row,) whether a row has a level never seen that has probability 0 in every class."""
        features = np.flatnonzero(np.isneginf(self.unseen).all(axis=1))
        if not len(features):
            return None
        return np.any(to_dense(block)[:, features] >= np.diff(self.offsets)[features], axis=1)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_levels(block, *self._kernel_arrays, out)

    def _contributions(self, x: NDArray) -> Floats:
        # One table with, after each feature's levels, a row for the unseen and a row for the absent.
        sizes = np.diff(self.offsets)
        starts = self.offsets[:-1] + 2 * np.arange(self.n_features)
        full = np.zeros((len(self.table) + 2 * self.n_features, self.n_classes))
        full[np.arange(len(self.table)) + 2 * np.repeat(np.arange(self.n_features), sizes)] = self.table
        full[starts + sizes] = self._unseen_scores
        place = starts + np.where(x < 0, sizes + 1, np.minimum(x, sizes))
        return full[place].transpose(0, 2, 1)

    def scale_tables(self, weight: Floats) -> "Categorical":
        table = multiply_contributions(self.table, np.repeat(weight, np.diff(self.offsets))[:, None])
        return Categorical(table, self.offsets, multiply_contributions(self.unseen, weight[:, None]))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Codes:
        """Level codes; -1 where a feature has no level at all."""
        out = np.full((len(y), self.n_features), -1, np.intp)
        for j, (start, stop) in enumerate(pairwise(self.offsets)):
            running = np.cumsum(np.exp(self.table[start:stop]), axis=0)
            # Class c has the interval (c, c + 1), so one sorted search serves every row.
            edges = (running / running[-1:] + np.arange(self.n_classes)).T.ravel()
            codes = np.searchsorted(edges, y + rng.random(len(y)), side="right") - y * (stop - start)
            out[:, j] = np.clip(codes, 0, stop - start - 1) if stop > start else -1
        return out

    def level_scores(self) -> LevelScores:
        return LevelScores.from_table(self.table, self.offsets)

    def mean(self, values: Sequence[Any] | None = None) -> Floats:
        """(class, feature) of levels that are numbers: ``values`` has those of each feature, by default their codes."""
        out = np.empty((self.n_classes, self.n_features))
        for j, (start, stop) in enumerate(pairwise(self.offsets)):
            p = np.exp(self.table[start:stop])  # (level, class)
            total = p.sum(axis=0)
            numbers = np.arange(stop - start) if values is None else np.asarray(values[j], np.float64)
            out[:, j] = numbers @ p / np.where(total > 0, total, 1.0)
        return out

    def divergence(self, other: Self) -> Floats:
        by_level = symmetric_divergence(np.exp(self.table.T), np.exp(other.table.T))
        has_levels = np.diff(self.offsets) > 0  # reduceat gives a feature without levels its neighbour's first
        out = np.zeros((self.n_classes, self.n_features))
        if has_levels.any():
            out[:, has_levels] = np.add.reduceat(by_level, self.offsets[:-1][has_levels], axis=1)
        return out

    def level_pairs(self, other: Self) -> "Iterator[LevelComparison]":
        sizes = np.diff(self.offsets)
        feature = np.repeat(np.arange(self.n_features), sizes)
        place = np.arange(len(self.table)) - np.repeat(self.offsets[:-1], sizes)
        for p, q in zip(np.exp(self.table.T), np.exp(other.table.T), strict=True):
            yield LevelComparison(feature, place, p, q, symmetric_divergence(p, q))

    def parameters(self) -> dict[str, NDArray]:
        """Probabilities (class, levels), ragged over features by ``offsets``."""
        return {"probability": np.exp(self.table.T), "offsets": self.offsets}

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The most frequent levels, and the rest as one."""
        probability = np.exp(self.table[self.offsets[j] : self.offsets[j + 1]])
        weights = probability.mean(axis=1) if weights is None else weights
        order = np.argsort(-weights, kind="stable")[:max_rows]
        rows, values = [str(levels[i]) for i in order], probability[order]
        if len(weights) > max_rows:
            rest = np.setdiff1d(np.arange(len(weights)), order)
            rows.append(formatting.format_count(len(rest), "other level"))
            values = np.vstack([values, probability[rest].sum(axis=0)])
        return rows, values

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import LevelForm

        return LevelForm.from_table(self.table, self._unseen_scores, self.offsets)

    def score_expression(self, x: Expression) -> Expression:
        """A row for every level of every column, and after them one for all levels that were never counted."""
        table = np.insert(self.table, np.asarray(self.offsets[1:], np.intp), self._unseen_scores, axis=0)
        return joint("lookup", sizes=np.diff(self.offsets), table=table)

    def arrays(self) -> dict[str, NDArray]:
        """Offsets follow from the levels of the plan, and are not saved."""
        return {"table": self.table, "unseen": self.unseen}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        table = read_array(arrays, "table", (sum(shape.sizes), shape.n_classes), LOG_PROBABILITIES)
        unseen = read_array(arrays, "unseen", (shape.n_features, shape.n_classes), LOG_PROBABILITIES)
        return cls(table, shape.offsets, unseen)


@dataclass(frozen=True, eq=False)
class Binned(Categorical):
    """Log-probabilities of the cells of a grid, and the bin of each cell."""

    bins: Codes  # (cells of all features) the bin of each cell, numbered within the feature

    name: ClassVar[str] = "binned"

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The bins in their order."""
        cells = slice(*self.offsets[j : j + 2])
        starts = np.flatnonzero(np.diff(self.bins[cells], prepend=-1))
        ends = np.append(starts[1:], len(self.bins[cells])) - 1
        names = [join_cell_names(levels[a], levels[b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return names, np.add.reduceat(np.exp(self.table[cells]), starts, axis=0)

    def level_scores(self) -> LevelScores:
        return LevelScores(self.table, self.offsets, self.bins)

    def to_export_dict(self) -> dict[str, Any]:
        """One table row for each bin, that of its first cell: cells of a bin differ by a constant over classes."""
        bins = np.split(self.bins, self.offsets[1:-1])
        first = [np.flatnonzero(np.diff(b, prepend=-1)) for b in bins]
        offsets = np.concatenate([[0], np.cumsum([len(cells) for cells in first], dtype=np.intp)])
        rows = np.concatenate([start + cells for start, cells in zip(self.offsets, first, strict=False)])
        return {**Categorical(self.table[rows], offsets, self.unseen).to_export_dict(), "bins": bins}

    def arrays(self) -> dict[str, Any]:
        return super().arrays() | {"bins": self.bins.astype(np.int64)}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        cells, n_cells = Categorical.from_arrays(arrays, shape), sum(shape.sizes)
        bins, starts = read_array(arrays, "bins", (n_cells,), NON_NEGATIVE, np.int64), shape.offsets[:-1]
        starts = starts[starts < n_cells]
        steps = np.diff(bins, prepend=0)
        steps[starts] = bins[starts]  # each feature begins anew, at 0
        if not np.isin(steps, (0, 1)).all() or steps[starts].any():
            raise InputError("array 'bins' does not number the bins of each column in order")
        return cls(cells.table, cells.offsets, cells.unseen, bins.astype(np.intp))


def zero_if_impossible(log_prob: Floats) -> Floats:
    """(feature, class) log-probabilities, and 0 where all classes have -inf.

    A value that is equally impossible in all classes does not distinguish them.
    """
    return np.where(np.isneginf(log_prob).all(axis=-1, keepdims=True), 0.0, log_prob)
