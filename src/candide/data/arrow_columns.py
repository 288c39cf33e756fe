"""Arrow columns in the types that kernels and engines read; Arrow itself has more.

>>> import pyarrow as pa
>>> str(to_plain_type(pa.array([1.5, None], pa.float16())).type), is_nested(pa.list_(pa.int64()))
('float', True)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputTypeError


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
    """Whether values of a type are lists, structures or maps, which are no value of a row."""
    import pyarrow as pa

    return pa.types.is_nested(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)


def check_not_nested(column: Any, name: Any) -> None:
    """Refuse a column that cannot be a level or a number."""
    if is_nested(column.type):
        what = f"its values are of the type {column.type}, and a row has one value"
        raise InputTypeError(what, column=name, remedy="make a column of each of its parts, or drop it")
