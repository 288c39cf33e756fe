"""Multivariate normal, and its posterior predictive, the multivariate t: the fewer the rows, the heavier its tails.

Each class has a mean and a covariance matrix, or one matrix is shared by all classes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution
from candide.distributions.elliptical import LOG_2PI, Elliptical, normal_conditionals, t_conditionals
from candide.distributions.score_expression import Expression

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm

_LINEAR_REMEDY = "use Gaussian(covariance='tied') with estimate='mean', 'map' or 'mle' for a linear score"


def _set_default(value: Any, name: str, default: NDArray) -> None:
    if getattr(value, name) is None:
        value.__dict__[name] = default


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Elliptical):
    loc: Floats  # (class, feature)
    covariance: Floats  # (class, feature, feature), or (1, feature, feature) where all classes share it
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_normal"
    _matrix_name: ClassVar[str] = "covariance"
    nonlinear_reason: ClassVar[str] = f"the covariances of the classes differ; {_LINEAR_REMEDY}, or quadratic()"

    def __post_init__(self) -> None:
        _set_default(self, "constant", np.zeros(self.loc.shape[1], bool))

    @cached_property
    def _factor(self) -> Floats:  # type: ignore[override]
        return np.ones(len(self.loc))

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        return -0.5 * (p * LOG_2PI + size) - log_norm

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        return normal_conditionals(z)

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of all columns together."""
        names, out = ("mean", "sd", "correlation"), []
        a, b = ([params[name] for name in names] for params in (self.parameters(), other.parameters()))
        for m, s, r, n, t, q in zip(*a, *b, strict=True):
            gap, ratio = (m - n) / s, t / s  # in the units of the first
            moved = q * ratio[:, None] * ratio
            pairs = (r, moved), (moved, r)
            twice = sum(np.trace(np.linalg.solve(x, y)) + gap @ np.linalg.solve(x, gap) for x, y in pairs)
            out.append([max(0.0, float(0.5 * twice - len(m)))])
        return np.array(out)

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.loc, **self._covariance_parameters()}

    def form(self) -> "ScoreForm":
        """x' A x + w . x with A = -1/2 covariance^-1; where it is tied the square is the same in all classes."""
        from candide.distributions.score_form import NumericForm

        varying = ~self.constant
        weight, constant = np.zeros_like(self.loc), np.zeros((self.n_classes, 1))
        tied = len(self.covariance) == 1
        square = np.zeros((self.n_classes, self.n_features, self.n_features))
        middle = self.loc.mean(axis=0) if tied else np.zeros(self.n_features)
        for c in range(self.n_classes):
            root = self._root(c)
            mean, gap = root.whiten(self.loc[c][:, None])[:, 0], root.whiten((self.loc[c] - middle)[:, None])[:, 0]
            weight[c, varying] = root.unwhiten(gap)
            constant[c, 0] = -0.5 * gap @ (mean + root.whiten(middle[:, None])[:, 0])
            if not tied:
                constant[c, 0] -= root.log_det
                square[c][np.ix_(varying, varying)] = -0.5 * root.precision()
        if self.n_features == 1:  # one column needs no other: what is absent adds nothing
            square = square[:, :, 0]
        return NumericForm(constant, weight, None if tied else square)

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        return cls(*cls._from_arrays(arrays, shape))._check_matrices()


@dataclass(frozen=True, eq=False)
class MultivariateT(Elliptical):
    df: Floats  # (class) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature, feature), or (1, feature, feature) where classes differ in their factor alone
    factor: Any = None  # (class) by which the scale matrix is multiplied
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_t"
    _matrix_name: ClassVar[str] = "scale"
    nonlinear_reason: ClassVar[str] = f"with estimate='predictive' it is the multivariate t; {_LINEAR_REMEDY}"

    def __post_init__(self) -> None:
        _set_default(self, "factor", np.ones(len(self.loc)))
        _set_default(self, "constant", np.zeros(self.loc.shape[1], bool))

    @property
    def _factor(self) -> Floats:  # type: ignore[override]
        return self.factor

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        df = self.df
        norm = numerics.log_rising_factorial(df / 2, np.full_like(df, p / 2)) - 0.5 * p * np.log(np.pi * df) - log_norm
        return norm - 0.5 * (df + p) * np.log1p(size / df)

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        return t_conditionals(z, self.df[c])

    def _draw_scale_factors(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.sqrt(self.df[y] / rng.chisquare(self.df[y]))

    def mean(self) -> Floats:
        return np.where(self.df[:, None] > 1, self.loc, np.nan)

    def parameters(self) -> dict[str, NDArray]:
        """With the deviations of the scale matrix, as Student's t has them."""
        shape = self._covariance_parameters()
        df = np.broadcast_to(self.df[:, None], self.loc.shape)
        return {"df": df, "loc": self.loc, "scale": shape["sd"], "correlation": shape["correlation"]}

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        """With the constant of the t of each column, given so many others."""
        df = self.df[:, None] + np.arange(self.n_features)
        rising = numerics.log_rising_factorial(df / 2, np.full_like(df, 0.5))
        return super().score_expression(x, df=self.df, rising=rising)

    def arrays(self) -> dict[str, NDArray]:
        return {"df": self.df, "factor": self.factor, **super().arrays()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        df, factor = (read_array(arrays, name, (shape.n_classes,), POSITIVE) for name in ("df", "factor"))
        loc, matrix, constant = cls._from_arrays(arrays, shape)
        return cls(df, loc, matrix, factor, constant)._check_matrices()
