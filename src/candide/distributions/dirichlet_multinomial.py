"""Dirichlet-multinomial: the probability of a document's words when their probabilities are themselves uncertain.

A word that occurred once is likelier to occur again (burstiness), so the score is not linear in the counts. With
A the sum of alpha and N the sum of the counts, log p = sum over j of log_rising(alpha_j, x_j) - log_rising(A, N).

>>> two = DirichletMultinomial(np.array([[1.0, 1.0]]), length=2)
>>> np.exp(two.log_prob(np.array([[2.0, 0.0], [1.0, 1.0]]))).ravel().round(12).tolist()  # 1/2 * 2/3, and 1/2 * 1/3
[0.333333333333, 0.166666666667]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Csr, Floats, row_numbers
from candide.distributions.arrays import (
    NON_NEGATIVE,
    ArraySource,
    DistributionShape,
    number_as_array,
    read_array,
    read_document_length,
)
from candide.distributions.base import Distribution, clip_to_range, fill_absent_with_zero
from candide.distributions.score_expression import (
    Expression,
    clip,
    log_rising,
    parameter,
    total,
    where,
    zero_if_missing,
)
from candide.tally.base import divide_or_zero

_MAX_TABLED_COUNT = 4  # occurrences of a word up to which the sum of logs is a table


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Distribution):
    alpha: Floats  # (class, feature) some positive in every class
    length: int = 1  # words in a sampled document

    name: ClassVar[str] = "dirichlet_multinomial"
    nonlinear_reason: ClassVar[str] = (
        "with estimate='predictive' repeats count less; use estimate='mean', 'map' or 'mle'"
    )

    @property
    def n_classes(self) -> int:
        return self.alpha.shape[0]

    @property
    def n_features(self) -> int:
        return self.alpha.shape[1]

    @cached_property
    def _total(self) -> Floats:
        return self.alpha.sum(axis=1)

    @cached_property
    def _steps(self) -> tuple[Floats, ...]:
        """(feature, class) log(alpha + i): what the occurrence after i others adds."""
        return tuple(kernels.pad_columns(numerics.log_or_minus_inf(self.alpha + i).T) for i in range(_MAX_TABLED_COUNT))

    def add_log_prob(self, block: Block, out: Floats) -> int:
        n_absent = 0
        if not isinstance(block, Csr):
            x, n_absent = fill_absent_with_zero(block)
            row, column = np.nonzero(x)
            block = Csr(x[row, column], column, np.searchsorted(row, np.arange(len(x) + 1)), self.n_features)
        stored = slice(block.indptr[0], block.indptr[-1])
        if not np.isfinite(block.data[stored]).all():
            return kernels.INFINITE
        words = Csr(
            clip_to_range(block.data[stored].astype(np.float64)),
            block.indices[stored],
            block.indptr - block.indptr[0],
            self.n_features,
        )
        if n_absent == kernels.INFINITE:
            return kernels.INFINITE
        self._add_words(words, out)
        out -= numerics.log_rising_factorial(
            self._total, np.bincount(row_numbers(words), words.data, len(out))[:, None]
        )
        return n_absent

    def _add_words(self, words: Csr, out: Floats) -> None:
        """Most words occur a few times: one linear pass for the first occurrences, one for the second, and so on."""
        few = (words.data <= _MAX_TABLED_COUNT) & (words.data == np.floor(words.data))
        small = np.where(few, words.data, 0.0)
        for i in range(int(small.max(initial=0.0))):
            kernels.add_linear_csr(small, words.indices, words.indptr, self._steps[i], out, float(i))
        if few.all():
            return
        row, column, x = row_numbers(words)[~few], words.indices[~few], words.data[~few]
        for c in range(self.n_classes):
            out[:, c] += np.bincount(row, numerics.log_rising_factorial(self.alpha[c, column], x), len(out))

    def _contributions(self, x: NDArray) -> Floats:
        """The normaliser log_rising(A, N) is divided among the words by their counts."""
        x = fill_absent_with_zero(x)[0]
        length = x.sum(axis=1)[:, None]
        norm = numerics.log_rising_factorial(self._total, length)
        return (
            numerics.log_rising_factorial(self.alpha, x[:, None, :])
            - norm[:, :, None] * divide_or_zero(x, length)[:, None, :]
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Word counts of documents of ``length`` words, each with word probabilities of its own."""
        draw = rng.standard_gamma(self.alpha[y])
        return rng.multinomial(self.length, draw / draw.sum(axis=1, keepdims=True)).astype(np.float64)

    def parameters(self) -> dict[str, NDArray]:
        return {"alpha": self.alpha}

    def mean(self) -> Floats:
        """Of documents of ``length`` words."""
        return self.length * self.alpha / self._total[:, None]

    def score_expression(self, x: Expression) -> Expression:
        """The normaliser is divided among the words by their counts, as in ``contributions``."""
        n = clip(zero_if_missing(x, x), 0.0)
        length = total(n)
        is_empty = length.equals(0.0)
        norm = log_rising(parameter("total", self._total), length) / where(is_empty, 1.0, length)
        return log_rising(parameter("alpha", self.alpha), n) - n * where(is_empty, 0.0, norm)

    def arrays(self) -> dict[str, NDArray]:
        return {"alpha": self.alpha, **number_as_array(self.length, "length")}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        return cls(
            read_array(arrays, "alpha", (shape.n_classes, shape.n_features), NON_NEGATIVE),
            read_document_length(arrays) or 1,
        )
