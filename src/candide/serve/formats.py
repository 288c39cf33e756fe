"""Formats: rows in and scored rows out as JSON, JSON lines, CSV or Arrow, by media type."""

import csv as csv_module
import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO, TextIOWrapper
from math import isinf
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from candide.serve.http import Limits, RequestProblem
from candide.serve.scorer import ScoredColumns

JSON, JSON_LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
_ALIASES = dict.fromkeys(("application/jsonl", "application/x-jsonlines", "application/ndjson"), JSON_LINES)
_REMEDY = f"send {JSON}, {JSON_LINES}, {CSV} or {ARROW}"
_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)", re.IGNORECASE)
_CSV_REMEDY = "send a line of names, then a line for each row, separated by commas"
# A quote that opens a field, until the one that closes it. The group matches if none does, or if more follows it.
_QUOTED = re.compile(rb'"(?<![^,\r\n]")[^"]*+(?:""[^"]*+)*+(?:"(?![^,\r\n])|())')
_DICTIONARY, _BATCH = 2, 3  # types of Arrow messages
Value = None | bool | int | float | str
encode = msgspec.json.Encoder(enc_hook=str).encode
encode_lines = msgspec.json.Encoder(enc_hook=str).encode_lines
_rows_decoder = msgspec.json.Decoder(dict[str, Value] | list[dict[str, Value]])
_line_decoder = msgspec.json.Decoder(dict[str, Value])


@dataclass(frozen=True)
class RequestRows:
    """Rows by column; also the row itself if the body is one JSON object."""

    n_rows: int
    columns: Mapping[str, Any]
    single_row: dict[str, Any] | None = None


def rows_from_records(records: list[dict[str, Any]], limits: Limits) -> RequestRows:
    """Return rows given as dictionaries; a value that a row lacks is missing."""
    names = dict.fromkeys(records[0]) if records else {}
    limits.check(len(records), len(names))
    try:
        if set(map(len, records)) <= {len(names)}:
            return RequestRows(len(records), {name: list(map(itemgetter(name), records)) for name in names})
    except KeyError:  # as many names, but others
        pass
    names = dict.fromkeys(name for row in records for name in row)
    limits.check(len(records), len(names))
    return RequestRows(len(records), {name: [row.get(name) for row in records] for name in names})


