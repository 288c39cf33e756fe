"""Values >= 0: Poisson counts, over-dispersed counts (negative binomial), and amounts (exponential).

Counts in rows and waiting times are both events in an exposure, at a rate with a Gamma prior. The predictives are
wider: negative binomial for counts, Lomax (Pareto from zero) for amounts.
"""

import sys
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions, numerics
from candide.data.blocks import Floats
from candide.encoding import Identity
from candide.errors import InputError
from candide.events.base import EventModel, PosteriorSampler, Support
from candide.priors import Gamma, Jeffreys, Prior, Uniform, refuse_improper
from candide.tally import Moments, Sums
from candide.tally.base import divide_or_zero, refuse_cells

_ROUNDING = 1e-12  # of events: a part of one that rounding leaves
_MAX_DISPERSION = 1e300  # a larger one would make a shape of 0, which means that every count is 0
_MIN_DISPERSION = 1e-10  # a smaller one is none: Poisson to the last digits


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
    _distribution: ClassVar[type[distributions.Poisson] | type[distributions.Exponential]]  # of values at a rate
    _predictive: ClassVar[type[distributions.NegativeBinomial] | type[distributions.Lomax]]  # at an uncertain rate
    _needs_events: ClassVar[bool]  # whether a rate of 0 is no distribution
    _no_rate: ClassVar[str]  # why values give no rate
    encoding = Identity(least=0.0)

    prior: Prior | str | None = field(default=Gamma())

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def _gamma_parameters(self, prior: Prior | None, tally: Sums) -> tuple[Floats, Floats]:
        """Imaginary events and exposure."""
        if isinstance(prior, Jeffreys | Uniform):
            return np.asarray(self._jeffreys_shape if isinstance(prior, Jeffreys) else 1.0), np.asarray(0.0)
        pooled = self._events_and_exposure(tally.pool())
        return _resolve_gamma(prior, self._default_prior, *pooled, default_rate=self._pooled_rate)

    def _gamma_posterior(self, prior: Prior | None, tally: Sums) -> tuple[Floats, Floats]:
        (events, exposure), (shape, rate) = self._events_and_exposure(tally), self._gamma_parameters(prior, tally)
        return shape + events, rate + exposure

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        shape, rate = self._gamma_posterior(prior, tally)
        if how == "predictive":
            is_undetermined = (rate <= 0) | (self._needs_events & (shape <= 0))
            refuse_cells(is_undetermined, f"no value, and {prior!r} is improper; use Gamma()")
            return self._predictive(shape, rate)
        events, exposure = self._events_and_exposure(tally) if how == "mle" else (shape, rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = (_mode_events(events) if how == "map" else events) / exposure
        is_undetermined = ~np.isfinite(estimate) | (self._needs_events & (estimate <= 0))
        refuse_cells(is_undetermined, f"{self._no_rate}; use estimate='predictive' or the prior Gamma()")
        return self._distribution(estimate)

    def _posterior_sampler(self, tally: Sums, prior: Prior | None) -> PosteriorSampler:
        shape, rate = self._gamma_posterior(prior, tally)
        refuse_cells((rate <= 0) | (shape <= 0), "no value to draw a rate from; use the prior Gamma()")
        return lambda rng: self._distribution(rng.standard_gamma(shape) / rate)

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        """log of the integral of rate**events * exp(-rate * exposure) under Gamma(shape, rate)."""
        shape, rate = self._gamma_parameters(prior, tally)
        refuse_improper((shape <= 0) | (rate <= 0), prior)
        events, exposure = self._events_and_exposure(tally)
        rising = numerics.log_rising_factorial(shape, events)
        return rising - shape * np.log1p(exposure / rate) - events * np.log(rate + exposure)


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
    _distribution = distributions.Poisson
    _predictive = distributions.NegativeBinomial
    _needs_events: ClassVar[bool] = False  # at a rate of 0 every count but 0 has probability 0
    _no_rate: ClassVar[str] = "no value to take a rate of"

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        return tally.total, tally.n

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        return super()._evidence(tally, prior) - tally.log_factorial


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
    _distribution = distributions.Exponential
    _predictive = distributions.Lomax
    _needs_events: ClassVar[bool] = True
    _no_rate: ClassVar[str] = "the values, none or all zero, give no rate"

    def _events_and_exposure(self, tally: Sums) -> tuple[Floats, Floats]:
        return tally.n, tally.total


@dataclass(frozen=True)
class NegativeBinomial(EventModel):
    """Over-dispersed counts. By default the prior of the mean has the weight of one row that shows the pooled mean.

    The variance is mean + dispersion * mean**2, so a dispersion of 0 is Poisson. It is a Poisson whose rate varies from
    row to row as a Gamma of shape 1 / dispersion.

    The dispersion is that of the moments (Anscombe, 1950), which is noisy in small classes: what goes beyond Poisson in
    a class is averaged with what goes beyond it in all classes together, the latter with the weight of ``sharing``
    rows. That is the weighted compromise between own and common dispersions of Robinson and Smyth (2007) and of edgeR's
    ``prior.df``, done on moments instead of likelihoods, so that counts of one pass suffice, and rows may be added and
    removed.

    >>> import candide as cd
    >>> visits = {"visits": [0, 0, 1, 9, 0, 2, 30, 5, 12, 44]}
    >>> model = cd.NaiveBayes({"visits": NegativeBinomial()}).fit(visits, ["new"] * 6 + ["regular"] * 4)
    >>> model.predict({"visits": [1, 25]}).tolist()
    ['new', 'regular']
    """

    name: ClassVar[str] = "negativebinomial"
    kind: ClassVar[str] = "moments"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Gamma, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0, is_integer=True)
    encoding = Identity(least=0.0)
    _has_leading_axes: ClassVar[bool] = True

    sharing: float = 10.0  # the weight in rows of the common dispersion against a class's own
    prior: Prior | str | None = field(default=Gamma())

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sharing) and self.sharing >= 0):
            what = f"sharing: {self.sharing} is not a valid weight"
            raise InputError(what, value=self.sharing, remedy="pass a number >= 0")

    def _estimate(self, tally: Moments, prior: Prior | None, how: str) -> distributions.NegativeBinomial:
        """Given the dispersion the mean over its Gamma's shape has a beta-prime posterior: (events + imaginary ones) /
        (rows + imaginary ones) is its mean, and with one event less and two dispersions more its mode.

        The predictive has the mean's, and the variance that an uncertain mean adds: where there is no dispersion it is
        the predictive of a Poisson, exactly.
        """
        dispersion = self._dispersion(tally, how)
        if how == "mle":
            refuse_cells(tally.n <= 0, "no value to take a mean of; use estimate='predictive' or the prior Gamma()")
            return _negative_binomial(tally.mean, dispersion)
        shape, rate = self._gamma_parameters(prior, tally)
        events, rows = shape + tally.n * tally.mean, rate + tally.n
        refuse_cells(rows <= 0, f"no value, and {prior!r} is improper; use Gamma()")
        if how == "map":
            return _negative_binomial(_mode_events(events) / (rows + 2 * dispersion), dispersion)
        mean = events / rows
        if how == "predictive":
            with np.errstate(over="ignore"):
                relative = divide_or_zero(np.ones_like(mean), mean) + dispersion
                dispersion = dispersion + (1.0 + dispersion) * relative / rows
        return _negative_binomial(mean, dispersion)

    def _gamma_parameters(self, prior: Prior | None, tally: Moments) -> tuple[Floats, Floats]:
        """Imaginary events and rows."""
        if isinstance(prior, Uniform):
            return np.asarray(1.0), np.asarray(0.0)
        pooled = tally.pool()
        return _resolve_gamma(prior, Gamma(rate=1.0), pooled.n * pooled.mean, pooled.n, default_rate=0.5)

    def _dispersion(self, tally: Moments, how: str) -> Floats:
        """(class, feature) by moments; except for the MLE, shrunk towards the common one."""
        rows = np.maximum(tally.n - 1.0, 0.0)
        excess, unit = tally.m2 - rows * tally.mean, tally.mean**2  # of the squares, what no Poisson has
        if how == "mle":
            return np.maximum(divide_or_zero(excess, rows * unit), 0.0)
        common = divide_or_zero(excess.sum(axis=-2, keepdims=True), (rows * unit).sum(axis=-2, keepdims=True))
        shrunk = divide_or_zero(excess + self.sharing * np.maximum(common, 0.0) * unit, (rows + self.sharing) * unit)
        return np.where(tally.mean > 0, np.maximum(shrunk, 0.0), np.maximum(common, 0.0))

    def information(self, tally: Moments) -> Floats | None:
        from candide.tally.association import count_information

        distribution = self._estimate(tally, Gamma(), "mean")
        decay = np.log1p(distribution.rate).min(initial=np.inf)  # of the tail, a count

        def log_density(x: Floats, j: slice) -> Floats:
            columns = distributions.NegativeBinomial(distribution.shape[:, j], distribution.rate[:, j])
            return columns.contributions(np.broadcast_to(x, (len(x), columns.n_features))).transpose(1, 0, 2)

        return count_information(tally.n, log_density, float(distribution.mean().max(initial=0.0)) + 40 / decay + 40)


