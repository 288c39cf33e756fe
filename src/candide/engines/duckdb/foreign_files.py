"""Tables of other programs: sheets, SQLite, ARFF. Each is spooled as a CSV, a row at a time, and then read as one.

None of them has types that hold: a sheet's and SQLite's cells each have their own, so columns are found out as those of
a CSV are. What the source does say is kept: a column whose cells are all text is not taken for numbers because they are
whole, and one that ARFF declares to be nominal is a category.

>>> import tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "a.arff")
>>> _ = open(path, "w").write("@attribute size numeric\\n@attribute kind {a,'b c'}\\n@data\\n1.5,'b c'\\n")
>>> table = read_arff(path, path)
>>> table.names, list(table.rows), sorted(table.categories)
(['size', 'kind'], [[1.5, 'b c']], ['kind'])
"""

import csv
import datetime as dt
import io
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from urllib.parse import quote

from candide import formatting
from candide.data.notes import Note
from candide.engines.duckdb.csv_detection import distinct_names, duplicate_name_notes
from candide.engines.duckdb.csv_options import CsvHints, CsvOptions
from candide.engines.duckdb.encodings import open_bytes
from candide.engines.duckdb.formats import choose_table
from candide.engines.sql.text import quote_identifier
from candide.errors import MissingLibraryError, SourceError


@dataclass
class ForeignTable:
    """The names of columns, the rows as text, to be read once, and what is known of the columns."""

    names: list[str]
    rows: Iterable[list[Any]]
    categories: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)


def spool_table(table: ForeignTable, path: str, na: tuple[str, ...]) -> CsvOptions:
    """Write a table to a CSV; its form, which knows the columns whose cells were all text."""
    other = [False] * len(table.names)
    with open(path, "w", encoding="utf-8", newline="", errors="replace") as file:
        out = csv.writer(file)
        out.writerow(table.names)
        for row in table.rows:
            for i, cell in enumerate(row):
                other[i] = other[i] or not (cell is None or isinstance(cell, str))
            out.writerow(map(_cell_text, row))
    texts = {name for name, is_other in zip(table.names, other, strict=True) if not is_other} - table.categories
    form = CsvOptions((path,), CsvHints(na=na), tuple(table.names))
    return replace(form, categories=frozenset(table.categories), text_columns=frozenset(texts))


