"""Labels: an ordered set of distinct values, of classes or of a column's levels, and their codes.

Numbers come first in ascending order, then text, so the order never depends on which row came first.
None, NaN and their like are absent: code -1. A value outside the set gets the code ``len(labels)``.

>>> animals = Labels.from_values(["cat", "ant", None, "cat"])
>>> animals.values, animals.encode(["ant", "bee", None]).tolist()
(('ant', 'cat'), [0, 2, -1])
>>> both, mine, theirs = animals.union(Labels.from_values(["bee", "cat"]))
>>> both.values, mine.tolist(), theirs.tolist()
(('ant', 'bee', 'cat'), [0, 2], [1, 2])

A label is known because it occurs, or because it is declared; then it stays though no row has it.

>>> both.declare(["cat"]).retain(np.array([False, True, False])).values
('bee', 'cat')
"""

import datetime as dt
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers, is_absent, is_arrow
from candide.data.value_identity import parse_booleans, parse_value, to_plain_value, to_timestamp
from candide.errors import InputError, InputTypeError

_MAX_TABLE_SPAN = 1 << 16  # integers spanning less than this are looked up in a table, not sorted
_MAX_EXACT_INTEGER = 1 << 53  # whole numbers up to here are exact as floats


@dataclass(frozen=True)
class Labels:
    """Distinct values in a fixed order, some of them declared; equal when both agree."""

    values: tuple[Any, ...]
    declared: frozenset[Any] = frozenset()  # values that stay known though no row has them

    @classmethod
    def from_values(cls, column: Any) -> "Labels":
        """The distinct values present in an array, a series, an Arrow array or any iterable."""
        values = _distinct(as_column(column))
        is_uniform = set(map(type, values)) in ({str}, {int}, {float})  # nearly always, and far quicker
        return cls(tuple(sorted(values, key=None if is_uniform else sort_key)))

    def __len__(self) -> int:
        return len(self.values)

    def declare(self, values: Iterable[Any] | None = None) -> "Labels":
        """The same labels, some of which (None: all) are declared."""
        return Labels(self.values, self.declared | frozenset(self.values if values is None else values))

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which labels stay known where only some are seen: these, and those declared."""
        if not self.declared:
            return seen
        return seen | np.fromiter((v in self.declared for v in self.values), bool, len(self))

    def retain(self, seen: NDArray[np.bool_]) -> "Labels":
        """The labels that stay known where only some are seen."""
        stays = self.retained_mask(seen)
        return self if stays.all() else Labels(tuple(compress(self.values, stays)), self.declared)

    @cached_property
    def index(self) -> dict[Any, int]:
        """The code of each value."""
        return {v: i for i, v in enumerate(self.values)}

    @cached_property
    def value_types(self) -> frozenset[type]:
        """The types of the values."""
        return frozenset(map(type, self.values))

    @cached_property
    def typed_codes(self) -> dict[Any, int]:
        """The codes of the values that are not text, dates as their midnights."""
        return {to_timestamp(v): i for i, v in enumerate(self.values) if not isinstance(v, str)}

    @cached_property
    def text_codes(self) -> dict[tuple[bool, Any], int | None]:
        """The codes of texts by the value they can be parsed to, and whether it is a boolean.

        None where several texts have the same value.
        """
        out: dict[tuple[bool, Any], int | None] = {}
        words = parse_booleans(text for text in self.values if isinstance(text, str))
        for code, text in enumerate(self.values):
            value = to_timestamp(words.get(text, parse_value(text))) if isinstance(text, str) else None
            if value is not None:
                key = isinstance(value, bool), value
                out[key] = None if key in out else code
        return out

    @cached_property
    def array(self) -> NDArray:
        """The values as an array of the narrowest common type that keeps them: what ``classes_`` holds."""
        if len({_type_rank(v) for v in self.values}) == 1 and _type_rank(self.values[0]) < 2:
            narrow = np.array(self.values)
            if narrow.tolist() == list(self.values):  # not so for wide integers, nor text that ends in NUL
                return narrow
        return _objects(self.values)

    def encode(self, column: Any) -> NDArray[np.intp]:
        """Codes of the values: -1 where absent, ``len(self)`` where not in this set.

        To be read only: where the values are their own codes, the codes are the values.
        """
        column = as_column(column)
        if is_arrow(column):
            distinct, place = _code_arrow(column)
            return np.append(self.encode(_objects(distinct)), -1)[place]
        if column.dtype.kind == "b":
            return self._encode_integers(column.view(np.uint8))
        if column.dtype.kind in "iu":
            return self._encode_integers(column)
        if column.dtype.kind == "f":
            return self._encode_floats(column)
        values, index, unseen = _scalars(column), self.index, len(self)
        if set(map(type, values)) == {str}:  # nearly always: nothing absent, nothing to convert
            return np.fromiter((index.get(v, unseen) for v in values), np.intp, len(values))
        codes = {v: -1 if is_absent(v) else index.get(to_plain_value(v), unseen) for v in _hashable_set(values)}
        return np.fromiter(map(codes.__getitem__, values), np.intp, len(values))

    def _encode_integers(self, column: NDArray) -> NDArray[np.intp]:
        bounds = np.iinfo(column.dtype)
        known = {
            int(v): i
            for i, v in enumerate(self.values)
            if _type_rank(v) == 0 and bounds.min <= v <= bounds.max and v == int(v)
        }
        if not known or not len(column):
            return np.full(len(column), len(self), np.intp)
        low, high = min(known), max(known)
        if high - low >= _MAX_TABLE_SPAN:
            return self._search(column, list(known), list(known.values()))
        table = np.full(high - low + 2, len(self), np.intp)  # the last entry serves all that lies outside
        table[np.array(list(known)) - low] = list(known.values())
        if low <= column.min() and column.max() <= high:
            place = _shifted(column, low)
            return place if np.array_equal(table[:-1], np.arange(len(table) - 1)) else table[place]
        inside = (column >= low) & (column <= high)
        return table[np.where(inside, _shifted(np.where(inside, column, low), low), high - low + 1)]

    def _encode_floats(self, column: NDArray) -> NDArray[np.intp]:
        known = {float(v): i for i, v in enumerate(self.values) if _type_rank(v) == 0 and _is_float(v)}
        codes = self._search(column, list(known), list(known.values()))
        return np.where(np.isnan(column), -1, codes)

    def _search(self, column: NDArray, known: list, codes: list[int]) -> NDArray[np.intp]:
        """The codes of numbers looked up among ascending ``known`` ones."""
        if not known:
            return np.full(len(column), len(self), np.intp)
        with np.errstate(over="ignore"):  # a float64 label beyond float32 is infinite there
            ascending = np.array(known, column.dtype)
        place = np.minimum(np.searchsorted(ascending, column), len(known) - 1)
        return np.where(ascending[place] == column, np.array(codes, np.intp)[place], len(self))

    def union(self, other: "Labels") -> tuple["Labels", NDArray[np.intp], NDArray[np.intp]]:
        """The labels of both, and where each one's codes go."""
        declared = self.declared | other.declared
        if self.values == other.values:
            same = np.arange(len(self), dtype=np.intp)
            return (self if declared == self.declared else Labels(self.values, declared)), same, same
        both = Labels(tuple(sorted(self.index | other.index, key=sort_key)), declared)
        place = both.index
        moves = [np.array([place[v] for v in labels.values], np.intp) for labels in (self, other)]
        return both, moves[0], moves[1]


