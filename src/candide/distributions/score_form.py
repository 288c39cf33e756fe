"""Score forms: the score of a block as a polynomial of inputs read from its columns, for linear and quadratic models.

Parts that are the same in every class are left out. A missing value contributes 0; a value that no class can have, such
as a negative waiting time, makes its row impossible.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Csr, Floats
from candide.distributions.base import multiply_contributions, to_dense

UNSEEN_LEVEL = "<unseen>"  # the level that stands for all that were never counted


@dataclass(frozen=True, eq=False)
class ScoreForm(ABC):
    """constant + weight . z + square . z^2 of the inputs z; a unit is a column, or a group of columns."""

    constant: Floats  # (class, unit) added where the value is present
    weight: Floats  # (class, input)
    square: Floats | None = None  # (class, input), or (class, input, input) where columns are modelled together

    @property
    def degree(self) -> int:
        return 1 if self.square is None else 2

    @abstractmethod
    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        """A name for each input."""

    @abstractmethod
    def inputs(self, block: Any) -> Any:
        """(row, input) numbers, NaN where absent; sparse where most are zero."""

    def scale_units(self, weight: Floats) -> "ScoreForm | None":
        """The form whose units are multiplied, each by its weight."""
        return replace(
            self,
            constant=multiply_contributions(self.constant, weight),
            weight=multiply_contributions(self.weight, self._input_weights(weight)),
            square=None if self.square is None else self.square * weight,
        )

    def _input_weights(self, weight: Floats) -> Floats:
        return weight

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        """(row, unit) where the value is absent; None where absent values need no care."""
        return None

    def impossible_rows(self, block: Any) -> NDArray[np.bool_]:
        """(row,) where no class can have the values, whatever a linear score makes of them."""
        return np.zeros(block.shape[0], bool)


@dataclass(frozen=True, eq=False)
class NumericForm(ScoreForm):
    """Inputs are numbers, their logs, or whether they lie above a threshold: one a column."""

    function: str = ""  # "" the number itself | "log" | "above" a threshold
    threshold: float = 0.0
    absent_is_zero: bool = False  # words that did not occur
    low: float = -np.inf  # no class can have a smaller value
    distribution: Any = None  # a user-defined distribution, which decides what is impossible

    @property
    def is_joint(self) -> bool:
        """Whether the columns are modelled together, as one unit."""
        return self.constant.shape[1] != self.weight.shape[1]

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        template = {"log": "log({})", "above": f"{{}}>{self.threshold:g}"}.get(self.function, "{}")
        return [template.format(column) for column in columns]

    def inputs(self, block: Any) -> Any:
        if isinstance(block, Csr):
            from scipy.sparse import csr_array

            stored = slice(block.indptr[0], block.indptr[-1])
            data = self._transform(block.data[stored].astype(np.float64))
            return csr_array((data, block.indices[stored], block.indptr - block.indptr[0]), shape=block.shape)
        z = self._transform(np.asarray(block, np.float64))
        return np.nan_to_num(z, nan=0.0) if self.absent_is_zero else z

    def _transform(self, x: Floats) -> Floats:
        if self.function == "log":
            return np.log(x, out=np.full(x.shape, np.nan), where=x > 0)
        return np.where(np.isnan(x), np.nan, x > self.threshold) if self.function == "above" else x

    def scale_units(self, weight: Floats) -> ScoreForm | None:
        """None for columns modelled together whose weights differ: they have one polynomial."""
        if not self.is_joint:
            return super().scale_units(weight)
        return None if (weight != weight[0]).any() else super().scale_units(weight[:1])

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        if isinstance(block, Csr) or self.absent_is_zero or self.is_joint:
            return None  # of columns modelled together NaN goes through
        return np.isnan(np.asarray(block, np.float64))

    def impossible_rows(self, block: Any) -> NDArray[np.bool_]:
        if self.distribution is not None:
            return np.isneginf(self.distribution.log_prob(block)).all(axis=1)
        if self.low == -np.inf:
            return super().impossible_rows(block)
        return np.any(to_dense(block).astype(np.float64, copy=False) < self.low, axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelForm(ScoreForm):
    """An indicator for each level of each column, and one for all levels that were never counted."""

    offsets: Codes  # (features + 1) of the levels counted

    @classmethod
    def from_table(cls, table: Floats, unseen: Floats, offsets: Codes) -> "LevelForm":
        """Of a (level, class) table and (feature, class) numbers for a level never counted."""
        weight = np.insert(table, np.asarray(offsets[1:], np.intp), unseen, axis=0).T
        return cls(np.zeros((len(weight), len(offsets) - 1)), weight, offsets=offsets)

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        return [
            f"{name}={level}"
            for name, labels in zip(columns, levels, strict=True)
            for level in [*labels.values, UNSEEN_LEVEL]
        ]

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        codes, sizes = np.asarray(block).astype(np.intp), np.diff(self.offsets)
        place, is_present = self.offsets[:-1] + np.arange(len(sizes)) + np.minimum(codes, sizes), codes >= 0
        ends = np.concatenate([[0], np.cumsum(is_present.sum(axis=1))])
        return csr_array((np.ones(int(ends[-1])), place[is_present], ends), shape=(len(place), self.weight.shape[1]))

    def _input_weights(self, weight: Floats) -> Floats:
        return np.repeat(weight, np.diff(self.offsets) + 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenForm(ScoreForm):
    """The (transformed) occurrences of each token of a document."""

    distribution: Any  # of documents: its tokens, and the rows of documents
    count_mode: int  # how repeated tokens in a document count

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        n_tokens = self.weight.shape[1]
        if self.distribution.tokens.bits:
            return [f"{columns[0]}#{i}" for i in range(n_tokens)]
        return self.distribution.cells.token_texts(np.arange(n_tokens))

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        from candide.kernels.text import occurrence_weights

        times, place, ends = self.distribution.token_rows(block)
        counts, which = np.unique(times, return_inverse=True)
        values = occurrence_weights(self.count_mode, counts)[which]
        return csr_array((values, place, ends), shape=(len(ends) - 1, self.weight.shape[1]))

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        return block.absent_mask()[:, None]
