"""NegativeBinomial: counts that vary more than a Poisson's, with a mean and a dispersion in each class and column.

The variance is mean + dispersion * mean**2, so a dispersion of 0 is Poisson. It is a Poisson
whose rate varies from row to row as a Gamma of shape 1 / dispersion.

The mean has a conjugate prior with the weight of some rows that show the pooled mean. The dispersion is that of the
moments (Anscombe, 1950), which is noisy in small classes: what goes beyond Poisson in a class is averaged with what
goes beyond it in all classes together, the latter with the weight of ``sharing`` rows, ten by default. That is the
weighted compromise between own and common dispersions of Robinson and Smyth (2007) and of edgeR's ``prior.df``, done on
moments instead of likelihoods: so that counts of one pass suffice, and rows may be added and taken away.

>>> tally = Moments(n=np.array([[40.0]]), mean=np.array([[5.0]]), m2=np.array([[585.0]]))  # a variance of 15
>>> distribution = NegativeBinomial().estimate(tally, how="mle")
>>> distribution.mean().item(), round(float(1 / distribution.shape.item()), 3)  # (15 - 5) / 5**2
(5.0, 0.4)
"""

import sys
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions
from candide.conjugate.checks import refuse_cells
from candide.conjugate.gamma import gamma_parameters, mode_events
from candide.data.blocks import Floats
from candide.encoding import Identity
from candide.errors import InputError
from candide.events.base import EventModel, Support
from candide.priors import Gamma, Prior, Uniform
from candide.tally import Moments
from candide.tally.base import divide_or_zero

_MOST = 1e300  # a dispersion above it would make a shape of 0, which means that every count is 0
_MIN_DISPERSION = 1e-10  # a smaller dispersion is none: Poisson to the last digits


@dataclass(frozen=True)
class NegativeBinomial(EventModel):
    """Over-dispersed counts. By default the prior of the mean has the weight of one row that shows the pooled mean.

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
            raise InputError(
                f"sharing: {self.sharing} is not a valid weight", value=self.sharing, remedy="pass a number >= 0"
            )

    def _estimate(self, tally: Moments, prior: Prior | None, how: str) -> distributions.NegativeBinomial:
        """Given the dispersion the mean over its Gamma's shape has a beta-prime posterior: (events + imaginary ones) /
        (rows + imaginary ones) is its mean, and with one event less and two dispersions more its mode.

        The predictive has the mean's, and the variance that an uncertain mean adds: where there is no dispersion it is
        the predictive of a Poisson, exactly.
        """
        dispersion = self._dispersion(tally, how)
        if how == "mle":
            refuse_cells(tally.n <= 0, "no value to take a mean of; use estimate='predictive' or the prior Gamma()")
            return _distribution(tally.mean, dispersion)
        shape, rate = _gamma_parameters(prior, tally)
        events, rows = shape + tally.n * tally.mean, rate + tally.n
        refuse_cells(rows <= 0, f"no value, and {prior!r} is improper; use Gamma()")
        if how == "map":
            return _distribution(mode_events(events) / (rows + 2 * dispersion), dispersion)
        mean = events / rows
        if how == "predictive":
            with np.errstate(over="ignore"):
                dispersion = (
                    dispersion + (1.0 + dispersion) * (divide_or_zero(np.ones_like(mean), mean) + dispersion) / rows
                )
        return _distribution(mean, dispersion)

    def _dispersion(self, tally: Moments, how: str) -> Floats:
        """(class, feature) by moments; but for the MLE the classes share what they show."""
        rows = np.maximum(tally.n - 1.0, 0.0)
        beyond, unit = tally.m2 - rows * tally.mean, tally.mean**2  # of the squares, what no Poisson has
        if how == "mle":
            return np.maximum(divide_or_zero(beyond, rows * unit), 0.0)
        common = divide_or_zero(beyond.sum(axis=-2, keepdims=True), (rows * unit).sum(axis=-2, keepdims=True))
        own = divide_or_zero(beyond + self.sharing * np.maximum(common, 0.0) * unit, (rows + self.sharing) * unit)
        return np.where(tally.mean > 0, np.maximum(own, 0.0), np.maximum(common, 0.0))

    def information(self, tally: Moments) -> Floats | None:
        from candide.tally.association import count_information

        distribution = self._estimate(tally, Gamma(), "mean")
        decay = np.log1p(distribution.rate).min(initial=np.inf)  # of the tail, a count

        def log_density(x: Floats, j: slice) -> Floats:
            some = distributions.NegativeBinomial(distribution.shape[:, j], distribution.rate[:, j])
            return some.contributions(np.broadcast_to(x, (len(x), some.n_features))).transpose(1, 0, 2)

        return count_information(tally.n, log_density, float(distribution.mean().max(initial=0.0)) + 40 / decay + 40)


def _gamma_parameters(prior: Prior | None, tally: Moments) -> tuple[Floats, Floats]:
    """Imaginary events and rows."""
    if isinstance(prior, Uniform):
        return np.asarray(1.0), np.asarray(0.0)
    pooled = tally.pool()
    return gamma_parameters(prior, Gamma(rate=1.0), pooled.n * pooled.mean, pooled.n, default_rate=0.5)


def _distribution(mean: Floats, dispersion: Floats) -> distributions.NegativeBinomial:
    """A mean of 0 is a shape of 0: then every count but 0 has probability 0."""
    mean, dispersion = np.broadcast_arrays(mean, np.clip(dispersion, _MIN_DISPERSION, _MOST))
    shape = np.where(mean > 0, 1.0 / dispersion, 0.0)
    with np.errstate(over="ignore"):  # a mean may be next to nothing
        rate = np.minimum(shape / np.where(mean > 0, mean, 1.0), sys.float_info.max)
    return distributions.NegativeBinomial(shape, np.where(mean > 0, rate, 1.0))