def as_column(values: Any) -> Any:
    """A column as an ndarray or an Arrow array, whatever array, series or iterable it comes as."""
    if isinstance(values, np.ndarray) or is_arrow(values):
        return values
    if hasattr(values, "to_arrow"):  # a polars series
        return values.to_arrow()
    if hasattr(values, "to_numpy"):  # a pandas one
        own = hasattr(values, "dtype") and not isinstance(values.dtype, np.dtype)
        return (_from_extension(values) if own else None) or values.to_numpy()
    return _objects(values)


def _from_extension(values: Any) -> Any:
    """A series of a type that numpy has not, which it would round or forget: as an Arrow array, if it can be one."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _distinct(column: Any) -> Iterable[Any]:
    if is_arrow(column):
        values, place = _code_arrow(column)
        used = np.bincount(place + 1, minlength=len(values) + 1)[1:] > 0
        return {to_plain_value(v) for v, is_used in zip(values, used, strict=True) if is_used and not is_absent(v)}
    kind = column.dtype.kind
    if kind == "b":
        return [bool(v) for v in _distinct_integers(column.view(np.uint8))]
    if kind in "iu":
        return _distinct_integers(column)
    if kind == "f":
        return _distinct_floats(column)
    distinct = _hashable_set(_scalars(column))
    if set(map(type, distinct)) == {str}:
        return distinct
    return {to_plain_value(v) for v in distinct if not is_absent(v)}


def _distinct_integers(column: NDArray) -> list[int]:
    if not len(column):
        return []
    low, high = int(column.min()), int(column.max())
    if high - low >= _MAX_TABLE_SPAN:
        return np.unique(column).tolist()
    return [v + low for v in np.flatnonzero(np.bincount(_shifted(column, low))).tolist()]


def _distinct_floats(column: NDArray) -> list[float]:
    column = column[~np.isnan(column)]
    if (
        len(column)
        and column.min() > -_MAX_EXACT_INTEGER
        and column.max() < _MAX_EXACT_INTEGER
        and (column == np.rint(column)).all()
    ):
        return [float(v) for v in _distinct_integers(column.astype(np.int64))]
    distinct = np.unique(column)
    return distinct.tolist() if column.dtype.itemsize == 8 else list(map(to_plain_value, distinct))


def _shifted(column: NDArray, low: int) -> NDArray[np.intp]:
    """column - low, for integers of any width that lie less than ``_NARROW`` above low; no copy if that is column."""
    if low == 0:
        return column.astype(np.intp, copy=False)
    wide = column if column.dtype.kind == "u" else column.astype(np.int64, copy=False)
    return (wide - low).astype(np.intp, copy=False)


def _code_arrow(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """The distinct values of an Arrow column, and the place of each row's among them; -1 where null."""
    import pyarrow as pa

    if column.null_count == len(column):  # Arrow gives such a column no type to code it by
        return [], np.full(len(column), -1, np.intp)
    if pa.types.is_interval(column.type):
        return _code_arrow(intervals_to_durations(column))
    try:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise InputTypeError(f"a column of {column.type} has no levels", remedy="pass text, numbers or dates") from None
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    place = arrow_numbers(coded.indices.cast(pa.int64()), absent=-1)
    return _values(coded.dictionary), place


