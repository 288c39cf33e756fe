"""Formats: rows as they come in and answers as they go out: JSON, JSON lines, CSV and Arrow, by their media types.

>>> read(b'[{"age": 30}, {"age": 41, "job": "cook"}]', "application/json")
Rows(n=2, columns={'age': [30, 41], 'job': [None, 'cook']}, single=None)
>>> read(b'{"age": 30}', "application/json; charset=utf-8").single
{'age': 30}
>>> answer_type(b"text/html, text/csv;q=0.9", "application/json")
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
from candide.serve.limits import USUAL, Limits
from candide.serve.problem import Problem
from candide.serve.scorer import Scored

JSON, LINES, CSV, ARROW = "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
_ALSO = {"application/jsonl": LINES, "application/x-jsonlines": LINES, "application/ndjson": LINES}
_REMEDY = f"send {JSON}, {LINES}, {CSV} or {ARROW}"
_Q = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)", re.IGNORECASE)
Value = None | bool | int | float | str
encode = msgspec.json.Encoder(enc_hook=str).encode
encode_lines = msgspec.json.Encoder(enc_hook=str).encode_lines
_rows = msgspec.json.Decoder(dict[str, Value] | list[dict[str, Value]])
_lines = msgspec.json.Decoder(dict[str, Value])


@dataclass(frozen=True)
class Rows:
    """Rows by their columns; of a JSON object that is one row, the row."""

    n: int
    columns: Mapping[str, Any]
    single: dict[str, Any] | None = None


def of_records(records: list[dict[str, Any]], limits: Limits = USUAL) -> Rows:
    """Rows that each have their values by name; what one of them lacks is missing."""
    names = dict.fromkeys(records[0]) if records else {}
    limits.check(len(records), len(names))
    try:
        if set(map(len, records)) <= {len(names)}:
            return Rows(len(records), {name: list(map(itemgetter(name), records)) for name in names})
    except KeyError:  # as many, but others
        pass
    names = dict.fromkeys(name for row in records for name in row)
    limits.check(len(records), len(names))
    return Rows(len(records), {name: [row.get(name) for row in records] for name in names})


def read(body: bytes, media: str, limits: Limits = USUAL) -> Rows:
    """The rows of a body."""
    return _READERS[kind_of(media)](body, limits)


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
    """The format that an Accept header likes best and can be written; where anything will do, that of the rows."""
    wishes = [(_liked(one), one) for one in accept.decode("latin-1").split(",")] if accept else [(1.0, "*/*")]
    for liked, one in sorted(wishes, key=lambda wish: -wish[0]):
        plain = one.partition(";")[0].strip().lower()
        plain = _ALSO.get(plain, plain)
        if not liked:
            break
        if plain in _READERS or plain in ("*/*", "application/*", ""):
            return plain if plain in _READERS else sent
    raise Problem(406, "no format that is accepted can be written", value=accept.decode("latin-1"), remedy=_REMEDY)


def _liked(wish: str) -> float:
    """How much a format is liked, from 0 to 1: its q, if it says one that can be read."""
    found = _Q.search(wish)
    return float(found[1]) if found else 1.0


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
        found = json.loads(body)  # which reads numbers that are too large as infinite
    except (ValueError, RecursionError):
        found = None
    for n, row in enumerate(found if isinstance(found, list) else [found]):
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, list | dict):
                what = f"column {name!r}: a value is a list or an object"
                return Problem(
                    422, what, column=name, row=n, value=value, remedy="pass one number, text, truth or null"
                )
            if isinstance(value, float) and isinf(value):
                what = f"column {name!r} (row {n}): a number is too large"
                return Problem(422, what, column=name, row=n, remedy="send one that 64 bits hold, or null")
    return Problem(422, f"rows are objects, or a list of objects: {why}", remedy='send {"column": value, ...}')


def _read_json(body: bytes, limits: Limits) -> Rows:
    found = decoded(_rows, body)
    if isinstance(found, dict):
        limits.check(1, len(found))
        return Rows(1, {name: [value] for name, value in found.items()}, found)
    return of_records(found, limits)


def _read_lines(body: bytes, limits: Limits) -> Rows:
    records = []
    try:
        for line in filter(bytes.strip, body.splitlines()):
            records.append(decoded(_lines, line))
    except Problem as problem:
        problem.place["row"] = len(records)
        raise
    return of_records(records, limits)


def _of_table(table: Any) -> Rows:
    return Rows(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))


def values(column: Any) -> list[Any]:
    """A column of rows as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def write(scored: Scored, kind: str, warnings: dict[str, Any] | None = None) -> bytes:
    """A scored table in a format; in JSON the first row has the warnings on all of them."""
    if kind not in (JSON, LINES):
        return _WRITERS[kind](scored)
    rows = _json_rows(scored)
    if warnings and rows:
        rows[0] = dict(zip(scored.names, (column[0] for column in scored.columns), strict=True)) | warnings
    return encode(rows) if kind == JSON else encode_lines(rows)


def arrow_table(scored: Scored) -> Any:
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


def _json_rows(scored: Scored) -> list[Any]:
    """Return the rows of a scored table in a form that msgspec encodes as objects."""
    struct = _row_struct(tuple(scored.names))
    return scored.rows if struct is None else list(map(struct, *scored.columns))


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


_READERS: dict[str, Callable[[bytes, Limits], Rows]] = {
    JSON: _read_json,
    LINES: _read_lines,
    CSV: lambda body, limits: _of_table(tables.of_csv(body, limits)),
    ARROW: lambda body, limits: _of_table(tables.of_stream(body, limits)),
}
_WRITERS: dict[str, Callable[[Scored], bytes]] = {
    CSV: _write_csv,
    ARROW: _write_arrow,
}
