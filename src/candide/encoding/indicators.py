"""Indicators: numbers for the levels of a column, each of them whether a value is a given level.

Each has mean 0 and standard deviation 1 in the training column. A missing value is 0 in all of them.

Here 1 - 0.25 and 0 - 0.25 are divided by their standard deviation:

>>> jobs = Indicators.from_column(["cook", "smith", "smith", "smith"], max_levels=60)
>>> jobs.levels, jobs.read(["cook", "smith", None]).round(2).tolist()
(('cook',), [[1.73], [-0.58], [0.0]])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from candide.data import value_matching
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.encoding.base import Encoding
from candide.errors import InputError

_MIN_VARIANCE = 1e-3  # the least variance of an indicator


@dataclass(frozen=True)
class Indicators(Encoding):
    """For each of some levels whether a value is it, less the share that it had, over its deviation."""

    levels: tuple[Any, ...] = ()
    level_proportions: tuple[float, ...] = ()

    block_kind = "scores"
    is_read_as_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.level_proportions) or not all(
            0 <= share <= 1 for share in self.level_proportions
        ):
            raise InputError("no share in 0..1 for each level", value=self.level_proportions)

    @cached_property
    def labels(self) -> Labels:
        return Labels(self.levels)

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.levels)

    @classmethod
    def from_column(cls, column: Any, max_levels: int, weight: Floats | None = None) -> "Indicators":
        """Of the most frequent levels of a column, but for the first: where all others are absent it is that one."""
        known = Labels.from_values(column)
        code = known.encode(column)
        n = np.bincount(code[code >= 0], None if weight is None else weight[code >= 0], len(known))
        chosen = np.sort(np.argsort(-n, kind="stable")[1:max_levels])
        total = len(code) if weight is None else float(weight.sum())
        proportions = np.minimum(n[chosen] / max(1e-300, total), 1.0)
        return cls(tuple(known.values[i] for i in chosen), tuple(proportions.tolist()))

    def read(self, column: Any) -> Floats:
        """(row, level); a value is the same level however it is written."""
        code = value_matching.match_codes(self.labels, column)
        yes, no = self._scores
        out = np.empty((len(code), len(no)), order="F")
        out[:] = no
        seen = np.flatnonzero((code >= 0) & (code < len(no)))
        out[seen, code[seen]] = yes[code[seen]]
        out[np.flatnonzero(code < 0)] = 0.0
        return out

    @cached_property
    def _scores(self) -> tuple[Floats, Floats]:
        """(level,) what a value that is the level has, and one that is not."""
        share = np.array(self.level_proportions)
        scale = np.sqrt(np.maximum(share * (1 - share), _MIN_VARIANCE))
        return (1 - share) / scale, -share / scale

    def to_export_dict(self) -> dict[str, Any]:
        yes, no = self._scores
        return {"read": "indicators", "levels": self.levels, "yes": yes, "no": no}
