"""Formats: rows as they come in and answers as they go out: JSON, JSON lines, CSV and Arrow, by their media types.

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

from candide.serve import tables
from candide.serve.limits import DEFAULT_LIMITS, Limits
from candide.serve.problem import RequestProblem
from candide.serve.scorer import ScoredColumns

JSON, JSON_LINES, CSV, ARROW = (
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "application/vnd.apache.arrow.stream",
)
_MEDIA_TYPE_ALIASES = {
    "application/jsonl": JSON_LINES,
    "application/x-jsonlines": JSON_LINES,
    "application/ndjson": JSON_LINES,
}
_REMEDY = f"send {JSON}, {JSON_LINES}, {CSV} or {ARROW}"
_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)", re.IGNORECASE)
Value = None | bool | int | float | str
encode = msgspec.json.Encoder(enc_hook=str).encode
encode_lines = msgspec.json.Encoder(enc_hook=str).encode_lines
_rows_decoder = msgspec.json.Decoder(dict[str, Value] | list[dict[str, Value]])
_line_decoder = msgspec.json.Decoder(dict[str, Value])


@dataclass(frozen=True)
class RequestRows:
    """Rows by their columns; of a JSON object that is one row, the row."""

    n_rows: int
    columns: Mapping[str, Any]
    single_row: dict[str, Any] | None = None


def rows_from_records(records: list[dict[str, Any]], limits: Limits = DEFAULT_LIMITS) -> RequestRows:
    """Rows that each have their values by name; what one of them lacks is missing."""
    names = dict.fromkeys(records[0]) if records else {}
    limits.check(len(records), len(names))
    try:
        if set(map(len, records)) <= {len(names)}:
            return RequestRows(len(records), {name: list(map(itemgetter(name), records)) for name in names})
    except KeyError:  # as many, but others
        pass
    names = dict.fromkeys(name for row in records for name in row)
    limits.check(len(records), len(names))
    return RequestRows(len(records), {name: [row.get(name) for row in records] for name in names})


def read_rows(body: bytes, media: str, limits: Limits = DEFAULT_LIMITS) -> RequestRows:
    """The rows of a body."""
    return _READERS[find_media_type(media)](body, limits)


@lru_cache(64)
def find_media_type(media: str) -> str:
    """The format that a media type names."""
    plain = media.partition(";")[0].strip().lower()
    plain = _MEDIA_TYPE_ALIASES.get(plain, plain)
    if plain not in _READERS:
        raise RequestProblem(415, f"the content type {media!r} is not read here", value=media, remedy=_REMEDY)
    return plain


@lru_cache(64)
def negotiate_media_type(accept: bytes, sent: str) -> str:
    """The format that an Accept header likes best and can be written; where anything will do, that of the rows."""
    wishes = [(_quality_of(one), one) for one in accept.decode("latin-1").split(",")] if accept else [(1.0, "*/*")]
    for liked, one in sorted(wishes, key=lambda wish: -wish[0]):
        plain = one.partition(";")[0].strip().lower()
        plain = _MEDIA_TYPE_ALIASES.get(plain, plain)
        if not liked:
            break
        if plain in _READERS or plain in ("*/*", "application/*", ""):
            return plain if plain in _READERS else sent
    raise RequestProblem(
        406, "no format that is accepted can be written", value=accept.decode("latin-1"), remedy=_REMEDY
    )


def _quality_of(wish: str) -> float:
    """How much a format is liked, from 0 to 1: its q, if it says one that can be read."""
    found = _QUALITY.search(wish)
    return float(found[1]) if found else 1.0


def decode_json(decoder: msgspec.json.Decoder, body: bytes) -> Any:
    """JSON of an expected shape; in rows a value that is no single value is told by its column."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if decoder in (_rows_decoder, _line_decoder):
            raise _shape_problem(body, str(error)) from None
        raise RequestProblem(422, f"this is not as it is asked for: {error}", remedy="see /docs") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestProblem(400, f"this is not JSON: {error}", remedy="see /docs") from None
    except RecursionError:
        raise RequestProblem(400, "this JSON is nested too deeply", remedy="see /docs") from None


