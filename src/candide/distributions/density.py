"""Density: any elementwise log-density, with its parameters per (class, feature).

>>> law = Density(lambda x, rate: np.log(rate) - rate * x, {"rate": np.array([[1.0], [2.0]])})
>>> law.log_prob(np.array([[3.0], [np.nan]])).round(3).tolist()
[[-3.0, -5.307], [0.0, 0.0]]
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.distributions.base import Distribution, dense, numbers, row_numbers, where_present
from candide.errors import InputError
from candide.rows.blocks import Block, Codes, Csr, Floats

if TYPE_CHECKING:
    from candide.distributions.forms import OfNumbers

_CELLS = 1 << 16  # (row, class, feature) cells worked at once: temporaries that stay in cache


@dataclass(frozen=True, eq=False)
class Density(Distribution):
    log_density: Callable[..., NDArray]  # (x, **params): x (row, 1, feature), params (class, feature)
    params: dict[str, Floats]  # (class, feature) each
    draw: Callable[..., NDArray] | None = None  # (rng, **params) -> values of the parameters' shape
    natural: Callable[..., tuple[Floats, Floats]] | None = None  # (**params) -> weight, base where it is linear in x

    not_linear: ClassVar[str] = "its log-density is not linear in the value; use estimate='mean', 'map' or 'mle'"

    def __post_init__(self) -> None:
        # One layout for all: the order of a sum, and so its last bit, follows that of the arrays.
        object.__setattr__(self, "params", {name: np.ascontiguousarray(p) for name, p in self.params.items()})

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
            if np.isfinite(self._at_zero).all():
                return self._add_stored(block, out)
            block = dense(block)
        step = max(1, _CELLS // max(1, out.shape[1] * block.shape[1]))
        n_absent = 0
        for start in range(0, len(block), step):
            x = numbers(block[start : start + step]).astype(np.float64, copy=False)
            if np.isinf(x).any():
                return kernels.INFINITE
            n_absent += int(np.isnan(x).sum())
            out[start : start + step] += self._terms(x).sum(axis=2)
        return n_absent

    @cached_property
    def _at_zero(self) -> Floats:
        """(class, feature) log-density of the value that sparse rows do not store."""
        return self._log_density(np.zeros((1, 1, 1)), self.params)[0]

    def _add_stored(self, block: Csr, out: Floats) -> int:
        """As if every value were zero, then the difference that each stored value makes."""
        stored = slice(block.indptr[0], block.indptr[-1])
        x, column = block.data[stored].astype(np.float64), block.indices[stored]
        if not np.isfinite(x).all():
            return kernels.INFINITE
        row = row_numbers(block)
        for c in range(self.n_classes):
            term = self._log_density(x, {name: p[c, column] for name, p in self.params.items()})
            out[:, c] += self._at_zero[c].sum() + np.bincount(row, term - self._at_zero[c, column], len(out))
        return 0

    def _log_density(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(self.log_density(x, **params), np.float64)

    def _terms(self, x: NDArray) -> Floats:
        x = x.astype(np.float64, copy=False)  # float32 would carry its rounding through the special functions
        return where_present(x, self._log_density(x[:, None, :], self.params))

    def quadratic(self) -> "OfNumbers | None":
        from candide.distributions.forms import OfNumbers

        return None if self.natural is None else OfNumbers(*self.natural(**self.params), law=self)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        if self.draw is None:
            raise InputError("this event model cannot sample: it has no `draw(rng, **params)`")
        return self.draw(rng, **{name: p[y] for name, p in self.params.items()})

    def parameters(self) -> dict[str, NDArray]:
        return dict(self.params)
