"""What every encoding is: how one column becomes what is counted. A change of it needs the data again.

An encoding is a frozen value, compared when counts merge, and stored with them. ``learn`` takes from a column what it
needs to know (the levels met, the edges of a grid), never from labels. ``apply`` then gives numbers, NaN where absent,
or codes: -1 where absent, ``n_levels`` where the value was never met.

A block need not hold what is counted. That of logarithms, or of numbers against one threshold, holds the numbers as
they lie in memory, and the tally's loops transform them as they read: ``apply`` is ``tallied`` of ``read``.

>>> import numpy as np
>>> from candide.encoding import LevelEncoding, Log
>>> Log().read(np.array([1.0, np.e])).round(2).tolist(), Log().apply(np.array([1.0, np.e])).tolist()
([1.0, 2.72], [0.0, 1.0])
>>> jobs, more = (LevelEncoding().learn(column) for column in (["cook", "smith"], ["baker", "smith"]))
>>> jobs.apply(["smith", None, "clerk"]).tolist(), jobs.apply(EncodedColumn(np.array([0, -1]))).tolist()
([1, -1, 2], [0, -1])
>>> both, mine, theirs = jobs.union(more)
>>> both.level_names(), mine.apply(jobs.apply(["smith", None, "clerk"])).tolist()
(('baker', 'cook', 'smith'), [2, -1, 3])
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.table import EncodedColumn
from candide.errors import MERGE_REMEDY, MergeError

_MAX_REPR_LENGTH = 100  # letters of an encoding in print

__all__ = ["UNCHANGED_CODES", "CodeMapping", "EncodedColumn", "Encoding"]


@dataclass(frozen=True, eq=False)
class CodeMapping:
    """Where codes go when two encodings unite; where these are no codes, nothing moves."""

    new_codes: Codes | None = None  # (levels) the new code of each
    n_levels: int | None = None  # of both together

    def apply(self, x: NDArray) -> NDArray:
        """The same values under the united encoding; what was absent or never met stays so."""
        if self.new_codes is None or self.n_levels is None:
            return x
        return np.concatenate([self.new_codes, [self.n_levels, -1]]).astype(x.dtype)[x]


UNCHANGED_CODES = CodeMapping()


class Encoding:
    """How one column becomes numbers, codes or documents. A concrete one is a frozen dataclass."""

    block_kind: str = "numbers"  # what its block holds: "numbers", "scores" made of values, "codes" or "documents"
    has_transform: ClassVar[bool] = False  # whether a function of the block's numbers is tallied
    is_read_as_text: ClassVar[bool] = False  # whether values are read as they are written, not as numbers
    is_python_only: ClassVar[bool] = False  # whether no SQL says it
    threshold: float | None = None  # where all that is tallied of a number is whether it lies above this
    least: float | None = None  # smaller values are an error
    n_levels: int | None = None  # of codes
    width: int = 1  # how many numbers it makes of a value

    def seen_values(self) -> tuple[float, ...]:
        """Numbers that it learned from, ascending and spread evenly over the rows; none where it keeps none."""
        return ()

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """The encoding that this column, with row weights, asks for; where there is nothing to learn, the same."""
        return self

    def read(self, column: Any) -> Any:
        """What the block holds of a column; one that an engine has encoded passes."""
        return column.codes if isinstance(column, EncodedColumn) else self._read(column)

    def _read(self, column: Any) -> Any:
        raise NotImplementedError

    def tally_values(self, x: Any) -> Any:
        """What is counted of what the block holds."""
        return x

    def apply(self, column: Any) -> Any:
        """Numbers (NaN: absent), codes (-1: absent, ``n_levels``: never met) or documents."""
        x = self.tally_values(self.read(column))
        return x if self.n_levels is None else x.astype(np.int32, copy=False)

    def decode(self, x: NDArray) -> NDArray:
        """The values that stand for what the block holds: numbers as they are, of codes the levels."""
        return x

    def invalid_mask(self, x: NDArray) -> NDArray[np.bool_]:
        """Which numbers of a block this cannot encode."""
        return np.zeros(x.shape, bool) if self.least is None else x < self.least

    @property
    def has_bounds(self) -> bool:
        """Whether there are numbers that this cannot encode."""
        return self.least is not None

    @property
    def requirement(self) -> str:
        """What values this asks for, for messages."""
        return "numbers" if self.least is None else f"values >= {self.least:g}"

    def union(self, other: Self) -> tuple[Self, CodeMapping, CodeMapping]:
        """The encoding of both, and how each one's codes move."""
        if self != other:
            shown = (formatting.truncate(str(one), _MAX_REPR_LENGTH) for one in (self, other))
            raise MergeError(f"encoded as {' in one model and as '.join(shown)} in the other", remedy=MERGE_REMEDY)
        return self, UNCHANGED_CODES, UNCHANGED_CODES

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which levels stay known where only some are met: all of them, unless they were learned by meeting them."""
        return np.ones(len(seen), bool)

    def retain_levels(self, seen: NDArray[np.bool_]) -> Self:
        """The encoding with the levels that stay known."""
        return self

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        """The levels as they are shown; () of numbers and documents."""
        return ()

    def value_range(self) -> tuple[float, float] | None:
        """Between which numbers the values lay from which it learned, about; None where it does not know."""
        return None

    @property
    def value_kind(self) -> str:
        """What a value is to a person: a "number", a "level" or a "text"."""
        return "text" if self.block_kind == "documents" else "level" if self.is_read_as_text else "number"

    def to_export_dict(self) -> dict[str, Any]:
        """How another program reads a value: ``read``, the name of a way, and what that needs to know."""
        return {"read": "number"}

    def sql(self, x: Any, dialect: Any) -> Any:
        """What is tallied of ``x``, as sqlglot expressions; None where rows are needed, not SQL."""
        return None
