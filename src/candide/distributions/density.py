"""Density: the distribution of a user-defined event model.

It takes any elementwise log-density, with its parameters per (class, feature).

>>> example = Density(lambda x, rate: np.log(rate) - rate * x, {"rate": np.array([[1.0], [2.0]])})
>>> example.log_prob(np.array([[3.0], [np.nan]])).round(3).tolist()
[[-3.0, -5.307], [0.0, 0.0]]
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, row_numbers
from candide.distributions.base import Distribution, chunk_slices, mask_absent, to_dense, to_dense_floats
from candide.distributions.score_expression import Expression, clip, parameter, times, zero_if_missing
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
    def _shape(self) -> tuple[int, ...]:
        return next(iter(self.params.values())).shape

    @property
    def n_classes(self) -> int:
        return self._shape[0]

    @property
    def n_features(self) -> int:
        return self._shape[1]

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if isinstance(block, Csr):
            if np.isfinite(self._log_density_at_zero).all():
                return self._add_stored(block, out)
            block = to_dense(block)
        n_absent = 0
        for some in chunk_slices(block, out):
            x = to_dense_floats(block[some]).astype(np.float64, copy=False)
            if np.isinf(x).any():
                return kernels.INFINITE
            n_absent += int(np.isnan(x).sum())
            out[some] += self._contributions(x).sum(axis=2)
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
        for c in range(self.n_classes):
            term = self._log_density_quietly(x, {name: p[c, column] for name, p in self.params.items()})
            out[:, c] += self._log_density_at_zero[c].sum() + np.bincount(
                row, term - self._log_density_at_zero[c, column], len(out)
            )
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

    def form(self) -> "ScoreForm":
        if self.natural is None:
            return super().form()
        from candide.distributions.score_form import NumericInput, Polynomial

        weight, constant = self.natural(**self.params)
        return Polynomial(constant, weight, numeric_input=NumericInput(distribution=self))

    def score_expression(self, x: Expression) -> Expression:
        if self.natural is None:
            return super().score_expression(x)
        slope, constant = self.natural(**self.params)
        return zero_if_missing(x, parameter("constant", constant) + times(clip(x), "slope", slope))
