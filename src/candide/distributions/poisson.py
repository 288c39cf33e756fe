"""Poisson: how often something happens in a row, at a rate of its own in each class and column.

>>> law = Poisson(np.array([[2.0]]))
>>> np.exp(law.log_prob(np.array([[0.0], [2.0], [-1.0]]))).round(4).ravel().tolist()
[0.1353, 0.2707, 0.0]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.distributions.arrays import FROM_ZERO, Rule
from candide.distributions.base import moved
from candide.distributions.from_zero import FromZero
from candide.rows.blocks import Codes, Floats

if TYPE_CHECKING:
    from candide.distributions.form import Form


@dataclass(frozen=True, eq=False)
class Poisson(FromZero):
    rate: Floats  # (class, feature) from zero

    name: ClassVar[str] = "poisson"
    _rules: ClassVar[dict[str, Rule]] = {"rate": FROM_ZERO}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        rate = params["rate"]
        return numerics.from_zero(x, numerics.xlogy(x, rate) - rate - numerics.gammaln(x + 1.0))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.poisson(self.rate[y]).astype(np.float64)

    def mean(self) -> Floats:
        return self.rate

    def divergence(self, other: Self) -> Floats:
        return moved(self.rate, other.rate)

    def form(self) -> "Form":
        return self._linear(-self.rate, numerics.log(self.rate))
