"""Multivariate t: the posterior predictive of a multivariate normal, with tails that say how little is known.

>>> law = MultivariateT(np.array([3.0]), np.zeros((1, 2)), np.eye(2)[None])
>>> law.log_prob(np.array([[0.0, 0.0], [1.0, np.nan]])).round(4).ravel().tolist()
[-1.8379, -1.5763]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.distributions.arrays import POSITIVE, Found, Shape, take
from candide.distributions.base import Distribution
from candide.distributions.elliptical import LINEAR, Elliptical, fill, t_steps
from candide.rows.blocks import Codes, Floats

if TYPE_CHECKING:
    from candide.distributions.form import Unwritten


@dataclass(frozen=True, eq=False)
class MultivariateT(Elliptical):
    df: Floats  # (class) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature, feature), or (1, feature, feature) where classes differ in their factor alone
    factor: Any = None  # (class) by which the scale matrix is multiplied
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_t"
    not_linear: ClassVar[str] = f"with estimate='predictive' it is the multivariate t; {LINEAR}"

    def __post_init__(self) -> None:
        fill(self, "factor", lambda: np.ones(len(self.loc)))
        fill(self, "constant", lambda: np.zeros(self.loc.shape[1], bool))

    @property
    def _matrix(self) -> Floats:  # type: ignore[override]
        return self.scale

    @property
    def _factor(self) -> Floats:  # type: ignore[override]
        return self.factor

    def _only(self, present: NDArray[np.bool_]) -> "MultivariateT":
        if present.all():
            return self
        scale = self.scale[:, present][:, :, present]
        return MultivariateT(self.df, self.loc[:, present], scale, self.factor, self.constant[present])

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        df = self.df
        norm = numerics.log_rising(df / 2, np.full_like(df, p / 2)) - 0.5 * p * np.log(np.pi * df) - log_norm
        return norm - 0.5 * (df + p) * np.log1p(size / df)

    def _steps(self, z: Floats, c: int) -> Floats:
        return t_steps(z, self.df[c])

    def _heaviness(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.sqrt(self.df[y] / rng.chisquare(self.df[y]))

    def mean(self) -> Floats:
        return np.where(self.df[:, None] > 1, self.loc, np.nan)

    def parameters(self) -> dict[str, NDArray]:
        """With the deviations of the scale matrix, as Student's t has them."""
        shape = self._shape()
        df = np.broadcast_to(self.df[:, None], self.loc.shape)
        return {"df": df, "loc": self.loc, "scale": shape["sd"], "correlation": shape["correlation"]}

    def form(self) -> "Unwritten":
        from candide.distributions.form import Unwritten

        return Unwritten(self.not_linear)

    def exported(self) -> dict[str, Any]:
        """With the constant of the t of each column, given so many others."""
        df = self.df[:, None] + np.arange(self.n_features)
        return {**super().exported(), "df": self.df, "rising": numerics.log_rising(df / 2, np.full_like(df, 0.5))}

    def arrays(self) -> dict[str, NDArray]:
        return {"df": self.df, "factor": self.factor, **super().arrays()}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        df, factor = (take(arrays, name, (shape.n_classes,), POSITIVE) for name in ("df", "factor"))
        loc, matrix, constant = cls._from_arrays(arrays, shape)
        return cls(df, loc, matrix, factor, constant)._checked()
