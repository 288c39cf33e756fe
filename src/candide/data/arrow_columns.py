"""Columns of Arrow and of Python objects, in the type that their values share, the same for every source.

Dates, times of day and durations are held as Arrow holds them. Text among other values makes all of them text.
"""

import datetime as dt
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.text_formats import format_plain_value, to_plain_value, to_timestamp
from candide.errors import InputError, InputTypeError

_TIMES = dt.date | dt.time | dt.timedelta | np.datetime64 | np.timedelta64
_PLAIN_TYPES = {str, int, float, bool, dt.date, dt.datetime, dt.time, dt.timedelta}
_MAX_DECIMAL_DIGITS = 38  # of the widest decimal
_TEMPORAL = {  # the names of types of Arrow, numpy and narwhals, and the types of objects
    "date": (re.compile("date|timestamp"), dt.date | np.datetime64),
    "time": (re.compile("time(32|64|$)|duration|timedelta|month_day"), dt.time | dt.timedelta | np.timedelta64),
}
_FLATTEN = "give each column one name: frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
_REAL = "pass real numbers, such as the real and imaginary parts or the modulus"


def is_arrow(column: Any) -> bool:
    """Whether a column is an Arrow array, without importing pyarrow."""
    return type(column).__module__.partition(".")[0] == "pyarrow"


def is_absent(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA: not equal to itself, or not comparable. An array is not."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array
        return False


def as_column(values: Any) -> Any:
    """A column as an ndarray or an Arrow array, whatever array, series or iterable it comes as."""
    if isinstance(values, np.ndarray):
        return values.astype(object) if values.dtype.kind == "T" else values  # StringDType
    if is_arrow(values):
        return values
    if hasattr(values, "to_arrow"):  # a polars series
        return values.to_arrow()
    if not hasattr(values, "to_numpy"):
        return np.fromiter(values, object)
    if hasattr(values, "dtype") and not isinstance(values.dtype, np.dtype):  # pandas' own types: numpy would round them
        import pyarrow as pa

        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            pass
    return values.to_numpy()


def intervals_to_durations(column: Any) -> Any:
    import pyarrow as pa

    return pa.array([None if v is None else to_plain_value(v) for v in column.to_pylist()], pa.duration("us"))


def to_plain_type(column: Any) -> Any:
    """The same values in a type that every source knows: half floats, views, runs and wide decimals are converted.

    Intervals of pandas become their text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if has_intervals(kind):
        if pa.types.is_dictionary(kind):
            coded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            return pa.DictionaryArray.from_arrays(coded.indices, to_plain_type(coded.dictionary))
        return pa.array([None if is_absent(value) else str(value) for value in column.to_pandas()], pa.string())
    if isinstance(kind, pa.BaseExtensionType):
        if str(kind) == "extension<arrow.uuid>":
            return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        stored = pa.chunked_array([chunk.storage for chunk in chunks], kind.storage_type)
        return to_plain_type(stored if isinstance(column, pa.ChunkedArray) else stored.combine_chunks())
    if pa.types.is_run_end_encoded(kind):
        return to_plain_type(pc.run_end_decode(column))
    plain_types = {
        pa.float16().id: pa.float32(),
        pa.string_view().id: pa.large_string(),
        pa.binary_view().id: pa.large_binary(),
        pa.decimal256(1).id: pa.float64(),
    }
    return column.cast(plain_types[kind.id]) if kind.id in plain_types else column


def to_plain_types(table: Any) -> Any:
    import pyarrow as pa

    return pa.table([to_plain_type(column) for column in table.columns], table.column_names)


def has_intervals(arrow_type: Any) -> bool:
    """Whether values of a type are intervals of pandas."""
    return str(value_type(arrow_type)).startswith("extension<pandas.interval")


def to_plain_frame(frame: Any) -> Any:
    """A frame whose sparse columns of pandas are dense, and whose intervals are text; DuckDB reads neither."""
    if is_arrow(frame) and hasattr(frame, "columns"):
        return to_plain_types(frame) if any(map(has_intervals, frame.schema.types)) else frame
    plain: dict[Any, Any] = {}
    for name, kind in zip(getattr(frame, "columns", ()), getattr(frame, "dtypes", ()), strict=False):
        if is_sparse_type(kind):
            plain[name] = frame[name].astype(kind.subtype)
        elif str(getattr(getattr(kind, "categories", None), "dtype", kind)).startswith("interval["):
            plain[name] = frame[name].astype("category").cat.rename_categories(str)
    if plain:
        frame = frame.copy(deep=False)
        for name, column in plain.items():  # assign takes names that are text only
            frame[name] = column
    return frame


def is_sparse_type(kind: Any) -> bool:
    return str(kind).startswith("Sparse[")


def arrow_floats(column: Any) -> NDArray[np.float64]:
    """An Arrow column of numbers as float64, NaN where null."""
    import pyarrow as pa

    return arrow_numbers(column.cast(pa.float64(), safe=False))  # whole numbers past 2**53 are rounded


def arrow_numbers(column: Any, absent: int | None = None) -> NDArray:
    """An Arrow column of numbers or booleans, without a copy if possible; nulls are ``absent``, or NaN among floats.

    The buffers are read because pyarrow's conversion imports pandas, which takes longer than to fit a small table.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return arrow_numbers(column.cast(pa.uint8())).view(np.bool_) if not column.null_count else arrow_floats(column)
    if column.null_count and absent is None and not pa.types.is_floating(column.type):
        return arrow_floats(column)
    parts = []
    for chunk in filter(len, [column] if isinstance(column, pa.Array) else column.chunks):
        valid, buffer = chunk.buffers()
        rows = slice(chunk.offset, chunk.offset + len(chunk))
        values = np.frombuffer(buffer, chunk.type.to_pandas_dtype(), rows.stop)[rows]
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[rows]
            values = np.where(bits == 0, values.dtype.type(np.nan if absent is None else absent), values)
        parts.append(values)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, column.type.to_pandas_dtype())


