"""Weighted: a law whose features count more or less than once. What comes out is a score, and no log-probability.

>>> from candide.distributions.normal import Normal
>>> normal = Normal(np.zeros((1, 2)), np.ones((1, 2)))
>>> half = normal.weighted(np.array([0.5, 1.0]))
>>> (half.terms(np.ones((1, 2))) / normal.terms(np.ones((1, 2)))).ravel().tolist(), half.has_density
([0.5, 1.0], False)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.distributions.arrays import Found, Shape, take
from candide.distributions.base import Answers, Distribution, times
from candide.errors import InputError
from candide.rows.blocks import Block, Codes, Floats

if TYPE_CHECKING:
    from candide.distributions.form import Form


@dataclass(frozen=True, eq=False)
class Weighted(Distribution):
    base: Distribution
    weight: Floats  # (feature)

    name: ClassVar[str] = "weighted"
    has_density = False

    def __post_init__(self) -> None:
        if self.weight.shape != (self.base.n_features,) or not np.isfinite(self.weight).all():
            raise InputError(
                f"{self.base.n_features} features, and weights of shape {self.weight.shape}",
                value=self.weight,
                remedy="pass a finite number for each",
            )

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @property
    def n_features(self) -> int:
        return self.base.n_features

    @property
    def reads(self) -> str:  # type: ignore[override]
        return self.base.reads

    @property
    def by_blas(self) -> bool:  # type: ignore[override]
        return self.base.by_blas

    @property
    def not_linear(self) -> str:  # type: ignore[override]
        return self.base.not_linear

    @cached_property
    def _tables(self) -> Distribution | None:
        return self.base.scaled(self.weight)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if self._tables is not None:
            return self._tables.add_log_prob(block, out)
        return self.base.add_weighted(block, self.weight, out)

    def terms(self, block: Block) -> Floats:
        return times(self.base.terms(block), self.weight)

    def _terms(self, x: NDArray) -> Floats:
        return times(self.base._terms(x), self.weight)

    def weighted(self, weight: NDArray) -> "Weighted":
        return Weighted(self.base, self.weight * weight)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Rows of the law that is weighted: weights are about the class, not about the rows."""
        return self.base.sample(y, rng)

    @property
    def unweighted(self) -> tuple[Distribution, Floats]:
        return self.base, self.weight

    @property
    def story(self) -> Distribution:
        return self.base.story

    def answers(self) -> Answers | None:
        return self._answers

    @cached_property
    def _answers(self) -> Answers | None:  # kept: whoever looks at columns one by one asks for each
        base = self.base.answers()
        if base is None:
            return None
        each = np.repeat(self.weight, np.diff(base.offsets))[:, None]
        return replace(base, table=times(base.table, each))

    def typical(self, y: Codes, rng: "np.random.Generator") -> Any:
        return self.base.typical(y, rng)

    def mean(self) -> Floats:
        return self.base.mean()

    def parameters(self) -> dict[str, NDArray]:
        return self.base.parameters()

    def describe(
        self, j: int, columns: Sequence[Any] = (), levels: Sequence[str] = (), often: Any = None, most: int = 12
    ) -> tuple[list[str], Floats]:
        return self.base.describe(j, columns, levels, often, most)

    def form(self) -> "Form":
        return self.base.form().times(self.weight)

    def exported(self) -> dict[str, Any]:
        return {**self.base.exported(), "weight": self.weight}

    @property
    def inner(self) -> Distribution:
        return self.base

    def arrays(self) -> dict[str, NDArray]:
        return {"weight": self.weight}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        if base is None:
            raise InputError("the law that is weighted is missing")
        return cls(base, take(arrays, "weight", (base.n_features,)))
