"""Bags of words: the multinomial, and its posterior predictive, the Dirichlet-multinomial.

Multinomial: each occurrence of a word adds its weight, without the multinomial coefficient; 0 * -inf = 0, so a word
that cannot occur matters only where it does.

Dirichlet-multinomial: a word that occurred once is likelier to occur again (burstiness), so the score is not linear in
the counts. With A the sum of alpha and N the sum of the counts,
log p = sum over j of log_rising(alpha_j, x_j) - log_rising(A, N).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Csr, Floats, row_numbers
from candide.distributions import score_expression as expr
from candide.distributions.arrays import (
    LOG_VALUES,
    NON_NEGATIVE,
    ArraySource,
    DistributionShape,
    number_as_array,
    read_array,
    read_document_length,
)
from candide.distributions.base import (
    MAX_SCORED_VALUE,
    Distribution,
    multiply_contributions,
    symmetric_divergence,
    to_dense_floats,
)
from candide.distributions.score_expression import Expression
from candide.errors import InputError
from candide.tally.base import divide_or_zero

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm

_MAX_TABLED_COUNT = 4  # occurrences of a word up to which the sum of logs is a table


@dataclass(frozen=True, eq=False)
class Multinomial(Distribution):
    weights: Floats  # (feature, class)
    length: int | None = None  # words in a sampled document; None: the weights are not log-probabilities

    name: ClassVar[str] = "multinomial"

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.length is not None

    @property
    def _shape(self) -> tuple[int, int]:
        return self.weights.T.shape

    @cached_property
    def _kernel_arrays(self) -> tuple[Floats, Floats]:
        """The weights in the layouts that sparse and dense rows are scored by."""
        return kernels.pad_columns(self.weights), np.asfortranarray(self.weights, np.float64)

    @cached_property
    def _can_be_infinite(self) -> bool:
        """Whether a score may become infinite: weights of the complement are above 0."""
        return bool((self.weights > 0).any())

    def add_log_prob(self, block: Block, out: Floats) -> int:
        data = block.data if isinstance(block, Csr) else block
        if self._can_be_infinite and data.size and MAX_SCORED_VALUE < np.nanmax(data) < np.inf:
            limited = np.where(np.isinf(data), data, np.minimum(data, MAX_SCORED_VALUE))  # an infinity is refused below
            block = block._replace(data=limited) if isinstance(block, Csr) else limited
        if isinstance(block, Csr):
            return kernels.add_linear_csr(*block[:3], self._kernel_arrays[0], out)
        return kernels.add_linear(block, self._kernel_arrays[1], out)

    def _contributions(self, x: NDArray) -> Floats:
        x = _fill_absent_with_zero(x)[0][:, None, :]
        return np.where(x == 0, 0.0, x * self.weights.T)

    def scale_tables(self, weight: Floats) -> "Multinomial":
        return Multinomial(multiply_contributions(self.weights, weight[:, None]))

    def _probabilities(self) -> tuple[Floats, int]:
        """(class, word) of weights that are log-probabilities, and the length of a document."""
        if self.length is None:
            what = "these weights are not probabilities and cannot sample"
            raise InputError(what, remedy="use the multinomial event model")
        return np.exp(self.weights.T), self.length

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Word counts of documents of ``length`` words: the model has no distribution of lengths."""
        p, length = self._probabilities()
        return rng.multinomial(length, (p / p.sum(axis=1, keepdims=True))[y]).astype(np.float64)

    def mean(self) -> Floats:
        p, length = self._probabilities()
        return p * length

    def divergence(self, other: Self) -> Floats:
        """(class, word) what each word adds to the divergence of the distributions of one word."""
        return symmetric_divergence(self._probabilities()[0], other._probabilities()[0])

    def parameters(self) -> dict[str, NDArray]:
        return {"weight": self.weights.T} if self.length is None else {"probability": np.exp(self.weights.T)}

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import NumericForm

        return NumericForm(np.zeros(self.weights.T.shape), self.weights.T, absent_is_zero=True)

    def score_expression(self, x: Expression) -> Expression:
        return expr.times(expr.clip(expr.zero_if_missing(x, x)), "slope", self.weights.T)

    def arrays(self) -> dict[str, NDArray]:
        return {"weights": self.weights, **number_as_array(self.length, "length")}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        weights = read_array(arrays, "weights", (shape.n_features, shape.n_classes), LOG_VALUES)
        return cls(weights, read_document_length(arrays))


