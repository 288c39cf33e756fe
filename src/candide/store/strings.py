"""Strings: all names, labels and levels of a file in one UTF-8 buffer, with the end and the type of each.

Each is followed by a newline, so that a buffer of values without newlines can be split at once. JSON would take longer
to read for 200,000 words than all their counts.

>>> pool = StringPool()
>>> pool.add(("café", "tea")), pool.add((1, 2.5, True))
(2, 3)
>>> reader = StringReader(pool.arrays())
>>> reader.take(2), reader.take(3)
(('café', 'tea'), (1, 2.5, True))
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data import value_identity
from candide.errors import InputError, ModelFileError

_TYPES: tuple[type, ...] = (str, int, float, bool, date, datetime, time, timedelta)  # by their number in a file
_BOOL, _DATE, _DURATION = 3, 4, 7  # from _DATE on, values are written as in ISO 8601, except durations
_NEWLINE = 10
_BATCH_VALUES = 1 << 16  # values read at a time
_MAX_NUMBER_LENGTH = 4300  # digits that Python parses
_ARRAYS = ("text", "text.ends", "text.kinds")


class StringPool:
    """Collects values in the order in which they will be read."""

    def __init__(self) -> None:
        self._size = 0
        self._data: list[bytes] = []
        self._ends: list[NDArray] = []
        self._kinds: list[NDArray] = []

    def add(self, values: Sequence[Any]) -> int:
        """Add values and return their number."""
        try:
            texts, kinds = values, np.zeros(len(values), np.uint8)
            lines = "\n".join(texts)
        except TypeError:
            kinds = np.array([_type_number(value) for value in values], np.uint8)
            texts = [_format_value(value, kind) for value, kind in zip(values, kinds.tolist(), strict=True)]
            lines = "\n".join(texts)
        if len(values):
            data = f"{lines}\n".encode("utf-8", "surrogatepass")
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
            if len(ends) != len(values):  # a value contains a newline
                ends = np.cumsum([len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts]) - 1
            self._data.append(data)
            self._ends.append(ends + self._size)
            self._kinds.append(kinds)
            self._size += len(data)
        return len(values)

    def arrays(self) -> dict[str, NDArray]:
        text = np.frombuffer(b"".join(self._data), np.uint8)
        ends = np.concatenate([np.empty(0, np.int64), *self._ends])
        return dict(zip(_ARRAYS, (text, ends, np.concatenate([np.empty(0, np.uint8), *self._kinds])), strict=True))


def pack_time(value: date | time | timedelta) -> list[str]:
    """Return a date, a time or a duration as the name of its type and its text.

    >>> pack_time(time(12, 30)), unpack_time(["timedelta", "1 day 02:00:00"])
    (['time', '12:30:00'], datetime.timedelta(days=1, seconds=7200))
    """
    kind = _type_number(value)
    return [_TYPES[kind].__name__, _format_value(value, kind)]


def unpack_time(packed: Any) -> Any:
    """Return what :func:`pack_time` was given."""
    names = [kind.__name__ for kind in _TYPES[_DATE:]]
    if not isinstance(packed, list) or len(packed) != 2 or packed[0] not in names or not isinstance(packed[1], str):
        raise ModelFileError("expected a date or time as the name of its type and its text")
    return _parse_value(packed[1], _DATE + names.index(packed[0]))


def _type_number(value: Any) -> int:
    if type(value) not in _TYPES or value != value:
        what = f"{value!r} is a {type(value).__name__}; a model file holds text, numbers, booleans, dates and times"
        raise InputError(what, value=value, remedy="pass such values as text")
    return _TYPES.index(type(value))


def _format_value(value: Any, kind: int) -> str:
    if kind == _DURATION:
        return value_identity.format_plain_value(value)
    return value if kind == 0 else value.isoformat() if kind >= _DATE else repr(value)


class StringReader:
    """Reads values back, in order."""

    def __init__(self, arrays: dict[str, NDArray]) -> None:
        try:
            self._bytes, self._ends, self._kinds = (arrays[name] for name in _ARRAYS)
        except KeyError:
            raise ModelFileError("the names and labels are missing") from None
        ends, size = self._ends, len(self._bytes)
        has_shapes = self._bytes.ndim == ends.ndim == self._kinds.ndim == 1 and len(ends) == len(self._kinds)
        has_types = (self._bytes.dtype, ends.dtype, self._kinds.dtype) == (np.uint8, np.int64, np.uint8)
        if not has_shapes or not has_types or (int(ends[-1]) + 1 if len(ends) else 0) != size:
            raise ModelFileError("the names and labels do not fill their buffer")
        self._position = 0
        if not len(ends):  # numbered columns, and no class left
            return
        if ends[0] < 0 or (ends[1:] <= ends[:-1]).any() or (self._bytes[ends] != _NEWLINE).any():
            raise ModelFileError("the ends of names and labels are not in order")
        if self._kinds.max() >= len(_TYPES):
            raise ModelFileError("a name or label has an unknown type")

    def take(self, n: int) -> tuple[Any, ...]:
        """Return the next ``n`` values."""
        if n > len(self._ends) - self._position:
            raise ModelFileError("there are fewer names and labels than its header declares")
        values: list[Any] = []
        for start in range(self._position, self._position + n, _BATCH_VALUES):
            values += self._read_batch(start, min(start + _BATCH_VALUES, self._position + n))
        self._position += n
        return tuple(values)

    def check_all_used(self) -> None:
        if self._position != len(self._ends):
            raise ModelFileError("there are more names and labels than its header declares")

    def _read_batch(self, start: int, stop: int) -> Iterable[Any]:
        first = int(self._ends[start - 1]) + 1 if start else 0
        data = self._bytes[first : self._ends[stop - 1]]
        try:
            text = data.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ModelFileError("a name or label is not UTF-8") from None
        texts = text.split("\n")
        if len(texts) != stop - start:  # a value contains a newline
            ends = self._ends[start:stop] - first
            if len(text) < len(data):  # from byte offsets to character offsets
                ends = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])[ends]
            texts = [text[a + 1 : b] for a, b in pairwise([-1, *ends.tolist()])]
        kinds = self._kinds[start:stop]
        return map(_parse_value, texts, kinds.tolist()) if kinds.any() else texts


def _parse_text(text: str, kind: int) -> Any:
    if kind == _DURATION:
        return value_identity.parse_duration(text)
    return _TYPES[kind].fromisoformat(text) if kind >= _DATE else _TYPES[kind](text)  # type: ignore[attr-defined]


def _parse_value(text: str, kind: int) -> Any:
    if kind == 0:
        return text
    if kind == _BOOL and text in ("True", "False"):
        return text == "True"
    if kind != _BOOL and len(text) <= _MAX_NUMBER_LENGTH:
        try:
            value = _parse_text(text, kind)
        except ValueError:
            value = np.nan
        if type(value) is _TYPES[kind] and value == value and _format_value(value, kind) == text:
            return value
    raise ModelFileError(f"{text[:40]!r} is not a {_TYPES[kind].__name__}")
