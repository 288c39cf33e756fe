"""A distribution whose features have weights. Its result is a score, not a log-probability.

>>> from candide.distributions.normal import Normal
>>> normal = Normal(np.zeros((1, 2)), np.ones((1, 2)))
>>> weighted = normal.with_feature_weights(np.array([0.5, 1.0]))
>>> (weighted.contributions(np.ones((1, 2))) / normal.contributions(np.ones((1, 2)))).ravel().tolist()
[0.5, 1.0]
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, LevelScores, Names, Rows, multiply_contributions
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class WeightedDistribution(Distribution):
    base: Distribution
    weight: Floats  # (feature)

    name: ClassVar[str] = "weighted"
    has_density = False

    def __post_init__(self) -> None:
        if self.weight.shape != (self.base.n_features,) or not np.isfinite(self.weight).all():
            what = f"{self.base.n_features} features, and weights of shape {self.weight.shape}"
            raise InputError(what, value=self.weight, remedy="pass a finite number for each")

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @property
    def n_features(self) -> int:
        return self.base.n_features

    @property
    def block_kind(self) -> str:  # type: ignore[override]
        return self.base.block_kind

    @property
    def is_blas_bound(self) -> bool:  # type: ignore[override]
        return self.base.is_blas_bound

    @property
    def nonlinear_reason(self) -> str:  # type: ignore[override]
        return self.base.nonlinear_reason

    @cached_property
    def _scaled_base(self) -> Distribution | None:
        return self.base.scale_tables(self.weight)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if self._scaled_base is not None:
            return self._scaled_base.add_log_prob(block, out)
        return self.base.add_weighted(block, self.weight, out)

    def contributions(self, block: Block) -> Floats:
        return multiply_contributions(self.base.contributions(block), self.weight)

    def _contributions(self, x: NDArray) -> Floats:
        return multiply_contributions(self.base._contributions(x), self.weight)

    def with_feature_weights(self, weight: NDArray) -> "WeightedDistribution":
        return WeightedDistribution(self.base, self.weight * weight)

    @property
    def base_and_weights(self) -> tuple[Distribution, Floats]:
        return self.base, self.weight

    @property
    def generative_distribution(self) -> Distribution:
        return self.base.generative_distribution

    def level_scores(self) -> LevelScores | None:
        return self._scaled_level_scores

    @cached_property
    def _scaled_level_scores(self) -> LevelScores | None:  # kept: explanations ask for it column by column
        base = self.base.level_scores()
        if base is None:
            return None
        weight = np.repeat(self.weight, np.diff(base.offsets))[:, None]
        return replace(base, table=multiply_contributions(base.table, weight))

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Rows of the unweighted distribution: weights are about the class, not about the rows."""
        return self.base.sample(y, rng)

    def sample_block(self, y: Codes, rng: "np.random.Generator") -> Any:
        return self.base.sample_block(y, rng)

    def mean(self) -> Floats:
        return self.base.mean()

    def parameters(self) -> dict[str, NDArray]:
        return self.base.parameters()

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        return self.base.describe(j, columns, levels, weights, max_rows)

    def form(self) -> "ScoreForm":
        return self.base.form().scale_units(self.weight)

    def to_export_dict(self) -> dict[str, Any]:
        return {**self.base.to_export_dict(), "weight": self.weight}

    @property
    def inner_distribution(self) -> Distribution:
        return self.base

    def arrays(self) -> dict[str, NDArray]:
        return {"weight": self.weight}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        if base is None:
            raise InputError("the weighted distribution is missing")
        return cls(base, read_array(arrays, "weight", (base.n_features,)))