def _clip_to_range(x: NDArray) -> NDArray:
    """Amounts as they are scored: log-probabilities of larger ones than MAX_SCORED_VALUE are not finite."""
    return np.minimum(x, MAX_SCORED_VALUE) if x.max(initial=0.0) > MAX_SCORED_VALUE else x


def _fill_absent_with_zero(block: NDArray) -> tuple[Floats, int]:
    """Counts in which an absent value is a word that did not occur, and how many were absent, or kernels.INFINITE."""
    x = to_dense_floats(block).astype(np.float64, copy=False)
    if np.isfinite(x).all():
        return _clip_to_range(x), 0
    absent = np.isnan(x)
    return np.where(absent, 0.0, x), kernels.INFINITE if np.isinf(x).any() else int(absent.sum())


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Distribution):
    alpha: Floats  # (class, feature) some positive in every class
    length: int = 1  # words in a sampled document

    name: ClassVar[str] = "dirichlet_multinomial"
    nonlinear_reason: ClassVar[str] = (
        "with estimate='predictive' repeats count less; use estimate='mean', 'map' or 'mle'"
    )
    _shaped_like: ClassVar[str] = "alpha"

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
            x, n_absent = _fill_absent_with_zero(block)
            row, column = np.nonzero(x)
            block = Csr(x[row, column], column, np.searchsorted(row, np.arange(len(x) + 1)), self.n_features)
        stored = slice(block.indptr[0], block.indptr[-1])
        if n_absent == kernels.INFINITE or not np.isfinite(block.data[stored]).all():
            return kernels.INFINITE
        counts, indptr = _clip_to_range(block.data[stored].astype(np.float64)), block.indptr - block.indptr[0]
        words = Csr(counts, block.indices[stored], indptr, self.n_features)
        # Most words occur a few times: one linear pass for the first occurrences, one for the second, and so on.
        few = (counts <= _MAX_TABLED_COUNT) & (counts == np.floor(counts))
        small = np.where(few, counts, 0.0)
        for i in range(int(small.max(initial=0.0))):
            kernels.add_linear_csr(small, words.indices, indptr, self._steps[i], out, float(i))
        if not few.all():
            row, column, x = row_numbers(words)[~few], words.indices[~few], counts[~few]
            for c in range(self.n_classes):
                out[:, c] += np.bincount(row, numerics.log_rising_factorial(self.alpha[c, column], x), len(out))
        length = np.bincount(row_numbers(words), words.data, len(out))[:, None]
        out -= numerics.log_rising_factorial(self._total, length)
        return n_absent

    def _contributions(self, x: NDArray) -> Floats:
        """The normaliser log_rising(A, N) is divided among the words by their counts."""
        x = _fill_absent_with_zero(x)[0]
        length = x.sum(axis=1)[:, None]
        norm = numerics.log_rising_factorial(self._total, length)[:, :, None]
        words = numerics.log_rising_factorial(self.alpha, x[:, None, :])
        return words - norm * divide_or_zero(x, length)[:, None, :]

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Word counts of documents of ``length`` words, each with word probabilities of its own."""
        draw = rng.standard_gamma(self.alpha[y])
        return rng.multinomial(self.length, draw / draw.sum(axis=1, keepdims=True)).astype(np.float64)

    def parameters(self) -> dict[str, NDArray]:
        return {"alpha": self.alpha}

    def mean(self) -> Floats:
        return self.length * self.alpha / self._total[:, None]

    def score_expression(self, x: Expression) -> Expression:
        """The normaliser is divided among the words by their counts, as in ``contributions``."""
        n = expr.clip(expr.zero_if_missing(x, x), 0.0)
        length = expr.total(n)
        is_empty = length.equals(0.0)
        norm = expr.log_rising(expr.parameter("total", self._total), length) / expr.where(is_empty, 1.0, length)
        return expr.log_rising(expr.parameter("alpha", self.alpha), n) - n * expr.where(is_empty, 0.0, norm)

    def arrays(self) -> dict[str, NDArray]:
        return {"alpha": self.alpha, **number_as_array(self.length, "length")}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        alpha = read_array(arrays, "alpha", (shape.n_classes, shape.n_features), NON_NEGATIVE)
        return cls(alpha, read_document_length(arrays) or 1)
