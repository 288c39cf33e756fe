"""Repeated headers: rows that hold the names of the columns, as in files that were joined. They are left out.

>>> import pyarrow as pa
>>> [str(note) for note in named_rows(pa.table({"age": ["30", "age"], "job": ["cook", "job"]}))]
['row 1 repeats the names of the columns and is left out; delete what is not a row']
"""

import codecs
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.engines.duckdb import type_inference
from candide.engines.duckdb.csv_options import CsvOptions, lines_above_header
from candide.engines.duckdb.encodings import LineNumbers, open_bytes

_SEARCHED = 1 << 26  # bytes of a file in which its header is searched for again
_REMEDY = "delete what is not a row"


def named_rows(head: Any) -> list[Note]:
    """Return a note on rows of an Arrow table of text in which every column holds its own name."""
    names = head.column_names
    if len(names) < 2 or not all(type_inference.is_string(head, name) for name in names):
        return []
    is_own = [pc.fill_null(pc.equal(head.column(name), name), False) for name in names]
    rows = pc.indices_nonzero(reduce(pc.and_, is_own)).to_pylist()
    if not rows:
        return []
    one = f"row {rows[0]:,} repeats the names of the columns and is left out"
    several = f"{formatting.format_count(len(rows))} repeat the names of the columns and are left out, the first is row {rows[0]:,}"
    return [Note("repeated-header", one if len(rows) == 1 else several, None, _REMEDY, tuple(names))]


def without_repeats(form: CsvOptions, name: str) -> tuple[CsvOptions, list[Note]]:
    """A form that leaves out rows which repeat the header, as in files that were joined, and a note on their lines."""
    if form.parts:
        each = [without_repeats(part, "") for part in form.parts]
        return replace(form, parts=tuple(part for part, _ in each)), [note for _, notes in each for note in notes]
    if not form.header or len(form.names) < 2:
        return form, []
    notes = []
    for path in form.files:
        found = LineNumbers()
        for line in _repeats_of_header(replace(form, files=(path,))):
            found.add(line)
        if found.n:
            verbs = ("repeats", "is") if found.n == 1 else ("repeat", "are")
            where = name if name and len(form.files) == 1 else path
            text = f"{where}: {found} {verbs[0]} the header and {verbs[1]} left out"
            names = tuple(one for one in form.names if one not in form.partitions)
            notes.append(Note("repeated-header", text, None, _REMEDY, names))
    return replace(form, repeats=bool(notes)), notes


def _repeats_of_header(form: CsvOptions) -> Iterator[int]:
    """The numbers of the lines that are the header again, among those of the first bytes of a file."""
    header = lines_above_header(form)[-1].removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    if not header or (form.quote and header.count(form.quote.encode()) % 2):  # names of two lines
        return
    before, looked, rest = 0, 0, b""  # lines before those at hand
    with open_bytes(form.files[0]) as file:
        while looked < _SEARCHED and (piece := file.read(1 << 20) or (rest and b"\n")):
            looked += len(piece)
            held, _, rest = (rest + piece).rpartition(b"\n")
            held, at = b"\n" + held + b"\n", 0
            while (at := held.find(b"\n" + header, at)) >= 0:
                line = before + held.count(b"\n", 0, at) + 1
                if held.startswith((b"\n", b"\r\n"), at + 1 + len(header)) and line > form.skip + 1:
                    yield line
                at += 1
            before += held.count(b"\n") - 1
