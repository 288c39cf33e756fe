"""Multivariate t: the posterior predictive of a multivariate normal. The fewer the rows, the heavier its tails.

>>> example = MultivariateT(np.array([3.0]), np.zeros((1, 2)), np.eye(2)[None])
>>> example.log_prob(np.array([[0.0, 0.0], [1.0, np.nan]])).round(4).ravel().tolist()
[-1.8379, -1.5763]
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.arrays import POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution
from candide.distributions.elliptical import LINEAR_REMEDY, Elliptical, set_default, t_conditionals
from candide.distributions.score_expression import Expression


@dataclass(frozen=True, eq=False)
class MultivariateT(Elliptical):
    df: Floats  # (class) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature, feature), or (1, feature, feature) where classes differ in their factor alone
    factor: Any = None  # (class) by which the scale matrix is multiplied
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_t"
    nonlinear_reason: ClassVar[str] = f"with estimate='predictive' it is the multivariate t; {LINEAR_REMEDY}"

    def __post_init__(self) -> None:
        set_default(self, "factor", lambda: np.ones(len(self.loc)))
        set_default(self, "constant", lambda: np.zeros(self.loc.shape[1], bool))

    @property
    def _matrix(self) -> Floats:  # type: ignore[override]
        return self.scale

    @property
    def _factor(self) -> Floats:  # type: ignore[override]
        return self.factor

    def _marginal(self, present: NDArray[np.bool_]) -> "MultivariateT":
        if present.all():
            return self
        scale = self.scale[:, present][:, :, present]
        return MultivariateT(self.df, self.loc[:, present], scale, self.factor, self.constant[present])

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
