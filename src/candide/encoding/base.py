"""Encodings: how one column becomes what is counted; those to numbers, as they are or transformed when tallied.

An encoding is a frozen value, stored and compared with counts.

``learn`` takes what it needs from a column (levels, edges), never from labels. ``apply`` gives numbers (NaN where
absent) or codes (-1 where absent, ``n_levels`` where the value is unseen). It is ``tally_values`` of ``read``: a block
may hold numbers as they are in memory, and the loops of the tally transform them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.labels import as_column
from candide.data.table import EncodedColumn, to_numbers
from candide.errors import MERGE_REMEDY, InputError, MergeError

_MAX_REPR_LENGTH = 100  # letters of an encoding in a message
_MIN_WEIGHT = 1e-100  # weights below have few digits left


@dataclass(frozen=True, eq=False)
class CodeMapping:
    """Where codes go when two encodings unite; None for numbers, which stay."""

    new_codes: Codes | None = None  # (level,)
    n_levels: int | None = None  # of the united encoding

    def apply(self, x: NDArray) -> NDArray:
        """The same values under the united encoding; absent and unseen values stay so."""
        if self.new_codes is None or self.n_levels is None:
            return x
        return np.concatenate([self.new_codes, [self.n_levels, -1]]).astype(x.dtype)[x]


class Encoding:
    """How one column becomes numbers, codes or documents. A concrete one is a frozen dataclass."""

    block_kind: str = "numbers"  # what its block holds: "numbers", "scores" made of values, "codes" or "documents"
    has_transform: ClassVar[bool] = False  # whether a function of the block's numbers is tallied
    is_read_as_text: ClassVar[bool] = False  # whether values are read as they are written, not as numbers
    is_python_only: ClassVar[bool] = False  # whether it cannot be written in SQL
    threshold: float | None = None  # set if only whether a number is above it is tallied
    least: float | None = None  # smaller values are an error
    n_levels: int | None = None  # of codes
    width: int = 1  # how many numbers it makes of a value

    def seen_values(self) -> tuple[float, ...]:
        """Numbers that it learned from, ascending and spread evenly over the rows; () where it keeps none."""
        return ()

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """The encoding for this column, with row weights."""
        return self

    def read(self, column: Any) -> Any:
        """What the block holds of a column; a column that an engine has encoded stays as it is."""
        return column.codes if isinstance(column, EncodedColumn) else self._read(column)

    def _read(self, column: Any) -> Any:
        raise NotImplementedError

    def tally_values(self, x: Any) -> Any:
        """What is counted of what the block holds."""
        return x

    def apply(self, column: Any) -> Any:
        """Numbers (NaN: absent), codes (-1: absent, ``n_levels``: unseen) or documents."""
        x = self.tally_values(self.read(column))
        return x if self.n_levels is None else x.astype(np.int32, copy=False)

    def decode(self, x: NDArray) -> NDArray:
        """The values behind what the block holds: numbers as they are, levels for codes."""
        return x

    def invalid_mask(self, x: NDArray) -> NDArray[np.bool_]:
        """Which numbers of a block cannot be encoded."""
        return np.zeros(x.shape, bool) if self.least is None else x < self.least

    @property
    def has_bounds(self) -> bool:
        return self.least is not None

    @property
    def requirement(self) -> str:
        """The values that can be encoded, for messages."""
        return "numbers" if self.least is None else f"values >= {self.least:g}"

    def union(self, other: Self) -> tuple[Self, CodeMapping, CodeMapping]:
        """The encoding of both, and how the codes of each move."""
        if self != other:
            both = " in one model and as ".join(formatting.truncate(str(e), _MAX_REPR_LENGTH) for e in (self, other))
            raise MergeError(f"encoded as {both} in the other", remedy=MERGE_REMEDY)
        return self, CodeMapping(), CodeMapping()

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which levels stay known where only some are seen: all, unless levels are learned from values."""
        return np.ones(len(seen), bool)

    def retain_levels(self, seen: NDArray[np.bool_]) -> Self:
        return self

    def level_names(self, dates: bool = False) -> tuple[str, ...]:
        """The levels as they are shown; () for numbers and documents."""
        return ()

    def value_range(self) -> tuple[float, float] | None:
        """The approximate range of the values it learned from; None where it does not know."""
        return None

    @property
    def value_kind(self) -> str:
        """What a value is to a person: a "number", a "level" or a "text"."""
        return "text" if self.block_kind == "documents" else "level" if self.is_read_as_text else "number"

    def to_export_dict(self) -> dict[str, Any]:
        """How another program reads a value: ``read``, the name of a method, and its parameters."""
        return {"read": "number"}

    def sql(self, x: Any, dialect: Any) -> Any:
        """What is tallied of ``x``, as sqlglot expressions; None where SQL cannot do it."""
        return None


