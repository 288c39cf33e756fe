"""Normal, and Student's t, its posterior predictive: the fewer rows, the heavier its tails; and both of logs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import FINITE, POSITIVE, ArraySource, DistributionShape
from candide.distributions.base import Distribution, WrappedDistribution, mask_absent, to_dense_floats
from candide.distributions.score_expression import Expression, log, log1p, parameter, square, where, zero_if_missing
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


class _LocationScale(Distribution):
    """Shared by both: a centre and a scale in each class and column."""

    is_on_real_line: ClassVar[bool] = True
    loc: Floats  # (class, feature)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._kernel_arrays[0].shape

    @cached_property
    def _kernel_arrays(self) -> tuple[Floats, ...]:
        """Arrays of one shape in the layout that kernels read."""
        return tuple(np.ascontiguousarray(a, np.float64) for a in np.broadcast_arrays(*self._score_parameters()))

    def _score_parameters(self) -> tuple[Floats, ...]:
        """The centre, the inverse of the scale, ..., and the log-density at the centre."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Normal(_LocationScale):
    loc: Floats  # (class, feature) the mean
    variance: Floats  # (class, feature) positive

    name: ClassVar[str] = "normal"
    nonlinear_reason: ClassVar[str] = (
        "the variances of the classes differ; use Gaussian(covariance='tied-diagonal') with estimate='mean', 'map' or "
        "'mle', or quadratic()"
    )
    _saved_fields: ClassVar = {"loc": ("mean", FINITE), "variance": ("variance", POSITIVE)}

    def _score_parameters(self) -> tuple[Floats, ...]:
        return self.loc, 1.0 / np.sqrt(self.variance), -0.5 * (np.log(2 * np.pi) + np.log(self.variance))

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

    def form(self) -> "ScoreForm":
        """Where all classes have one variance the square is the same in all, and left out.

        There what is left is taken about the middle of the means: (mean - middle) / variance is exact where the means
        are large beside their differences.
        """
        from candide.distributions.score_form import NumericForm

        mean, variance = np.broadcast_arrays(self.loc, self.variance)
        same, middle = (variance == variance[:1]).all(axis=0), mean.mean(axis=0)
        weight = np.where(same, mean - middle, mean) / variance
        constant = -0.5 * np.where(same, (mean - middle) * (mean + middle), mean * mean) / variance
        constant = np.where(same, constant, constant - 0.5 * np.log(2 * np.pi * variance))
        return NumericForm(constant, weight, None if same.all() else np.where(same, 0.0, -0.5 / variance))

    def score_expression(self, x: Expression) -> Expression:
        """By the distance from each mean: a polynomial would lose its digits far from 0."""
        loc, inv_sd, log_norm = self._kernel_arrays
        z = square(x - parameter("loc", loc), parameter("inverse", inv_sd))
        return zero_if_missing(x, parameter("constant", log_norm) - 0.5 * z)


@dataclass(frozen=True, eq=False)
class StudentT(_LocationScale):
    df: Floats  # (class, feature) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature) positive

    name: ClassVar[str] = "student_t"
    nonlinear_reason: ClassVar[str] = (
        "with estimate='predictive' it is Student's t; use estimate='mean', 'map' or 'mle', "
        "and Gaussian(covariance='tied-diagonal') for a linear score"
    )
    _saved_fields: ClassVar = {"df": ("df", POSITIVE), "loc": ("loc", FINITE), "scale": ("scale", POSITIVE)}

    def _score_parameters(self) -> tuple[Floats, ...]:
        log_norm = numerics.log_rising_factorial(self.df / 2, 0.5) - 0.5 * np.log(np.pi * self.df) - np.log(self.scale)
        return self.loc, 1.0 / self.scale, self.df, log_norm

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


@dataclass(frozen=True, eq=False)
class LogScale(WrappedDistribution):
    """The distribution of x where log x has the distribution ``base``: the density gains 1/x, and is 0 at x <= 0."""

    base: Distribution  # of numbers on the whole line

    name: ClassVar[str] = "log_scale"

    @property
    def nonlinear_reason(self) -> str:  # type: ignore[override]
        return self.base.nonlinear_reason.replace("Gaussian(", "LogNormal(")

    def add_log_prob(self, block: Block, out: Floats) -> int:
        x, logs = _take_logs(block)
        if self.base.add_log_prob(logs, out) == kernels.INFINITE:
            return kernels.INFINITE
        out -= np.nansum(logs, axis=1, keepdims=True)
        out[(x <= 0).any(axis=1)] = -np.inf
        return int(np.isnan(x).sum())

    def _contributions(self, x: NDArray) -> Floats:
        x, logs = _take_logs(x)
        contributions = self.base.contributions(logs) - np.nan_to_num(logs)[:, None, :]
        return np.where((x <= 0)[:, None, :], -np.inf, contributions)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.exp(self.base.sample(y, rng))

    def mean(self) -> Floats:
        """exp(mean + variance / 2) where the logs are normal; a t's tails are too heavy for one."""
        params = self.base.parameters()
        if "sd" not in params:
            return np.full((self.n_classes, self.n_features), np.inf)
        return np.exp(params["mean"] + params["sd"] ** 2 / 2)

    def divergence(self, other: Self) -> Floats:
        return self.base.divergence(other.base)

    def parameters(self) -> dict[str, NDArray]:
        return {f"log_{name}": value for name, value in self.base.parameters().items()}

    def form(self) -> "ScoreForm | None":
        """In the logs: 1/x is the same in every class."""
        form: Any = self.base.form()
        return form and replace(form, function="log", low=float(np.nextafter(0.0, 1.0)))

    def score_expression(self, x: Expression) -> Expression:
        positive = where(x <= 0.0, 1.0, x)
        return where(x <= 0.0, -np.inf, self.base.score_expression(log(positive)))

    def arrays(self) -> dict[str, NDArray]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        if base is None or not base.is_on_real_line:
            raise InputError("the distribution of the logs is missing, or not one of all real numbers")
        return cls(base)


def _take_logs(block: Block) -> tuple[NDArray, Floats]:
    """The numbers, and their logs: NaN where there is none, so that the base counts it as absent."""
    x = to_dense_floats(block)
    return x, np.log(x, out=np.full(x.shape, np.nan), where=x > 0, dtype=np.float64)
