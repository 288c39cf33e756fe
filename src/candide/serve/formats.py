"""Formats: rows as they come in and answers as they go out: JSON, JSON lines, CSV and Arrow, by their media types.

>>> read(b'[{"age": 30}, {"age": 41, "job": "cook"}]', "application/json")
Rows(n=2, columns={'age': [30, 41], 'job': [None, 'cook']}, single=None)
>>> read(b'{"age": 30}', "application/json; charset=utf-8").single
{'age': 30}
>>> answer_type(b"text/html, text/csv;q=0.9", "application/json")
'text/csv'
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from operator import itemgetter
from typing import Any

import msgspec

from candide.serve.problem import Problem
from candide.serve.scorer import Scored

JSON, LINES, CSV, ARROW = "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
_ALSO = {"application/jsonl": LINES, "application/x-jsonlines": LINES, "application/ndjson": LINES}
_REMEDY = f"send {JSON}, {LINES}, {CSV} or {ARROW}"
Value = None | bool | int | float | str
_DICTIONARY, _BATCH = 2, 3  # kinds of Arrow messages
encode = msgspec.json.Encoder(enc_hook=str).encode
encode_lines = msgspec.json.Encoder(enc_hook=str).encode_lines
_rows = msgspec.json.Decoder(dict[str, Value] | list[dict[str, Value]])
_lines = msgspec.json.Decoder(dict[str, Value])
_any = msgspec.json.Decoder()


@dataclass(frozen=True)
class Rows:
    """Rows by their columns; of a JSON object that is one row, the row."""

    n: int
    columns: Mapping[str, Any]
    single: dict[str, Any] | None = None


def of_records(records: list[dict[str, Any]]) -> Rows:
    """Rows that each have their values by name; what one of them lacks is missing."""
    names = dict.fromkeys(records[0]) if records else {}
    try:
        if set(map(len, records)) <= {len(names)}:
            return Rows(len(records), {name: list(map(itemgetter(name), records)) for name in names})
    except KeyError:  # as many, but others
        pass
    names = dict.fromkeys(name for row in records for name in row)
    return Rows(len(records), {name: [row.get(name) for row in records] for name in names})


def read(body: bytes, media: str) -> Rows:
    """The rows of a body."""
    return _READERS[kind_of(media)](body)


@lru_cache(64)
def kind_of(media: str) -> str:
    """The format that a media type names."""
    plain = media.partition(";")[0].strip().lower()
    plain = _ALSO.get(plain, plain)
    if plain not in _READERS:
        raise Problem(415, f"the content type {media!r} is not read here", value=media, remedy=_REMEDY)
    return plain


@lru_cache(64)
def answer_type(accept: bytes, sent: str) -> str:
    """The first format of an Accept header that can be written; where anything will do, that of the rows."""
    for one in accept.decode("latin-1").split(",") if accept else ["*/*"]:
        plain = one.partition(";")[0].strip().lower()
        plain = _ALSO.get(plain, plain)
        if plain in _WRITERS or plain in ("*/*", "application/*", ""):
            return plain if plain in _WRITERS else sent
    raise Problem(406, "no format that is accepted can be written", value=accept.decode("latin-1"), remedy=_REMEDY)


def decoded(decoder: msgspec.json.Decoder, body: bytes) -> Any:
    """JSON of an expected shape; in rows a value that is no single value is told by its column."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if decoder in (_rows, _lines):
            raise _misshapen(body, str(error)) from None
        raise Problem(422, f"this is not as it is asked for: {error}", remedy="see /docs") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"this is not JSON: {error}", remedy="see /docs") from None
    except RecursionError:
        raise Problem(400, "this JSON is nested too deeply", remedy="see /docs") from None


def _misshapen(body: bytes, why: str) -> Problem:
    try:
        found = _any.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    for n, row in enumerate(found if isinstance(found, list) else [found]):
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, list | dict):
                what = f"column {name!r}: a value is a list or an object"
                return Problem(
                    422, what, column=name, row=n, value=value, remedy="pass one number, text, truth or null"
                )
    return Problem(422, f"rows are objects, or a list of objects: {why}", remedy='send {"column": value, ...}')


def _read_json(body: bytes) -> Rows:
    found = decoded(_rows, body)
    if isinstance(found, dict):
        return Rows(1, {name: [value] for name, value in found.items()}, found)
    return of_records(found)


def _read_lines(body: bytes) -> Rows:
    return of_records([decoded(_lines, line) for line in body.splitlines() if line.strip()])


def _read_csv(body: bytes) -> Rows:
    """Text, which the model reads as its own rows were read; an empty cell is missing."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        names = csv.open_csv(BytesIO(body)).schema.names
        as_text = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
        )
        return _of_arrow(csv.read_csv(BytesIO(body), csv.ReadOptions(use_threads=False), convert_options=as_text))
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise Problem(
            400, f"this is not CSV: {error}", remedy="send a line of names, then a line for each row"
        ) from None


def _read_arrow(body: bytes) -> Rows:
    import pyarrow as pa

    try:
        if any(_is_compressed(message.metadata) for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body))):
            raise Problem(415, "this Arrow stream is compressed", remedy="write it without compression")
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            table = stream.read_all()
        table.validate(full=True)  # or a wrong offset would be read as if it were there
        return _of_arrow(table)
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        raise Problem(
            400, f"this is no Arrow stream: {error}", remedy="send what pyarrow.ipc.new_stream writes"
        ) from None


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


def _of_arrow(table: Any) -> Rows:
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise Problem(422, f"two columns are called {twice[0]!r}", column=twice[0], remedy="rename one of them")
    return Rows(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))


def values(column: Any) -> list[Any]:
    """A column of rows as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def write(scored: Scored, kind: str) -> bytes:
    """A scored table in a format."""
    return _WRITERS[kind](scored)


def arrow_table(scored: Scored) -> Any:
    """A scored table as Arrow has it."""
    import pyarrow as pa

    label, *numbers = scored.columns
    kind = pa.array(scored.labels).type  # also where every row is left open, or there are none
    arrays = [pa.array(label, kind), *(pa.array(column, pa.float64()) for column in numbers)]
    return pa.Table.from_arrays(arrays, scored.names)


@lru_cache(64)
def _answer(names: tuple[str, ...]) -> type[msgspec.Struct]:
    """A row of a scored table, which is written sooner than a dictionary is made of it."""
    fields = [f"f{i}" for i in range(len(names))]
    return msgspec.defstruct("Answer", fields, rename=dict(zip(fields, names, strict=True)), gc=False)


def _answers(scored: Scored) -> list[msgspec.Struct]:
    return list(map(_answer(tuple(scored.names)), *scored.columns))


def _write_arrow(scored: Scored) -> bytes:
    import pyarrow as pa

    out, table = BytesIO(), arrow_table(scored)
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _write_csv(scored: Scored) -> bytes:
    from pyarrow import csv

    out = BytesIO()
    csv.write_csv(arrow_table(scored), out)
    return out.getvalue()


_READERS: dict[str, Callable[[bytes], Rows]] = {
    JSON: _read_json,
    LINES: _read_lines,
    CSV: _read_csv,
    ARROW: _read_arrow,
}
_WRITERS: dict[str, Callable[[Scored], bytes]] = {
    JSON: lambda scored: encode(_answers(scored)),
    LINES: lambda scored: encode_lines(_answers(scored)),
    CSV: _write_csv,
    ARROW: _write_arrow,
}
