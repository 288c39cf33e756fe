"""Forms: the score of a block as a polynomial of inputs read from its columns, for linear and quadratic models.

A distribution gives a :class:`Polynomial` (of degree one or two), a :class:`Lookup` (a number for each level), a
:class:`PerTokenForm` (a number for each token of a document), or an :class:`UnavailableForm` with the reason.
``contributions`` evaluates it, except for parts that are the same in every class. A missing value contributes 0; an
impossible value, such as a negative waiting time, is -inf in all classes.

>>> form = Polynomial(constant=np.array([[0.0], [-3.0]]), weight=np.array([[0.0], [2.0]]))
>>> form.degree, form.names(["height"], ()), form.contributions(np.array([[1.5], [np.nan]]))[:, :, 0].tolist()
(1, ['height'], [[0.0, 0.0], [0.0, 0.0]])
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Csr, Floats
from candide.distributions.base import multiply_contributions, to_dense
from candide.errors import InputError

UNSEEN_LEVEL = "<unseen>"  # the level that stands for all that were never counted


@dataclass(frozen=True, eq=False)
class NumericInput:
    """What is read from a column of numbers: the number itself, its log, or whether it lies above a threshold."""

    function: str = ""  # "" the number itself | "log" | "above" a threshold
    threshold: float = 0.0
    absent_is_zero: bool = False  # words that did not occur
    low: float = -np.inf  # below it no class can have a value
    low_open: bool = False  # nor at it
    distribution: Any = None  # a user-defined distribution, which decides what is impossible

    def input_name(self, column: str) -> str:
        if self.function == "log":
            return f"log({column})"
        return f"{column}>{self.threshold:g}" if self.function == "above" else column

    def read(self, block: Any) -> Any:
        """(row, input) numbers, NaN where absent; sparse where the rows are."""
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
        if self.function == "above":
            return np.where(np.isnan(x), np.nan, (x > self.threshold).astype(np.float64))
        return x

    def impossible_rows(self, block: Any) -> NDArray[np.bool_]:
        """(row,) where no class can have the values."""
        if self.distribution is not None:
            return np.isneginf(self.distribution.log_prob(block)).all(axis=1)
        if self.low == -np.inf:
            return np.zeros(block.shape[0], bool)
        x = to_dense(block)
        return np.any(x <= self.low if self.low_open else x < self.low, axis=1)


class ScoreForm(ABC):
    """One block's part of the score of each class, and how its inputs are read from rows."""

    constant: Floats  # (class, unit) added where the value is present: a unit is a column, or a group of columns
    degree: int | None = None  # of the polynomial that it is; None: it is none

    @abstractmethod
    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        """A name for each input."""

    @abstractmethod
    def inputs(self, block: Any) -> Any:
        """(row, input) numbers, NaN where absent; sparse where most are zero."""

    @abstractmethod
    def contributions(self, block: Any) -> Floats:
        """(row, class, unit) what each unit adds, but for what is the same in every class."""

    @abstractmethod
    def scale_units(self, weight: Floats) -> "ScoreForm":
        """The form whose units are multiplied, each by its weight."""

    def on_log_scale(self) -> "ScoreForm":
        """The same form of the logs of the numbers."""
        return self

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        """(row, unit) where the value is absent; None where absent values need no care."""
        return None

    def impossible_rows(self, block: Any) -> NDArray[np.bool_]:
        """(row,) where no class can have the values, whatever a linear score makes of them."""
        return np.zeros(block.shape[0], bool)


class _NumericForm(ScoreForm):
    """Shared by forms whose inputs are read from columns of numbers, one each."""

    numeric_input: NumericInput

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        return [self.numeric_input.input_name(column) for column in columns]

    def inputs(self, block: Any) -> Any:
        return self.numeric_input.read(block)

    def impossible_rows(self, block: Any) -> NDArray[np.bool_]:
        return self.numeric_input.impossible_rows(block)

    def on_log_scale(self) -> "ScoreForm":
        return replace(self, numeric_input=replace(self.numeric_input, function="log", low=0.0, low_open=True))  # type: ignore[type-var]

    def contributions(self, block: Any) -> Floats:
        x = to_dense(block)
        z = self.inputs(x)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            out = self._contributions_of(z[:, None, :])
        if out.shape[2] == z.shape[1]:  # columns modelled together have no contributions of their own
            out = np.where(np.isnan(z)[:, None, :], 0.0, out)
        out[self.impossible_rows(x)] = -np.inf
        return out

    @abstractmethod
    def _contributions_of(self, z: Floats) -> Floats:
        """(row, class, unit) of inputs (row, 1, input)."""


