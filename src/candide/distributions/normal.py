"""Normal: a mean and a variance in each class and column.

>>> normal = Normal(loc=np.array([[0.0], [3.0]]), variance=np.array([[1.0], [4.0]]))
>>> normal.log_prob(np.array([[1.0], [np.nan]])).round(3).tolist()
[[-1.419, -2.112], [0.0, 0.0]]
>>> normal.divergence(Normal(normal.loc + 2.0, normal.variance)).tolist()  # 2 * 2 / 1, and 2 * 2 / 4
[[4.0], [1.0]]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, make_contiguous, mask_absent, to_dense_floats
from candide.distributions.score_expression import Expression, parameter, square, zero_if_missing

if TYPE_CHECKING:
    from candide.distributions.score_form import Polynomial


@dataclass(frozen=True, eq=False)
class Normal(Distribution):
    loc: Floats  # (class, feature) the mean
    variance: Floats  # (class, feature) positive

    name: ClassVar[str] = "normal"
    is_on_real_line: ClassVar[bool] = True
    nonlinear_reason: ClassVar[str] = (
        "the variances of the classes differ; use Gaussian(covariance='tied-diagonal') with estimate='mean', 'map' or "
        "'mle', or quadratic()"
    )

    @property
    def n_classes(self) -> int:
        return self._kernel_arrays[0].shape[0]

    @property
    def n_features(self) -> int:
        return self._kernel_arrays[0].shape[1]

    @cached_property
    def _kernel_arrays(self) -> tuple[Floats, ...]:
        log_norm = -0.5 * (np.log(2 * np.pi) + np.log(self.variance))
        return make_contiguous(self.loc, 1.0 / np.sqrt(self.variance), log_norm)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_gaussian(to_dense_floats(block), *self._kernel_arrays, out)

    def add_weighted(self, block: Block, weight: Floats, out: Floats) -> int:
        """A weight is a factor on the log of the norm, and its root one on the distance."""
        if (weight < 0).any():
            return super().add_weighted(block, weight, out)
        loc, inv_sd, log_norm = self._kernel_arrays
        return kernels.add_gaussian(to_dense_floats(block), loc, inv_sd * np.sqrt(weight), log_norm * weight, out)

    def _contributions(self, x: NDArray) -> Floats:
        loc, inv_sd, log_norm = self._kernel_arrays
        z = (x[:, None, :] - loc) * inv_sd
        return mask_absent(x, log_norm - 0.5 * z * z)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.normal(self.loc[y], np.sqrt(self.variance[y]))

    def mean(self) -> Floats:
        return self.loc

    def divergence(self, other: Self) -> Floats:
        """Kullback and Leibler (1951), both ways: the logs cancel."""
        gap = (self.loc - other.loc) ** 2
        return 0.5 * ((self.variance + gap) / other.variance + (other.variance + gap) / self.variance) - 1.0

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.loc, "sd": np.sqrt(self.variance)}

    def form(self) -> "Polynomial":
        """Where all classes have one variance the square is the same in all, and left out.

        There what is left is taken about the middle of the means: (mean - middle) / variance is exact where the means
        are large beside their differences.
        """
        from candide.distributions.score_form import Polynomial

        mean, variance = np.broadcast_arrays(self.loc, self.variance)
        same, middle = (variance == variance[:1]).all(axis=0), mean.mean(axis=0)
        weight = np.where(same, mean - middle, mean) / variance
        constant = -0.5 * np.where(same, (mean - middle) * (mean + middle), mean * mean) / variance
        constant = np.where(same, constant, constant - 0.5 * np.log(2 * np.pi * variance))
        return Polynomial(constant, weight, None if same.all() else np.where(same, 0.0, -0.5 / variance))

    def score_expression(self, x: Expression) -> Expression:
        """By the distance from each mean: a polynomial would lose its digits far from 0."""
        loc, inv_sd, log_norm = self._kernel_arrays
        z = square(x - parameter("loc", loc), parameter("inverse", inv_sd))
        return zero_if_missing(x, parameter("constant", log_norm) - 0.5 * z)

    def arrays(self) -> dict[str, NDArray]:
        return {"mean": self.loc, "variance": self.variance}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        size = shape.n_classes, shape.n_features
        return cls(read_array(arrays, "mean", size), read_array(arrays, "variance", size, POSITIVE))