def distinct_numbers(column: Any, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """The distinct finite numbers of a column, ascending, and the weight of each."""
    x = np.asarray(to_numbers(as_column(column)), np.float64)
    is_finite = np.isfinite(x)
    if weight is not None and not _MIN_WEIGHT < weight.max(initial=0.0) < 1 / _MIN_WEIGHT:
        weight = weight / weight.max()  # only proportions count, and these have no digits next to nothing
    values, place = np.unique(x[is_finite] + 0.0, return_inverse=True)
    n = np.bincount(place, None if weight is None else weight[is_finite], len(values)).astype(np.float64)
    return values[n > 0], n[n > 0]


class NumericEncoding(Encoding):
    """An encoding whose block holds the numbers as they are in memory."""

    def _read(self, column: Any) -> Any:
        return to_numbers(as_column(column))


@dataclass(frozen=True)
class Identity(NumericEncoding):
    """Numbers, dates as days; with ``least`` a smaller value is an error: for amounts and counts, one below 0."""

    least: float | None = None

    def sql(self, x: Any, dialect: Any) -> Any:
        return x


@dataclass(frozen=True)
class Log(NumericEncoding):
    """Numbers > 0; what is tallied is ln x."""

    has_transform: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = True
    requirement: ClassVar[str] = "values > 0"

    def tally_values(self, x: NDArray) -> NDArray:
        bad = self.invalid_mask(x)
        if bad.any():
            value, remedy = x[bad][0].item(), f"pass {self.requirement}, or another event model"
            raise InputError(f"value {value:g} in data whose logarithm is modelled", value=value, remedy=remedy)
        with np.errstate(over="ignore"):
            return np.log(x.astype(np.float64))

    def invalid_mask(self, x: NDArray) -> NDArray[np.bool_]:
        return x <= 0

    def sql(self, x: Any, dialect: Any) -> Any:
        """NULL for a value that is not positive, so that the query runs: the minimum shows it, and it is refused."""
        from sqlglot import exp

        positive = exp.GT(this=x.copy(), expression=exp.Literal.number("0"))
        log = exp.Ln(this=x.copy()) if dialect is None else dialect.log(x.copy())
        return exp.Case(ifs=[exp.If(this=positive, true=log)])


@dataclass(frozen=True)
class TransformedEncoding(NumericEncoding):
    """Numbers of which a Python function is tallied; equal where ``equality_key`` is, which defaults to it."""

    has_transform: ClassVar[bool] = True
    is_python_only: ClassVar[bool] = True

    function: Callable[[NDArray], NDArray] = field(compare=False)
    equality_key: Any = None

    def __post_init__(self) -> None:
        if self.equality_key is None:
            object.__setattr__(self, "equality_key", self.function)

    @classmethod
    def from_event(cls, event: Any) -> "TransformedEncoding":
        """The transform of a custom event model: equal where family and settings are, whatever the prior."""
        settings = sorted((key, value) for key, value in vars(event).items() if key != "prior")
        return cls(event.transform, (type(event), tuple(settings)))

    def tally_values(self, x: NDArray) -> NDArray:
        """The transform in float64; -inf, which every engine refuses, where it has no value."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out = self.function(x.astype(np.float64))
        return np.where(np.isnan(out) & ~np.isnan(x), -np.inf, out)
