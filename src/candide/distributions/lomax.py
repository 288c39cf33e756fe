"""Lomax (Pareto from zero): an exponential whose rate is itself uncertain, which gives it a heavy tail; its predictive.

>>> example = Lomax(shape=np.array([[2.0]]), rate=np.array([[1.0]]))
>>> np.exp(example.log_prob(np.array([[0.0], [1.0]]))).ravel().tolist(), example.mean().tolist()  # 2 / (1 + x)^3
([2.0, 0.25], [[1.0]])
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import POSITIVE, ArrayRule
from candide.distributions.positive import NonNegativeDistribution
from candide.distributions.score_expression import Expression, clip, log1p, parameter, where, zero_if_missing


@dataclass(frozen=True, eq=False)
class Lomax(NonNegativeDistribution):
    shape: Floats  # (class, feature) positive
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "lomax"
    _rules: ClassVar[dict[str, ArrayRule]] = {"shape": POSITIVE, "rate": POSITIVE}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        shape, rate = params["shape"], params["rate"]
        return numerics.mask_negative(
            x, numerics.log_or_minus_inf(shape) - np.log(rate) - (shape + 1.0) * np.log1p(x / rate)
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return self.rate[y] * np.expm1(rng.standard_exponential(self.shape[y].shape) / self.shape[y])

    def mean(self) -> Floats:
        heavy = self.shape <= 1
        return np.where(heavy, np.inf, self.rate / np.where(heavy, 1.0, self.shape - 1.0))

    def score_expression(self, x: Expression) -> Expression:
        peak = numerics.log_or_minus_inf(self.shape) - np.log(self.rate)
        score = parameter("constant", peak) + log1p(
            parameter("slope", -self.shape - 1.0), clip(x, 0.0) / parameter("rate", self.rate)
        )
        return zero_if_missing(x, where(x < 0.0, -np.inf, score))
