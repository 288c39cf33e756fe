r"""Tables that come in whole: CSV and Arrow streams, as Arrow has them; what could not be meant, or grows, is refused.

>>> read_csv_body(b"age\n30\n\n41\n", Limits()).to_pydict()  # as predict reads it: of one column an empty line is a row
{'age': ['30', None, '41']}
"""

import csv as plain
import re
from codecs import BOM_UTF8
from collections import Counter
from io import BytesIO, TextIOWrapper
from typing import Any

import numpy as np

from candide.serve.limits import Limits
from candide.serve.problem import RequestProblem

_CSV_REMEDY = "send a line of names, then a line for each row, with commas between"
_DICTIONARY, _BATCH = 2, 3  # kinds of Arrow messages
# A quote that opens a field (one amid others is a letter) until that which closes it; where none does, or more of the
# field follows, the group is there.
_QUOTED = re.compile(rb'"(?<![^,\r\n]")[^"]*+(?:""[^"]*+)*+(?:"(?![^,\r\n])|())')


def read_csv_body(body: bytes, limits: Limits) -> Any:
    """Text, which the model reads as its own rows were read; an empty cell is missing."""
    import pyarrow as pa
    from pyarrow import csv

    if not body.removeprefix(BOM_UTF8).strip():
        raise RequestProblem(400, "the body is empty", remedy=_CSV_REMEDY)
    _check_quotes(body)
    raw = body.lstrip(b"\r\n")
    raw = raw if raw.endswith((b"\r", b"\n")) else raw + b"\n"
    try:
        if b"\0" in raw.partition(b"\n")[0]:
            raise plain.Error("its names are bytes of another format")
        names = next(plain.reader(TextIOWrapper(BytesIO(raw), "utf-8-sig", newline=""), strict=True), [])
        names = [name.strip(" ") for name in names]
        _check_names(names, limits)
        table = csv.read_csv(
            BytesIO(raw),
            csv.ReadOptions(
                use_threads=False, block_size=len(raw) + 1, column_names=names or None, skip_rows_after_names=1
            ),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError, plain.Error) as error:
        raise RequestProblem(400, f"this is not CSV: {error}", remedy=_CSV_REMEDY) from None
    limits.check(table.num_rows, table.num_columns)
    return table


def _check_quotes(body: bytes) -> None:
    """Refuse a quote that is not closed: what follows would be one value, and its rows lost."""
    for field in _QUOTED.finditer(body) if b'"' in body else ():
        if field[1] is not None:
            line = body.count(b"\n", 0, field.start()) + 1
            what = f"line {line}: a quote is opened there, and not closed"
            raise RequestProblem(400, what, value=line, remedy="mend the line; within quotes a quote is written twice")


def _check_names(names: list[str], limits: Limits) -> None:
    limits.check(0, len(names))
    for name, times in Counter(names).items():
        if times > 1:
            raise RequestProblem(422, f"two columns are called {name!r}", column=name, remedy="rename one of them")


def read_arrow_body(body: bytes, limits: Limits) -> Any:
    """A table of an Arrow stream."""
    import pyarrow as pa

    try:
        if any(_is_compressed(message.metadata) for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body))):
            raise RequestProblem(415, "this Arrow stream is compressed", remedy="write it without compression")
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            _check_names(stream.schema.names, limits)
            table = stream.read_all()
        limits.check(table.num_rows, table.num_columns)
        table.validate(full=True)  # or a wrong offset would be read as if it were there
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        raise RequestProblem(
            400, f"this is no Arrow stream: {error}", remedy="send what pyarrow.ipc.new_stream writes"
        ) from None
    _check_values(table, limits.max_body_bytes)
    return table


def _check_values(table: Any, most: int) -> None:
    """Refuse values that are many in one, and text that is said once for many rows if it is too long written out."""
    size = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not _is_flat(column.type):
            what = f"column {name!r}: its values are of the type {column.type}"
            remedy = "send a column of numbers, text, truths or dates, or leave it out"
            raise RequestProblem(422, what, column=name, value=str(column.type), remedy=remedy)
        size += sum(map(_expanded_bytes, column.chunks))
        if size > most:
            what, remedy = f"{size:,} bytes of text, each row's by itself", f"send at most {most:,} at a time"
            raise RequestProblem(413, what, column=name, value=size, remedy=remedy)


def _is_flat(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return not pa.types.is_dictionary(kind.value_type) and _is_flat(kind.value_type)
    return not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _expanded_bytes(chunk: Any) -> int:
    """How many bytes the texts of a column are, of which several rows may share one; 0 where they cannot."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(chunk.type):
        return pc.sum(pa.array(_lengths(chunk.dictionary)).take(chunk.indices)).as_py() or 0
    return int(_lengths(chunk).sum()) if _is_view(chunk.type) else 0


def _lengths(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if _is_view(kind):  # of 16 bytes each, the first four are the length
        views = np.frombuffer(array.buffers()[1], np.int32)[::4] if len(array) else np.zeros(0, np.int32)
        return views[array.offset : array.offset + len(array)].astype(np.int64)
    if any(
        a(kind) for a in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    ):
        return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.full(len(array), kind.bit_width // 8 if kind != pa.null() else 0)


def _is_view(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string_view(), pa.binary_view())


def _is_compressed(message: bytes) -> bool:
    """Whether the values of an Arrow message are compressed: a short one could grow to fill the memory.

    The message is a flatbuffer; of a batch of rows the fourth field says how it is compressed, and of a dictionary the
    second is such a batch.
    """
    raw = memoryview(message)

    def field(table: int, slot: int) -> int:
        """Where a field of a table lies; 0 where it is not there."""
        vtable = table - int.from_bytes(raw[table : table + 4], "little", signed=True)
        at = vtable + 4 + 2 * slot
        if at + 2 > vtable + int.from_bytes(raw[vtable : vtable + 2], "little"):
            return 0
        offset = int.from_bytes(raw[at : at + 2], "little")
        return table + offset if offset else 0

    def inner(at: int) -> int:
        return at + int.from_bytes(raw[at : at + 4], "little")

    root = inner(0)
    kind = raw[field(root, 1)] if field(root, 1) else 0
    batch = field(root, 2)
    if batch and kind == _DICTIONARY:
        batch = field(inner(batch), 1)
    return bool(batch and kind in (_DICTIONARY, _BATCH) and field(inner(batch), 3))
