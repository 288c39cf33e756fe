"""Exponential: waiting times and other amounts >= 0, at a rate of its own in each class and column.

The predictive is Lomax (Pareto from zero): the uncertainty of the rate gives it a heavy tail.

>>> tally = Sums(n=np.array([[4.0]]), total=np.array([[10.0]]), log_factorial=np.array([[0.0]]))
>>> [Exponential().estimate(tally, Gamma(2, 2), how).rate.item() for how in ("mle", "mean")]
[0.4, 0.5]
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions
from candide.conjugate.checks import refuse_cells, refuse_improper
from candide.conjugate.gamma import gamma_evidence, gamma_parameters, gamma_rate
from candide.data.blocks import Floats
from candide.encoding import Identity
from candide.events.base import EventModel, Support
from candide.priors import Gamma, Jeffreys, Prior, Uniform
from candide.tally import Sums


@dataclass(frozen=True)
class Exponential(EventModel):
    """Amounts from zero up. By default the prior has the weight of two values of the pooled mean.

    >>> import candide as cd
    >>> wait = {"minutes": [1.0, 0.5, 2.0, 30.0, 55.0, 12.0]}
    >>> model = cd.NaiveBayes({"minutes": Exponential()}).fit(wait, ["short"] * 3 + ["long"] * 3)
    >>> model.predict({"minutes": [0.7, 40.0]}).tolist()
    ['short', 'long']
    """

    name: ClassVar[str] = "exponential"
    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Gamma, Jeffreys, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0)
    _has_leading_axes: ClassVar[bool] = True
    encoding = Identity(least=0.0)
    _information: ClassVar[str] = "exponential_information"
    _association_test: ClassVar[str] = "rate_test"

    prior: Prior | str | None = field(default=Gamma())

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        """Two imaginary values, not one: with one the MAP of a class without values would be the rate 0, no density."""
        shape, rate = _gamma_parameters(prior, tally)
        if how == "predictive":
            after = {"shape": shape + tally.n, "rate": rate + tally.total}
            refuse_cells(
                (after["shape"] <= 0) | (after["rate"] <= 0), f"no value, and {prior!r} is improper; use Gamma()"
            )
            return distributions.Lomax(**after)
        estimate = gamma_rate(tally.n, tally.total, shape, rate, how)
        good = np.isfinite(estimate) & (estimate > 0)
        refuse_cells(
            ~good, "the values, none or all zero, give no rate; use estimate='predictive' or the prior Gamma()"
        )
        return distributions.Exponential(estimate)

    def _draw_posterior(self, tally: Sums, rng: "np.random.Generator") -> distributions.Distribution:
        values, amount = _gamma_parameters(self._resolve(None), tally)
        some = (tally.n > 0) & (tally.total > 0)
        shape, rate = np.where(some, 0.0, values) + tally.n, np.where(some, 0.0, amount) + tally.total
        refuse_cells((rate <= 0) | (shape <= 0), "no value to draw a rate from; use the prior Gamma()")
        return distributions.Exponential(rng.standard_gamma(shape) / rate)

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        shape, rate = _gamma_parameters(prior, tally)
        refuse_improper((shape <= 0) | (rate <= 0), prior)
        return gamma_evidence(tally.n, tally.total, shape, rate)


def _gamma_parameters(prior: Prior | None, tally: Sums) -> tuple[Floats, Floats]:
    """Imaginary values and their total. Jeffreys: 1 / rate."""
    if isinstance(prior, Jeffreys | Uniform):
        return np.asarray(0.0 if isinstance(prior, Jeffreys) else 1.0), np.asarray(0.0)
    pooled = tally.pool()
    return gamma_parameters(prior, Gamma(shape=2.0), pooled.n, pooled.total, default_shape=1.0)
