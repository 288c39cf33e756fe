"""Exponential: waiting times and other amounts >= 0, at a rate of its own in each class and column.

The predictive is Lomax (Pareto from zero): the uncertainty of the rate gives it a heavy tail.

>>> tally = Sums(n=np.array([[4.0]]), total=np.array([[10.0]]), log_factorial=np.array([[0.0]]))
>>> [Exponential().estimate(tally, Gamma(2, 2), how).rate.item() for how in ("mle", "mean")]
[0.4, 0.5]
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from candide import distributions
from candide.conjugate.checks import refuse_cells
from candide.conjugate.gamma import gamma_rate
from candide.data.blocks import Floats
from candide.events.base import Support
from candide.events.poisson import RateEvent
from candide.priors import Gamma, Prior
from candide.tally import Sums


@dataclass(frozen=True)
class Exponential(RateEvent):
    """Amounts from zero up. By default the prior has the weight of two values of the pooled mean.

    >>> import candide as cd
    >>> wait = {"minutes": [1.0, 0.5, 2.0, 30.0, 55.0, 12.0]}
    >>> model = cd.NaiveBayes({"minutes": Exponential()}).fit(wait, ["short"] * 3 + ["long"] * 3)
    >>> model.predict({"minutes": [0.7, 40.0]}).tolist()
    ['short', 'long']
    """

    name: ClassVar[str] = "exponential"
    support: ClassVar[Support | None] = Support(low=0.0)
    _information: ClassVar[str] = "exponential_information"
    _association_test: ClassVar[str] = "rate_test"
    _jeffreys_shape: ClassVar[float] = 0.0  # 1 / rate
    _default_prior: ClassVar[Gamma] = Gamma(shape=2.0)  # with one the MAP of a class without values would be rate 0
    _pooled_rate: ClassVar[float] = 1.0

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        return tally.n, tally.total

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        shape, rate = self._gamma_parameters(prior, tally)
        if how == "predictive":
            after = {"shape": shape + tally.n, "rate": rate + tally.total}
            is_improper = (after["shape"] <= 0) | (after["rate"] <= 0)
            refuse_cells(is_improper, f"no value, and {prior!r} is improper; use Gamma()")
            return distributions.Lomax(**after)
        estimate = gamma_rate(tally.n, tally.total, shape, rate, how)
        what = "the values, none or all zero, give no rate; use estimate='predictive' or the prior Gamma()"
        refuse_cells(~(np.isfinite(estimate) & (estimate > 0)), what)
        return distributions.Exponential(estimate)

    def _draw_posterior(self, tally: Sums, rng: "np.random.Generator") -> distributions.Distribution:
        return distributions.Exponential(self._posterior_draws(tally, rng))
