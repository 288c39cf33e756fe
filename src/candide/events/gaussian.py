"""Gaussian: a mean in each class and column, and a variance per cell, shared across classes or features, or fixed.

The predictive is Student's t: with few rows its tails say how little is known, with many it is the normal.

>>> tally = Moments(np.array([[10.0]]), np.array([[0.0]]), np.array([[40.0]]))
>>> [Gaussian().estimate(tally, "uniform", how).variance.item() for how in ("mle", "map")]  # flat prior: MAP is MLE
[4.0, 4.0]
>>> type(Gaussian().estimate(tally)).__name__
'StudentT'
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide.distributions import Distribution, Normal, StudentT
from candide.errors import InputError, unknown
from candide.events.base import EventModel, refuse, refuse_improper
from candide.events.normal_conjugate import (
    Groups,
    even_out,
    is_flat,
    known_variance_evidence,
    normal_evidence,
    normal_prior,
    posterior,
)
from candide.priors import AddedVariance, Jeffreys, NormalInverseGamma, Prior, Uniform
from candide.tally import Moments
from candide.tally.base import Floats, ratio

VARIANCES = ("class", "shared", "features", "fixed")
_REMEDY = "use estimate='predictive' or a proper prior such as NormalInverseGamma()"


@dataclass(frozen=True)
class Gaussian(EventModel):
    """Normal values. A column that does not vary at all cannot tell classes apart, and is the same for all of them."""

    name: ClassVar[str] = "gaussian"
    kind: ClassVar[str] = "moments"
    accepts: ClassVar[tuple[type[Prior], ...]] = (NormalInverseGamma, Jeffreys, Uniform, AddedVariance)

    variance: str = "class"  # a variance of its own per "class" and column; "shared" by classes; by "features"; "fixed"
    fixed: float = 1.0  # the variance when "fixed"
    prior: Prior | str | None = field(default=NormalInverseGamma())

    def __post_init__(self) -> None:
        if self.variance not in VARIANCES:
            raise unknown("variance", self.variance, VARIANCES)
        if not (np.isfinite(self.fixed) and self.fixed > 0):
            raise InputError(f"{type(self).__name__}: fixed is a variance and must be > 0 and finite, got {self.fixed}")

    def _estimate(self, tally: Moments, prior: Prior | None, how: str) -> Distribution:
        """A zero variance is a point mass of infinite density: an error under MLE, where no prior widens it."""
        if how == "mle":
            return self._most_likely(tally, prior)
        if isinstance(prior, AddedVariance):
            raise InputError(f"{prior!r} adds to the variance of the MLE; pass estimate='mle'")
        evened, flat = even_out(tally, prior)
        groups = Groups(self.variance, flat)
        after = posterior(evened, normal_prior(prior, evened, groups), groups)
        refuse(after.kappa <= 0, f"no value to take a mean of, and {prior!r} is improper; {_REMEDY}")
        wider = 1.0 + 1.0 / after.kappa if how == "predictive" else np.ones_like(after.kappa)
        if self.variance == "fixed":
            return Normal(after.mean, self.fixed * wider)
        # The joint mode: each of the group's means takes half a count, as does the variance's own exponent.
        below = {"map": after.a + 1 + groups.total(np.ones_like(after.a)) / 2, "mean": after.a - 1}.get(how, after.a)
        refuse((below <= 0) | (after.b <= 0), f"too few or no different values for {prior!r}; {_REMEDY}")
        if how == "predictive":
            return StudentT(2 * after.a, after.mean, np.sqrt(after.b / after.a * wider))
        return Normal(after.mean, after.b / below)

    def _most_likely(self, tally: Moments, prior: Prior | None) -> Normal:
        pooled = tally.pool()
        fraction = prior.fraction if isinstance(prior, AddedVariance) else 0.0
        added = fraction * ratio(pooled.m2, pooled.n).max(initial=0.0)
        evened, flat = even_out(tally, None) if added == 0 else (tally, np.zeros(tally.n.shape[1], bool))
        groups = Groups(self.variance, flat)
        if added == 0:
            refuse(evened.n <= 0, f"no value to take a mean of; {_REMEDY}")
            point = is_flat(evened, groups) & (self.variance != "fixed")
            refuse(point, f"all values are the same, so the MLE is a point mass; {_REMEDY}")
        if self.variance == "fixed":
            return Normal(evened.mean, np.full_like(evened.mean, self.fixed + added))
        return Normal(evened.mean, ratio(groups.total(evened.m2), groups.total(evened.n)) + added)

    def _evidence(self, tally: Moments, prior: Prior | None) -> Floats:
        """Where groups share a variance its part is shared out by weight: the sum over the group is exact."""
        if isinstance(prior, AddedVariance):
            raise InputError(f"{prior!r} is no density, so there is no marginal likelihood; use NormalInverseGamma()")
        evened, flat = even_out(tally, prior)
        groups = Groups(self.variance, flat)
        values = normal_prior(prior, evened, groups)
        refuse_improper(values.improper, prior)
        if self.variance == "fixed":
            return known_variance_evidence(tally, values, groups, self.fixed)
        return normal_evidence(tally, values, groups)