def _cell_text(cell: Any) -> str:
    """A cell as a CSV has it; a duration in days."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.datetime):
        return cell.isoformat(" ")
    if isinstance(cell, dt.timedelta):
        return repr(cell / dt.timedelta(days=1))
    return cell.hex() if isinstance(cell, bytes) else str(cell)


# Sheets


def read_sheet(path: str, where: str, requested: str | None = None, header: bool | None = None) -> ForeignTable:
    """A sheet of a workbook: the one that is asked for, or the only one that is not empty."""
    try:
        from python_calamine import CalamineError, load_workbook
    except ImportError:
        remedy = "pip install 'candide[excel]', or save it as CSV"
        raise MissingLibraryError(f"{where}: to read sheets python-calamine is needed", remedy=remedy) from None
    try:
        book = load_workbook(path)
        there = book.sheet_names
        full = [name for name in there if book.get_sheet_by_name(name).height] if requested is None else there
        sheet = book.get_sheet_by_name(choose_table(requested, full or there[:1], where, "sheets"))
        rows: Iterator[Any] = (row for row in sheet.iter_rows() if any(cell != "" for cell in row))
        first = next(rows, None)
    except CalamineError as error:
        raise SourceError(f"a workbook that cannot be read: {error}", source=where) from None
    if first is None:
        raise SourceError("an empty sheet", source=where)
    if header is False:
        written = names = [f"column{i}" for i in range(len(first))]
        rows = chain([first], rows)
    else:
        written = [_cell_text(cell).strip() for cell in first]
        names = distinct_names(written)
    cells = ([None if cell == "" else cell for cell in row] for row in rows)
    return ForeignTable(names, cells, notes=duplicate_name_notes(written, names))


# SQLite


def read_sqlite(path: str, where: str, requested: str | None = None) -> ForeignTable:
    """A table or view of an SQLite file. Bytes are left out."""
    con = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    con.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        name = choose_table(requested, [row[0] for row in con.execute(listed)], where)
        columns = [(row[1], row[2]) for row in con.execute(f"PRAGMA table_info({quote_identifier(name)})")]
    except sqlite3.Error as error:
        con.close()
        raise SourceError(str(error), source=where) from None
    names = [column for column, kind in columns if kind.upper() != "BLOB"]
    notes = [
        Note("left-out", f"column {column!r} is left out: it holds bytes", column)
        for column, kind in columns
        if kind.upper() == "BLOB"
    ]

    def rows() -> Iterator[list[Any]]:
        try:
            chosen = ", ".join(quote_identifier(column) for column in names)
            for row in con.execute(f"SELECT {chosen} FROM {quote_identifier(name)}"):
                yield list(row)
        except sqlite3.Error as error:
            raise SourceError(str(error), source=where) from None
        finally:
            con.close()

    return ForeignTable(names, rows(), notes=notes)


# ARFF

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)
_FIELD = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,]*?))\s*(?:,|$)""")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_JAVA_DATE_CODES = (
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("HH", "%H"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("'", ""),
)
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class _Attribute:
    name: str
    kind: str  # "number", "nominal", "string" or "date"
    default: str  # what stands for it where a sparse row leaves it out
    parse: Callable[[str], Any] = str


def read_arff(path: str, where: str) -> ForeignTable:
    """An ARFF file, dense or sparse."""
    lines = enumerate(io.TextIOWrapper(open_bytes(path), "utf-8-sig", "replace"), 1)
    attributes: list[_Attribute] = []
    for number, line in lines:
        text = line.strip()
        if text.lower().startswith("@attribute"):
            attributes.append(_parse_attribute(text, where, number))
        elif text.lower().startswith("@data"):
            break
    if not attributes:
        raise SourceError("no @attribute is declared", source=where, remedy="let it begin as ARFF does")
    names = [one.name for one in attributes]
    return ForeignTable(
        names, _arff_rows(lines, attributes, where), {a.name for a in attributes if a.kind == "nominal"}
    )


def _parse_attribute(text: str, where: str, line: int) -> _Attribute:
    found = _ATTRIBUTE.match(text)
    name, kind = (_unquote(found[1]), found[2].strip()) if found else ("", "")
    if kind.startswith("{") and kind.endswith("}"):
        levels = [value or "" for value in _split_fields(kind[1:-1])]
        return _Attribute(name, "nominal", levels[0])
    word, _, rest = kind.partition(" ")
    if word.lower() in _NUMERIC:
        return _Attribute(name, "number", "0", lambda value: int(value) if value.isdigit() else float(value))
    if word.lower() == "string":
        return _Attribute(name, "string", "")
    if word.lower() == "date":
        form = _unquote(rest.strip()) or "yyyy-MM-dd'T'HH:mm:ss"
        for java, ours in _JAVA_DATE_CODES:
            form = form.replace(java, ours)
        return _Attribute(name, "date", "", lambda value: dt.datetime.strptime(value, form))
    raise SourceError(f"an attribute of no known type: {kind[:40]!r}", source=where, line=line, value=kind)


def _arff_rows(lines: Iterator[tuple[int, str]], attributes: list[_Attribute], where: str) -> Iterator[list[Any]]:
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if text.startswith("{") and text.endswith("}"):
            values: list[str | None] = [one.default for one in attributes]
            for pair in _sparse_pairs(text[1:-1]):
                at, value = pair
                if not 0 <= at < len(values):
                    raise SourceError(f"there is no attribute {at}", source=where, line=number, value=at)
                values[at] = value
        else:
            values = _split_fields(text)
        if len(values) != len(attributes):
            what = f"{formatting.format_count(len(values), 'field')} where {len(attributes)} are expected"
            raise SourceError(what, source=where, line=number, value=len(values), remedy="fix the line")
        yield [_parse_value(one, value, where, number) for one, value in zip(attributes, values, strict=True)]


def _parse_value(one: _Attribute, value: str | None, where: str, line: int) -> Any:
    if value is None or one.kind in ("nominal", "string"):
        return value
    try:
        return one.parse(value)
    except ValueError:
        what = f"{value!r} is not a {one.kind}"
        raise SourceError(what, source=where, line=line, column=one.name, value=value) from None


def _sparse_pairs(text: str) -> Iterator[tuple[int, str | None]]:
    """The places and values of a sparse row."""
    at, text = 0, text.strip()
    while at < len(text) and (found := re.compile(r"\s*(\d+)\s+").match(text, at)):
        value = _FIELD.match(text, found.end())
        assert value is not None
        yield int(found[1]), _field_value(value)
        at = value.end()


def _split_fields(text: str) -> list[str | None]:
    if "'" not in text and '"' not in text and "\\" not in text:
        return [None if value.strip() == "?" else value.strip() for value in text.split(",")]
    out, at = list[str | None](), 0
    while True:
        found = _FIELD.match(text, at)
        if found is None:  # what follows a closing quote
            return [*out, text[at:]]
        out.append(_field_value(found))
        at = found.end()
        if not found[0].endswith(","):
            return out


def _field_value(found: re.Match) -> str | None:
    quoted = found[1] if found[1] is not None else found[2]
    if quoted is not None:
        return _unescape(quoted)
    return None if found[3] == "?" else _unescape(found[3])


def _unquote(text: str) -> str:
    return _unescape(text[1:-1]) if text[:1] in ("'", '"') and text[-1:] == text[:1] else text


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), text) if "\\" in text else text
