"""Categorical: a table of log-probabilities, one for every level of every column.

>>> even = Categorical(np.log([[0.5], [0.5]]), np.array([0, 2]), unseen=np.log([[0.25]]))
>>> np.exp(even.log_prob(np.array([[0], [7], [-1]]))).ravel().tolist()  # a level, a level never seen, an absent value
[0.5, 0.25, 1.0]
>>> even.describe(0, levels=["clay", "sand"])[0]
['clay', 'sand']
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting, kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import LOG_PROBABILITIES, ArraySource, DistributionShape, read_array
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

if TYPE_CHECKING:
    from candide.distributions.score_form import Lookup


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    table: Floats  # (levels of all features, class) log-probabilities
    offsets: Codes  # (features + 1) feature j owns rows offsets[j]:offsets[j+1]
    unseen: Floats  # (feature, class) log-probability of a level never seen

    name: ClassVar[str] = "categorical"
    block_kind = "codes"

    @property
    def n_classes(self) -> int:
        return self.table.shape[1]

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def _kernel_arrays(self) -> tuple[Codes, Floats, Floats]:
        return (
            np.ascontiguousarray(self.offsets, np.intp),
            kernels.pad_columns(self.table),
            kernels.pad_columns(self._unseen_scores),
        )

    @cached_property
    def _unseen_scores(self) -> Floats:
        """(feature, class) what a level never seen adds: 0 where every class has it for impossible.

        It then does not distinguish the classes, and the other columns decide; see :meth:`impossible_rows`.
        """
        return zero_if_impossible(self.unseen)

    def impossible_rows(self, block: Block) -> NDArray[np.bool_] | None:
        """(row,) whether a row has a level never seen that has probability 0 in every class."""
        never = self._impossible_features
        return np.any(to_dense(block)[:, never] >= np.diff(self.offsets)[never], axis=1) if len(never) else None

    @cached_property
    def _impossible_features(self) -> Codes:
        """Features of which a level never seen has probability 0 in every class."""
        return np.flatnonzero(np.isneginf(self.unseen).all(axis=1))

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
        by_level = np.repeat(weight, np.diff(self.offsets))[:, None]
        return Categorical(
            multiply_contributions(self.table, by_level),
            self.offsets,
            multiply_contributions(self.unseen, weight[:, None]),
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> Codes:
        """Level codes; -1 where a feature has no level at all."""
        out = np.full((len(y), self.n_features), -1, np.intp)
        for j, (start, stop) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            running = np.cumsum(np.exp(self.table[start:stop]), axis=0)
            # Class c owns the interval (c, c + 1), so one sorted search serves every row.
            edges = (running / running[-1:] + np.arange(self.n_classes)).T.ravel()
            found = np.searchsorted(edges, y + rng.random(len(y)), side="right") - y * (stop - start)
            out[:, j] = np.clip(found, 0, stop - start - 1) if stop > start else -1
        return out

    def level_scores(self) -> LevelScores:
        return LevelScores.from_table(self.table, self.offsets)

    def mean(self, values: Sequence[Any] | None = None) -> Floats:
        """(class, feature) of levels that are numbers: ``values`` has those of each feature, by default their codes."""
        out = np.empty((self.n_classes, self.n_features))
        for j, (start, stop) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            p = np.exp(self.table[start:stop])  # (level, class)
            total = p.sum(axis=0)
            numbers = np.arange(stop - start) if values is None else np.asarray(values[j], np.float64)
            out[:, j] = numbers @ p / np.where(total > 0, total, 1.0)
        return out

    def divergence(self, other: Self) -> Floats:
        by_level = symmetric_divergence(np.exp(self.table.T), np.exp(other.table.T))
        some = np.diff(self.offsets) > 0  # reduceat gives a feature without levels its neighbour's first
        out = np.zeros((self.n_classes, self.n_features))
        if some.any():
            out[:, some] = np.add.reduceat(by_level, self.offsets[:-1][some], axis=1)
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

    def form(self) -> "Lookup":
        from candide.distributions.score_form import Lookup

        return Lookup.from_table(self.table, self._unseen_scores, self.offsets)

    def score_expression(self, x: Expression) -> Expression:
        """A row for every level of every column, and after them one for all levels that were never counted."""
        table = np.insert(self.table, np.asarray(self.offsets[1:], np.intp), self._unseen_scores, axis=0)
        return joint("lookup", sizes=np.diff(self.offsets), table=table)

    def arrays(self) -> dict[str, NDArray]:
        """Offsets follow from the levels of the plan, and are not kept."""
        return {"table": self.table, "unseen": self.unseen}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        table = read_array(arrays, "table", (sum(shape.sizes), shape.n_classes), LOG_PROBABILITIES)
        return cls(
            table, shape.offsets, read_array(arrays, "unseen", (shape.n_features, shape.n_classes), LOG_PROBABILITIES)
        )


def zero_if_impossible(log_prob: Floats) -> Floats:
    """(feature, class) log-probabilities, and 0 where all classes have -inf.

    A value that is equally impossible in all classes does not distinguish them.
    """
    return np.where(np.isneginf(log_prob).all(axis=-1, keepdims=True), 0.0, log_prob)
