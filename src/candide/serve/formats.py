"""Formats: rows in and scored rows out as JSON, JSON lines, CSV or Arrow, by media type.

>>> read_rows(b'[{"age": 30}, {"age": 41, "job": "cook"}]', "application/json")
RequestRows(n_rows=2, columns={'age': [30, 41], 'job': [None, 'cook']}, single_row=None)
>>> read_rows(b'{"age": 30}', "application/json; charset=utf-8").single_row
{'age': 30}
>>> negotiate_media_type(b"text/html, text/csv;q=0.9", "application/json")
'text/csv'
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import isinf
from operator import itemgetter
from typing import Any

import msgspec

from candide.serve.http import DEFAULT_LIMITS, Limits, RequestProblem
from candide.serve.scorer import ScoredColumns
from candide.serve.tables import read_arrow_body, read_csv_body

JSON, JSON_LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
_ALIASES = dict.fromkeys(("application/jsonl", "application/x-jsonlines", "application/ndjson"), JSON_LINES)
_REMEDY = f"send {JSON}, {JSON_LINES}, {CSV} or {ARROW}"
_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)", re.IGNORECASE)
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


def rows_from_records(records: list[dict[str, Any]], limits: Limits = DEFAULT_LIMITS) -> RequestRows:
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


def read_rows(body: bytes, media: str, limits: Limits = DEFAULT_LIMITS) -> RequestRows:
    """Return the rows of a body."""
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
    for media in sorted(ranges, key=lambda media: -_quality(media)):
        plain = _plain_media_type(media)
        if not _quality(media):
            break
        if plain in _READERS or plain in ("*/*", "application/*", ""):
            return plain if plain in _READERS else sent
    what = "none of the accepted formats is supported"
    raise RequestProblem(406, what, value=accept.decode("latin-1"), remedy=_REMEDY)


def _quality(media: str) -> float:
    match = _QUALITY.search(media)
    return float(match[1]) if match else 1.0


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


def _table_reader(read: Callable[[bytes, Limits], Any]) -> Callable[[bytes, Limits], RequestRows]:
    def read_table(body: bytes, limits: Limits) -> RequestRows:
        table = read(body, limits)
        return RequestRows(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))

    return read_table


_READERS: dict[str, Callable[[bytes, Limits], RequestRows]] = {
    JSON: _read_json,
    JSON_LINES: _read_lines,
    CSV: _table_reader(read_csv_body),
    ARROW: _table_reader(read_arrow_body),
}


def column_values(column: Any) -> list[Any]:
    """Return a column as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def write_scored(scored: ScoredColumns, media_type: str, warnings: dict[str, Any] | None = None) -> bytes:
    """Return scored rows in a format; in JSON the first row holds the warnings on all of them."""
    if media_type in (CSV, ARROW):
        return _write_table(scored, media_type)
    rows = _json_rows(scored)
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


def _json_rows(scored: ScoredColumns) -> list[Any]:
    struct = _row_struct(tuple(scored.names))
    return scored.to_rows() if struct is None else list(map(struct, *scored.columns))


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