def _shape_problem(body: bytes, why: str) -> RequestProblem:
    try:
        found = json.loads(body)  # which reads numbers that are too large as infinite
    except (ValueError, RecursionError):
        found = None
    for n, row in enumerate(found if isinstance(found, list) else [found]):
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, list | dict):
                what = f"column {name!r}: a value is a list or an object"
                return RequestProblem(
                    422, what, column=name, row=n, value=value, remedy="pass one number, text, truth or null"
                )
            if isinstance(value, float) and isinf(value):
                what = f"column {name!r} (row {n}): a number is too large"
                return RequestProblem(422, what, column=name, row=n, remedy="send one that 64 bits hold, or null")
    return RequestProblem(422, f"rows are objects, or a list of objects: {why}", remedy='send {"column": value, ...}')


def _read_json(body: bytes, limits: Limits) -> RequestRows:
    found = decode_json(_rows_decoder, body)
    if isinstance(found, dict):
        limits.check(1, len(found))
        return RequestRows(1, {name: [value] for name, value in found.items()}, found)
    return rows_from_records(found, limits)


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


def column_values(column: Any) -> list[Any]:
    """A column of rows as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def write_scored(scored: ScoredColumns, kind: str, warnings: dict[str, Any] | None = None) -> bytes:
    """A scored table in a format; in JSON the first row has the warnings on all of them."""
    if kind not in (JSON, JSON_LINES):
        return _WRITERS[kind](scored)
    rows = _json_rows(scored)
    if warnings and rows:
        rows[0] = dict(zip(scored.names, (column[0] for column in scored.columns), strict=True)) | warnings
    return encode(rows) if kind == JSON else encode_lines(rows)


def to_arrow_table(scored: ScoredColumns) -> Any:
    """A scored table as Arrow has it."""
    import pyarrow as pa

    label, *numbers = scored.columns
    kind = pa.array(scored.labels).type  # also where every row is left open, or there are none
    arrays = [pa.array(label, kind), *(pa.array(column, pa.float64()) for column in numbers)]
    return pa.Table.from_arrays(arrays, scored.names)


@lru_cache(64)
def _row_struct(names: tuple[str, ...]) -> type[msgspec.Struct] | None:
    """Return the struct type of a scored row, which is encoded faster than a dictionary.

    Return None where msgspec rejects a name: one with a quote, a backslash or a control character.
    """
    fields = [f"f{i}" for i in range(len(names))]
    try:
        return msgspec.defstruct("Answer", fields, rename=dict(zip(fields, names, strict=True)), gc=False)
    except ValueError:
        return None


def _json_rows(scored: ScoredColumns) -> list[Any]:
    """Return the rows of a scored table in a form that msgspec encodes as objects."""
    struct = _row_struct(tuple(scored.names))
    return scored.to_rows if struct is None else list(map(struct, *scored.columns))


def _write_arrow(scored: ScoredColumns) -> bytes:
    import pyarrow as pa

    out, table = BytesIO(), to_arrow_table(scored)
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _write_csv(scored: ScoredColumns) -> bytes:
    from pyarrow import csv

    out = BytesIO()
    csv.write_csv(to_arrow_table(scored), out)
    return out.getvalue()


_READERS: dict[str, Callable[[bytes, Limits], RequestRows]] = {
    JSON: _read_json,
    JSON_LINES: _read_lines,
    CSV: lambda body, limits: _rows_from_table(tables.read_csv_body(body, limits)),
    ARROW: lambda body, limits: _rows_from_table(tables.read_arrow_body(body, limits)),
}
_WRITERS: dict[str, Callable[[ScoredColumns], bytes]] = {
    CSV: _write_csv,
    ARROW: _write_arrow,
}
