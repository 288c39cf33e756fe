"""Shared by the distributions of values >= 0: their fields are their parameters, with a rule for the values of each."""

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.distributions.arrays import ArrayRule, ArraySource, DistributionShape, read_array
from candide.distributions.base import MAX_SCORED_VALUE, Distribution
from candide.distributions.density import Elementwise
from candide.distributions.score_expression import Expression, clip, parameter, times, where, zero_if_missing

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


class NonNegativeDistribution(Elementwise):
    _rules: ClassVar[dict[str, ArrayRule]]  # of each parameter

    def __post_init__(self) -> None:
        # One layout for all: the order of a sum, and so its last bit, follows that of the arrays.
        for name, array in self.params.items():
            object.__setattr__(self, name, np.ascontiguousarray(array))

    def _log_density_quietly(self, x: NDArray, params: dict[str, Floats]) -> Floats:
        return super()._log_density_quietly(np.minimum(x, MAX_SCORED_VALUE), params)

    @property
    def params(self) -> dict[str, Floats]:  # type: ignore[override]
        return {name: getattr(self, name) for name in self._rules}

    def arrays(self) -> dict[str, NDArray]:
        return dict(self.params)

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        size = shape.n_classes, shape.n_features
        return cls(**{name: read_array(arrays, name, size, rule) for name, rule in cls._rules.items()})

    def _linear(self, constant: Floats, weight: Floats) -> "ScoreForm":
        from candide.distributions.score_form import NumericInput, Polynomial

        return Polynomial(constant, weight, numeric_input=NumericInput(low=0.0))

    def _linear_expression(self, x: Expression, constant: Floats, slope: Floats) -> Expression:
        score = parameter("constant", constant) + times(clip(x, 0.0), "slope", slope)
        return zero_if_missing(x, where(x < 0.0, -np.inf, score))
