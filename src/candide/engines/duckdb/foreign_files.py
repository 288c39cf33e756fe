"""Tables of other programs: sheets, SQLite, ARFF. Each is written to a CSV, a row at a time, and then read as one.

Their columns have no reliable types: each cell of a sheet or of SQLite has its own. So types are inferred as those of a
CSV are, but a column whose cells are all text is not read as whole numbers, and a nominal column of ARFF is a category.
"""

import csv
import datetime as dt
import io
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

from candide import formatting
from candide.data.notes import Note
from candide.engines.duckdb.character_encodings import open_bytes
from candide.engines.duckdb.csv_files import CsvOptions, distinct_names, duplicate_name_notes
from candide.engines.duckdb.formats import choose_table
from candide.engines.sql.dialect import quote_identifier
from candide.errors import MissingLibraryError, SourceError


@dataclass
class ForeignTable:
    """The names of columns, the rows, to be read once, and what is known of the columns."""

    names: list[str]
    rows: Iterable[list[Any]]
    categories: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)


def spool_table(table: ForeignTable, path: str, na: tuple[str, ...]) -> CsvOptions:
    """Write a table to a CSV, and note the columns whose cells are all text."""
    is_text = [True] * len(table.names)
    with open(path, "w", encoding="utf-8", newline="", errors="replace") as file:
        out = csv.writer(file)
        out.writerow(table.names)
        for row in table.rows:
            for i, cell in enumerate(row):
                is_text[i] = is_text[i] and (cell is None or isinstance(cell, str))
            out.writerow(map(_cell_text, row))
    texts = {name for name, is_all_text in zip(table.names, is_text, strict=True) if is_all_text} - table.categories
    categories = frozenset(table.categories)
    return CsvOptions((path,), na, tuple(table.names), categories=categories, text_columns=frozenset(texts))


def _cell_text(cell: Any) -> str:
    """A cell as text in a CSV; a duration in days."""
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


def read_sheet(path: str, requested: str | None = None, header: bool | None = None) -> ForeignTable:
    """The requested sheet of a workbook, or the only one that is not empty."""
    try:
        from python_calamine import CalamineError, load_workbook
    except ImportError:
        remedy = "pip install 'candide[excel]', or save it as CSV"
        raise MissingLibraryError(f"{path}: to read sheets python-calamine is needed", remedy=remedy) from None
    try:
        book = load_workbook(path)
        names = book.sheet_names
        full = [name for name in names if book.get_sheet_by_name(name).height] if requested is None else names
        sheet = book.get_sheet_by_name(choose_table(requested, full or names[:1], path, "sheets"))
        rows: Iterator[Any] = (row for row in sheet.iter_rows() if any(cell != "" for cell in row))
        first = next(rows, None)
    except CalamineError as error:
        raise SourceError(f"a workbook that cannot be read: {error}", source=path) from None
    if first is None:
        raise SourceError("an empty sheet", source=path)
    if header is False:
        written = columns = [f"column{i}" for i in range(len(first))]
        rows = chain([first], rows)
    else:
        written = [_cell_text(cell).strip() for cell in first]
        columns = distinct_names(written)
    cells = ([None if cell == "" else cell for cell in row] for row in rows)
    return ForeignTable(columns, cells, notes=duplicate_name_notes(written, columns))


def read_sqlite(path: str, requested: str | None = None) -> ForeignTable:
    """A table or view of an SQLite file, without columns of bytes."""
    con = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    con.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        table = quote_identifier(choose_table(requested, [name for (name,) in con.execute(tables)], path))
        is_bytes = {row[1]: row[2].upper() == "BLOB" for row in con.execute(f"PRAGMA table_info({table})")}
    except sqlite3.Error as error:
        con.close()
        raise SourceError(str(error), source=path) from None
    names = [name for name, is_blob in is_bytes.items() if not is_blob]
    blobs = [name for name, is_blob in is_bytes.items() if is_blob]

    def rows() -> Iterator[list[Any]]:
        try:
            yield from map(list, con.execute(f"SELECT {', '.join(map(quote_identifier, names))} FROM {table}"))
        except sqlite3.Error as error:
            raise SourceError(str(error), source=path) from None
        finally:
            con.close()

    notes = [Note("left-out", f"column {name!r} is left out: it holds bytes", name) for name in blobs]
    return ForeignTable(names, rows(), notes=notes)


