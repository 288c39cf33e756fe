"""Columns of dates and of times: what they may hold, and the error where a value is neither.

A date counts as days since 1970, a time of day or a duration as days. So a plain number, a boolean or a value of the
other kind would be taken for a day without a word; here it is an error that names the column, the row and the value.

>>> read_temporal(np.array(["1970-01-02", None], object), PLAIN_FORMAT, "date", "day")
array(['1970-01-02T00:00:00.000000',                        'NaT'],
      dtype='datetime64[us]')
>>> read_temporal(np.array([20240201]), PLAIN_FORMAT, "date", "day")
Traceback (most recent call last):
candide.errors.InputError: column 'day' (row 0): 20240201 is not a date; write dates as 2024-12-31
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import is_absent, is_arrow
from candide.data.table import EncodedColumn, Name
from candide.data.text_formats import COMPACT, MISSING_MARKERS, PLAIN_FORMAT, TextFormat, temporal
from candide.data.value_identity import to_plain_value, to_timestamp
from candide.errors import InputError

_TYPES = {  # how the names of Arrow's and numpy's types begin
    "date": ("date", "timestamp"),
    "time": ("time32", "time64", "timedelta64", "duration", "month", "interval"),
}
_NUMPY = {"date": "M", "time": "m"}
CALLED = {"date": "date", "time": "time of day or duration"}
_DAY = 86_400e6  # microseconds
_SHOWN = dt.datetime(2024, 12, 31)


def read_temporal(column: Any, how: TextFormat, kind: str, name: Name) -> NDArray | None:
    """A column of the ``kind`` "date" or "time" in a type of numpy; None where it is such a column as it is."""
    if isinstance(column, EncodedColumn) or _is_of_kind(column, kind):
        return None
    if not is_arrow(column) and column.dtype.kind in "fiub":
        present = np.flatnonzero(column == column)
        if not len(present):
            return None  # all are missing
        if kind != "date" or how.date != COMPACT or column.dtype.kind == "b":
            raise not_temporal(column[present[0]].item(), kind, how, name, int(present[0]))
    values = column.to_pylist() if is_arrow(column) else _listed(column)
    texts: dict[str, Any] = {}
    read = [_read(value, how, kind, name, row, texts) for row, value in enumerate(values)]
    return np.array(read, f"{_NUMPY[kind]}8[us]")


def in_time(days: NDArray, kind: str) -> NDArray:
    """Days since 1970 as dates, or days as durations; missing where they are NaN. Other types stay as they are.

    >>> in_time(np.array([0.5, np.nan]), "time")
    array([43200000000,       'NaT'], dtype='timedelta64[us]')
    """
    if days.dtype.kind != "f":
        return days
    out, present = np.full(len(days), "NaT", f"{_NUMPY[kind]}8[us]"), np.isfinite(days)
    out[present] = np.rint(days[present] * _DAY).astype(np.int64).astype(out.dtype)
    return out


def is_temporal_type(type_name: str, kind: str) -> bool:
    """Whether a type, by the name that Arrow or numpy has for it, is one of dates, or of times and durations."""
    of = type_name.removeprefix("dictionary<values=")
    return of.startswith(_TYPES[kind])


def temporal_kind_of(type_name: str) -> str:
    """ "date" or "time" (of day, or a duration) for the name of a type in any engine; "" for other types.

    >>> tuple(temporal_kind_of(name) for name in ("TIMESTAMP WITH TIME ZONE", "interval day to second", "INT"))
    ('date', 'time', '')
    """
    lower = type_name.lower()
    if lower.startswith(("date", "timestamp")) or is_temporal_type(lower, "date"):
        return "date"
    return "time" if lower.startswith(("time", "interval")) or is_temporal_type(lower, "time") else ""


def not_temporal(value: Any, kind: str, how: TextFormat, name: Name, row: int | None) -> InputError:
    """The error for a value that is not a date, or not a time, in a column of these."""
    return InputError(
        f"{shown(value)} is not a {CALLED[kind]}", column=name, row=row, value=value, remedy=remedy(kind, how)
    )


def remedy(kind: str, how: TextFormat = PLAIN_FORMAT) -> str:
    """How to write a date or a time.

    >>> remedy("date", TextFormat(date="%d.%m.%Y"))
    'write dates as 2024-12-31, or as in the rows fitted, 31.12.2024'
    """
    if kind == "time":
        return "write times as 13:05:30, and durations as 1 day 02:00:00"
    fitted = f", or as in the rows fitted, {_SHOWN.strftime(how.date)}" if how.date else ""
    return f"write dates as 2024-12-31{fitted}"


def shown(value: Any) -> str:
    """A value in a message, shortened."""
    text = repr(value) if isinstance(value, str | bool | int | float) else str(to_plain_value(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_of_kind(column: Any, kind: str) -> bool:
    if not is_arrow(column):
        return bool(column.dtype.kind == _NUMPY[kind])
    return str(column.type) == "null" or is_temporal_type(str(column.type), kind)


def _listed(column: NDArray) -> Iterable[Any]:
    if column.dtype.kind in "mM":  # those of nanoseconds would come out as numbers
        return column.astype(f"{column.dtype.kind}8[us]").tolist()
    return column.tolist()


def _read(value: Any, how: TextFormat, kind: str, name: Name, row: int, texts: dict[str, Any]) -> Any:
    if isinstance(value, str):
        if value not in texts:
            bare = value.strip()
            is_missing = bare.lower() in MISSING_MARKERS or bare.lower() in how.missing
            texts[value] = None if is_missing else temporal(bare, how, kind)
            if texts[value] is None and not is_missing:
                raise not_temporal(value, kind, how, name, row)
        return texts[value]
    if is_absent(value):
        return None
    found = to_timestamp(to_plain_value(value))
    if isinstance(found, dt.datetime if kind == "date" else dt.timedelta):
        return found
    if kind == "date" and how.date == COMPACT and not isinstance(found, bool) and isinstance(found, int | float):
        whole = temporal(str(int(found)), how) if found == found // 1 and abs(found) < 1e9 else None
        if whole is not None:
            return whole
    raise not_temporal(value, kind, how, name, row)
