"""Texts: all names, labels and levels of a file in one buffer of UTF-8, with the end and the type of each.

Each is followed by a newline, so that a buffer in which none holds one can be split at once.

Two hundred thousand words as JSON would take longer to read than all their counts.

>>> pool = StringPool()
>>> pool.add(("café", "tea")), pool.add((1, 2.5, True))
(2, 3)
>>> readings = StringReader(pool.arrays())
>>> readings.take(2), readings.take(3)
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

# By the number that stands for each in a file.
_KINDS: tuple[type, ...] = (str, int, float, bool, date, datetime, time, timedelta)
_BOOL, _DATE, _DURATION = 3, 4, 7  # from the second on, values are spelled as ISO 8601 has it, but for durations
_NEWLINE = 10
_BATCH_VALUES = 1 << 16  # values read at a time
_LONGEST_NUMBER = 4300  # digits: what Python reads at all


class StringPool:
    """Collects values in the order in which they will be read."""

    def __init__(self) -> None:
        self._size = 0
        self._data: list[bytes] = []
        self._ends: list[NDArray] = []
        self._kinds: list[NDArray] = []

    def add(self, values: Sequence[Any]) -> int:
        """Add values; how many."""
        try:
            texts, kinds = values, np.zeros(len(values), np.uint8)
            lines = "\n".join(texts)
        except TypeError:
            kinds = np.array([_kind(value) for value in values], np.uint8)
            texts = [_format_value(value, kind) for value, kind in zip(values, kinds.tolist(), strict=True)]
            lines = "\n".join(texts)
        if len(values):
            data = f"{lines}\n".encode("utf-8", "surrogatepass")
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
            if len(ends) != len(values):  # some value has a newline of its own
                lengths = [len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts]
                ends = np.cumsum(lengths) - 1
            self._data.append(data)
            self._ends.append(ends + self._size)
            self._kinds.append(kinds)
            self._size += len(data)
        return len(values)

    def arrays(self) -> dict[str, NDArray]:
        return {
            "text": np.frombuffer(b"".join(self._data), np.uint8),
            "text.ends": np.concatenate([np.empty(0, np.int64), *self._ends]),
            "text.kinds": np.concatenate([np.empty(0, np.uint8), *self._kinds]),
        }


def pack_time(value: date | time | timedelta) -> list[str]:
    """A date, a time or a duration as the name of its type and its text.

    >>> pack_time(time(12, 30)), unpack_time(["timedelta", "1 day 02:00:00"])
    (['time', '12:30:00'], datetime.timedelta(days=1, seconds=7200))
    """
    kind = _kind(value)
    return [_KINDS[kind].__name__, _format_value(value, kind)]


def unpack_time(packed: Any) -> Any:
    """What :func:`pack_time` was given; an error where it is not one of its results."""
    names = [kind.__name__ for kind in _KINDS[_DATE:]]
    if not isinstance(packed, list) or len(packed) != 2 or packed[0] not in names or not isinstance(packed[1], str):
        raise ModelFileError("a date or time is expected, as the name of its type and its text")
    return _parse_value(packed[1], _DATE + names.index(packed[0]))


def _kind(value: Any) -> int:
    if type(value) not in _KINDS or value != value:
        raise InputError(
            f"{value!r} is a {type(value).__name__}; a model file keeps text, numbers, booleans, dates and times only; "
            "pass such values as text"
        )
    return _KINDS.index(type(value))


def _format_value(value: Any, kind: int) -> str:
    if kind == _DURATION:
        return value_identity.format_plain_value(value)
    return value if kind == 0 else value.isoformat() if kind >= _DATE else repr(value)


class StringReader:
    """Reads values back, in order."""

    def __init__(self, arrays: dict[str, NDArray]) -> None:
        try:
            self._bytes, self._ends, self._kinds = (arrays[n] for n in ("text", "text.ends", "text.kinds"))
        except KeyError:
            raise ModelFileError("the names and labels are missing") from None
        ends, size = self._ends, len(self._bytes)
        shapes = self._bytes.ndim == ends.ndim == self._kinds.ndim == 1 and len(ends) == len(self._kinds)
        types = (self._bytes.dtype, ends.dtype, self._kinds.dtype) == (np.uint8, np.int64, np.uint8)
        if not shapes or not types or (int(ends[-1]) + 1 if len(ends) else 0) != size:
            raise ModelFileError("the names and labels do not fill their buffer")
        self._position = 0
        if not len(ends):  # of numbered columns, where no class is left
            return
        if ends[0] < 0 or (ends[1:] <= ends[:-1]).any() or (self._bytes[ends] != _NEWLINE).any():
            raise ModelFileError("the names and labels lie in no order")
        if self._kinds.max() >= len(_KINDS):
            raise ModelFileError("a name or label is of no known type")

    def take(self, n: int) -> tuple[Any, ...]:
        """The next ``n`` values."""
        if n > len(self._ends) - self._position:
            raise ModelFileError("there are fewer names and labels than the header says")
        out: list[Any] = []
        for start in range(self._position, self._position + n, _BATCH_VALUES):
            out += self._read_batch(start, min(start + _BATCH_VALUES, self._position + n))
        self._position += n
        return tuple(out)

    def check_all_used(self) -> None:
        if self._position != len(self._ends):
            raise ModelFileError("there are more names and labels than the header says")

    def _read_batch(self, start: int, stop: int) -> Iterable[Any]:
        first = int(self._ends[start - 1]) + 1 if start else 0
        data = self._bytes[first : self._ends[stop - 1]]
        try:
            text = data.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ModelFileError("a name or label is not UTF-8") from None
        texts = text.split("\n")
        if len(texts) != stop - start:  # some value has a newline of its own
            ends = self._ends[start:stop] - first
            if len(text) < len(data):  # from places among bytes to places among characters
                ends = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])[ends]
            texts = [text[a + 1 : b] for a, b in pairwise([-1, *ends.tolist()])]
        kinds = self._kinds[start:stop]
        return map(_parse_value, texts, kinds.tolist()) if kinds.any() else texts


def _parse_text(text: str, kind: int) -> Any:
    if kind == _DURATION:
        return value_identity.parse_duration(text)
    return _KINDS[kind].fromisoformat(text) if kind >= _DATE else _KINDS[kind](text)  # type: ignore[attr-defined]


def _parse_value(text: str, kind: int) -> Any:
    if kind == 0:
        return text
    if kind == _BOOL and text in ("True", "False"):
        return text == "True"
    if kind != _BOOL and len(text) <= _LONGEST_NUMBER:
        try:
            value = _parse_text(text, kind)
        except ValueError:
            value = np.nan
        if type(value) is _KINDS[kind] and value == value and _format_value(value, kind) == text:
            return value
    raise ModelFileError(f"{text[:40]!r} is not a {_KINDS[kind].__name__}")
