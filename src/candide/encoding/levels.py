"""Levels: categories. A column's distinct values in a fixed order, and the code of each.

>>> soil = LevelEncoding().learn(["sand", "clay", None, "sand"])
>>> soil.level_names(), soil.apply(["clay", "moss", None]).tolist(), soil.n_levels
(('clay', 'sand'), [0, 2, -1], 2)
>>> soil.decode(np.array([1, 0])).tolist()
['sand', 'clay']
>>> (
...     soil.retain_levels(np.array([False, True])).level_names(),
...     LevelEncoding.from_size(3).retain_levels(np.array([False, True, False])).level_names(),
... )
(('sand',), ('0', '1'))

A value is the same level however it is written (:mod:`candide.data.value_matching`).

>>> LevelEncoding().learn([1, 2]).apply(["2", "1.0", "3"]).tolist()
[1, 0, 2]
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data import value_matching
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.encoding.base import CodeMapping, Encoding
from candide.errors import InputError


@dataclass(frozen=True)
class LevelEncoding(Encoding):
    """The levels met, numbers before text; none before anything was learned.

    ``gapless``: they are the whole numbers from 0, and what lies below a level that is known is known as well.
    """

    labels: Labels = Labels(())
    gapless: bool = False

    block_kind = "codes"
    is_read_as_text: ClassVar[bool] = True

    @classmethod
    def from_size(cls, n: int, declared: int = 0) -> "LevelEncoding":
        """Levels that are their own codes, 0 to n - 1, the first of them declared."""
        return cls(Labels(tuple(range(n)), frozenset(range(declared))), gapless=True)

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        return len(self.labels)

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """Exactly the levels that a column holds."""
        labels = Labels.from_values(column)
        for value in labels.values:
            if isinstance(value, float) and np.isinf(value):
                raise InputError(
                    "infinity is not a usable level", value=value, remedy="make it missing (NaN), or drop the row"
                )
        return replace(self, labels=labels)

    def _read(self, column: Any) -> NDArray[np.intp]:
        return value_matching.match_codes(self.labels, column)

    def decode(self, x: NDArray) -> NDArray:
        """The levels of codes; a column that never held a value has none."""
        return self.labels.array[x] if self.n_levels else np.full(len(x), np.nan)

    def union(self, other: Self) -> tuple[Self, CodeMapping, CodeMapping]:
        both, mine, theirs = self.labels.union(other.labels)
        return replace(self, labels=both), CodeMapping(mine, len(both)), CodeMapping(theirs, len(both))

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        stays = self.labels.retained_mask(seen)
        return np.logical_or.accumulate(stays[::-1])[::-1] if self.gapless else stays

    def retain_levels(self, seen: NDArray[np.bool_]) -> Self:
        labels = self.labels.retain(self.retained_mask(seen))
        return self if labels is self.labels else replace(self, labels=labels)

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        return tuple(map(str, self.labels.values))

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "levels", "levels": self.labels.values}

    def sql(self, x: Any, dialect: Any) -> Any:
        """The code of a value: -1 where it is NULL, ``n_levels`` where it is no level."""
        from sqlglot import exp

        absent = exp.If(this=exp.Is(this=x.copy(), expression=exp.Null()), true=exp.Literal.number(-1))
        known = [
            exp.If(this=exp.EQ(this=x.copy(), expression=exp.convert(value)), true=exp.Literal.number(code))
            for code, value in enumerate(self.labels.values)
        ]
        return exp.Case(ifs=[absent, *known], default=exp.Literal.number(self.n_levels))
