"""Columns modelled together: a mean vector in each class, and a covariance matrix of its own or tied across classes.

A column that does not vary in any class carries no information and has no covariance: it has the same distribution of
its own in all classes, and takes no part in the rest.

The covariance has the prior InverseWishart(df, scale), a mean given it Normal(mean, covariance / kappa). After data,

    kappa_n = kappa + n        df_n = df + n        scale_n = scale + scatter + kappa n / kappa_n * gap gap'

with the gap between the mean of the data and the prior's. Under InverseWishart(df, scale) of p columns the variance of
one of them has InverseGamma((df - p + 1) / 2, scale_jj / 2): so a NormalInverseGamma prior means the same for a column
whether columns are modelled together or apart, and for one column both are the same model.

Axes before (class, feature), such as one tally for each row left out, are carried along.

>>> tally = CoMoments(np.array([[9.0]]), np.zeros((1, 2)), np.array([[[9.0, 4.5], [4.5, 9.0]]]))
>>> estimate(tally, None, "mle", tied=False).covariance[0].tolist()
[[1.0, 0.5], [0.5, 1.0]]
>>> estimate(tally, None, "predictive", tied=False).df.tolist()
[12.0]
>>> one = CoMoments(np.array([[4.0]]), np.array([[2.0]]), np.array([[[6.0]]]))
>>> after = wishart_posterior(one, one.scatter, WishartPrior(np.zeros(1), 1.0, 2.0, np.array([2.0])), tied=False)
>>> after.kappa.item(), after.mean.item(), after.df.item(), after.scale.item()
(5.0, 1.6, 6.0, 11.2)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.conjugate.checks import refuse_cells, refuse_improper
from candide.conjugate.leave_one_out import own_class_without_row, replace_own_class
from candide.conjugate.normal import default_variance, is_flat
from candide.conjugate.shrinkage import shrink_scatter
from candide.data.blocks import Codes, Floats
from candide.distributions import Distribution, MultivariateNormal, MultivariateT
from candide.distributions.elliptical import normal_conditionals, t_conditionals
from candide.distributions.mahalanobis import SingularError
from candide.errors import CellError, InputError
from candide.priors import AddedVariance, Jeffreys, NormalInverseGamma, NormalInverseWishart, Prior, Unbiased, Uniform
from candide.tally import CoMoments, Moments
from candide.tally.base import divide_or_zero

_REMEDY = "use estimate='predictive', shrinkage='oas' (or a number such as 0.1), or fewer columns"


@dataclass(frozen=True, eq=False)
class ColumnSplit:
    """A tally's columns that vary, and those that do not, with a distribution for these."""

    tally: CoMoments  # of the columns that vary
    moments: Moments  # of the same columns, each by itself
    is_constant: NDArray[np.bool_]  # (feature) of all columns
    mean: Floats  # (feature) of all rows, all columns
    variance: Floats  # (feature) of the columns alone; 0 elsewhere

    @classmethod
    def from_tally(cls, tally: CoMoments, prior: Prior | None) -> "ColumnSplit":
        moments = tally.to_moments()
        pooled = moments.pool()
        alone = is_flat(pooled)[0]
        if _has_mean_and_scale(prior):
            alone = np.zeros_like(alone)
        square = pooled.mean[0] ** 2
        variance = np.where(alone, np.where(square > 0, square, 1.0), 0.0)
        mean, varying = pooled.mean[0], np.flatnonzero(~alone)
        if alone.any():
            tally, moments = tally.select_features(varying), moments.select_features(varying)
        return cls(tally, moments, alone, mean, variance)

    def expand_mean(self, mean: Floats) -> Floats:
        """(class, feature) of all columns, from that of the columns that vary."""
        if not self.is_constant.any():
            return mean
        out = np.tile(self.mean, (len(mean), 1))
        out[:, ~self.is_constant] = mean
        return out

    def expand_matrix(self, joint: Floats) -> Floats:
        """(group, feature, feature) of all columns."""
        if not self.is_constant.any():
            return joint
        out = np.tile(np.diag(self.variance), (len(joint), 1, 1))
        varying = np.flatnonzero(~self.is_constant)
        out[:, varying[:, None], varying] = joint
        return out


def _has_mean_and_scale(prior: Prior | None) -> bool:
    """Whether a prior has a mean and a scale of its own, and so needs nothing of the columns."""
    if isinstance(prior, NormalInverseWishart):
        return prior.mean is not None and prior.scale is not None
    return isinstance(prior, NormalInverseGamma) and prior.mean is not None and prior.b is not None


