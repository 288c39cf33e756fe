"""Exponential: waiting times and other amounts >= 0, at a rate of its own in each class and column.

>>> example = Exponential(np.array([[0.5], [2.0]]))
>>> example.log_prob(np.array([[1.0]])).round(4).tolist(), example.mean().ravel().tolist()
([[-1.1931, -1.3069]], [2.0, 0.5])
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import POSITIVE, ArrayRule
from candide.distributions.positive import NonNegativeDistribution

if TYPE_CHECKING:
    from candide.distributions.score_expression import Expression
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class Exponential(NonNegativeDistribution):
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "exponential"
    _rules: ClassVar[dict[str, ArrayRule]] = {"rate": POSITIVE}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        rate = params["rate"]
        return numerics.mask_negative(x, np.log(rate) - rate * x)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.standard_exponential(self.rate[y].shape) / self.rate[y]

    def mean(self) -> Floats:
        return 1.0 / self.rate

    def divergence(self, other: Self) -> Floats:
        return self.rate / other.rate + other.rate / self.rate - 2.0

    def form(self) -> "ScoreForm":
        return self._linear(np.log(self.rate), -self.rate)

    def score_expression(self, x: "Expression") -> "Expression":
        return self._linear_expression(x, np.log(self.rate), -self.rate)
