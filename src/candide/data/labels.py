"""Labels: an ordered set of distinct values, of classes or of a column's levels, and their codes.

Numbers come first in ascending order, then text, so the order does not depend on the order of rows. None, NaN and NaT
are absent: code -1. A value outside the set has the code ``len(labels)``.
"""

import datetime as dt
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers, as_column, intervals_to_durations, is_absent, is_arrow, is_string
from candide.data.text_formats import (
    format_plain_value,
    parse_boolean,
    parse_booleans,
    parse_value,
    to_plain_value,
    to_timestamp,
)
from candide.errors import InputError, InputTypeError

_MAX_TABLE_SPAN = 1 << 16  # integers spanning less than this are looked up in a table, not sorted
_MAX_EXACT_INTEGER = 1 << 53  # whole numbers up to here are exact as floats
_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})(\.0)?$", re.ASCII)  # .0 from a writer that has no whole numbers with gaps
_NUMBERS = {bool, int, float}
MAX_CLASSES = 1000  # different labels among the first rows
_TARGET_REMEDY = "name another target, or bin it"


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
        """The same labels, with these (None: all) declared."""
        return Labels(self.values, self.declared | frozenset(self.values if values is None else values))

    def retained_mask(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which labels stay known where only some are seen: these, and those declared."""
        if not self.declared:
            return seen
        return seen | np.fromiter((v in self.declared for v in self.values), bool, len(self))

    def retain(self, seen: NDArray[np.bool_]) -> "Labels":
        stays = self.retained_mask(seen)
        return self if stays.all() else Labels(tuple(compress(self.values, stays)), self.declared)

    @cached_property
    def index(self) -> dict[Any, int]:
        return {v: i for i, v in enumerate(self.values)}

    @cached_property
    def value_types(self) -> frozenset[type]:
        return frozenset(map(type, self.values))

    @cached_property
    def typed_codes(self) -> dict[Any, int]:
        """The codes of the values that are not text, dates as their midnights."""
        return {to_timestamp(v): i for i, v in enumerate(self.values) if not isinstance(v, str)}

    @cached_property
    def text_codes(self) -> dict[tuple[bool, Any], int | None]:
        """The codes of texts by whether they mean a boolean, and what they mean; None where several mean the same."""
        out: dict[tuple[bool, Any], int | None] = {}
        booleans = parse_booleans(text for text in self.values if isinstance(text, str))
        for code, text in enumerate(self.values):
            value = to_timestamp(booleans.get(text, parse_value(text))) if isinstance(text, str) else None
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
        return np.fromiter(self.values, object)

    def encode(self, column: Any) -> NDArray[np.intp]:
        """Codes of the values: -1 where absent, ``len(self)`` where not in this set.

        Read only: where the values are their own codes, these are the values.
        """
        column = as_column(column)
        if is_arrow(column):
            distinct, place = _code_arrow(column)
            return np.append(self.encode(np.fromiter(distinct, object)), -1)[place]
        if column.dtype.kind in "iub":
            return self._encode_integers(column.view(np.uint8) if column.dtype.kind == "b" else column)
        if column.dtype.kind == "f":
            numbers = ((i, v) for i, v in enumerate(self.values) if _type_rank(v) == 0)
            floats = ((i, v) for i, v in numbers if isinstance(v, float) or abs(v) <= sys.float_info.max)
            known = {float(v): i for i, v in floats if float(v) == v}
            return np.where(np.isnan(column), -1, self._search(column, known))
        values, index, unseen = _to_scalars(column), self.index, len(self)
        if set(map(type, values)) == {str}:  # nearly always: nothing absent, nothing to convert
            return np.fromiter((index.get(v, unseen) for v in values), np.intp, len(values))
        codes = {v: -1 if is_absent(v) else index.get(to_plain_value(v), unseen) for v in _hashable_set(values)}
        return np.fromiter(map(codes.__getitem__, values), np.intp, len(values))

    def _encode_integers(self, column: NDArray) -> NDArray[np.intp]:
        bounds = np.iinfo(column.dtype)
        numbers = ((i, v) for i, v in enumerate(self.values) if _type_rank(v) == 0)
        known = {int(v): i for i, v in numbers if bounds.min <= v <= bounds.max and v == int(v)}
        if not known or not len(column):
            return np.full(len(column), len(self), np.intp)
        low, high = min(known), max(known)
        if high - low >= _MAX_TABLE_SPAN:
            return self._search(column, known)
        table = np.full(high - low + 2, len(self), np.intp)  # the last entry serves all that lies outside
        table[np.array(list(known)) - low] = list(known.values())
        if low <= column.min() and column.max() <= high:
            place = _subtract_low(column, low)
            return place if np.array_equal(table[:-1], np.arange(len(table) - 1)) else table[place]
        inside = (column >= low) & (column <= high)
        return table[np.where(inside, _subtract_low(np.where(inside, column, low), low), high - low + 1)]

    def _search(self, column: NDArray, known: dict[Any, int]) -> NDArray[np.intp]:
        """The codes of numbers by binary search in the ascending keys of ``known``."""
        if not known:
            return np.full(len(column), len(self), np.intp)
        with np.errstate(over="ignore"):  # a float64 label beyond float32 is infinite there
            ascending = np.array(list(known), column.dtype)
        place = np.minimum(np.searchsorted(ascending, column), len(known) - 1)
        return np.where(ascending[place] == column, np.array(list(known.values()), np.intp)[place], len(self))

    def union(self, other: "Labels") -> tuple["Labels", NDArray[np.intp], NDArray[np.intp]]:
        """The labels of both, and where the codes of each go."""
        declared = self.declared | other.declared
        if self.values == other.values:
            same = np.arange(len(self), dtype=np.intp)
            return (self if declared == self.declared else Labels(self.values, declared)), same, same
        both = Labels(tuple(sorted(self.index | other.index, key=sort_key)), declared)
        mine, theirs = (np.array([both.index[v] for v in labels.values], np.intp) for labels in (self, other))
        return both, mine, theirs

    # Values are matched across sources: one has a value as 1, another as "1". A value is the level that equals it. If
    # there is none, text is the number, boolean, date, time of day or duration that it means, if that is a level; and
    # such a value is the text that means it. Texts are equal only letter by letter. Booleans are the levels ``yes`` and
    # ``no``, and other pairs of such words.

    def match_codes(self, column: Any) -> NDArray[np.intp]:
        """Codes of a column's values, however they are written: -1 where absent, ``len(self)`` where unseen."""
        column = as_column(column)
        codes = self.encode(column)
        if not len(self) or self._has_same_types(column):
            return codes
        rows = np.flatnonzero(codes == len(self))
        unseen = column.take(rows) if is_arrow(column) else column[rows]
        others = Labels.from_values(unseen)
        if self.value_types | others.value_types == {str}:
            return codes
        matches = [self.find_code(value) for value in others.values]
        if all(code is None for code in matches):
            return codes
        codes = codes.copy()
        codes[rows] = np.array([len(self) if code is None else code for code in matches])[others.encode(unseen)]
        return codes

    def _has_same_types(self, column: Any) -> bool:
        """Whether both are numbers, or both text, so that values without a code are unseen."""
        if is_arrow(column):
            return self.value_types == {str} and is_string(column.type)
        if column.dtype.kind in "fiub":
            return self.value_types <= _NUMBERS
        return column.dtype.kind == "U" and self.value_types == {str}

    def find_code(self, value: Any) -> int | None:
        """The code of the label that a value is; None if it is none of them."""
        value = to_plain_value(value)
        if value in self.index:
            return self.index[value]
        if isinstance(value, str):
            meaning = parse_value(value)
            if meaning is None and bool in self.value_types:
                meaning = parse_boolean(value)
            return None if meaning is None else self._find_typed_code(meaning)
        text_code = self.index.get(format_plain_value(value))
        code = self._find_typed_code(value) if text_code is None else text_code
        is_boolean = isinstance(value, bool)
        for key in (is_boolean, not is_boolean):  # a boolean is 1 or 0 where no text means it
            code = self.text_codes.get((key, to_timestamp(value))) if code is None else code
        return code

    def _find_typed_code(self, value: Any) -> int | None:
        code = self.typed_codes.get(to_timestamp(value))
        if code is None and isinstance(value, dt.datetime) and dt.datetime not in self.value_types:
            code = self.typed_codes.get(to_timestamp(value.date()))  # a time of a known day
        return code

    def match_values(self, values: Iterable[Any]) -> list[Any]:
        codes = ((value, self.find_code(value)) for value in values)
        return [self._convert(to_plain_value(v)) if code is None else self.values[code] for v, code in codes]

    def _convert(self, value: Any) -> Any:
        """A value that is none of the labels, as one of them would be written."""
        if self.value_types == {str}:
            return format_plain_value(value)
        parsed = parse_value(value) if isinstance(value, str) and str not in self.value_types else value
        if dt.datetime in self.value_types:
            parsed = to_timestamp(parsed)
        elif dt.date in self.value_types and isinstance(parsed, dt.datetime):
            parsed = parsed.date()
        is_number = type(parsed) in _NUMBERS and self.value_types & _NUMBERS
        return parsed if is_number or type(parsed) in self.value_types else value

    def match_column(self, column: Any) -> NDArray:
        """The values of a column as these labels are written, None where absent: an array of objects."""
        column = as_column(column)
        labels = Labels.from_values(column)
        return np.fromiter([*self.match_values(labels.values), None], object)[labels.encode(column)]

    def match_labels(self, labels: "Labels") -> tuple["Labels", NDArray[np.intp]]:
        """Other labels as these are written, and where each goes; if two would become one, all stay as they are."""
        same = labels, np.arange(len(labels))
        types = labels.value_types, self.value_types
        if types == ({str}, {str}) or all(kinds <= _NUMBERS for kinds in types):
            return same
        values = self.match_values(labels.values)
        declared = frozenset(new for new, old in zip(values, labels.values, strict=True) if old in labels.declared)
        new = replace(Labels.from_values(values), declared=declared)
        return same if len(new) < len(labels) else (new, np.array([new.index[value] for value in values], np.intp))


def _distinct(column: Any) -> Iterable[Any]:
    if is_arrow(column):
        values, place = _code_arrow(column)
        used = np.bincount(place + 1, minlength=len(values) + 1)[1:] > 0
        return {to_plain_value(v) for v in compress(values, used) if not is_absent(v)}
    kind = column.dtype.kind
    if kind == "b":
        return [bool(v) for v in _distinct_integers(column.view(np.uint8))]
    if kind in "iu":
        return _distinct_integers(column)
    if kind == "f":
        column = column[~np.isnan(column)]
        if len(column) and np.abs(column).max() < _MAX_EXACT_INTEGER and (column == np.rint(column)).all():
            return [float(v) for v in _distinct_integers(column.astype(np.int64))]
        floats = np.unique(column)
        return floats.tolist() if column.dtype.itemsize == 8 else [to_plain_value(v) for v in floats]
    distinct = _hashable_set(_to_scalars(column))
    if set(map(type, distinct)) == {str}:
        return distinct
    return {to_plain_value(v) for v in distinct if not is_absent(v)}


def _distinct_integers(column: NDArray) -> list[int]:
    if not len(column):
        return []
    low, high = int(column.min()), int(column.max())
    if high - low >= _MAX_TABLE_SPAN:
        return np.unique(column).tolist()
    return [v + low for v in np.flatnonzero(np.bincount(_subtract_low(column, low))).tolist()]


def _subtract_low(column: NDArray, low: int) -> NDArray[np.intp]:
    """column - low, for integers of any width that are less than ``_MAX_TABLE_SPAN`` above low."""
    if low == 0:
        return column.astype(np.intp, copy=False)
    wide = column if column.dtype.kind == "u" else column.astype(np.int64, copy=False)
    return (wide - low).astype(np.intp, copy=False)


def _code_arrow(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """The distinct values of an Arrow column, and the place of each row's among them; -1 where null.

    Times are to the microsecond and in UTC.
    """
    import pyarrow as pa

    if column.null_count == len(column):  # Arrow has no type to code such a column by
        return [], np.full(len(column), -1, np.intp)
    if pa.types.is_interval(column.type):
        return _code_arrow(intervals_to_durations(column))
    try:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise InputTypeError(f"a column of {column.type} has no levels", remedy="pass text, numbers or dates") from None
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    values, kind = coded.dictionary, coded.dictionary.type
    place = arrow_numbers(coded.indices.cast(pa.int64()), absent=-1)
    if pa.types.is_float32(kind):
        return list(map(to_plain_value, arrow_numbers(values))), place
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(pa.timestamp("us"), safe=False)
    elif pa.types.is_duration(kind) or pa.types.is_time(kind):
        values = values.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us"), safe=False)
    return values.to_pylist(), place


def _to_scalars(column: NDArray) -> list[Any]:
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] in ("ns", "ps", "fs", "as"):
        column = column.astype(f"{column.dtype.kind}8[us]")  # finer times come out as bare integers, even NaT
    return column.tolist()


def _hashable_set(values: list[Any]) -> set[Any]:
    try:
        return set(values)
    except TypeError as error:
        what = f"labels and levels must be plain values ({error})"
        raise InputTypeError(what, remedy="pass numbers or text") from None


def _type_rank(value: Any) -> int:
    return 0 if isinstance(value, bool | int | float) else 1 if isinstance(value, str) else 2


def sort_key(value: Any) -> tuple[int, Any]:
    """The sorting key of labels: numbers, then text, then others by type."""
    rank = _type_rank(value)
    if rank < 2:
        return rank, value
    return rank, (type(value).__name__, value if isinstance(value, dt.time | dt.timedelta) else str(value))


def parse_levels(levels: list[Any]) -> dict[Any, Any]:
    """What levels of text mean, if all of them are whole numbers, booleans, dates or times; else as they are.

    Other numbers stay as they are written: 01 may be a code, and 1.10 not 1.1.
    """
    unchanged = dict(zip(levels, levels, strict=True))
    if not all(isinstance(level, str) for level in levels):
        return unchanged
    if is_whole := all(map(_WHOLE.match, levels)):
        meanings: dict[Any, Any] = {level: int(level.removesuffix(".0")) for level in levels}
    else:
        meanings = {level: parse_value(level) for level in levels}
    kinds = {type(to_timestamp(value)) for value in meanings.values()}
    is_typed = is_whole or (len(kinds) == 1 and not kinds & {int, float, type(None)})
    return meanings if is_typed and len(set(meanings.values())) == len(levels) else unchanged


def check_number_of_classes(
    n: int, n_rows: int, column: str | None = None, *, max_classes: int = MAX_CLASSES, remedy: str = _TARGET_REMEDY
) -> None:
    """Refuse labels whose first rows have too many different ones to be classes."""
    if n > max_classes:
        what = f"{n:,} different values in the first {n_rows:,} rows: an identifier or a quantity, not a class"
        raise InputError(what if column else f"y: {what}", column=column, value=n, remedy=remedy)


def is_missing_label(value: Any) -> bool:
    """Whether a label of a row in a table is missing: absent, or text that is empty or blank."""
    return is_absent(value) or (isinstance(value, str) and not value.strip())


def has_label(column: Any) -> Any:
    """Find the rows of an Arrow column whose label is not missing, by the rule of :func:`is_missing_label`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = pc.invert(column.is_null(nan_is_null=True))
    if not is_string(column.type):
        return present
    length = pc.utf8_length(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    return pc.and_kleene(present, length.cast(pa.bool_()))  # compared with a Python value, Arrow would import pandas
