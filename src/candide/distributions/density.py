"""Elementwise log-densities: of values >= 0, and of a user-defined event model.

The negative binomial is a Poisson, and the Lomax (Pareto from zero) an exponential, whose rate is itself uncertain,
with a gamma's shape and rate: they are the posterior predictives.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Csr, Floats, row_numbers
from candide.distributions import score_expression as expr
from candide.distributions.arrays import NON_NEGATIVE, POSITIVE
from candide.distributions.base import (
    MAX_SCORED_VALUE,
    Distribution,
    chunk_slices,
    mask_absent,
    symmetric_divergence,
    to_dense,
    to_dense_floats,
)
from candide.distributions.score_expression import Expression
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


class Elementwise(Distribution):
    """Shared by distributions whose log-density is a function of one value and (class, feature) parameters."""

    nonlinear_reason: ClassVar[str] = "its log-density is not linear in the value; use estimate='mean', 'map' or 'mle'"
    params: dict[str, Floats]  # (class, feature) each

    @abstractmethod
    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        """Elementwise, broadcasting x against the parameters."""

    @property
    def _shape(self) -> tuple[int, int]:
        return next(iter(self.params.values())).shape

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if isinstance(block, Csr):
            if np.isfinite(self._log_density_at_zero).all():
                return self._add_stored(block, out)
            block = to_dense(block)
        n_absent = 0
        for rows in chunk_slices(block, out):
            x = to_dense_floats(block[rows]).astype(np.float64, copy=False)
            if np.isinf(x).any():
                return kernels.INFINITE
            n_absent += int(np.isnan(x).sum())
            out[rows] += self._contributions(x).sum(axis=2)
        return n_absent

    @cached_property
    def _log_density_at_zero(self) -> Floats:
        """(class, feature) log-density of the value that sparse rows do not store."""
        return self._log_density_quietly(np.zeros((1, 1, 1)), self.params)[0]

    def _add_stored(self, block: Csr, out: Floats) -> int:
        """As if every value were zero, then the difference that each stored value makes."""
        stored = slice(block.indptr[0], block.indptr[-1])
        x, column = block.data[stored].astype(np.float64), block.indices[stored]
        if not np.isfinite(x).all():
            return kernels.INFINITE
        row = row_numbers(block)
        for c, at_zero in enumerate(self._log_density_at_zero):
            term = self._log_density_quietly(x, {name: p[c, column] for name, p in self.params.items()})
            out[:, c] += at_zero.sum() + np.bincount(row, term - at_zero[column], len(out))
        return 0

    def _log_density_quietly(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(self._log_density(x, params), np.float64)

    def _contributions(self, x: NDArray) -> Floats:
        x = x.astype(np.float64, copy=False)  # float32 would carry its rounding through the special functions
        return mask_absent(x, self._log_density_quietly(x[:, None, :], self.params))

    def parameters(self) -> dict[str, NDArray]:
        return dict(self.params)


@dataclass(frozen=True, eq=False)
class Density(Elementwise):
    log_density: Callable[..., NDArray]  # (x, **params): x (row, 1, feature), params (class, feature)
    params: dict[str, Floats]  # (class, feature) each
    draw: Callable[..., NDArray] | None = None  # (rng, **params) -> values of the parameters' shape
    natural: Callable[..., tuple[Floats, Floats]] | None = None  # (**params) -> weight, base where it is linear in x

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", {name: np.ascontiguousarray(p) for name, p in self.params.items()})

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        return self.log_density(x, **params)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        if self.draw is None:
            raise InputError("this event model cannot sample: it has no `draw(rng, **params)`")
        return self.draw(rng, **{name: p[y] for name, p in self.params.items()})

    def form(self) -> "ScoreForm | None":
        from candide.distributions.score_form import NumericForm

        if self.natural is None:
            return None
        slope, constant = self.natural(**self.params)
        return NumericForm(constant, slope, distribution=self)

    def score_expression(self, x: Expression) -> Expression:
        if self.natural is None:
            return super().score_expression(x)
        slope, constant = self.natural(**self.params)
        return expr.zero_if_missing(x, expr.parameter("constant", constant) + expr.times(expr.clip(x), "slope", slope))


class NonNegativeDistribution(Elementwise):
    """Its fields are its parameters."""

    def __post_init__(self) -> None:
        # One layout for all: the order of a sum, and so its last bit, follows that of the arrays.
        for name, array in self.params.items():
            object.__setattr__(self, name, np.ascontiguousarray(array))

    def _log_density_quietly(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        return super()._log_density_quietly(np.minimum(x, MAX_SCORED_VALUE), params)

    @property
    def params(self) -> dict[str, Floats]:  # type: ignore[override]
        return {name: getattr(self, name) for name in self._saved_fields}

    def score_expression(self, x: Expression) -> Expression:
        return expr.zero_if_missing(x, expr.where(x < 0.0, -np.inf, self._clipped_expression(expr.clip(x, 0.0))))

    def _clipped_expression(self, x: Expression) -> Expression:
        """The score of values from 0 to the largest that is scored."""
        raise NotImplementedError


class _LinearInValue(NonNegativeDistribution):
    """The score is constant + slope x."""

    def _constant_and_slope(self) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import NumericForm

        return NumericForm(*self._constant_and_slope(), low=0.0)

    def _clipped_expression(self, x: Expression) -> Expression:
        constant, slope = self._constant_and_slope()
        return expr.parameter("constant", constant) + expr.times(x, "slope", slope)


@dataclass(frozen=True, eq=False)
class Poisson(_LinearInValue):
    rate: Floats  # (class, feature) from zero

    name: ClassVar[str] = "poisson"
    _saved_fields: ClassVar = {"rate": ("rate", NON_NEGATIVE)}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        rate = params["rate"]
        return numerics.mask_negative(x, numerics.xlogy(x, rate) - rate - numerics.gammaln(x + 1.0))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.poisson(self.rate[y]).astype(np.float64)

    def mean(self) -> Floats:
        return self.rate

    def divergence(self, other: Self) -> Floats:
        return symmetric_divergence(self.rate, other.rate)

    def _constant_and_slope(self) -> tuple[Floats, Floats]:
        return -self.rate, numerics.log_or_minus_inf(self.rate)


@dataclass(frozen=True, eq=False)
class NegativeBinomial(NonNegativeDistribution):
    shape: Floats  # (class, feature) from zero
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "negative_binomial"
    _saved_fields: ClassVar = {"shape": ("shape", NON_NEGATIVE), "rate": ("rate", POSITIVE)}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        shape, rate = params["shape"], params["rate"]
        start = -shape * np.log1p(1.0 / rate)
        choose = numerics.log_rising_factorial(shape, x) - numerics.gammaln(x + 1.0)
        return numerics.mask_negative(x, choose + start - x * np.log1p(rate))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.poisson(rng.standard_gamma(self.shape[y]) / self.rate[y]).astype(np.float64)

    def mean(self) -> Floats:
        return self.shape / self.rate

    def _clipped_expression(self, x: Expression) -> Expression:
        start = expr.parameter("constant", -self.shape * np.log1p(1.0 / self.rate))
        return (
            expr.log_rising(expr.parameter("shape", self.shape), x)
            + start
            - x * expr.parameter("slope", np.log1p(self.rate))
        )


@dataclass(frozen=True, eq=False)
class Exponential(_LinearInValue):
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "exponential"
    _saved_fields: ClassVar = {"rate": ("rate", POSITIVE)}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        rate = params["rate"]
        return numerics.mask_negative(x, np.log(rate) - rate * x)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return rng.standard_exponential(self.rate[y].shape) / self.rate[y]

    def mean(self) -> Floats:
        return 1.0 / self.rate

    def divergence(self, other: Self) -> Floats:
        return self.rate / other.rate + other.rate / self.rate - 2.0

    def _constant_and_slope(self) -> tuple[Floats, Floats]:
        return np.log(self.rate), -self.rate


@dataclass(frozen=True, eq=False)
class Lomax(NonNegativeDistribution):
    shape: Floats  # (class, feature) positive
    rate: Floats  # (class, feature) positive

    name: ClassVar[str] = "lomax"
    _saved_fields: ClassVar = {"shape": ("shape", POSITIVE), "rate": ("rate", POSITIVE)}

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        shape, rate = params["shape"], params["rate"]
        peak = numerics.log_or_minus_inf(shape) - np.log(rate)
        return numerics.mask_negative(x, peak - (shape + 1.0) * np.log1p(x / rate))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return self.rate[y] * np.expm1(rng.standard_exponential(self.shape[y].shape) / self.shape[y])

    def mean(self) -> Floats:
        heavy = self.shape <= 1
        return np.where(heavy, np.inf, self.rate / np.where(heavy, 1.0, self.shape - 1.0))

    def _clipped_expression(self, x: Expression) -> Expression:
        peak = expr.parameter("constant", numerics.log_or_minus_inf(self.shape) - np.log(self.rate))
        return peak + expr.log1p(expr.parameter("slope", -self.shape - 1.0), x / expr.parameter("rate", self.rate))
