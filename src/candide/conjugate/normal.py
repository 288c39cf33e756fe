"""Conjugate algebra of the normal family: a mean in every cell, variances that groups of cells share.

A cell is a (class, feature). Its mean has the prior Normal(mean, variance / kappa); the variance of its group has
InverseGamma(a, b). After the data, with the pooled scatter of the group,

    kappa_n = kappa + n        a_n = a + n_group / 2        b_n = b + scatter_group / 2

The last two axes are (class, feature). Axes before them, such as one tally for each row left out, are carried along.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Floats
from candide.errors import InputError
from candide.priors import AddedVariance, Jeffreys, NormalInverseGamma, NormalInverseWishart, Prior, Unbiased, Uniform
from candide.tally import Moments
from candide.tally.base import divide_or_zero

_ULPS = 8 * np.finfo(np.float64).eps  # a spread of so few units in the last place is rounding


@dataclass(frozen=True, eq=False)
class VarianceGroups:
    """Which cells share a variance: none, all classes, or all features. A flat column shares only with itself."""

    covariance: str  # "diagonal" | "tied-diagonal" | "spherical"; "fixed" groups like "diagonal"
    flat: NDArray[np.bool_]  # (1, feature)

    def total(self, cells: Floats) -> Floats:
        """(class, feature) values summed over each cell's group, in every cell of it."""
        if self.covariance == "tied-diagonal":
            return np.broadcast_to(cells.sum(axis=-2, keepdims=True), cells.shape)
        if self.covariance == "spherical":
            return np.where(self.flat, cells, np.where(self.flat, 0.0, cells).sum(axis=-1, keepdims=True))
        return cells

    def first(self, cells: Floats) -> Floats:
        """(class, feature) the value of the first cell of each group, in every cell of it."""
        if self.covariance == "tied-diagonal":
            return np.broadcast_to(cells[..., :1, :], cells.shape)
        if self.covariance == "spherical":
            at = int(np.argmin(self.flat))  # of the columns that vary; where none does each is a group
            return np.where(self.flat, cells, cells[..., at : at + 1])
        return cells


@dataclass(frozen=True, eq=False)
class NormalPrior:
    mean: Floats  # (1, feature)
    kappa: float
    a: Floats  # (class, feature) of the cell's group, as b
    b: Floats


@dataclass(frozen=True, eq=False)
class NormalPosterior:
    mean: Floats  # (class, feature), as all
    kappa: Floats
    a: Floats
    b: Floats
    scatter: Floats  # of the cell alone, about its posterior


def has_mean_and_scale(prior: Prior | None) -> bool:
    """Whether a prior needs nothing of the columns."""
    if isinstance(prior, NormalInverseWishart):
        return prior.mean is not None and prior.scale is not None
    return isinstance(prior, NormalInverseGamma) and prior.mean is not None and prior.b is not None


def is_mle_only(prior: Prior | None) -> bool:
    return isinstance(prior, AddedVariance | Unbiased)


def refuse_mle_only(prior: Prior | None, remedy: str) -> None:
    if is_mle_only(prior):
        what = f"{prior!r} belongs to the MLE: it has no posterior and no marginal likelihood"
        raise InputError(what, value=prior, remedy=remedy)


def is_flat(tally: Moments, groups: VarianceGroups | None = None) -> NDArray[np.bool_]:
    """(class, feature) where the values of a group have no spread beyond rounding, or there are none."""
    noise = tally.n * (_ULPS * tally.mean) ** 2
    return tally.m2 <= noise if groups is None else groups.total(tally.m2) <= groups.total(noise)


def even_out(tally: Moments, prior: Prior | None, wide: Any = False) -> tuple[Moments, NDArray[np.bool_]]:
    """Give every class the pooled tally in columns that do not vary, with a spread of the mean's size; and which.

    Such a column carries no information; with one distribution for all classes it has no effect. Not needed with a
    prior that has its own mean and scale, nor for columns whose variance is made ``wide`` in another way.
    """
    pooled = tally.pool()
    flat = is_flat(pooled) & ~np.asarray(wide) & (not has_mean_and_scale(prior))
    if not flat.any():
        return tally, flat
    square = pooled.mean**2
    n = np.where(flat, np.maximum(pooled.n, 1.0), tally.n)
    mean = np.where(flat, pooled.mean, tally.mean)
    return Moments(n, mean, np.where(flat, n * np.where(square > 0, square, 1.0), tally.m2)), flat


def default_variance(tally: Moments, pooled: Moments) -> Floats:
    """(1, feature) the variance within classes, to which that of all rows adds one more row.

    So it is never 0 where values differ: not where each class has a single value, nor where each has but one row.
    """
    within, classes = tally.m2.sum(axis=-2, keepdims=True), (tally.n > 0).sum(axis=-2, keepdims=True)
    return (within + divide_or_zero(pooled.m2, pooled.n)) / (np.maximum(pooled.n - classes, 0.0) + 1.0)


def normal_prior(prior: Prior | None, evened: Moments, groups: VarianceGroups) -> NormalPrior:
    """The prior in numbers; what it leaves open comes from the pooled tally, so that it has the data's units."""
    pooled, shape = evened.pool(), evened.n.shape
    means = groups.total(np.ones(shape))  # how many means share a variance
    if isinstance(prior, Jeffreys | Uniform):
        # 1 / variance, and flat, in all means and the variance of a group.
        a = -means / 2 if isinstance(prior, Jeffreys) else -1.0 - means / 2
        return NormalPrior(pooled.mean, 0.0, a, np.zeros(shape))
    nig = prior if isinstance(prior, NormalInverseGamma) else NormalInverseGamma()
    mean = pooled.mean if nig.mean is None else np.full_like(pooled.mean, nig.mean)
    usual = groups.total(np.broadcast_to(default_variance(evened, pooled), shape)) / means
    b = (nig.a - 1.0) * usual if nig.b is None else np.full(shape, nig.b)
    return NormalPrior(mean, nig.kappa, np.full(shape, nig.a), b)


def posterior(tally: Moments, prior: NormalPrior, groups: VarianceGroups) -> NormalPosterior:
    """The posterior of a prior after a tally."""
    kappa = prior.kappa + tally.n
    gap = np.where(tally.n > 0, tally.mean - prior.mean, 0.0)
    mean = prior.mean + gap * divide_or_zero(tally.n, kappa)
    scatter = tally.m2 + gap * gap * divide_or_zero(prior.kappa * tally.n, kappa)
    a, b = prior.a + groups.total(tally.n) / 2, prior.b + groups.total(scatter) / 2
    return NormalPosterior(mean, kappa, a, b, scatter)


def normal_evidence(tally: Moments, prior: NormalPrior, groups: VarianceGroups, variance: float | None) -> Floats:
    """(class, feature) log marginal likelihood, with a known ``variance`` where one is given.

    The part of an unknown variance that cells share is divided by the weights n.
    """
    after = posterior(tally, prior, groups)
    # What is left of the mean once it is integrated out.
    of_mean = -0.5 * tally.n * np.log(2 * np.pi) - 0.5 * np.log1p(tally.n / prior.kappa)
    if variance is not None:
        return of_mean - tally.n / 2 * np.log(variance) - after.scatter / (2 * variance)
    n = groups.total(tally.n)
    shrunk = prior.a * np.log1p((after.b - prior.b) / prior.b)
    of_variance = numerics.log_rising_factorial(prior.a, n / 2) - shrunk - n / 2 * np.log(after.b)
    return of_mean + of_variance * divide_or_zero(tally.n, n)
