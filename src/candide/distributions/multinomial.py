"""Multinomial: each occurrence of a word adds its weight, without the multinomial coefficient; 0 * -inf = 0.

A word that cannot occur matters only where it does.

>>> words = Multinomial(np.array([[np.log(0.5), np.log(0.5)], [np.log(0.5), np.log(0.5)], [-np.inf, 0.0]]))
>>> np.exp(words.log_prob(np.array([[2.0, 1.0, 0.0]]))).round(12).tolist()
[[0.125, 0.125]]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats
from candide.distributions.arrays import (
    LOG_VALUES,
    ArraySource,
    DistributionShape,
    number_as_array,
    read_array,
    read_document_length,
)
from candide.distributions.base import (
    MAX_SCORED_VALUE,
    Distribution,
    fill_absent_with_zero,
    multiply_contributions,
    symmetric_divergence,
)
from candide.distributions.score_expression import Expression, clip, times, zero_if_missing
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import Polynomial


@dataclass(frozen=True, eq=False)
class Multinomial(Distribution):
    weights: Floats  # (feature, class)
    length: int | None = None  # words in a sampled document; None: the weights are not log-probabilities

    name: ClassVar[str] = "multinomial"

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.length is not None

    @property
    def n_classes(self) -> int:
        return self.weights.shape[1]

    @property
    def n_features(self) -> int:
        return self.weights.shape[0]

    @cached_property
    def _by_word(self) -> Floats:
        return kernels.pad_columns(self.weights)

    @cached_property
    def _by_class(self) -> Floats:
        return np.asfortranarray(self.weights, np.float64)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if self._can_be_infinite:
            block = _clip_counts(block)
        if isinstance(block, Csr):
            return kernels.add_linear_csr(*block[:3], self._by_word, out)
        return kernels.add_linear(block, self._by_class, out)

    @cached_property
    def _can_be_infinite(self) -> bool:
        """Whether a score may become infinite: weights of the complement are above 0."""
        return bool((self.weights > 0).any())

    def _contributions(self, x: NDArray) -> Floats:
        x = fill_absent_with_zero(x)[0][:, None, :]
        return np.where(x == 0, 0.0, x * self.weights.T)

    def scale_tables(self, weight: Floats) -> "Multinomial":
        return Multinomial(multiply_contributions(self.weights, weight[:, None]))

    def _probabilities(self) -> tuple[Floats, int]:
        """(class, word) of weights that are log-probabilities, and the length of a document."""
        if self.length is None:
            raise InputError(
                "these weights are not probabilities and cannot sample", remedy="use the multinomial event model"
            )
        return np.exp(self.weights.T), self.length

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Word counts of documents of ``length`` words: the model has no distribution of lengths."""
        p, length = self._probabilities()
        return rng.multinomial(length, (p / p.sum(axis=1, keepdims=True))[y]).astype(np.float64)

    def mean(self) -> Floats:
        """Of documents of ``length`` words."""
        p, length = self._probabilities()
        return p * length

    def divergence(self, other: Self) -> Floats:
        """(class, word) what each word adds to the divergence of the distributions of one word."""
        return symmetric_divergence(self._probabilities()[0], other._probabilities()[0])

    def parameters(self) -> dict[str, NDArray]:
        return {"weight": self.weights.T} if self.length is None else {"probability": np.exp(self.weights.T)}

    def form(self) -> "Polynomial":
        from candide.distributions.score_form import NumericInput, Polynomial

        weight = self.weights.T
        return Polynomial(np.zeros(weight.shape), weight, numeric_input=NumericInput(absent_is_zero=True))

    def score_expression(self, x: Expression) -> Expression:
        return times(clip(zero_if_missing(x, x)), "slope", self.weights.T)

    def arrays(self) -> dict[str, NDArray]:
        return {"weights": self.weights, **number_as_array(self.length, "length")}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        return cls(
            read_array(arrays, "weights", (shape.n_features, shape.n_classes), LOG_VALUES), read_document_length(arrays)
        )


def _clip_counts(block: Block) -> Block:
    """Rows without counts that are too large to be scored; an infinity stays, to be refused."""
    data = block.data if isinstance(block, Csr) else block
    if not data.size or not MAX_SCORED_VALUE < np.nanmax(data) < np.inf:
        return block
    limited = np.where(np.isinf(data), data, np.minimum(data, MAX_SCORED_VALUE))
    return block._replace(data=limited) if isinstance(block, Csr) else limited
