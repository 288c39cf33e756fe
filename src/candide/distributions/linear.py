"""Scores linear in the counts, with 0 * -inf = 0: a word that cannot occur matters only where it does.

>>> words = TermWeights(np.array([[np.log(0.5), np.log(0.5)], [np.log(0.5), np.log(0.5)], [-np.inf, 0.0]]))
>>> np.exp(words.log_prob(np.array([[2.0, 1.0, 0.0]]))).round(12).tolist()
[[0.125, 0.125]]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.distributions.base import Distribution, numbers
from candide.errors import InputError
from candide.rows.blocks import Block, Codes, Csr, Floats

if TYPE_CHECKING:
    from candide.distributions.forms import OfNumbers


@dataclass(frozen=True, eq=False)
class LogWeights:
    """Log-weights in two parts that add without NaN: the finite ones, and marks (1.0) where they are -inf."""

    finite: Floats
    struck: Floats
    any: bool

    @classmethod
    def of(cls, weights: Floats) -> Self:
        struck = np.isneginf(weights)
        finite = np.ascontiguousarray(np.where(struck, 0.0, weights), np.float64)
        return cls(finite, np.ascontiguousarray(struck, np.float64), bool(struck.any()))


@dataclass(frozen=True, eq=False)
class TermWeights(Distribution):
    """Each occurrence of a word adds its weight: the multinomial, without the multinomial coefficient."""

    weights: Floats  # (feature, class)
    length: int | None = None  # words in a sampled document; None: the weights are no log-probabilities

    @property
    def n_classes(self) -> int:
        return self.weights.shape[1]

    @property
    def n_features(self) -> int:
        return self.weights.shape[0]

    @cached_property
    def _by_word(self) -> Floats:
        return kernels.padded(self.weights)

    @cached_property
    def _by_class(self) -> Floats:
        return np.asfortranarray(self.weights, np.float64)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if isinstance(block, Csr):
            return kernels.add_linear_csr(*block[:3], self._by_word, out)
        return kernels.add_linear(block, self._by_class, out)

    def _terms(self, x: NDArray) -> Floats:
        x = absent_as_zero(x)[0][:, None, :]
        return np.where(x == 0, 0.0, x * self.weights.T)

    def quadratic(self) -> "OfNumbers":
        from candide.distributions.forms import OfNumbers

        return OfNumbers(self.weights.T, np.zeros(self.weights.T.shape), zero_if_absent=True)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Word counts of documents of ``length`` words: the model says nothing of lengths."""
        if self.length is None:
            raise InputError("these weights are no probabilities and cannot sample; use the multinomial event model")
        p = np.exp(self.weights.T)
        return rng.multinomial(self.length, (p / p.sum(axis=1, keepdims=True))[y]).astype(np.float64)

    def parameters(self) -> dict[str, NDArray]:
        return {"weight": self.weights.T} if self.length is None else {"probability": np.exp(self.weights.T)}


def absent_as_zero(block: NDArray) -> tuple[Floats, int]:
    """Counts in which an absent value is a word that did not occur, and how many were absent, or kernels.INFINITE."""
    x = numbers(block).astype(np.float64, copy=False)
    if np.isfinite(x).all():
        return x, 0
    absent = np.isnan(x)
    return np.where(absent, 0.0, x), kernels.INFINITE if np.isinf(x).any() else int(absent.sum())
