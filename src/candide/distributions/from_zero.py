"""What the laws of values >= 0 share: their fields are their parameters, and each says what its numbers must be."""

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.distributions.arrays import Found, Rule, Shape, take
from candide.distributions.base import LARGEST_SCORED, Distribution
from candide.distributions.density import Elementwise
from candide.rows.blocks import Floats

if TYPE_CHECKING:
    from candide.distributions.form import Form


class FromZero(Elementwise):
    _rules: ClassVar[dict[str, Rule]]  # of each parameter

    def __post_init__(self) -> None:
        # One layout for all: the order of a sum, and so its last bit, follows that of the arrays.
        for name, array in self.params.items():
            object.__setattr__(self, name, np.ascontiguousarray(array))

    def _quiet(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        return super()._quiet(np.minimum(x, LARGEST_SCORED), params)

    @property
    def params(self) -> dict[str, Floats]:  # type: ignore[override]
        return {name: getattr(self, name) for name in self._rules}

    def arrays(self) -> dict[str, NDArray]:
        return dict(self.params)

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        size = shape.n_classes, shape.n_features
        return cls(**{name: take(arrays, name, size, rule) for name, rule in cls._rules.items()})

    def _linear(self, constant: Floats, weight: Floats) -> "Form":
        from candide.distributions.form import Numbers, Polynomial

        return Polynomial(constant, weight, read=Numbers(low=0.0))