def intervals_to_durations(column: Any) -> Any:
    """An Arrow column of intervals as durations."""
    import pyarrow as pa

    return pa.array(
        [None if value is None else to_plain_value(value) for value in column.to_pylist()], pa.duration("us")
    )


def _values(column: Any) -> list[Any]:
    """The values of an Arrow array, times to the microsecond and in UTC."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_float32(kind):
        return list(map(to_plain_value, arrow_numbers(column)))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(pa.timestamp("us"), safe=False)
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    elif pa.types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False)
    return column.to_pylist()


def _scalars(column: NDArray) -> list[Any]:
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] in ("ns", "ps", "fs", "as"):
        column = column.astype(f"{column.dtype.kind}8[us]")  # finer times come out as bare integers, even NaT
    return column.tolist()


def _hashable_set(values: list[Any]) -> set[Any]:
    try:
        return set(values)
    except TypeError as error:
        raise InputTypeError(
            f"labels and levels that are no plain values ({error})", remedy="pass numbers or text"
        ) from None


def _objects(values: Iterable[Any]) -> NDArray:
    return np.fromiter(values, object)


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (abs(value) <= sys.float_info.max and float(value) == value)


def _type_rank(value: Any) -> int:
    return 0 if isinstance(value, bool | int | float) else 1 if isinstance(value, str) else 2


def sort_key(value: Any) -> tuple[int, Any]:
    """What labels are sorted by: numbers, then text, then others by type."""
    rank = _type_rank(value)
    own = value if isinstance(value, dt.time | dt.timedelta) else str(value)
    return rank, value if rank < 2 else (type(value).__name__, own)


MAX_CLASSES = 1000  # different labels among the rows that are looked at
_REMEDY = "name another target, or bin it"


def check_number_of_classes(
    n: int, n_rows: int, column: str | None = None, *, max_classes: int = MAX_CLASSES, remedy: str = _REMEDY
) -> None:
    """Refuse labels of which the first rows have too many different ones to be classes."""
    if n > max_classes:
        what = f"{n:,} different values in the first {n_rows:,} rows: an identifier or a quantity, not a class"
        raise InputError(what if column else f"y: {what}", column=column, value=n, remedy=remedy)


def is_missing_label(value: Any) -> bool:
    """Whether a label of a row in a table is missing: absent, or text that is empty or blank."""
    return is_absent(value) or (isinstance(value, str) and not value.strip())


def has_label(column: Any) -> Any:
    """Find the rows of an Arrow column whose label is not missing, by the rule of :func:`is_missing_label`.

    >>> import pyarrow as pa
    >>> has_label(pa.array(["yes", "", None, " "])).to_pylist()
    [True, False, False, False]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    present = pc.invert(column.is_null(nan_is_null=True))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return present
    length = pc.utf8_length(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    return pc.and_kleene(present, length.cast(pa.bool_()))  # compared with a Python value, Arrow would import pandas
