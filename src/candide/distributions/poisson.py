"""Poisson: how often something happens in a row, at a rate of its own in each class and column.

>>> example = Poisson(np.array([[2.0]]))
>>> np.exp(example.log_prob(np.array([[0.0], [2.0], [-1.0]]))).round(4).ravel().tolist()
[0.1353, 0.2707, 0.0]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import NON_NEGATIVE, ArrayRule
from candide.distributions.base import symmetric_divergence
from candide.distributions.positive import NonNegativeDistribution

if TYPE_CHECKING:
    from candide.distributions.score_expression import Expression
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class Poisson(NonNegativeDistribution):
    rate: Floats  # (class, feature) from zero

    name: ClassVar[str] = "poisson"
    _rules: ClassVar[dict[str, ArrayRule]] = {"rate": NON_NEGATIVE}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        rate = params["rate"]
        return numerics.mask_negative(x, numerics.xlogy(x, rate) - rate - numerics.gammaln(x + 1.0))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.poisson(self.rate[y]).astype(np.float64)

    def mean(self) -> Floats:
        return self.rate

    def divergence(self, other: Self) -> Floats:
        return symmetric_divergence(self.rate, other.rate)

    def form(self) -> "ScoreForm":
        return self._linear(-self.rate, numerics.log_or_minus_inf(self.rate))

    def score_expression(self, x: "Expression") -> "Expression":
        return self._linear_expression(x, -self.rate, numerics.log_or_minus_inf(self.rate))
