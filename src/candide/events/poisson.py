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
class RateEvent(EventModel):
    """Events in an exposure at a Gamma-distributed rate: counts in rows, or values in a total amount of time."""

    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Gamma, Jeffreys, Uniform)
    _has_leading_axes: ClassVar[bool] = True
    _jeffreys_shape: ClassVar[float]  # imaginary events under Jeffreys' prior
    _default_prior: ClassVar[Gamma]  # what Gamma() stands for
    _pooled_rate: ClassVar[float]  # where the data show none
    encoding = Identity(least=0.0)

    prior: Prior | str | None = field(default=Gamma())

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def _gamma_parameters(self, prior: Prior | None, tally: Sums) -> tuple[Floats, Floats]:
        """Imaginary events and exposure."""
        if isinstance(prior, Jeffreys | Uniform):
            return np.asarray(self._jeffreys_shape if isinstance(prior, Jeffreys) else 1.0), np.asarray(0.0)
        pooled = self._events_and_exposure(tally.pool())
        return gamma_parameters(prior, self._default_prior, *pooled, default_rate=self._pooled_rate)

    def _posterior_draws(self, tally: Sums, rng: "np.random.Generator") -> Floats:
        """Draw rates from the posterior under Jeffreys' prior; for a class without data, under the model's prior."""
        events, exposure = self._events_and_exposure(tally)
        shape, rate = self._gamma_parameters(self._resolve(None), tally)
        seen = (tally.n > 0) & (exposure > 0)
        shape, rate = np.where(seen, self._jeffreys_shape, shape) + events, np.where(seen, 0.0, rate) + exposure
        refuse_cells((rate <= 0) | (shape <= 0), "no value to draw a rate from; use the prior Gamma()")
        return rng.standard_gamma(shape) / rate

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        shape, rate = self._gamma_parameters(prior, tally)
        refuse_improper((shape <= 0) | (rate <= 0), prior)
        return gamma_evidence(*self._events_and_exposure(tally), shape, rate)


@dataclass(frozen=True)
class Poisson(RateEvent):
    """Counts per row. By default the prior has the weight of one row that shows the pooled mean.

    >>> import candide as cd
    >>> model = cd.NaiveBayes({"visits": Poisson()}).fit({"visits": [0, 1, 1, 7, 9]}, ["new"] * 3 + ["regular"] * 2)
    >>> model.predict({"visits": [2, 6]}).tolist()
    ['new', 'regular']
    """

    name: ClassVar[str] = "poisson"
    support: ClassVar[Support | None] = Support(low=0.0, is_integer=True)
    extra_sums = frozenset({"log_factorial"})
    _information: ClassVar[str] = "poisson_information"
    _association_test: ClassVar[str] = "total_test"
    _jeffreys_shape: ClassVar[float] = 0.5  # rate**-1/2
    _default_prior: ClassVar[Gamma] = Gamma(rate=1.0)
    _pooled_rate: ClassVar[float] = 0.5

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        return tally.total, tally.n

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        """A rate of 0 gives every count but 0 probability 0."""
        shape, rate = self._gamma_parameters(prior, tally)
        if how == "predictive":
            refuse_cells(rate + tally.n <= 0, f"no value, and {prior!r} is improper; use Gamma()")
            return distributions.NegativeBinomial(shape + tally.total, rate + tally.n)
        estimate = gamma_rate(tally.total, tally.n, shape, rate, how)
        what = "no value to take a rate of; use estimate='predictive' or the prior Gamma()"
        refuse_cells(~np.isfinite(estimate), what)
        return distributions.Poisson(estimate)

    def _draw_posterior(self, tally: Sums, rng: "np.random.Generator") -> distributions.Distribution:
        return distributions.Poisson(self._posterior_draws(tally, rng))

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        return super()._evidence(tally, prior) - tally.log_factorial