@dataclass(frozen=True, eq=False)
class CovarianceFit:
    """What is estimated of the columns that vary: a normal, or where there are degrees of freedom a t."""

    mean: Floats  # (class, feature)
    matrix: Floats  # (class or 1, feature, feature)
    df: Floats | None = None  # (class)
    factor: Floats | None = None  # (class) by which the matrix is multiplied

    def to_distribution(self, split: ColumnSplit) -> MultivariateNormal | MultivariateT:
        mean, matrix = split.expand_mean(self.mean), split.expand_matrix(self.matrix)
        if self.df is None:
            return MultivariateNormal(mean, matrix, split.is_constant)
        return MultivariateT(self.df, mean, matrix, self.factor, split.is_constant)


def estimate(
    tally: CoMoments, prior: Prior | None, how: str, *, tied: bool, shrinkage: float | str | None = None
) -> Distribution:
    """The distribution of columns modelled together. Shrinkage changes the scatter; the prior then comes to that."""
    split = ColumnSplit.from_tally(tally, prior)
    fit = _fit(split.tally, shrink_scatter(split.tally, shrinkage), split.moments, prior, how, tied)
    distribution = fit.to_distribution(split)
    try:
        distribution.compute_roots()
    except SingularError as error:  # a point mass of infinite density in some direction, where no prior widens it
        why = "its values are the same, or follow from those of other columns, so the covariance is singular"
        raise CellError(error.group, error.feature, f"{why}; {_REMEDY}") from None
    return distribution


def _fit(
    tally: CoMoments, scatter: Floats, moments: Moments, prior: Prior | None, how: str, tied: bool
) -> CovarianceFit:
    """Of a tally, or of one for each row: axes before those of classes and features are carried along."""
    return (_most_likely if how == "mle" else _bayes)(tally, scatter, moments, prior, how, tied)


def _most_likely(
    tally: CoMoments, scatter: Floats, moments: Moments, prior: Prior | None, how: str, tied: bool
) -> CovarianceFit:
    n = tally.weight[..., 0]
    refuse_cells(tally.weight <= 0, f"no row to take a mean of; {_REMEDY}")
    lost = 1.0 if isinstance(prior, Unbiased) else 0.0  # a row for each mean
    rows = n - lost
    if tied:
        rows, scatter = rows.sum(axis=-1, keepdims=True), scatter.sum(axis=-3, keepdims=True)
    refuse_cells(rows[..., None] <= 0, f"too few rows for an unbiased covariance; {_REMEDY}")
    covariance = scatter / rows[..., None, None]
    if isinstance(prior, AddedVariance):
        pooled = moments.pool()
        added = prior.fraction * divide_or_zero(pooled.m2, pooled.n).max(axis=-1, initial=0.0)
        np.einsum("...jj->...j", covariance)[...] += added[..., None]
    return CovarianceFit(tally.mean, covariance)


def _bayes(
    tally: CoMoments, scatter: Floats, moments: Moments, prior: Prior | None, how: str, tied: bool
) -> CovarianceFit:
    _refuse_mle_only(prior, "pass estimate='mle'")
    k, p = tally.mean.shape[-2:]
    means = k if tied else 1
    after = wishart_posterior(tally, scatter, wishart_prior(prior, moments, means), tied=tied)
    refuse_cells(after.kappa[..., None] <= 0, f"no row to take a mean of, and {prior!r} is improper; {_REMEDY}")
    # The joint mode: each of the group's means takes a count, as does the covariance's own exponent.
    below = {"map": after.df + p + 1 + means, "mean": after.df - p - 1}.get(how, after.df - p + 1)
    refuse_cells(below[..., None] <= 0, f"too few rows for {prior!r}; {_REMEDY}")
    matrix = after.scale / below[..., None, None]
    if how != "predictive":
        return CovarianceFit(after.mean, matrix)
    return CovarianceFit(after.mean, matrix, np.broadcast_to(below, after.kappa.shape).copy(), 1.0 + 1.0 / after.kappa)


def evidence(tally: CoMoments, prior: Prior | None, column_evidence: Floats, *, tied: bool) -> Floats:
    """(class, feature) log marginal likelihood of the rows; ``column_evidence`` is that of each column by itself.

    Shrinkage has no part in it: the evidence is that of the prior.
    """
    _refuse_mle_only(prior, "use NormalInverseWishart()")
    split = ColumnSplit.from_tally(tally, prior)
    before = wishart_prior(prior, split.moments, len(tally.mean) if tied else 1)
    refuse_improper(before.improper, prior)
    out = column_evidence.copy()
    out[:, ~split.is_constant] = wishart_evidence(split.tally, before, tied=tied)
    return out