def arrow_indices(rows: NDArray) -> Any:
    """Row numbers as an Arrow array, by their buffer."""
    import pyarrow as pa

    whole = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def value_type(arrow_type: Any) -> Any:
    """The type of the values, behind a dictionary."""
    return arrow_type.value_type if str(arrow_type).startswith("dictionary") else arrow_type


def is_string(arrow_type: Any) -> bool:
    return str(value_type(arrow_type)) in ("string", "large_string", "string_view")


def is_nested(arrow_type: Any) -> bool:
    """Whether values of a type are lists, structures or maps, which cannot be the value of a row."""
    import pyarrow as pa

    return pa.types.is_nested(value_type(arrow_type))


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
    if kinds <= {str} or not kinds <= _PLAIN_TYPES:
        return np.fromiter(values, object, len(values))
    if kinds <= {dt.date, dt.datetime} or kinds in ({dt.time}, {dt.timedelta}):
        import pyarrow as pa

        if dt.datetime in kinds:
            return pa.array([to_timestamp(value) for value in values], pa.timestamp("us"))
        arrow_types = {dt.date: pa.date32(), dt.time: pa.time64("us"), dt.timedelta: pa.duration("us")}
        return pa.array(values, arrow_types[kinds.pop()])
    return np.fromiter((None if value is None else format_plain_value(value) for value in values), object, len(values))


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
    present = [value for value in values if value is not None]
    if all(type(v) is float or (type(v) in (bool, int) and abs(v) <= sys.float_info.max) for v in present):
        if all(isinstance(v, int) and abs(v) < 10**_MAX_DECIMAL_DIGITS for v in present):
            return pa.array([None if v is None else int(v) for v in values], pa.decimal128(_MAX_DECIMAL_DIGITS))
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    try:
        return pa.array([None if value is None else format_plain_value(value) for value in values])
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise InputError(str(error)) from None


def is_temporal_kind(column: Any, kind: str) -> bool:
    """Whether a column, in memory as it came, holds "date" (with times or without) or "time" (of day, or durations)."""
    pattern, types = _TEMPORAL[kind]
    type_name = str(getattr(column, "type", getattr(column, "dtype", ""))).lower()
    if type_name == "object" or isinstance(column, list | tuple):
        return isinstance(next((value for value in column if not is_absent(value)), None), types)
    return pattern.match(type_name) is not None


def is_record_list(data: Any) -> bool:
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
