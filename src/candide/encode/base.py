"""What every encoding is: how one column becomes what is counted. A change of it needs the data again.

An encoding is a frozen value, compared when counts merge, and stored with them. ``learn`` takes from a column what it
needs to know (the levels met, the edges of a grid), never from labels. ``apply`` then gives numbers, NaN where absent,
or codes: -1 where absent, ``n_levels`` where the value was never met.

A block need not hold what is counted. That of logarithms, or of numbers against one threshold, holds the numbers as
they lie in memory, and the tally's loops transform them as they read: ``apply`` is ``tallied`` of ``read``.

>>> import numpy as np
>>> from candide.encode import Levels, Log
>>> Log().read(np.array([1.0, np.e])).round(2).tolist(), Log().apply(np.array([1.0, np.e])).tolist()
([1.0, 2.72], [0.0, 1.0])
>>> jobs, more = (Levels().learn(column) for column in (["cook", "smith"], ["baker", "smith"]))
>>> jobs.apply(["smith", None, "clerk"]).tolist(), jobs.apply(Coded(np.array([0, -1]))).tolist()
([1, -1, 2], [0, -1])
>>> both, mine, theirs = jobs.union(more)
>>> both.names(), mine.apply(jobs.apply(["smith", None, "clerk"])).tolist()
(('baker', 'cook', 'smith'), [2, -1, 3])
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.errors import ALIKE, MergeError
from candide.rows.blocks import Codes, Floats
from candide.rows.table import Coded

_LONG = 100  # letters of an encoding in print

__all__ = ["STAY", "Coded", "Encoding", "Move"]


@dataclass(frozen=True, eq=False)
class Move:
    """Where codes go when two encodings unite; where these are no codes, nothing moves."""

    to: Codes | None = None  # (levels) the new code of each
    n_levels: int | None = None  # of both together

    def apply(self, x: NDArray) -> NDArray:
        """The same values under the united encoding; what was absent or never met stays so."""
        if self.to is None or self.n_levels is None:
            return x
        return np.concatenate([self.to, [self.n_levels, -1]]).astype(x.dtype)[x]


STAY = Move()


class Encoding:
    """How one column becomes numbers, codes or documents. A concrete one is a frozen dataclass."""

    holds: str = "numbers"  # what its block holds: "numbers", "scores" made of values, "codes" or "documents"
    transforms: ClassVar[bool] = False  # whether a function of the block's numbers is tallied
    as_written: ClassVar[bool] = False  # whether values are read as they are written, not as numbers
    python_only: ClassVar[bool] = False  # whether no SQL says it
    threshold: float | None = None  # where all that is tallied of a number is whether it lies above this
    least: float | None = None  # smaller values are an error
    n_levels: int | None = None  # of codes
    width: int = 1  # how many numbers it makes of a value

    def met(self) -> tuple[float, ...]:
        """Numbers that it learned from, ascending and spread evenly over the rows; none where it keeps none."""
        return ()

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """The encoding that this column, with row weights, asks for; where there is nothing to learn, the same."""
        return self

    def read(self, column: Any) -> Any:
        """What the block holds of a column; one that an engine has encoded passes."""
        return column.codes if isinstance(column, Coded) else self._read(column)

    def _read(self, column: Any) -> Any:
        raise NotImplementedError

    def tallied(self, x: Any) -> Any:
        """What is counted of what the block holds."""
        return x

    def apply(self, column: Any) -> Any:
        """Numbers (NaN: absent), codes (-1: absent, ``n_levels``: never met) or documents."""
        x = self.tallied(self.read(column))
        return x if self.n_levels is None else x.astype(np.int32, copy=False)

    def decode(self, x: NDArray) -> NDArray:
        """The values that stand for what the block holds: numbers as they are, of codes the levels."""
        return x

    def outside(self, x: NDArray) -> NDArray[np.bool_]:
        """Which numbers of a block this cannot encode."""
        return np.zeros(x.shape, bool) if self.least is None else x < self.least

    @property
    def bounded(self) -> bool:
        """Whether there are numbers that this cannot encode."""
        return self.least is not None

    @property
    def needs(self) -> str:
        """What values this asks for, for messages."""
        return "numbers" if self.least is None else f"values >= {self.least:g}"

    def union(self, other: Self) -> tuple[Self, Move, Move]:
        """The encoding of both, and how each one's codes move."""
        if self != other:
            shown = (wording.shortened(str(one), _LONG) for one in (self, other))
            raise MergeError(f"encoded as {' in one model and as '.join(shown)} in the other", remedy=ALIKE)
        return self, STAY, STAY

    def stays(self, met: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which levels stay known where only some are met: all of them, unless they were learned by meeting them."""
        return np.ones(len(met), bool)

    def left(self, met: NDArray[np.bool_]) -> Self:
        """The encoding with the levels that stay known."""
        return self

    def names(self, dates: bool = False) -> tuple[str, ...]:
        """The levels as they are shown; () of numbers and documents."""
        return ()

    def extent(self) -> tuple[float, float] | None:
        """Between which numbers the values lay from which it learned, about; None where it does not know."""
        return None

    @property
    def kind(self) -> str:
        """What a value is to a person: a "number", a "level" or a "text"."""
        return "text" if self.holds == "documents" else "level" if self.as_written else "number"

    def exported(self) -> dict[str, Any]:
        """How another program reads a value: ``read``, the name of a way, and what that needs to know."""
        return {"read": "number"}

    def sql(self, x: Any, dialect: Any) -> Any:
        """What is tallied of ``x``, as sqlglot expressions; None where rows are needed, not SQL."""
        return None
