"""NormalScore: a number by its rank. Any increasing change of the column leaves it as it is.

The score is the normal quantile of the rank that the number had in the column that was learned from; between ranks a
straight line. An absent value has the score of the middle, 0.

>>> income = NormalScore().learn([1.0, 2.0, 2.0, 900.0])
>>> income.read([1.0, 2.0, 451.0, None]).round(2).tolist()
[-1.15, 0.0, 0.58, 0.0]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from candide import kernels
from candide.data.blocks import Floats, check_finite
from candide.data.labels import as_column
from candide.data.quantiles import distinct_numbers, nearest_indices
from candide.data.table import to_numbers
from candide.encoding.base import Encoding
from candide.errors import InputError
from candide.kernels import threads
from candide.numerics import normal_quantile

_MAX_KNOTS = 200
_MAX_SCORE = 40.0  # beyond, a normal quantile has no probability in a float
_SEARCH_COST = 8  # what finding a number's place costs, in products


@dataclass(frozen=True)
class NormalScore(Encoding):
    """Numbers, ascending, and the normal score of each."""

    values: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()

    block_kind = "scores"

    def __post_init__(self) -> None:
        known = np.array([self.values, self.scores], float) if len(self.values) == len(self.scores) else None
        if (
            known is None
            or not np.isfinite(known).all()
            or (known[0, 1:] <= known[0, :-1]).any()
            or (known[1, 1:] < known[1, :-1]).any()
            or (np.abs(known[1]) > _MAX_SCORE).any()
        ):
            raise InputError("no ascending numbers with a score each", remedy="let it learn them from a column")
        object.__setattr__(self, "values", tuple(known[0].tolist()))
        object.__setattr__(self, "scores", tuple(known[1].tolist()))

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """Ranks of a column, at all its distinct values or at so many that are spread evenly over the ranks."""
        if self.values:
            return self
        values, n = distinct_numbers(column, weight)
        if not n.any():
            return type(self)((0.0,), (0.0,))
        total, last = float(n.sum()), float(min(n[0], n[-1])) / 2  # scores are bounded by those of the outermost values
        rank = (np.cumsum(n) - n / 2) / total
        if len(values) > _MAX_KNOTS:
            at = np.unique(nearest_indices(rank, (np.arange(_MAX_KNOTS) + 0.5) / _MAX_KNOTS, prefer_low=True))
            values, rank = values[at], rank[at]
        scores = normal_quantile(np.clip(rank, last / total, 1 - last / total))
        return type(self)(tuple(values.tolist()), tuple(scores.tolist()))

    def seen_values(self) -> tuple[float, ...]:
        return self.values

    def decode(self, x: Floats) -> Floats:
        """The numbers that have these scores.

        >>> NormalScore().learn([1.0, 2.0, 2.0, 900.0]).decode(np.array([0.0, 9.0])).tolist()
        [2.0, 900.0]
        """
        return np.interp(x, self.scores, self.values)

    def _read(self, column: Any) -> Floats:
        x, (knots, scores) = check_finite(to_numbers(as_column(column))), self._knots
        out = np.empty(len(x))
        threads.map_rows(lambda rows: kernels.interpolate(x[rows], knots, scores, out[rows]), len(x), cost=_SEARCH_COST)
        return out

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        return np.array(self.values), np.array(self.scores)

    def value_range(self) -> tuple[float, float] | None:
        return (self.values[0], self.values[-1]) if len(self.values) > 1 else None

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "score", "values": self.values, "scores": self.scores}