def _negative_binomial(mean: Floats, dispersion: Floats) -> distributions.NegativeBinomial:
    """A mean of 0 is a shape of 0: then every count but 0 has probability 0."""
    mean, dispersion = np.broadcast_arrays(mean, np.clip(dispersion, _MIN_DISPERSION, _MAX_DISPERSION))
    shape = np.where(mean > 0, 1.0 / dispersion, 0.0)
    with np.errstate(over="ignore"):  # a mean may be next to nothing
        rate = np.minimum(shape / np.where(mean > 0, mean, 1.0), sys.float_info.max)
    return distributions.NegativeBinomial(shape, np.where(mean > 0, rate, 1.0))


def _resolve_gamma(
    prior: Prior | None, default: Gamma, events: Floats, exposure: Floats, default_rate: float
) -> tuple[Floats, Floats]:
    """Shape and rate of a Gamma prior; what it leaves open is such that it expects the pooled rate of events.

    ``default`` is used if it leaves both open, ``default_rate`` is the rate where the data show none.
    """
    gamma = prior if isinstance(prior, Gamma) and prior != Gamma() else default
    has_data = (events > 0) & (exposure > 0)
    pooled = np.where(has_data, events / np.where(has_data, exposure, 1.0), default_rate)
    if gamma.rate is None:
        assert gamma.shape is not None
        return np.full_like(pooled, gamma.shape), gamma.shape / pooled
    shape = gamma.rate * pooled if gamma.shape is None else np.full_like(pooled, gamma.shape)
    return shape, np.full_like(pooled, gamma.rate)


def _mode_events(events: Floats) -> Floats:
    """Events less one, of which the mode of a Gamma consists; 0 where no more than rounding is left of them.

    A rate of 0 differs from one of 1e-17: it makes all counts but 0 impossible.
    """
    return np.where(events > 1.0 + _ROUNDING, events - 1.0, 0.0)