# ARFF

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)
_FIELD = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,]*?))\s*(?:,|$)""")
_SPARSE_PLACE = re.compile(r"\s*(\d+)\s+")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_JAVA_DATE_CODES = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "'": ""}


class _Attribute(NamedTuple):
    name: str
    kind: str  # "number", "nominal", "string" or "date"
    default: str  # its value where a sparse row leaves it out
    parse: Callable[[str], Any] = str


def read_arff(path: str, where: str) -> ForeignTable:
    """An ARFF file, dense or sparse; ``where`` names it in messages."""
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
    nominal = {attribute.name for attribute in attributes if attribute.kind == "nominal"}
    return ForeignTable([a.name for a in attributes], _arff_rows(lines, attributes, where), nominal)


def _parse_attribute(text: str, where: str, line: int) -> _Attribute:
    match = _ATTRIBUTE.match(text)
    name, declared = (_unquote(match[1]), match[2].strip()) if match else ("", "")
    if declared.startswith("{") and declared.endswith("}"):
        return _Attribute(name, "nominal", _split_fields(declared[1:-1])[0] or "")
    kind, _, rest = declared.partition(" ")
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, "number", "0", lambda value: int(value) if value.isdigit() else float(value))
    if kind.lower() == "string":
        return _Attribute(name, "string", "")
    if kind.lower() == "date":
        form = _unquote(rest.strip()) or "yyyy-MM-dd'T'HH:mm:ss"
        for java, python in _JAVA_DATE_CODES.items():
            form = form.replace(java, python)
        return _Attribute(name, "date", "", lambda value: dt.datetime.strptime(value, form))
    raise SourceError(f"an attribute of no known type: {declared[:40]!r}", source=where, line=line, value=declared)


def _arff_rows(lines: Iterator[tuple[int, str]], attributes: list[_Attribute], where: str) -> Iterator[list[Any]]:
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if text.startswith("{") and text.endswith("}"):
            values: list[str | None] = [attribute.default for attribute in attributes]
            for at, value in _sparse_pairs(text[1:-1].strip()):
                if at >= len(values):
                    raise SourceError(f"there is no attribute {at}", source=where, line=number, value=at)
                values[at] = value
        else:
            values = _split_fields(text)
        if len(values) != len(attributes):
            what = f"{formatting.format_count(len(values), 'field')} where {len(attributes)} are expected"
            raise SourceError(what, source=where, line=number, value=len(values), remedy="fix the line")
        yield [_parse_value(a, value, where, number) for a, value in zip(attributes, values, strict=True)]


def _parse_value(attribute: _Attribute, value: str | None, where: str, line: int) -> Any:
    try:
        return None if value is None else attribute.parse(value)
    except ValueError:
        what = f"{value!r} is not a {attribute.kind}"
        raise SourceError(what, source=where, line=line, column=attribute.name, value=value) from None


def _sparse_pairs(text: str) -> Iterator[tuple[int, str | None]]:
    at = 0
    while at < len(text) and (place := _SPARSE_PLACE.match(text, at)):
        value = _FIELD.match(text, place.end())
        assert value is not None
        yield int(place[1]), _field_value(value)
        at = value.end()


def _split_fields(text: str) -> list[str | None]:
    if not set("'\"\\") & set(text):
        return [None if value.strip() == "?" else value.strip() for value in text.split(",")]
    out, at = list[str | None](), 0
    while match := _FIELD.match(text, at):
        out.append(_field_value(match))
        at = match.end()
        if not match[0].endswith(","):
            return out
    return [*out, text[at:]]  # text after a closing quote


def _field_value(match: re.Match) -> str | None:
    quoted = match[1] if match[1] is not None else match[2]
    if quoted is not None:
        return _unescape(quoted)
    return None if match[3] == "?" else _unescape(match[3])


def _unquote(text: str) -> str:
    return _unescape(text[1:-1]) if text[:1] in ("'", '"') and text[-1:] == text[:1] else text


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), text) if "\\" in text else text
