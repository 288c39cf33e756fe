"""LogNormal: positive values whose logarithm is Gaussian. Prior and settings are those of the Gaussian of ln x.

>>> import numpy as np
>>> tally = Moments(np.array([[8.0]]), np.array([[0.0]]), np.array([[8.0]]))  # of ln x
>>> LogNormal().estimate(tally, how="mle").log_prob(np.array([[np.e], [-1.0]])).round(4).ravel().tolist()
[-2.4189, -inf]
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from candide.data.blocks import Floats
from candide.distributions import Distribution, LogScale
from candide.encoding import Log
from candide.events.base import Support
from candide.events.gaussian import Gaussian
from candide.priors import Prior
from candide.tally import CoMoments, Moments


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """A value <= 0 is an error when counted, and has density 0 when scored.

    >>> import candide as cd
    >>> pay = {"pay": [900.0, 1100.0, 1500.0, 8000.0, 20000.0, 5000.0]}
    >>> cd.NaiveBayes({"pay": LogNormal()}).fit(pay, ["a"] * 3 + ["b"] * 3).predict({"pay": [1200.0, 9000.0]}).tolist()
    ['a', 'b']
    """

    name: ClassVar[str] = "lognormal"
    support: ClassVar[Support | None] = Support(low=0.0, is_open=True)
    encoding = Log()

    def _estimate(self, tally: Moments | CoMoments, prior: Prior | None, how: str) -> Distribution:
        return LogScale(super()._estimate(tally, prior, how))

    def _draw_posterior(self, tally: Moments | CoMoments, rng: "np.random.Generator") -> Distribution:
        return LogScale(super()._draw_posterior(tally, rng))

    def _evidence(self, tally: Moments | CoMoments, prior: Prior | None) -> Floats:
        """Of x itself: each value's density gains 1/x, and the tally holds the sum of ln x."""
        return super()._evidence(tally, prior) - tally.n * tally.mean

    def _log_derivative(self, x: Floats) -> Floats:
        return -x