@dataclass(frozen=True, eq=False)
class Polynomial(_NumericForm):
    """constant + weight z + square z^2 of each column; of columns modelled together constant + weight . z + z' A z."""

    constant: Floats  # (class, unit)
    weight: Floats  # (class, input)
    square: Floats | None = None  # (class, input), or (class, input, input) where columns are modelled together
    numeric_input: NumericInput = field(default_factory=NumericInput)
    is_joint: bool = False

    @property
    def degree(self) -> int:  # type: ignore[override]
        return 1 if self.square is None else 2

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        if isinstance(block, Csr) or self.numeric_input.absent_is_zero or self.is_joint:
            return None  # of columns modelled together NaN goes through
        return np.isnan(np.asarray(block, np.float64))

    def _contributions_of(self, z: Floats) -> Floats:
        if not self.is_joint:
            out = self.constant + np.where(z == 0, 0.0, z * self.weight)  # 0 * -inf = 0: a word that did not occur
            return out if self.square is None else out + z * z * self.square
        out = self.constant + (z * self.weight).sum(axis=2, keepdims=True)
        return out if self.square is None else out + np.einsum("rui,cij,ruj->rcu", z, self.square, z, optimize=True)

    def scale_units(self, weight: Floats) -> ScoreForm:
        if self.is_joint:
            return _scale_group(self, weight)
        square = None if self.square is None else self.square * weight
        return replace(
            self,
            constant=multiply_contributions(self.constant, weight),
            weight=multiply_contributions(self.weight, weight),
            square=square,
        )


@dataclass(frozen=True, eq=False)
class Lookup(ScoreForm):
    """A number for every level of every column, and one for all levels that were never counted."""

    weight: Floats  # (class, input) the levels of a feature, then its unseen one, feature by feature
    offsets: Codes  # (features + 1) of the levels counted

    degree = 1

    @classmethod
    def from_table(cls, table: Floats, unseen: Floats, offsets: Codes) -> "Lookup":
        """Of a (level, class) table and (feature, class) numbers for a level never counted."""
        return cls(np.insert(table, np.asarray(offsets[1:], np.intp), unseen, axis=0).T, offsets)

    @property
    def constant(self) -> Floats:  # type: ignore[override]
        return np.zeros((len(self.weight), len(self.offsets) - 1))

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        return [
            f"{name}={level}"
            for name, known in zip(columns, levels, strict=True)
            for level in [*known.values, UNSEEN_LEVEL]
        ]

    def _input_indices(self, block: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """(row, feature) which input each value is, and whether it is there."""
        codes, sizes = np.asarray(block).astype(np.intp), np.diff(self.offsets)
        return self.offsets[:-1] + np.arange(len(sizes)) + np.minimum(codes, sizes), codes >= 0

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        place, there = self._input_indices(block)
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_array((np.ones(int(ends[-1])), place[there], ends), shape=(len(place), self.weight.shape[1]))

    def contributions(self, block: Any) -> Floats:
        place, there = self._input_indices(block)
        found = self.weight.T[np.where(there, place, 0)].transpose(0, 2, 1)
        return np.where(there[:, None, :], found, 0.0)

    def scale_units(self, weight: Floats) -> ScoreForm:
        return replace(self, weight=multiply_contributions(self.weight, np.repeat(weight, np.diff(self.offsets) + 1)))


@dataclass(frozen=True, eq=False)
class PerTokenForm(ScoreForm):
    """A number for each term of a document, times what its occurrences count."""

    constant: Floats  # (class, 1)
    weight: Floats  # (class, term)
    distribution: Any  # the distribution of documents: its tokens, and the rows of documents
    count_mode: int = 0  # what several occurrences in a document count

    degree = 1

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        n_terms = self.weight.shape[1]
        if self.distribution.tokens.bits:
            return [f"{columns[0]}#{i}" for i in range(n_terms)]
        return self.distribution.cells.token_texts(np.arange(n_terms))

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        from candide.kernels.text_reference import occurrence_weights

        times_, place, ends = self.distribution.token_rows(block)
        counts, which = np.unique(times_, return_inverse=True)
        weighed = occurrence_weights(self.count_mode, counts)
        return csr_array((weighed[which], place, ends), shape=(len(ends) - 1, self.weight.shape[1]))

    def absent_mask(self, block: Any) -> NDArray[np.bool_] | None:
        return block.absent_mask()[:, None]

    def contributions(self, block: Any) -> Floats:
        out = self.inputs(block) @ self.weight.T + self.constant[:, 0]
        return np.where(block.absent_mask()[:, None], 0.0, out)[:, :, None]

    def scale_units(self, weight: Floats) -> ScoreForm:
        return replace(
            self,
            constant=multiply_contributions(self.constant, weight),
            weight=multiply_contributions(self.weight, weight),
        )


@dataclass(frozen=True, eq=False)
class UnavailableForm(ScoreForm):
    """No form, and why."""

    reason: str

    def names(self, columns: Sequence[str], levels: Sequence[Any]) -> list[str]:
        return self._refuse()

    def inputs(self, block: Any) -> Any:
        return self._refuse()

    def contributions(self, block: Any) -> Floats:
        return self._refuse()

    def scale_units(self, weight: Floats) -> ScoreForm:
        return self

    def _refuse(self) -> Any:
        raise InputError(f"this score cannot be written out: {self.reason}")


def _scale_group(form: Polynomial, weight: Floats) -> ScoreForm:
    """A group of columns has one polynomial: it can be multiplied only by one weight."""
    if (weight != weight[:1]).any():
        return UnavailableForm("columns modelled together have one polynomial, and their weights differ")
    w = weight[0]
    square = None if form.square is None else form.square * w
    return replace(form, constant=form.constant * w, weight=form.weight * w, square=square)
