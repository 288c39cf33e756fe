"""LogNormal: positive values whose logarithm is Gaussian. Prior and settings are those of the Gaussian of ln x.

>>> import numpy as np
>>> tally = Moments(np.array([[8.0]]), np.array([[0.0]]), np.array([[8.0]]))  # of ln x
>>> LogNormal().estimate(tally, how="mle").log_prob(np.array([[np.e], [-1.0]])).round(4).ravel().tolist()
[-2.4189, -inf]
"""

from dataclasses import dataclass
from typing import ClassVar

from candide.distributions import Distribution, LogScale
from candide.events.gaussian import Gaussian
from candide.priors import Prior
from candide.tally import Moments, Spec
from candide.tally.base import Floats


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """A value <= 0 is an error when counted, and has density 0 when scored."""

    name: ClassVar[str] = "lognormal"

    def spec(self, n_features: int, sizes: tuple[int, ...] = ()) -> Spec:
        return Spec(self.kind, n_features, transform="log")

    def _estimate(self, tally: Moments, prior: Prior | None, how: str) -> Distribution:
        return LogScale(super()._estimate(tally, prior, how))

    def _evidence(self, tally: Moments, prior: Prior | None) -> Floats:
        """Of x itself: each value's density gains 1/x, and the tally knows the sum of ln x."""
        return super()._evidence(tally, prior) - tally.n * tally.mean
