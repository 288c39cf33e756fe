"""Columns modelled together: a mean vector in each class, and a covariance matrix of its own or tied across classes.

A column that does not vary in any class carries no information and has no covariance: it has the same distribution of
its own in all classes, and takes no part in the rest.

The covariance has the prior InverseWishart(df, scale), a mean given it Normal(mean, covariance / kappa). After data,

    kappa_n = kappa + n        df_n = df + n        scale_n = scale + scatter + kappa n / kappa_n * gap gap'

with the gap between the mean of the data and the prior's. Under InverseWishart(df, scale) of p columns the variance of
one of them has InverseGamma((df - p + 1) / 2, scale_jj / 2): so a NormalInverseGamma prior means the same for a column
whether columns are modelled together or apart, and for one column both are the same model.

Axes before (class, feature), such as one tally for each row left out, are carried along.

Shrinkage moves a covariance towards its mean variance times the identity, (1 - s) S + s m I. The share s is a number,
or estimated: Ledoit and Wolf (2004) minimise the expected loss, from the fourth moments; Chen, Wiesel, Eldar and Hero
(2010, "oas") do so for normal data, from S alone. A number and "oas" apply in the units of the columns, which should be
the same; "ledoit-wolf" applies to standardised columns. All three are as in scikit-learn's discriminant analysis.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import numerics, priors
from candide.conjugate.normal import default_variance, has_mean_and_scale, is_flat, refuse_mle_only
from candide.data.blocks import Codes, Floats
from candide.distributions import Distribution, MultivariateNormal, MultivariateT
from candide.distributions.elliptical import normal_conditionals, t_conditionals
from candide.distributions.mahalanobis import SingularError
from candide.errors import CellError, InputError, unknown_name_error
from candide.priors import Prior
from candide.tally import CoMoments, Moments
from candide.tally.base import divide_or_zero, refuse_cells, replace_own_class

SHRINKAGE_METHODS = ("ledoit-wolf", "oas")
_REMEDY = "use estimate='predictive', shrinkage='oas' (or a number such as 0.1), or fewer columns"


@dataclass(frozen=True, eq=False)
class ColumnSplit:
    """A tally's columns that vary, and those that do not, with a distribution for these."""

    tally: CoMoments  # of the columns that vary
    moments: Moments  # of the same columns, each by itself
    is_constant: NDArray[np.bool_]  # (feature) of all columns
    mean: Floats  # (feature) of all rows, all columns
    variance: Floats  # (feature) of the columns that do not vary; 0 elsewhere

    @classmethod
    def from_tally(cls, tally: CoMoments, prior: Prior | None) -> "ColumnSplit":
        moments = tally.to_moments()
        pooled = moments.pool()
        is_constant = is_flat(pooled)[0] & (not has_mean_and_scale(prior))
        square = pooled.mean[0] ** 2
        variance = np.where(is_constant, np.where(square > 0, square, 1.0), 0.0)
        if is_constant.any():
            varying = np.flatnonzero(~is_constant)
            tally, moments = tally.select_features(varying), moments.select_features(varying)
        return cls(tally, moments, is_constant, pooled.mean[0], variance)


@dataclass(frozen=True, eq=False)
class CovarianceFit:
    """What is estimated of the columns that vary: a normal, or where there are degrees of freedom a t."""

    mean: Floats  # (class, feature)
    matrix: Floats  # (class or 1, feature, feature)
    df: Floats | None = None  # (class)
    factor: Floats | None = None  # (class) by which the matrix is multiplied


