"""Negative binomial: a Poisson whose rate is itself uncertain, with a gamma's shape and rate; its predictive.

>>> example = NegativeBinomial(np.array([[1.0]]), np.array([[1.0]]))  # 1/2, 1/4, 1/8, ...
>>> np.exp(example.log_prob(np.array([[0.0], [1.0], [2.0]]))).round(6).ravel().tolist()
[0.5, 0.25, 0.125]
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import NON_NEGATIVE, POSITIVE, ArrayRule
from candide.distributions.positive import NonNegativeDistribution
from candide.distributions.score_expression import Expression, clip, log_rising, parameter, where, zero_if_missing


@dataclass(frozen=True, eq=False)
class NegativeBinomial(NonNegativeDistribution):
    shape: Floats  # (class, feature) from zero
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "negative_binomial"
    _rules: ClassVar[dict[str, ArrayRule]] = {"shape": NON_NEGATIVE, "rate": POSITIVE}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        shape, rate = params["shape"], params["rate"]
        start = -shape * np.log1p(1.0 / rate)
        choose = numerics.log_rising_factorial(shape, x) - numerics.gammaln(x + 1.0)
        return numerics.mask_negative(x, choose + start - x * np.log1p(rate))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.poisson(rng.standard_gamma(self.shape[y]) / self.rate[y]).astype(np.float64)

    def mean(self) -> Floats:
        return self.shape / self.rate

    def score_expression(self, x: Expression) -> Expression:
        start, n = -self.shape * np.log1p(1.0 / self.rate), clip(x, 0.0)
        score = log_rising(parameter("shape", self.shape), n) + parameter("constant", start)
        score = score - n * parameter("slope", np.log1p(self.rate))
        return zero_if_missing(x, where(x < 0.0, -np.inf, score))
