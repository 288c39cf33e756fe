"""Objects: a column of Python values in the type that its values share, the same through every door.

Dates, times of day and durations are held as Arrow holds them. Text among other values makes all of them text.

>>> to_typed_column(np.array([dt.date(2024, 2, 29), None, dt.datetime(2024, 3, 1, 12)], object)).type
TimestampType(timestamp[us])
>>> to_typed_column(np.array([1, "a", True, None], object)).tolist()
['1', 'a', 'true', None]
>>> as_arrow(np.array([2**64, None], object)).to_pylist()
[Decimal('18446744073709551616'), None]
"""

import datetime as dt
import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import is_absent, is_arrow
from candide.data.value_identity import format_plain_value, to_plain_value, to_timestamp
from candide.errors import InputError

_TIMES = dt.date | dt.time | dt.timedelta | np.datetime64 | np.timedelta64
_VALUES = {str, int, float, bool, dt.date, dt.datetime, dt.time, dt.timedelta}
_MAX_DECIMAL_DIGITS = 38  # of the widest decimal
_DATE_TYPE = re.compile("date|timestamp")  # names of types of Arrow, numpy and narwhals
_TIME_TYPE = re.compile("time(32|64|$)|duration|timedelta|month_day")


def to_typed_column(column: NDArray) -> Any:
    """A column of objects: an Arrow array of dates or times, or objects as they are, or as text."""
    values = column.tolist()
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str} or not any(kind is str or issubclass(kind, _TIMES) for kind in kinds):
        return column
    values = [None if is_absent(value) else to_plain_value(value) for value in values]
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str} or not kinds <= _VALUES:
        return np.fromiter(values, object, len(values))
    if (kind := _arrow_type(kinds)) is not None:
        import pyarrow as pa

        both = dt.datetime in kinds
        return pa.array([to_timestamp(value) for value in values] if both else values, kind)
    return np.fromiter((None if value is None else format_plain_value(value) for value in values), object, len(values))


def _arrow_type(kinds: set[type]) -> Any:
    """The type of dates and times of one sort."""
    import pyarrow as pa

    if kinds == {dt.date}:
        return pa.date32()
    if kinds <= {dt.date, dt.datetime}:
        return pa.timestamp("us")
    return {dt.time: pa.time64("us"), dt.timedelta: pa.duration("us")}.get(*kinds) if len(kinds) == 1 else None


def as_arrow(column: Any) -> Any:
    """An ndarray or an Arrow array as one Arrow array, null where absent."""
    import pyarrow as pa

    if not is_arrow(column) and column.dtype.kind == "O":
        column = to_typed_column(column)
    if is_arrow(column):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] not in ("D", "s", "ms", "us", "ns"):
        column = column.astype(f"{column.dtype.kind}8[us]")
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        values = [None if is_absent(value) else to_plain_value(value) for value in column.tolist()]
    if all(value is None or (type(value) in (bool, int, float) and not _is_long(value)) for value in values):
        whole = all(
            value is None or (isinstance(value, int) and abs(value) < 10**_MAX_DECIMAL_DIGITS) for value in values
        )
        kind = pa.decimal128(_MAX_DECIMAL_DIGITS) if whole else pa.float64()
        return pa.array([None if v is None else int(v) if whole else float(v) for v in values], kind)
    try:
        return pa.array([None if value is None else format_plain_value(value) for value in values])
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise InputError(str(error)) from None


def _is_long(number: Any) -> bool:
    """Whether a whole number is too long for a float."""
    return isinstance(number, int) and abs(number) > sys.float_info.max


def is_date(column: Any) -> bool:
    """Whether a column, in memory as it came, holds dates, with times or without."""
    return _has_type(column, _DATE_TYPE, (dt.date, np.datetime64))


def is_time(column: Any) -> bool:
    """Whether a column, in memory as it came, holds times of day or durations.

    >>> is_time([None, dt.time(12, 30)]), is_time(np.array([90], "m8[s]")), is_time(np.array([90], "M8[s]"))
    (True, True, False)
    """
    return _has_type(column, _TIME_TYPE, (dt.time, dt.timedelta, np.timedelta64))


def _has_type(column: Any, types: re.Pattern, values: tuple[type, ...]) -> bool:
    """Whether a column has one of some types, or, where it has objects, its first value has."""
    kind = str(getattr(column, "type", getattr(column, "dtype", ""))).lower()
    if kind == "object" or isinstance(column, list | tuple):
        return isinstance(next((value for value in column if not is_absent(value)), None), values)
    return types.match(kind) is not None
