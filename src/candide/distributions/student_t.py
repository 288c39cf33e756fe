"""Student's t: the posterior predictive of a normal. The fewer rows, the heavier its tails.

>>> example = StudentT(df=np.array([[3.0]]), loc=np.array([[2.0]]), scale=np.array([[0.5]]))
>>> example.log_prob(np.array([[2.0], [4.0]])).round(3).ravel().tolist()
[-0.308, -3.999]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, make_contiguous, mask_absent, to_dense_floats
from candide.distributions.score_expression import Expression, log1p, parameter, square, zero_if_missing


@dataclass(frozen=True, eq=False)
class StudentT(Distribution):
    df: Floats  # (class, feature) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature) positive

    name: ClassVar[str] = "student_t"
    is_on_real_line: ClassVar[bool] = True
    nonlinear_reason: ClassVar[str] = (
        "with estimate='predictive' it is Student's t; use estimate='mean', 'map' or 'mle', "
        "and Gaussian(covariance='tied-diagonal') for a linear score"
    )

    @property
    def n_classes(self) -> int:
        return self._kernel_arrays[0].shape[0]

    @property
    def n_features(self) -> int:
        return self._kernel_arrays[0].shape[1]

    @cached_property
    def _kernel_arrays(self) -> tuple[Floats, ...]:
        log_norm = numerics.log_rising_factorial(self.df / 2, 0.5) - 0.5 * np.log(np.pi * self.df) - np.log(self.scale)
        return make_contiguous(self.loc, 1.0 / self.scale, self.df, log_norm)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_student(to_dense_floats(block), *self._kernel_arrays, out)

    def _contributions(self, x: NDArray) -> Floats:
        loc, inv_scale, df, log_norm = self._kernel_arrays
        z = (x[:, None, :] - loc) * inv_scale
        return mask_absent(x, log_norm - 0.5 * (df + 1) * np.log1p(z * z / df))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return self.loc[y] + self.scale[y] * rng.standard_t(self.df[y])

    def mean(self) -> Floats:
        return np.where(self.df > 1, self.loc, np.nan)

    def parameters(self) -> dict[str, NDArray]:
        return {"df": self.df, "loc": self.loc, "scale": self.scale}

    def score_expression(self, x: Expression) -> Expression:
        loc, inv_scale, df, log_norm = self._kernel_arrays
        z = square(x - parameter("loc", loc), parameter("inverse", inv_scale)) / parameter("df", df)
        return zero_if_missing(x, parameter("constant", log_norm) + log1p(parameter("slope", -0.5 * (df + 1)), z))

    def arrays(self) -> dict[str, NDArray]:
        return {"df": self.df, "loc": self.loc, "scale": self.scale}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        size = shape.n_classes, shape.n_features
        return cls(
            read_array(arrays, "df", size, POSITIVE),
            read_array(arrays, "loc", size),
            read_array(arrays, "scale", size, POSITIVE),
        )
