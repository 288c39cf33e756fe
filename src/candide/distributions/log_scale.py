"""LogScale: the distribution of x where log x has the distribution ``base``: the density gains 1/x, and is 0 at x <= 0.

>>> from candide.distributions.normal import Normal
>>> law = LogScale(Normal(np.zeros((1, 1)), np.ones((1, 1))))
>>> law.log_prob(np.array([[1.0], [-1.0]])).round(4).ravel().tolist(), law.mean().round(4).tolist()
([-0.9189, -inf], [[1.6487]])
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.distributions.arrays import Found, Shape
from candide.distributions.base import Distribution, numbers
from candide.errors import InputError
from candide.rows.blocks import Block, Codes, Floats

if TYPE_CHECKING:
    from candide.distributions.form import Form


@dataclass(frozen=True, eq=False)
class LogScale(Distribution):
    base: Distribution  # of numbers on the whole line

    name: ClassVar[str] = "log_scale"

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

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.exp(self.base.sample(y, rng))

    def mean(self) -> Floats:
        """exp(mean + variance / 2) where the logs are normal; a t's tails are too heavy for one."""
        params = self.base.parameters()
        if "sd" not in params:
            return np.full((self.n_classes, self.n_features), np.inf)
        return np.exp(params["mean"] + params["sd"] ** 2 / 2)

    def divergence(self, other: Self) -> Floats:
        """A divergence does not change with the scale."""
        return self.base.divergence(other.base)

    def parameters(self) -> dict[str, NDArray]:
        return {f"log_{name}": value for name, value in self.base.parameters().items()}

    def form(self) -> "Form":
        """In the logs: 1/x is the same in every class."""
        return self.base.form().of_logs()

    def exported(self) -> dict[str, Any]:
        return {"rule": "log", "of": self.base.exported()}

    @property
    def inner(self) -> Distribution:
        return self.base

    def arrays(self) -> dict[str, NDArray]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        if base is None or not base.on_line:
            raise InputError("the law of the logs is missing, or not one of numbers on the whole line")
        return cls(base)


def _logs(block: Block) -> tuple[NDArray, Floats]:
    """The numbers, and their logs: NaN where there is none, so that the base counts it as absent."""
    x = numbers(block)
    return x, np.log(x, out=np.full(x.shape, np.nan), where=x > 0, dtype=np.float64)
