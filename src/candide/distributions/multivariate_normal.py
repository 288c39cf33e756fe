"""Multivariate normal: a mean and a covariance matrix in each class, or one matrix that all classes share.

>>> normal = MultivariateNormal(np.zeros((1, 2)), np.array([[[1.0, 0.5], [0.5, 1.0]]]))
>>> normal.log_prob(np.array([[1.0, 1.0], [1.0, np.nan]])).round(4).ravel().tolist()
[-2.3607, -1.4189]
>>> normal.contributions(np.array([[1.0, 1.0]])).round(4).ravel().tolist()  # p(x0), then p(x1 | x0)
[-1.4189, -0.9418]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.distributions.arrays import ArraySource, DistributionShape
from candide.distributions.base import Distribution
from candide.distributions.elliptical import LINEAR_REMEDY, LOG_2PI, Elliptical, normal_conditionals, set_default

if TYPE_CHECKING:
    from candide.distributions.score_form import Polynomial


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Elliptical):
    loc: Floats  # (class, feature)
    covariance: Floats  # (class, feature, feature), or (1, feature, feature) where all classes share it
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_normal"
    nonlinear_reason: ClassVar[str] = f"the covariances of the classes differ; {LINEAR_REMEDY}, or quadratic()"

    def __post_init__(self) -> None:
        set_default(self, "constant", lambda: np.zeros(self.loc.shape[1], bool))

    @property
    def _matrix(self) -> Floats:  # type: ignore[override]
        return self.covariance

    @cached_property
    def _factor(self) -> Floats:  # type: ignore[override]
        return np.ones(len(self.loc))

    def _marginal(self, present: NDArray[np.bool_]) -> "MultivariateNormal":
        if present.all():
            return self
        return MultivariateNormal(
            self.loc[:, present], self.covariance[:, present][:, :, present], self.constant[present]
        )

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        return -0.5 * (p * LOG_2PI + size) - log_norm

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        return normal_conditionals(z)

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of all columns together."""
        x, y = self.parameters(), other.parameters()
        pairs = (zip(*(one[name] for name in ("mean", "sd", "correlation")), strict=True) for one in (x, y))
        return np.array([[_symmetric_divergence(*a, *b)] for a, b in zip(*pairs, strict=True)])

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.loc, **self._covariance_parameters()}

    def form(self) -> "Polynomial":
        """x' A x + w . x with A = -1/2 covariance^-1; where it is tied the square is the same in all classes."""
        from candide.distributions.score_form import Polynomial

        joint = ~self.constant
        weight, constant = np.zeros_like(self.loc), np.zeros((self.n_classes, 1))
        tied = len(self.covariance) == 1
        square = np.zeros((self.n_classes, self.n_features, self.n_features))
        middle = self.loc.mean(axis=0) if tied else np.zeros(self.n_features)
        for c in range(self.n_classes):
            root = self._root(c)
            mean, gap = root.whiten(self.loc[c][:, None])[:, 0], root.whiten((self.loc[c] - middle)[:, None])[:, 0]
            weight[c, joint] = root.unwhiten(gap)
            constant[c, 0] = -0.5 * gap @ (mean + root.whiten(middle[:, None])[:, 0])
            if not tied:
                constant[c, 0] -= root.log_det
                square[c][np.ix_(joint, joint)] = -0.5 * root.precision()
        if self.n_features == 1:  # one column needs no other: what is absent adds nothing
            return Polynomial(constant, weight, None if tied else square[:, :, 0])
        return Polynomial(constant, weight, None if tied else square, is_joint=True)

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        return cls(*cls._from_arrays(arrays, shape))._check_matrices()


def _symmetric_divergence(m: Floats, s: Floats, r: Floats, n: Floats, t: Floats, q: Floats) -> float:
    """The symmetric divergence of two normals of several columns: means, deviations and correlations of each."""
    between, ratio = (m - n) / s, t / s  # in the units of the first
    other = q * ratio[:, None] * ratio
    twice = sum(
        np.trace(np.linalg.solve(a, b)) + between @ np.linalg.solve(a, between) for a, b in ((r, other), (other, r))
    )
    return max(0.0, float(0.5 * twice - len(m)))
