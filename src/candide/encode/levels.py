"""Levels: categories. A column's distinct values in a fixed order, and the code of each.

>>> soil = Levels().learn(["sand", "clay", None, "sand"])
>>> soil.names(), soil.apply(["clay", "moss", None]).tolist(), soil.n_levels
(('clay', 'sand'), [0, 2, -1], 2)
>>> soil.decode(np.array([1, 0])).tolist()
['sand', 'clay']
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.encode.base import Coded, Encoding, Move
from candide.errors import InputError
from candide.rows import matching
from candide.rows.labels import Labels


@dataclass(frozen=True)
class Levels(Encoding):
    """The levels met, numbers before text; none before anything was learned."""

    labels: Labels = Labels(())

    holds = "codes"
    as_written: ClassVar[bool] = True

    @classmethod
    def of_size(cls, n: int) -> "Levels":
        """Levels that are their own codes, 0 to n - 1."""
        return cls(Labels(tuple(range(n))))

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        return len(self.labels)

    def learn(self, column: Any) -> Self:
        """Exactly the levels that a column holds."""
        labels = Labels.of(column)
        for value in labels.values:
            if isinstance(value, float) and np.isinf(value):
                raise InputError(
                    "infinity is not a usable level", value=value, remedy="make it missing (NaN), or drop the row"
                )
        return type(self)(labels)

    def _read(self, column: Any) -> NDArray[np.intp]:
        return self.labels.encode(column)

    def decode(self, x: NDArray) -> NDArray:
        """The levels of codes; a column that never held a value has none."""
        return self.labels.array[x] if self.n_levels else np.full(len(x), np.nan)

    def match(self, column: Any) -> Coded:
        """Text that spells a level is that level, and the reverse."""
        return Coded(matching.codes(self.labels, column))

    def union(self, other: Self) -> tuple[Self, Move, Move]:
        both, mine, theirs = self.labels.union(other.labels)
        return type(self)(both), Move(mine, len(both)), Move(theirs, len(both))

    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.labels.values))

    def sql(self, x: Any, dialect: Any) -> Any:
        """The code of a value: -1 where it is NULL, ``n_levels`` where it is no level."""
        from sqlglot import exp

        absent = exp.If(this=exp.Is(this=x.copy(), expression=exp.Null()), true=exp.Literal.number(-1))
        known = [
            exp.If(this=exp.EQ(this=x.copy(), expression=exp.convert(value)), true=exp.Literal.number(code))
            for code, value in enumerate(self.labels.values)
        ]
        return exp.Case(ifs=[absent, *known], default=exp.Literal.number(self.n_levels))
