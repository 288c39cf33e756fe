"""Distributions on the line: Normal, its posterior predictive Student's t, and either of them on the log scale.

>>> normal = Normal(mean=np.array([[0.0], [3.0]]), variance=np.array([[1.0], [4.0]]))
>>> normal.log_prob(np.array([[1.0], [np.nan]])).round(3).tolist()
[[-1.419, -2.112], [0.0, 0.0]]
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.distributions.base import Distribution, numbers, where_present
from candide.rows.blocks import Block, Codes, Floats

if TYPE_CHECKING:
    from candide.distributions.forms import Form, OfNumbers


class _Located(Distribution):
    """Shared by families with a location: the parameter arrays in the form the kernels read, made once."""

    _arrays: tuple[Floats, ...]

    @property
    def n_classes(self) -> int:
        return self._arrays[0].shape[0]

    @property
    def n_features(self) -> int:
        return self._arrays[0].shape[1]


@dataclass(frozen=True, eq=False)
class Normal(_Located):
    mean: Floats  # (class, feature)
    variance: Floats  # (class, feature) positive

    not_linear: ClassVar[str] = (
        "the variances of the classes differ; use Gaussian(covariance='tied-diagonal') with estimate='mean', 'map' or "
        "'mle', or quadratic()"
    )

    @cached_property
    def _arrays(self) -> tuple[Floats, ...]:  # type: ignore[override]
        log_norm = -0.5 * (np.log(2 * np.pi) + np.log(self.variance))
        return contiguous(self.mean, 1.0 / np.sqrt(self.variance), log_norm)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_gaussian(numbers(block), *self._arrays, out)

    def _terms(self, x: NDArray) -> Floats:
        mean, inv_sd, log_norm = self._arrays
        z = (x[:, None, :] - mean) * inv_sd
        return where_present(x, log_norm - 0.5 * z * z)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.normal(self.mean[y], np.sqrt(self.variance[y]))

    def quadratic(self) -> "OfNumbers":
        """Where all classes have one variance the square is the same in all, and left out.

        There what is left is taken about the middle of the means: (mean - middle) / variance is exact where the means
        are large beside their differences.
        """
        from candide.distributions.forms import OfNumbers

        mean, variance = np.broadcast_arrays(self.mean, self.variance)
        same, middle = (variance == variance[:1]).all(axis=0), mean.mean(axis=0)
        weight = np.where(same, mean - middle, mean) / variance
        base = -0.5 * np.where(same, (mean - middle) * (mean + middle), mean * mean) / variance
        base = np.where(same, base, base - 0.5 * np.log(2 * np.pi * variance))
        return OfNumbers(weight, base, None if same.all() else np.where(same, 0.0, -0.5 / variance))

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.mean, "variance": self.variance}


@dataclass(frozen=True, eq=False)
class StudentT(_Located):
    df: Floats  # (class, feature) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature) positive

    not_linear: ClassVar[str] = (
        "with estimate='predictive' it is Student's t; use estimate='mean', 'map' or 'mle', "
        "and Gaussian(covariance='tied-diagonal') for a linear score"
    )

    @cached_property
    def _arrays(self) -> tuple[Floats, ...]:  # type: ignore[override]
        log_norm = numerics.log_rising(self.df / 2, 0.5) - 0.5 * np.log(np.pi * self.df) - np.log(self.scale)
        return contiguous(self.loc, 1.0 / self.scale, self.df, log_norm)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_student(numbers(block), *self._arrays, out)

    def _terms(self, x: NDArray) -> Floats:
        loc, inv_scale, df, log_norm = self._arrays
        z = (x[:, None, :] - loc) * inv_scale
        return where_present(x, log_norm - 0.5 * (df + 1) * np.log1p(z * z / df))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return self.loc[y] + self.scale[y] * rng.standard_t(self.df[y])

    def parameters(self) -> dict[str, NDArray]:
        return {"df": self.df, "loc": self.loc, "scale": self.scale}


@dataclass(frozen=True, eq=False)
class LogScale(Distribution):
    """The distribution of x where log x has the distribution ``base``: the density gains 1/x, and is 0 where x <= 0."""

    base: Distribution

    @property
    def by_blas(self) -> bool:  # type: ignore[override]
        return self.base.by_blas

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @property
    def n_features(self) -> int:
        return self.base.n_features

    def add_log_prob(self, block: Block, out: Floats) -> int:
        x, logs = _logs(block)
        if self.base.add_log_prob(logs, out) == kernels.INFINITE:
            return kernels.INFINITE
        out -= np.nansum(logs, axis=1, keepdims=True)
        out[(x <= 0).any(axis=1)] = -np.inf
        return int(np.isnan(x).sum())

    def _terms(self, x: NDArray) -> Floats:
        x, logs = _logs(x)
        terms = self.base.terms(logs) - np.nan_to_num(logs)[:, None, :]
        return np.where((x <= 0)[:, None, :], -np.inf, terms)

    @property
    def not_linear(self) -> str:  # type: ignore[override]
        return self.base.not_linear.replace("Gaussian(", "LogNormal(")

    def quadratic(self) -> "Form | None":
        """In the logs: 1/x is the same in every class."""
        from candide.distributions.forms import OfNumbers

        form = self.base.quadratic()
        return replace(form, function="log", law=self) if isinstance(form, OfNumbers) else None

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.exp(self.base.sample(y, rng))

    def parameters(self) -> dict[str, NDArray]:
        return {f"log_{name}": value for name, value in self.base.parameters().items()}


def _logs(block: Block) -> tuple[NDArray, Floats]:
    """The numbers, and their logs: NaN where there is none, so that the base counts it as absent."""
    x = numbers(block)
    return x, np.log(x, out=np.full(x.shape, np.nan), where=x > 0, dtype=np.float64)


def contiguous(*arrays: NDArray) -> tuple[Floats, ...]:
    """Arrays of one shape in the layout that kernels read."""
    return tuple(np.ascontiguousarray(a, np.float64) for a in np.broadcast_arrays(*arrays))
