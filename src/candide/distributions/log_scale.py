"""LogScale: the distribution of x where log x has the distribution ``base``: the density gains 1/x, and is 0 at x <= 0.

>>> from candide.distributions.normal import Normal
>>> example = LogScale(Normal(np.zeros((1, 1)), np.ones((1, 1))))
>>> example.log_prob(np.array([[1.0], [-1.0]])).round(4).ravel().tolist(), example.mean().round(4).tolist()
([-0.9189, -inf], [[1.6487]])
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import ArraySource, DistributionShape
from candide.distributions.base import Distribution, to_dense_floats
from candide.distributions.score_expression import Expression, log, where
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class LogScale(Distribution):
    base: Distribution  # of numbers on the whole line

    name: ClassVar[str] = "log_scale"

    @property
    def is_blas_bound(self) -> bool:  # type: ignore[override]
        return self.base.is_blas_bound

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @property
    def n_features(self) -> int:
        return self.base.n_features

    def add_log_prob(self, block: Block, out: Floats) -> int:
        x, logs = _take_logs(block)
        if self.base.add_log_prob(logs, out) == kernels.INFINITE:
            return kernels.INFINITE
        out -= np.nansum(logs, axis=1, keepdims=True)
        out[(x <= 0).any(axis=1)] = -np.inf
        return int(np.isnan(x).sum())

    def _contributions(self, x: NDArray) -> Floats:
        x, logs = _take_logs(x)
        terms = self.base.contributions(logs) - np.nan_to_num(logs)[:, None, :]
        return np.where((x <= 0)[:, None, :], -np.inf, terms)

    @property
    def nonlinear_reason(self) -> str:  # type: ignore[override]
        return self.base.nonlinear_reason.replace("Gaussian(", "LogNormal(")

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

    def form(self) -> "ScoreForm":
        """In the logs: 1/x is the same in every class."""
        form = self.base.form()
        return super().form() if form.degree is None else form.on_log_scale()

    def score_expression(self, x: Expression) -> Expression:
        positive = where(x <= 0.0, 1.0, x)
        return where(x <= 0.0, -np.inf, self.base.score_expression(log(positive)))

    @property
    def inner_distribution(self) -> Distribution:
        return self.base

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
