r"""Request bodies that hold tables, CSV and Arrow streams, read as Arrow tables after checks.

>>> read_csv_body(b"age\n30\n\n41\n", Limits()).to_pydict()  # as candide predict reads it: an empty line is a row
{'age': ['30', None, '41']}
"""

import csv as csv_module
import re
from codecs import BOM_UTF8
from collections import Counter
from io import BytesIO, TextIOWrapper
from typing import Any

import numpy as np

from candide.serve.http import Limits, RequestProblem

_CSV_REMEDY = "send a line of names, then a line for each row, separated by commas"
_DICTIONARY, _BATCH = 2, 3  # types of Arrow messages
# A quote that opens a field, until the one that closes it. The group matches if none does, or if more follows it.
_QUOTED = re.compile(rb'"(?<![^,\r\n]")[^"]*+(?:""[^"]*+)*+(?:"(?![^,\r\n])|())')


def read_csv_body(body: bytes, limits: Limits) -> Any:
    """Return the columns of a CSV body as text, which the model parses like its training rows; empty cells are null."""
    import pyarrow as pa
    from pyarrow import csv

    if not body.removeprefix(BOM_UTF8).strip():
        raise RequestProblem(400, "the body is empty", remedy=_CSV_REMEDY)
    _check_quotes(body)
    raw = body.lstrip(b"\r\n")
    raw = raw if raw.endswith((b"\r", b"\n")) else raw + b"\n"
    try:
        if b"\0" in raw.partition(b"\n")[0]:
            raise csv_module.Error("its first line holds null bytes")
        names = next(csv_module.reader(TextIOWrapper(BytesIO(raw), "utf-8-sig", newline=""), strict=True), [])
        names = [name.strip(" ") for name in names]
        _check_names(names, limits)
        read_options = {"column_names": names or None, "skip_rows_after_names": 1, "block_size": len(raw) + 1}
        types = dict.fromkeys(names, pa.string())
        table = csv.read_csv(
            BytesIO(raw),
            csv.ReadOptions(use_threads=False, **read_options),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
            csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError, csv_module.Error) as error:
        raise RequestProblem(400, f"not valid CSV: {error}", remedy=_CSV_REMEDY) from None
    limits.check(table.num_rows, table.num_columns)
    return table


def _check_quotes(body: bytes) -> None:
    """Reject an unclosed quote: what follows would become one value, and its rows would be lost."""
    for match in _QUOTED.finditer(body) if b'"' in body else ():
        if match[1] is not None:
            line = body.count(b"\n", 0, match.start()) + 1
            what, remedy = f"line {line}: unclosed quote", "close it; write a quote within quotes twice"
            raise RequestProblem(400, what, value=line, remedy=remedy)


def _check_names(names: list[str], limits: Limits) -> None:
    limits.check(0, len(names))
    for name, times in Counter(names).items():
        if times > 1:
            raise RequestProblem(422, f"two columns are named {name!r}", column=name, remedy="rename one of them")


def read_arrow_body(body: bytes, limits: Limits) -> Any:
    """Return the table of an Arrow stream."""
    import pyarrow as pa

    try:
        if any(_is_compressed(message.metadata) for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body))):
            raise RequestProblem(415, "this Arrow stream is compressed", remedy="write it without compression")
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            _check_names(stream.schema.names, limits)
            table = stream.read_all()
        limits.check(table.num_rows, table.num_columns)
        table.validate(full=True)  # a wrong offset would be read outside the buffers
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        remedy = "send what pyarrow.ipc.new_stream writes"
        raise RequestProblem(400, f"not a valid Arrow stream: {error}", remedy=remedy) from None
    _check_values(table, limits.max_body_bytes)
    return table


def _check_values(table: Any, max_bytes: int) -> None:
    """Reject nested values, and text stored once for many rows that is too long when it is written out."""
    size = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not _is_flat(column.type):
            what = f"column {name!r}: values of the type {column.type} are not supported"
            remedy = "send numbers, text, booleans or dates, or leave the column out"
            raise RequestProblem(422, what, column=name, value=str(column.type), remedy=remedy)
        size += sum(map(_expanded_bytes, column.chunks))
        if size > max_bytes:
            what, remedy = f"{size:,} bytes of text when written out", f"send at most {max_bytes:,} at a time"
            raise RequestProblem(413, what, column=name, value=size, remedy=remedy)


def _is_flat(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return not pa.types.is_dictionary(kind.value_type) and _is_flat(kind.value_type)
    return not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _expanded_bytes(chunk: Any) -> int:
    """Return the bytes of the texts of a chunk in which rows may share a text; 0 if they cannot."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(chunk.type):
        return pc.sum(pa.array(_lengths(chunk.dictionary)).take(chunk.indices)).as_py() or 0
    return int(_lengths(chunk).sum()) if _is_view(chunk.type) else 0


def _lengths(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if _is_view(kind):  # 16 bytes each, of which the first four are the length
        views = np.frombuffer(array.buffers()[1], np.int32)[::4] if len(array) else np.zeros(0, np.int32)
        return views[array.offset : array.offset + len(array)].astype(np.int64)
    if any(test(kind) for test in (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)):
        return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.full(len(array), kind.bit_width // 8 if kind != pa.null() else 0)


def _is_view(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string_view(), pa.binary_view())


def _is_compressed(message: bytes) -> bool:
    """Whether the values of an Arrow message are compressed: a short one could expand to fill the memory.

    The message is a flatbuffer. The fourth field of a record batch names its compression; the second field of a
    dictionary is a record batch.
    """
    raw = memoryview(message)

    def field(table: int, slot: int) -> int:
        """Return the position of a field of a table; 0 if it is absent."""
        vtable = table - int.from_bytes(raw[table : table + 4], "little", signed=True)
        at = vtable + 4 + 2 * slot
        if at + 2 > vtable + int.from_bytes(raw[vtable : vtable + 2], "little"):
            return 0
        offset = int.from_bytes(raw[at : at + 2], "little")
        return table + offset if offset else 0

    def follow(at: int) -> int:
        return at + int.from_bytes(raw[at : at + 4], "little")

    root = follow(0)
    kind = raw[field(root, 1)] if field(root, 1) else 0
    batch = field(root, 2)
    if batch and kind == _DICTIONARY:
        batch = field(follow(batch), 1)
    return bool(batch and kind in (_DICTIONARY, _BATCH) and field(follow(batch), 3))