def estimate(
    tally: CoMoments, prior: Prior | None, how: str, *, tied: bool, shrinkage: float | str | None = None
) -> Distribution:
    """The distribution of columns modelled together. Shrinkage changes the scatter; the prior then comes to that."""
    split = ColumnSplit.from_tally(tally, prior)
    fit = _fit(split.tally, shrink_scatter(split.tally, shrinkage), split.moments, prior, how, tied)
    mean, matrix = fit.mean, fit.matrix
    if split.is_constant.any():
        varying = np.flatnonzero(~split.is_constant)
        mean, matrix = np.tile(split.mean, (len(mean), 1)), np.tile(np.diag(split.variance), (len(matrix), 1, 1))
        mean[:, varying], matrix[:, varying[:, None], varying] = fit.mean, fit.matrix
    distribution: MultivariateNormal | MultivariateT
    if fit.df is None:
        distribution = MultivariateNormal(mean, matrix, split.is_constant)
    else:
        distribution = MultivariateT(fit.df, mean, matrix, fit.factor, split.is_constant)
    try:
        distribution.roots  # noqa: B018
    except SingularError as error:  # a point mass of infinite density in some direction, where no prior widens it
        why = "its values are the same, or follow from those of other columns, so the covariance is singular"
        raise CellError(error.group, error.feature, f"{why}; {_REMEDY}") from None
    return distribution


def _fit(
    tally: CoMoments, scatter: Floats, moments: Moments, prior: Prior | None, how: str, tied: bool
) -> CovarianceFit:
    if how == "mle":
        refuse_cells(tally.weight <= 0, f"no row to take a mean of; {_REMEDY}")
        rows = tally.weight[..., 0] - (1.0 if isinstance(prior, priors.Unbiased) else 0.0)  # a row less for each mean
        if tied:
            rows, scatter = rows.sum(axis=-1, keepdims=True), scatter.sum(axis=-3, keepdims=True)
        refuse_cells(rows[..., None] <= 0, f"too few rows for an unbiased covariance; {_REMEDY}")
        matrix = scatter / rows[..., None, None]
        if isinstance(prior, priors.AddedVariance):
            pooled = moments.pool()
            added = prior.fraction * divide_or_zero(pooled.m2, pooled.n).max(axis=-1, initial=0.0)
            np.einsum("...jj->...j", matrix)[...] += added[..., None]
        return CovarianceFit(tally.mean, matrix)
    refuse_mle_only(prior, "pass estimate='mle'")
    k, p = tally.mean.shape[-2:]
    n_means = k if tied else 1
    after = _wishart_posterior(tally, scatter, _wishart_prior(prior, moments, n_means), tied=tied)
    refuse_cells(after.kappa[..., None] <= 0, f"no row to take a mean of, and {prior!r} is improper; {_REMEDY}")
    # The joint mode: each of the group's means takes a count, as does the covariance's own exponent.
    below = {"map": after.df + p + 1 + n_means, "mean": after.df - p - 1}.get(how, after.df - p + 1)
    refuse_cells(below[..., None] <= 0, f"too few rows for {prior!r}; {_REMEDY}")
    matrix = after.scale / below[..., None, None]
    if how != "predictive":
        return CovarianceFit(after.mean, matrix)
    return CovarianceFit(after.mean, matrix, np.broadcast_to(below, after.kappa.shape).copy(), 1.0 + 1.0 / after.kappa)


def evidence(tally: CoMoments, prior: Prior | None, column_evidence: Floats, *, tied: bool) -> Floats:
    """(class, feature) log marginal likelihood of the rows; ``column_evidence`` is that of each column by itself.

    Shrinkage has no part in it: the evidence is that of the prior.
    """
    refuse_mle_only(prior, "use NormalInverseWishart()")
    split = ColumnSplit.from_tally(tally, prior)
    before = _wishart_prior(prior, split.moments, len(tally.mean) if tied else 1)
    is_improper = before.kappa <= 0 or before.df <= before.mean.shape[-1] - 1 or bool((before.scale <= 0).any())
    priors.refuse_improper(is_improper, prior)
    out = column_evidence.copy()
    out[:, ~split.is_constant] = _wishart_evidence(split.tally, before, tied=tied)
    return out


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
    split, own = ColumnSplit.from_tally(tally, prior), tally.own_class_without(rows, y)
    moments = Moments(*(replace_own_class(getattr(tally, a), getattr(own, a), y) for a in ("n", "mean", "m2")))
    pooled = moments.pool()
    constant, varying = split.is_constant, np.flatnonzero(~split.is_constant)
    usable = np.ones(len(x), bool) if has_mean_and_scale(prior) else (is_flat(pooled)[:, 0] == constant).all(axis=1)
    scatters = shrink_scatter(split.tally, shrinkage), shrink_scatter(own.select_features(varying), shrinkage)
    weight, scatter = replace_own_class(tally.weight, own.weight, y), replace_own_class(*scatters, y)
    left = CoMoments(weight, moments.mean[..., varying], scatter)
    of_varying = Moments(*(a[..., varying] for a in (moments.n, moments.mean, moments.m2)))
    out = np.empty((len(x), *tally.mean.shape))
    fit = _fit(left, scatter, of_varying, prior, how, tied)
    out[:, :, varying], regular = _fit_contributions(fit, x[:, varying])
    mean = pooled.mean[..., constant]
    variance = np.where(mean != 0, mean * mean, 1.0)
    out[:, :, constant] = -0.5 * (np.log(2 * np.pi * variance) + (x[:, None, constant] - mean) ** 2 / variance)
    return out, usable & regular