def _refuse_mle_only(prior: Prior | None, remedy: str) -> None:
    if isinstance(prior, AddedVariance | Unbiased):
        what = f"{prior!r} belongs to the MLE, and has no posterior and no marginal likelihood"
        raise InputError(what, value=prior, remedy=remedy)


def held_out_contributions(
    tally: CoMoments,
    rows: CoMoments,
    x: Floats,
    y: Codes,
    prior: Prior | None,
    how: str,
    *,
    tied: bool,
    shrinkage: float | str | None = None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """(row, class, feature) contributions of complete rows, each under the estimate without it, and where they hold.

    ``rows`` is the tally of each row as a class of its own. They do not hold where a row is all that makes a column
    vary, or the rest is singular: such rows must be fitted one by one.
    """
    split, own = ColumnSplit.from_tally(tally, prior), own_class_without_row(tally, rows, y)
    moments = Moments(*(replace_own_class(getattr(tally, a), getattr(own, a), y) for a in ("n", "mean", "m2")))
    pooled = moments.pool()
    alone, varying = split.is_constant, np.flatnonzero(~split.is_constant)
    usable = np.ones(len(x), bool) if _has_mean_and_scale(prior) else (is_flat(pooled)[:, 0] == alone).all(axis=1)
    scatters = shrink_scatter(split.tally, shrinkage), shrink_scatter(own.select_features(varying), shrinkage)
    weight, scatter = replace_own_class(tally.weight, own.weight, y), replace_own_class(*scatters, y)
    left = CoMoments(weight, moments.mean[..., varying], scatter)
    of_varying = Moments(*(a[..., varying] for a in (moments.n, moments.mean, moments.m2)))
    terms, regular = _contributions(_fit(left, scatter, of_varying, prior, how, tied), x[:, varying])
    out = np.empty((len(x), *tally.mean.shape))
    out[:, :, varying] = terms
    mean = pooled.mean[..., alone]
    variance = np.where(mean != 0, mean * mean, 1.0)
    out[:, :, alone] = -0.5 * (np.log(2 * np.pi * variance) + (x[:, None, alone] - mean) ** 2 / variance)
    return out, usable & regular


def _contributions(fit: CovarianceFit, x: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(row, class, feature) what a column adds given those before it, of one fit a row; and which rows have a root."""
    p = x.shape[1]
    gap, good = x[:, None, :] - fit.mean, np.ones(len(x), bool)
    with np.errstate(all="ignore"):
        deviation = np.sqrt(np.einsum("...jj->...j", fit.matrix))
        unit = fit.matrix / (deviation[..., :, None] * deviation[..., None, :])  # a column's unit decides nothing
        good &= np.isfinite(unit).all(axis=(1, 2, 3))
        unit[~good] = np.eye(p)
        try:
            root = np.linalg.cholesky(unit)
        except np.linalg.LinAlgError:
            return np.zeros_like(gap), np.zeros(len(x), bool)
        pivots = np.einsum("...jj->...j", root)
        good &= (pivots**2 > 10 * p * np.finfo(np.float64).eps).all(axis=(1, 2))
        size = 1.0 if fit.factor is None else np.sqrt(fit.factor)[..., None]
        z = gap / (deviation * size)
        # Of a matrix that all classes share one solution serves them all.
        z = np.swapaxes(z, 1, 2)[:, None] if root.shape[1] == 1 else z[..., None]
        z = np.linalg.solve(root, z)
        z = np.swapaxes(z[:, 0], 1, 2) if root.shape[1] == 1 else z[..., 0]
        out = normal_conditionals(z) if fit.df is None else t_conditionals(z, fit.df[..., None])
        return out - np.log(pivots * deviation * size), good


# The inverse Wishart -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WishartPrior:
    mean: Floats  # (feature)
    kappa: float
    df: float
    scale: Floats  # (feature) the diagonal of the scale matrix

    @property
    def improper(self) -> bool:
        return self.kappa <= 0 or self.df <= self.mean.shape[-1] - 1 or bool((self.scale <= 0).any())


@dataclass(frozen=True, eq=False)
class WishartPosterior:
    mean: Floats  # (class, feature)
    kappa: Floats  # (class)
    df: Floats  # (group): a group is a class, or all of them where the covariance is tied
    scale: Floats  # (group, feature, feature)


def wishart_prior(prior: Prior | None, moments: Moments, n_means: int) -> WishartPrior:
    """The prior in numbers; what it leaves open comes from the moments of all classes, so that it has the data's units.

    ``n_means`` is how many classes share a covariance.
    """
    pooled = moments.pool()
    p, centre = pooled.mean.shape[-1], pooled.mean[..., 0, :]
    if isinstance(prior, Jeffreys | Uniform):
        # |covariance|^-(p + 1) / 2, and flat, in all means and the covariance of a group.
        df = -n_means if isinstance(prior, Jeffreys) else -n_means - p - 1
        return WishartPrior(centre, 0.0, float(df), np.zeros(p))
    usual = default_variance(moments, pooled)[..., 0, :]
    if isinstance(prior, NormalInverseWishart):
        df = p + 2.0 if prior.df is None else float(prior.df)
        if prior.scale is None and df <= p + 1:
            what = f"{prior!r}: df must be > {p + 1} for {p} columns where scale is None"
            raise InputError(what, value=df, remedy=f"pass df={p + 2}")
        scale = (df - p - 1) * usual if prior.scale is None else _expand_to_columns(prior.scale, p, "scale")
        mean = centre if prior.mean is None else _expand_to_columns(prior.mean, p, "mean")
        return WishartPrior(mean, prior.kappa, df, scale)
    known = prior if isinstance(prior, NormalInverseGamma) else NormalInverseGamma()
    mean = centre if known.mean is None else np.full(p, known.mean)
    b = (known.a - 1.0) * usual if known.b is None else np.full(p, known.b)
    return WishartPrior(mean, known.kappa, p - 1 + 2 * known.a, 2 * b)


def _expand_to_columns(value: object, p: int, name: str) -> Floats:
    values = np.asarray(value, np.float64)
    if values.ndim and values.shape != (p,):
        what = f"NormalInverseWishart: {name} has {values.size} values for {p} columns that vary"
        raise InputError(what, value=tuple(values.tolist()), remedy="pass one number, or one a column")
    return np.broadcast_to(values, p)


def wishart_posterior(tally: CoMoments, scatter: Floats, prior: WishartPrior, *, tied: bool) -> WishartPosterior:
    """The posterior; ``scatter`` is the tally's, perhaps shrunk."""
    n = tally.weight[..., 0]
    kappa = prior.kappa + n
    before = prior.mean[..., None, :]
    gap = np.where(tally.weight > 0, tally.mean - before, 0.0)
    mean = before + gap * divide_or_zero(n, kappa)[..., None]
    pulled = gap * divide_or_zero(prior.kappa * n, kappa)[..., None]
    if tied:
        df = prior.df + n.sum(axis=-1, keepdims=True)
        scale = (scatter.sum(axis=-3) + np.swapaxes(pulled, -1, -2) @ gap)[..., None, :, :]
    else:
        df, scale = prior.df + n, scatter + pulled[..., :, None] * gap[..., None, :]
    np.einsum("...jj->...j", scale)[...] += prior.scale[..., None, :]
    return WishartPosterior(mean, kappa, df, scale)


def wishart_evidence(tally: CoMoments, prior: WishartPrior, *, tied: bool) -> Floats:
    """(class, feature) log marginal likelihood of each column given those before it; the sum is that of the group.

    The first j columns alone have the same model with df - (p - j): so the evidence of j columns less that of j - 1 is
    what column j adds. Where the covariance is tied its part is shared out by weight.
    """
    p, n = tally.mean.shape[1], tally.weight[:, 0]
    after = wishart_posterior(tally, tally.scatter, prior, tied=tied)
    total = np.array([n.sum()]) if tied else n  # (group)
    df = prior.df - p + np.arange(1, p + 1)  # of the first j columns
    root = np.linalg.cholesky(after.scale)
    pivots = 2 * np.log(np.einsum("gjj->gj", root)), np.log(prior.scale)
    before = [np.cumsum(pivot, axis=-1) - pivot for pivot in pivots]
    halves = np.broadcast_arrays(df / 2, total[:, None] / 2)
    spread = (
        numerics.log_rising_factorial(*halves)
        + 0.5 * (df * pivots[1] + before[1])
        - 0.5 * ((df + total[:, None]) * pivots[0] + before[0])
    )
    share = divide_or_zero(n, np.full_like(n, n.sum()))[:, None] if tied else 1.0
    centre = -0.5 * n * np.log(np.pi) - 0.5 * np.log1p(n / prior.kappa)
    return centre[:, None] + spread * share