def column_values(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def read_rows(body: bytes, media: str, limits: Limits) -> RequestRows:
    return _READERS[find_media_type(media)](body, limits)


def _plain_media_type(media: str) -> str:
    plain = media.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


@lru_cache(64)
def find_media_type(media: str) -> str:
    """Return the format of a content type; raise a problem if it is not supported."""
    plain = _plain_media_type(media)
    if plain not in _READERS:
        raise RequestProblem(415, f"the content type {media!r} is not supported", value=media, remedy=_REMEDY)
    return plain


@lru_cache(64)
def negotiate_media_type(accept: bytes, sent: str) -> str:
    """Return the supported format that an Accept header prefers; if it accepts any, that of the request."""
    ranges = accept.decode("latin-1").split(",") if accept else ["*/*"]
    qualities = {media: float(match[1]) if (match := _QUALITY.search(media)) else 1.0 for media in ranges}
    for media in sorted(ranges, key=lambda media: -qualities[media]):
        plain = _plain_media_type(media)
        if not qualities[media]:
            break
        if plain in _READERS or plain in ("*/*", "application/*", ""):
            return plain if plain in _READERS else sent
    what = "none of the accepted formats is supported"
    raise RequestProblem(406, what, value=accept.decode("latin-1"), remedy=_REMEDY)


def decode_json(decoder: msgspec.json.Decoder, body: bytes) -> Any:
    """Return JSON of an expected shape; the problem of a row names the column."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if decoder in (_rows_decoder, _line_decoder):
            raise _shape_problem(body, str(error)) from None
        raise RequestProblem(422, f"unexpected JSON: {error}", remedy="see /docs") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestProblem(400, f"not valid JSON: {error}", remedy="see /docs") from None
    except RecursionError:
        raise RequestProblem(400, "the JSON is nested too deeply", remedy="see /docs") from None


def _shape_problem(body: bytes, reason: str) -> RequestProblem:
    try:
        rows = json.loads(body)  # which reads numbers that are too large as infinite
    except (ValueError, RecursionError):
        rows = None
    for n, row in enumerate(rows if isinstance(rows, list) else [rows]):
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, list | dict):
                what = f"column {name!r}: a value is a list or an object"
                remedy = "send a number, text, boolean or null"
                return RequestProblem(422, what, column=name, row=n, value=value, remedy=remedy)
            if isinstance(value, float) and isinf(value):
                what = f"column {name!r} (row {n}): a number is too large"
                return RequestProblem(422, what, column=name, row=n, remedy="send a 64-bit number, or null")
    what = f"expected an object, or a list of objects: {reason}"
    return RequestProblem(422, what, remedy='send {"column": value, ...}')


def _read_json(body: bytes, limits: Limits) -> RequestRows:
    rows = decode_json(_rows_decoder, body)
    if isinstance(rows, dict):
        limits.check(1, len(rows))
        return RequestRows(1, {name: [value] for name, value in rows.items()}, rows)
    return rows_from_records(rows, limits)


def _read_lines(body: bytes, limits: Limits) -> RequestRows:
    records = []
    try:
        for line in filter(bytes.strip, body.splitlines()):
            records.append(decode_json(_line_decoder, line))
    except RequestProblem as problem:
        problem.location["row"] = len(records)
        raise
    return rows_from_records(records, limits)


def _rows_from_table(table: Any) -> RequestRows:
    return RequestRows(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))


def _read_csv(body: bytes, limits: Limits) -> RequestRows:
    """Return the columns of a CSV body as text, which the model parses like its training rows; empty cells are null.

    As in ``candide predict``, an empty line of a single column is a row.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not body.removeprefix(BOM_UTF8).strip():
        raise RequestProblem(400, "the body is empty", remedy=_CSV_REMEDY)
    for match in _QUOTED.finditer(body) if b'"' in body else ():
        if match[1] is not None:  # what follows would become one value, and its rows would be lost
            line = body.count(b"\n", 0, match.start()) + 1
            what, remedy = f"line {line}: unclosed quote", "close it; write a quote within quotes twice"
            raise RequestProblem(400, what, value=line, remedy=remedy)
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
    return _rows_from_table(table)


def _check_names(names: list[str], limits: Limits) -> None:
    limits.check(0, len(names))
    for name, times in Counter(names).items():
        if times > 1:
            raise RequestProblem(422, f"two columns are named {name!r}", column=name, remedy="rename one of them")


def _read_arrow(body: bytes, limits: Limits) -> RequestRows:
    import pyarrow as pa

    try:
        messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
        if any(_is_compressed(memoryview(message.metadata)) for message in messages):
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
    return _rows_from_table(table)


_READERS: dict[str, Callable[[bytes, Limits], RequestRows]] = {
    JSON: _read_json, JSON_LINES: _read_lines, CSV: _read_csv, ARROW: _read_arrow,
}  # fmt: skip


def _check_values(table: Any, max_bytes: int) -> None:
    """Reject nested values, and text stored once for many rows that is too long when it is written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not _is_flat(column.type):
            what = f"column {name!r}: values of the type {column.type} are not supported"
            remedy = "send numbers, text, booleans or dates, or leave the column out"
            raise RequestProblem(422, what, column=name, value=str(column.type), remedy=remedy)
        for chunk in column.chunks:  # of types in which rows may share a text
            if pa.types.is_dictionary(chunk.type):
                size += pc.sum(pa.array(_lengths(chunk.dictionary)).take(chunk.indices)).as_py() or 0
            elif chunk.type in (pa.string_view(), pa.binary_view()):
                size += int(_lengths(chunk).sum())
        if size > max_bytes:
            what, remedy = f"{size:,} bytes of text when written out", f"send at most {max_bytes:,} at a time"
            raise RequestProblem(413, what, column=name, value=size, remedy=remedy)


def _is_flat(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return not pa.types.is_dictionary(kind.value_type) and _is_flat(kind.value_type)
    return not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _lengths(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if kind in (pa.string_view(), pa.binary_view()):  # 16 bytes each, of which the first four are the length
        views = np.frombuffer(array.buffers()[1], np.int32)[::4] if len(array) else np.zeros(0, np.int32)
        return views[array.offset : array.offset + len(array)].astype(np.int64)
    if any(test(kind) for test in (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)):
        return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.full(len(array), kind.bit_width // 8 if kind != pa.null() else 0)


def _is_compressed(message: memoryview) -> bool:
    """Whether the values of an Arrow message are compressed: a short one could expand to fill the memory.

    The message is a flatbuffer. The fourth field of a record batch names its compression; the second field of a
    dictionary is a record batch.
    """

    def number(at: int, size: int, signed: bool = False) -> int:
        return int.from_bytes(message[at : at + size], "little", signed=signed)

    def field(table: int, slot: int) -> int:
        """Return the position of a field of a table; 0 if it is absent."""
        vtable = table - number(table, 4, signed=True)
        at = vtable + 4 + 2 * slot
        offset = number(at, 2) if at + 2 <= vtable + number(vtable, 2) else 0
        return table + offset if offset else 0

    root = number(0, 4)
    kind = message[field(root, 1)] if field(root, 1) else 0
    batch = field(root, 2)
    if batch and kind == _DICTIONARY:
        batch = field(batch + number(batch, 4), 1)
    return bool(batch and kind in (_DICTIONARY, _BATCH) and field(batch + number(batch, 4), 3))


def write_scored(scored: ScoredColumns, media_type: str, warnings: dict[str, Any]) -> bytes:
    """Return scored rows in a format; in JSON the first row holds the warnings on all of them."""
    if media_type in (CSV, ARROW):
        return _write_table(scored, media_type)
    struct = _row_struct(tuple(scored.names))
    make_row = struct or (lambda *values: dict(zip(scored.names, values, strict=True)))
    rows: list[Any] = list(map(make_row, *scored.columns))
    if warnings and rows:
        rows[0] = dict(zip(scored.names, (column[0] for column in scored.columns), strict=True)) | warnings
    return encode(rows) if media_type == JSON else encode_lines(rows)


@lru_cache(64)
def _row_struct(names: tuple[str, ...]) -> type[msgspec.Struct] | None:
    """Return the struct type of a scored row, which is encoded faster than a dictionary.

    Return None if msgspec rejects a name: one with a quote, a backslash or a control character.
    """
    fields = [f"f{i}" for i in range(len(names))]
    try:
        return msgspec.defstruct("ScoredRow", fields, rename=dict(zip(fields, names, strict=True)), gc=False)
    except ValueError:
        return None


def _write_table(scored: ScoredColumns, media_type: str) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    label, *numbers = scored.columns
    label_type = pa.array(scored.labels).type  # also if every row is null, or there are none
    arrays = [pa.array(label, label_type), *(pa.array(column, pa.float64()) for column in numbers)]
    out, table = BytesIO(), pa.Table.from_arrays(arrays, scored.names)
    if media_type == CSV:
        csv.write_csv(table, out)
    else:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    return out.getvalue()
