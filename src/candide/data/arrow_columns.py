"""Objects: a column of Python values in the type that its values share, the same for every source.

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
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.value_identity import format_plain_value, to_plain_value, to_timestamp
from candide.errors import InputError, InputTypeError

_TIMES = dt.date | dt.time | dt.timedelta | np.datetime64 | np.timedelta64
_VALUES = {str, int, float, bool, dt.date, dt.datetime, dt.time, dt.timedelta}
_MAX_DECIMAL_DIGITS = 38  # of the widest decimal
_DATE_TYPE = re.compile("date|timestamp")  # names of types of Arrow, numpy and narwhals
_TIME_TYPE = re.compile("time(32|64|$)|duration|timedelta|month_day")


def is_arrow(column: Any) -> bool:
    """Whether a column is an Arrow array, without importing pyarrow."""
    return type(column).__module__.partition(".")[0] == "pyarrow"


def is_absent(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: whatever is not equal to itself or cannot be compared. An array is not absent."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array
        return False


def to_plain_type(column: Any) -> Any:
    """The same values in a type that is known everywhere: half floats, views, runs and wide decimals are not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if str(kind) == "extension<arrow.uuid>":
            return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        stored = pa.chunked_array([chunk.storage for chunk in chunks], kind.storage_type)
        return to_plain_type(stored if isinstance(column, pa.ChunkedArray) else stored.combine_chunks())
    if pa.types.is_run_end_encoded(kind):
        return to_plain_type(pc.run_end_decode(column))
    other = _plain_types().get(kind.id)
    return column if other is None else column.cast(other)


def _plain_types() -> dict[int, Any]:
    import pyarrow as pa

    return {
        pa.float16().id: pa.float32(),
        pa.string_view().id: pa.large_string(),
        pa.binary_view().id: pa.large_binary(),
        pa.decimal256(1).id: pa.float64(),
    }


def to_plain_types(table: Any) -> Any:
    """The same of every column of a table."""
    import pyarrow as pa

    return pa.table([to_plain_type(column) for column in table.columns], table.column_names)


def arrow_floats(column: Any) -> NDArray[np.float64]:
    """An Arrow column of numbers as float64, NaN where null."""
    import pyarrow as pa

    return arrow_numbers(column.cast(pa.float64(), safe=False))  # whole numbers past 2**53 are rounded


def arrow_numbers(column: Any, absent: int | None = None) -> NDArray:
    """An Arrow column of numbers or truths where it lies; with nulls floats, NaN where null, or ``absent`` if given.

    By its buffers, for pyarrow's own way imports pandas, which takes longer than to fit a small table.

    >>> import pyarrow as pa
    >>> arrow_numbers(pa.chunked_array([[1, None], [3]])).tolist(), arrow_numbers(pa.array([True, False])).tolist()
    ([1.0, nan, 3.0], [True, False])
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return arrow_numbers(column.cast(pa.uint8())).view(np.bool_) if not column.null_count else arrow_floats(column)
    if column.null_count and absent is None and not pa.types.is_floating(column.type):
        return arrow_floats(column)
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    parts = [_chunk(chunk, np.nan if absent is None else absent) for chunk in chunks if len(chunk)]
    empty = np.empty(0, column.type.to_pandas_dtype())
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else empty


def arrow_indices(rows: NDArray) -> Any:
    """Numbers of rows, none absent, as an Arrow array: by their buffer, too."""
    import pyarrow as pa

    whole = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def _chunk(chunk: Any, absent: float) -> NDArray:
    valid, values = chunk.buffers()
    some = slice(chunk.offset, chunk.offset + len(chunk))
    own = np.frombuffer(values, chunk.type.to_pandas_dtype(), some.stop)[some]
    if not chunk.null_count:
        return own
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[some]
    return np.where(bits == 0, own.dtype.type(absent), own)


def is_nested(arrow_type: Any) -> bool:
    """Whether values of a type are lists, structures or maps, which cannot be the value of a row."""
    import pyarrow as pa

    return pa.types.is_nested(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)


def check_not_nested(column: Any, name: Any) -> None:
    """Refuse a column that cannot be a level or a number."""
    if is_nested(column.type):
        what = f"its values are of the type {column.type}, and a row has one value"
        raise InputTypeError(what, column=name, remedy="make a column of each of its parts, or drop it")


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


_FLATTEN = "give each column one name: frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
_REAL = "pass real numbers, such as the real and imaginary parts or the modulus"


def is_record_list(data: Any) -> bool:
    """Whether these are rows as a list or tuple of dictionaries."""
    return isinstance(data, list | tuple) and any(isinstance(row, Mapping) for row in data[:1])


def columns_from_records(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """The columns of rows that are dictionaries, in the order in which they first occur; None where a row lacks one."""
    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            what = f"expected a dictionary of values by column, as row 0 is, got {type(row).__name__}"
            raise InputTypeError(what, row=i, value=row, remedy="pass every row as a dictionary, or a data frame")
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def check_column(name: Any, kind: Any) -> None:
    """Refuse a name of several parts, and the type of complex numbers."""
    if isinstance(name, tuple):
        what = f"expected one name for a column, got the {len(name)} levels {name!r}"
        raise InputTypeError(what, value=name, remedy=_FLATTEN)
    if isinstance(kind, np.dtype) and kind.kind == "c":
        raise InputTypeError("holds complex numbers, which cannot be modelled", column=name, remedy=_REAL)


def check_values(name: Any, values: Sequence[Any]) -> None:
    """Refuse complex numbers among objects."""
    for row, value in enumerate(values):
        if isinstance(value, complex | np.complexfloating):
            what = f"{value!r} is a complex number, which cannot be modelled"
            raise InputTypeError(what, column=name, row=row, value=value, remedy=_REAL)