def _fit_contributions(fit: CovarianceFit, x: Floats) -> tuple[Floats, NDArray[np.bool_]]:
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


# The inverse Wishart


@dataclass(frozen=True, eq=False)
class Wishart:
    """Parameters of a prior, or of a posterior: then with axes of classes, and scale matrices."""

    mean: Floats  # (feature), or (class, feature)
    kappa: Any  # a number, or (class)
    df: Any  # a number, or (group): a group is a class, or all of them where the covariance is tied
    scale: Floats  # (feature) the diagonal of the scale matrix, or (group, feature, feature)


def _wishart_prior(prior: Prior | None, moments: Moments, n_means: int) -> Wishart:
    """The prior in numbers; what it leaves open comes from the moments of all classes, so that it has the data's units.

    ``n_means`` is how many classes share a covariance.
    """
    pooled = moments.pool()
    p, centre = pooled.mean.shape[-1], pooled.mean[..., 0, :]
    if isinstance(prior, priors.Jeffreys | priors.Uniform):
        # |covariance|^-(p + 1) / 2, and flat, in all means and the covariance of a group.
        df = -n_means if isinstance(prior, priors.Jeffreys) else -n_means - p - 1
        return Wishart(centre, 0.0, float(df), np.zeros(p))
    usual = default_variance(moments, pooled)[..., 0, :]
    if isinstance(prior, priors.NormalInverseWishart):
        df = p + 2.0 if prior.df is None else float(prior.df)
        if prior.scale is None and df <= p + 1:
            what = f"{prior!r}: df must be > {p + 1} for {p} columns where scale is None"
            raise InputError(what, value=df, remedy=f"pass df={p + 2}")
        scale = (df - p - 1) * usual if prior.scale is None else _expand_to_columns(prior.scale, p, "scale")
        mean = centre if prior.mean is None else _expand_to_columns(prior.mean, p, "mean")
        return Wishart(mean, prior.kappa, df, scale)
    nig = prior if isinstance(prior, priors.NormalInverseGamma) else priors.NormalInverseGamma()
    mean = centre if nig.mean is None else np.full(p, nig.mean)
    b = (nig.a - 1.0) * usual if nig.b is None else np.full(p, nig.b)
    return Wishart(mean, nig.kappa, p - 1 + 2 * nig.a, 2 * b)


def _expand_to_columns(value: object, p: int, name: str) -> Floats:
    values = np.asarray(value, np.float64)
    if values.ndim and values.shape != (p,):
        what = f"NormalInverseWishart: {name} has {values.size} values for {p} columns that vary"
        raise InputError(what, value=tuple(values.tolist()), remedy="pass one number, or one a column")
    return np.broadcast_to(values, p)


def _wishart_posterior(tally: CoMoments, scatter: Floats, prior: Wishart, *, tied: bool) -> Wishart:
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
    return Wishart(mean, kappa, df, scale)


