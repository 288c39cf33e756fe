"""Conjugate algebra of the multivariate normal: a mean vector a class, and a covariance of each class or of all.

The covariance has the prior InverseWishart(df, scale), a mean given it Normal(mean, covariance / kappa). After data,

    kappa_n = kappa + n        df_n = df + n        scale_n = scale + scatter + kappa n / kappa_n * gap gap'

with the gap between the mean of the data and the prior's. Under InverseWishart(df, scale) of p columns the variance of
one of them has InverseGamma((df - p + 1) / 2, scale_jj / 2): so a NormalInverseGamma prior says the same of a column
whether columns are modelled together or apart, and of one column both are the same model.

Axes before (class, feature), such as one tally for each row left out, are carried along.

>>> one = CoMoments(np.array([[4.0]]), np.array([[2.0]]), np.array([[[6.0]]]))
>>> prior = WishartPrior(np.zeros(1), 1.0, 2.0, np.array([2.0]))
>>> after = posterior(one, one.scatter, prior, tied=False)
>>> after.kappa.item(), after.mean.item(), after.df.item(), after.scale.item()
(5.0, 1.6, 6.0, 11.2)
"""

from dataclasses import dataclass

import numpy as np

from candide import numerics
from candide.conjugate.normal import default_variance
from candide.data.blocks import Floats
from candide.errors import InputError
from candide.priors import Jeffreys, NormalInverseGamma, NormalInverseWishart, Prior, Uniform
from candide.tally import CoMoments, Moments
from candide.tally.base import divide_or_zero


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

    ``means`` is how many classes share a covariance.
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


def posterior(tally: CoMoments, scatter: Floats, prior: WishartPrior, *, tied: bool) -> WishartPosterior:
    """What prior and tally say together; ``scatter`` is the tally's, or that shrunk."""
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
    after = posterior(tally, tally.scatter, prior, tied=tied)
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
