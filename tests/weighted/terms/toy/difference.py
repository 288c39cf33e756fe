"""A toy kind of term, whole: the difference of the first two numbers, normal in each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from candide.data.blocks import to_dense
from candide.distributions.arrays import POSITIVE, read_array
from candide.distributions.base import Distribution
from candide.distributions.score_expression import distance, parameter
from candide.encoding.scores import NormalScore
from candide.weighted.terms.base import JointTerm, make_part


@dataclass(frozen=True, eq=False)
class DifferenceScores(Distribution):
    mean_difference: Any  # (class,)
    variance: Any  # (class,)

    name: ClassVar[str] = "difference"
    block_kind = "scores"
    has_density = False
    n_features = 1

    @property
    def n_classes(self) -> int:
        return len(self.variance)

    def add_log_prob(self, block, out) -> int:
        out += self.contributions(block)[:, :, 0]
        return 0

    def _contributions(self, x):
        away = (x[:, :1] - x[:, 1:]) - self.mean_difference
        return -0.5 * (away**2 / self.variance + np.log(self.variance))[:, :, None]

    def sample(self, y, rng):
        self._refuse("has no rows to sample")

    def sample_block(self, y, rng):
        away = self.mean_difference[y] + np.sqrt(self.variance[y]) * rng.standard_normal(len(y))
        return np.column_stack([away, np.zeros(len(y))])

    def parameters(self):
        return {"mean_difference": self.mean_difference[:, None], "variance": self.variance[:, None]}

    def score_expression(self, x):
        deviation, root = np.sqrt(self.variance), np.zeros((self.n_classes, 2, 2))
        root[:, 1] = np.array([1.0, -1.0]) / deviation[:, None]
        centre = np.column_stack([np.zeros(self.n_classes), self.mean_difference / deviation])
        half = parameter("half", np.full(self.n_classes, 0.5))
        return parameter("constant", -0.5 * np.log(self.variance)) - half * distance("difference", root, centre)

    def arrays(self):
        return {"mean": self.mean_difference, "variance": self.variance}

    @classmethod
    def from_arrays(cls, arrays, shape, base=None) -> Self:
        k = (shape.n_classes,)
        return cls(read_array(arrays, "mean", k), read_array(arrays, "variance", k, POSITIVE))


@dataclass(frozen=True)
class Difference(JointTerm):
    name: ClassVar[str] = "difference"
    kind: ClassVar[str] = "comoments"
    is_joint: ClassVar[bool] = True

    @property
    def encoding(self):
        return NormalScore()

    def term_names(self, columns: Sequence[Any]):
        return (tuple(columns),)

    def term_titles(self, columns, encodings=()):
        return (f"difference of {columns[0]} and {columns[1]}",)

    @classmethod
    def distribution_class(cls):
        return DifferenceScores

    @classmethod
    def initial_parts(cls, selector):
        return [make_part(cls(), selector.normal_scores[:2])] if len(selector.normal_scores) > 1 else []

    def _estimate(self, tally, prior, how):
        n, across = tally.weight[:, 0], np.array([1.0, -1.0])
        spread = np.einsum("i,cij,j->c", across, tally.scatter, across)
        return DifferenceScores(tally.mean @ across, (spread + 1.0) / (n + 1.0))

    def held_out_contributions(self, tally, prior, how, block, y, weight=None, out=None):
        z, spec = to_dense(block), self.spec(2)
        out = np.empty((len(z), len(tally.weight), 1)) if out is None else out
        for i in range(len(z)):
            row, w = slice(i, i + 1), None if weight is None else weight[i : i + 1]
            alone = type(tally).from_rows(z[row], y[row], w, n_classes=len(tally.weight), spec=spec)
            out[row] = self.estimate(tally - alone).contributions(z[row])
        return out