def _wishart_evidence(tally: CoMoments, prior: Wishart, *, tied: bool) -> Floats:
    """(class, feature) log marginal likelihood of each column given those before it; the sum is that of the group.

    The first j columns alone have the same model with df - (p - j): so the evidence of j columns less that of j - 1 is
    what column j adds. Where the covariance is tied its part is divided by weight.
    """
    p, n = tally.mean.shape[1], tally.weight[:, 0]
    after = _wishart_posterior(tally, tally.scatter, prior, tied=tied)
    total = np.array([n.sum()]) if tied else n  # (group)
    df = prior.df - p + np.arange(1, p + 1)  # of the first j columns
    root = np.linalg.cholesky(after.scale)
    pivots = 2 * np.log(np.einsum("gjj->gj", root)), np.log(prior.scale)
    before = [np.cumsum(pivot, axis=-1) - pivot for pivot in pivots]
    rising = numerics.log_rising_factorial(*np.broadcast_arrays(df / 2, total[:, None] / 2))
    spread = rising + 0.5 * (df * pivots[1] + before[1]) - 0.5 * ((df + total[:, None]) * pivots[0] + before[0])
    share = divide_or_zero(n, np.full_like(n, n.sum()))[:, None] if tied else 1.0
    centre = -0.5 * n * np.log(np.pi) - 0.5 * np.log1p(n / prior.kappa)
    return centre[:, None] + spread * share


# Shrinkage


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse what is neither a share nor a method."""
    if isinstance(shrinkage, str):
        if shrinkage not in SHRINKAGE_METHODS:
            raise unknown_name_error("shrinkage", shrinkage, SHRINKAGE_METHODS)
    elif not isinstance(shrinkage, Real) or isinstance(shrinkage, bool) or not 0 <= float(shrinkage) <= 1:
        remedy = "pass a number in 0..1, 'ledoit-wolf', 'oas' or None"
        raise InputError(f"shrinkage: {shrinkage!r}", value=shrinkage, remedy=remedy)


def shrink_scatter(tally: CoMoments, shrinkage: float | str | None) -> Floats:
    """(class, feature, feature) the scatter of each class, shrunk."""
    if shrinkage is None or tally.mean.shape[1] == 0:
        return tally.scatter
    n, scatter, unit = tally.weight[:, 0], tally.scatter, None
    if shrinkage == "ledoit-wolf":
        deviation = np.sqrt(divide_or_zero(tally.m2, tally.n))
        deviation[deviation == 0] = 1.0
        unit = deviation[:, :, None] * deviation[:, None, :]
        scatter = scatter / unit
    p = scatter.shape[1]
    mean_variance = np.einsum("cjj->c", scatter) / p
    size = divide_or_zero(np.einsum("cjk,cjk->c", scatter, scatter), n * n)  # squared norm of the covariance
    square = divide_or_zero(mean_variance**2, n * n)
    if unit is not None:
        share = _ledoit_wolf(tally, unit, size, size - p * square, p)
    elif shrinkage == "oas" and p > 1:  # the oracle-approximating share, for normal data
        distance = (n + 1.0) * (size - p * square)  # p^2 times the means of the paper
        share = np.where(distance > 0, np.minimum(divide_or_zero(size + p * p * square, distance), 1.0), 1.0)
    else:
        share = np.full(len(scatter), 0.0 if shrinkage == "oas" else shrinkage, np.float64)
    mixed = scatter * (1.0 - share)[:, None, None]
    np.einsum("cjj->cj", mixed)[:] += (share * mean_variance)[:, None]
    return mixed if unit is None else mixed * unit


def _ledoit_wolf(tally: CoMoments, unit: Floats, size: Floats, distance: Floats, p: int) -> Floats:
    """(class,) the share of least expected loss, for standardised columns."""
    if tally.fourth is None:
        what = "shrinkage='ledoit-wolf' needs fourth moments, which this tally does not keep"
        remedy = "count the rows with that shrinkage, or use 'oas' or a number"
        raise InputError(what, value="ledoit-wolf", remedy=remedy)
    n = tally.weight[:, 0]
    rows = (tally.fourth / (unit * unit)).sum(axis=(1, 2))  # sum over rows of |x|^4
    noise = divide_or_zero(divide_or_zero(rows, n) - size, n)  # variance of the covariance
    return np.where((p > 1) & (noise > 0), divide_or_zero(np.minimum(noise, distance), distance), 0.0)
