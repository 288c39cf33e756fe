"""Poisson: how often something happens in a row, at a rate of its own in each class and column.

The predictive is negative binomial: the uncertainty of the rate widens it.

>>> tally = Sums(n=np.array([[4.0]]), total=np.array([[10.0]]), log_factorial=np.array([[8.0]]))
>>> [Poisson().estimate(tally, Gamma(3, 1), how).rate.item() for how in ("mle", "map", "mean")]
[2.5, 2.4, 2.6]
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
class Poisson(EventModel):
    """Counts per row. By default the prior has the weight of one row that shows the pooled mean.

    >>> import candide as cd
    >>> model = cd.NaiveBayes({"visits": Poisson()}).fit({"visits": [0, 1, 1, 7, 9]}, ["new"] * 3 + ["regular"] * 2)
    >>> model.predict({"visits": [2, 6]}).tolist()
    ['new', 'regular']
    """

    name: ClassVar[str] = "poisson"
    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Gamma, Jeffreys, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0, is_integer=True)
    _has_leading_axes: ClassVar[bool] = True
    encoding = Identity(least=0.0)
    extra_sums = frozenset({"log_factorial"})
    _information: ClassVar[str] = "poisson_information"
    _association_test: ClassVar[str] = "total_test"

    prior: Prior | str | None = field(default=Gamma())

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        """A rate of 0 gives every count but 0 probability 0."""
        shape, rate = _gamma_parameters(prior, tally)
        if how == "predictive":
            after = {"shape": shape + tally.total, "rate": rate + tally.n}
            refuse_cells(after["rate"] <= 0, f"no value, and {prior!r} is improper; use Gamma()")
            return distributions.NegativeBinomial(**after)
        estimate = gamma_rate(tally.total, tally.n, shape, rate, how)
        refuse_cells(
            ~np.isfinite(estimate), "no value to take a rate of; use estimate='predictive' or the prior Gamma()"
        )
        return distributions.Poisson(estimate)

    def _draw_posterior(self, tally: Sums, rng: "np.random.Generator") -> distributions.Distribution:
        own, rows = _gamma_parameters(self._resolve(None), tally)
        some = tally.n > 0
        shape, rate = np.where(some, 0.5, own) + tally.total, np.where(some, 0.0, rows) + tally.n
        refuse_cells((rate <= 0) | (shape <= 0), "no value to draw a rate from; use the prior Gamma()")
        return distributions.Poisson(rng.standard_gamma(shape) / rate)

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        shape, rate = _gamma_parameters(prior, tally)
        refuse_improper((shape <= 0) | (rate <= 0), prior)
        return gamma_evidence(tally.total, tally.n, shape, rate) - tally.log_factorial


def _gamma_parameters(prior: Prior | None, tally: Sums) -> tuple[Floats, Floats]:
    """Imaginary events and rows. Jeffreys: rate**-1/2."""
    if isinstance(prior, Jeffreys | Uniform):
        return np.asarray(0.5 if isinstance(prior, Jeffreys) else 1.0), np.asarray(0.0)
    pooled = tally.pool()
    return gamma_parameters(prior, Gamma(rate=1.0), pooled.total, pooled.n, default_shape=0.5)
