"""Columns modelled together: a mean vector in each class, and a covariance matrix of its own or tied across classes.

A column that does not vary in any class tells nothing and has no covariance: it stands alone, alike in all classes, and
takes no part in the rest.

>>> tally = CoMoments(np.array([[9.0]]), np.zeros((1, 2)), np.array([[[9.0, 4.5], [4.5, 9.0]]]))
>>> estimate(tally, None, "mle", tied=False).covariance[0].tolist()
[[1.0, 0.5], [0.5, 1.0]]
>>> estimate(tally, None, "predictive", tied=False).df.tolist()
[12.0]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide.conjugate.checks import refuse, refuse_improper
from candide.conjugate.normal import is_flat
from candide.conjugate.shrinkage import shrunk
from candide.conjugate.wishart import posterior, wishart_evidence, wishart_prior
from candide.distributions import Distribution, MultivariateNormal, MultivariateT
from candide.distributions.whitening import SingularError
from candide.errors import CellError, InputError
from candide.priors import AddedVariance, NormalInverseGamma, NormalInverseWishart, Prior, Unbiased
from candide.rows.blocks import Floats
from candide.tally import CoMoments, Moments
from candide.tally.base import ratio

_REMEDY = "use estimate='predictive', shrinkage='oas' (or a number such as 0.1), or fewer columns"


@dataclass(frozen=True, eq=False)
class Split:
    """A tally's columns that vary, and those that do not, with a distribution for these."""

    tally: CoMoments  # of the columns that vary
    pooled: Moments  # of the same columns, over all classes
    alone: NDArray[np.bool_]  # (feature) of all columns
    mean: Floats  # (feature) of all rows, all columns
    variance: Floats  # (feature) of the columns alone; 0 elsewhere

    @classmethod
    def of(cls, tally: CoMoments, prior: Prior | None) -> "Split":
        pooled = tally.moments().pool()
        alone = is_flat(pooled)[0]
        if _is_whole(prior):
            alone = np.zeros_like(alone)
        square = pooled.mean[0] ** 2
        variance = np.where(alone, np.where(square > 0, square, 1.0), 0.0)
        mean, varying = pooled.mean[0], np.flatnonzero(~alone)
        if alone.any():
            tally, pooled = tally.only(varying), pooled.only(varying)
        return cls(tally, pooled, alone, mean, variance)

    def centre(self, mean: Floats) -> Floats:
        """(class, feature) of all columns, from that of the columns that vary."""
        if not self.alone.any():
            return mean
        out = np.tile(self.mean, (len(mean), 1))
        out[:, ~self.alone] = mean
        return out

    def matrix(self, joint: Floats) -> Floats:
        """(group, feature, feature) of all columns."""
        if not self.alone.any():
            return joint
        out = np.tile(np.diag(self.variance), (len(joint), 1, 1))
        varying = np.flatnonzero(~self.alone)
        out[:, varying[:, None], varying] = joint
        return out

    def normal(self, mean: Floats, covariance: Floats) -> MultivariateNormal:
        return MultivariateNormal(self.centre(mean), self.matrix(covariance), self.alone)


def _is_whole(prior: Prior | None) -> bool:
    """Whether a prior has a mean and a scale of its own, and so needs nothing of the columns."""
    if isinstance(prior, NormalInverseWishart):
        return prior.mean is not None and prior.scale is not None
    return isinstance(prior, NormalInverseGamma) and prior.mean is not None and prior.b is not None


def estimate(
    tally: CoMoments, prior: Prior | None, how: str, *, tied: bool, shrinkage: float | str | None = None
) -> Distribution:
    """The distribution of columns modelled together. Shrinkage changes the scatter; the prior then comes to that."""
    split = Split.of(tally, prior)
    law = _most_likely(split, prior, tied, shrinkage) if how == "mle" else _bayes(split, prior, how, tied, shrinkage)
    try:
        law.prepare()
    except SingularError as error:  # a point mass of infinite density in some direction, where no prior widens it
        why = "its values are the same, or follow from those of other columns, so the covariance is singular"
        raise CellError(error.group, error.feature, f"{why}; {_REMEDY}") from None
    return law


def _most_likely(split: Split, prior: Prior | None, tied: bool, shrinkage: float | str | None) -> MultivariateNormal:
    n, scatter = split.tally.weight[:, 0], shrunk(split.tally, shrinkage)
    refuse(split.tally.weight <= 0, f"no row to take a mean of; {_REMEDY}")
    lost = 1.0 if isinstance(prior, Unbiased) else 0.0  # a row for each mean
    if tied:
        rows, scatter = np.array([n.sum() - lost * len(n)]), scatter.sum(axis=0, keepdims=True)
    else:
        rows = n - lost
    refuse(rows[:, None] <= 0, f"too few rows for an unbiased covariance; {_REMEDY}")
    covariance = scatter / rows[:, None, None]
    if isinstance(prior, AddedVariance):
        added = prior.fraction * ratio(split.pooled.m2, split.pooled.n).max(initial=0.0)
        np.einsum("gjj->gj", covariance)[:] += added
    return split.normal(split.tally.mean, covariance)


def _bayes(
    split: Split, prior: Prior | None, how: str, tied: bool, shrinkage: float | str | None
) -> MultivariateNormal | MultivariateT:
    _refuse_mle_only(prior, "pass estimate='mle'")
    k, p = split.tally.mean.shape
    means = k if tied else 1
    before = wishart_prior(prior, split.pooled, means)
    after = posterior(split.tally, shrunk(split.tally, shrinkage), before, tied=tied)
    refuse(after.kappa[:, None] <= 0, f"no row to take a mean of, and {prior!r} is improper; {_REMEDY}")
    # The joint mode: each of the group's means takes a count, as does the covariance's own exponent.
    below = {"map": after.df + p + 1 + means, "mean": after.df - p - 1}.get(how, after.df - p + 1)
    refuse(below[:, None] <= 0, f"too few rows for {prior!r}; {_REMEDY}")
    matrix = after.scale / below[:, None, None]
    if how != "predictive":
        return split.normal(after.mean, matrix)
    df, wider = np.broadcast_to(below, k).copy(), 1.0 + 1.0 / after.kappa
    return MultivariateT(df, split.centre(after.mean), split.matrix(matrix), wider, split.alone)


def evidence(tally: CoMoments, prior: Prior | None, apart: Floats, *, tied: bool) -> Floats:
    """(class, feature) log marginal likelihood of the rows; ``apart`` is that of each column by itself.

    Shrinkage has no part in it: the evidence is that of the prior.
    """
    _refuse_mle_only(prior, "use NormalInverseWishart()")
    split = Split.of(tally, prior)
    before = wishart_prior(prior, split.pooled, len(tally.mean) if tied else 1)
    refuse_improper(before.improper, prior)
    out = apart.copy()
    out[:, ~split.alone] = wishart_evidence(split.tally, before, tied=tied)
    return out


def _refuse_mle_only(prior: Prior | None, remedy: str) -> None:
    if isinstance(prior, AddedVariance | Unbiased):
        raise InputError(f"{prior!r} belongs to the MLE, and has no posterior and no marginal likelihood; {remedy}")
