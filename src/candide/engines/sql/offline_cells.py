r"""Written by programs: a result of the query of :mod:`candide.engines.sql.offline_query` in a file, read into cells.

Clients write a table in many ways: with commas, semicolons, tabs or bars, in quotes or without, with lines of their own
before and after it (``Timing is on.``, ``(12 rows)``). How cells are quoted shows in the plan, which is in every result
and full of quotes. What would be a guess is refused: tables drawn for the eye, and numbers whose comma may be of
decimals or of thousands.

>>> names, rows = read_cells("sep=;\nwhat;" + ";".join(HEADER[1:]) + "\nclass;-1;a;;2,5" + ";" * 10 + "\n(1 row)\n")
>>> [(row, cells[:5]) for row, cells in rows]
[(3, ['class', '-1', 'a', '', '2.5'])]
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from candide.engines.sql.offline_query import FIGURE_COLUMNS, HEADER, PLAN
from candide.errors import InputError

RERUN_REMEDY = "run the query of candide sql count again, and keep its whole result"
CSV_REMEDY = "write it as a CSV with a header: psql --csv -f count.sql -o counts.csv, sqlite3 -header -csv, or the like"
_MAX_LINES_BEFORE_HEADER = 10  # lines before the header: messages of a client, an empty line
_SEPARATORS = ",;\t|"
_RULE_LINE = re.compile(r"[-+|:=\s]*--[-+|:=\s]*")  # a line under a header, for the eye
_CLIENT_MESSAGE = re.compile(r"\(?(?P<rows>\d+) rows?\b.*|Time: .*|Timing is o.*", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_NUMBER_WITH_THOUSANDS = {  # a number with marks of thousands, by what stands before decimals
    mark: re.compile(rf"[-+]?(\d{{1,3}}({other}\d{{3}})+({point}\d*)?|\d*({point}\d*)?([eE][-+]?\d+)?)")
    for mark, point, other in ((".", "[.]", ","), (",", ",", "[.]"))
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

FileRow = tuple[int, list[str]]  # the line of the file that it ends in, and its cells


def read_cells(text: str, delimiter: str | None = None, decimal: str | None = None) -> tuple[list[str], list[FileRow]]:
    """The names of the columns, and the rows, with points before decimals."""
    csv.field_size_limit(1 << 30)  # a plan may be long
    text = text.lstrip("\ufeff")
    lines = io.StringIO(text, newline="")
    start, names, separator = _find_header(lines, delimiter)
    how = _detect_quoting(text, separator)
    rows = [*_rows(csv.reader(lines, delimiter=separator, **how), start, separator)]
    if separator == "\t" and "quoting" in how and _is_escaped(text):
        rows = [(row, [_unescape(cell) for cell in cells]) for row, cells in rows]
    return names, _normalise_decimals(text, names, rows, separator, decimal)


def _find_header(lines: Any, delimiter: str | None) -> tuple[int, list[str], str]:
    """How many lines there are up to the header, its names, and what separates them."""
    lacking: list[str] = []
    for at, line in enumerate(islice(iter(lines.readline, ""), _MAX_LINES_BEFORE_HEADER), 1):
        separator = delimiter or max(_SEPARATORS, key=line.count)
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=separator), [])]
        found = [name for name in HEADER if name not in names]
        if not found:
            return at, names, separator
        if line.lstrip('"').startswith(PLAN) and not lacking:
            raise InputError("it has no header: its first line is the plan", row=at, remedy=CSV_REMEDY)
        lacking = min(lacking or found, found, key=len)
    lacking = lacking or list(HEADER)
    what = f"no column {lacking[0]!r}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
    raise InputError(f"it has {what}, and is not a result of candide sql count", value=lacking, remedy=CSV_REMEDY)


def _detect_quoting(text: str, separator: str) -> dict[str, Any]:
    """How cells are quoted, by what became of the quotes of the plan."""
    if '{"candide"' in text:
        return {"quoting": csv.QUOTE_NONE}
    return {"doublequote": False, "escapechar": "\\"} if '{\\"candide' in text else {}


def _rows(reader: Any, start: int, separator: str) -> Iterator[FileRow]:
    """The rows that are not empty, without messages of a client."""
    seen = 0
    for cells in reader:
        row, line = start + reader.line_num, separator.join(cells).strip()
        if not line.strip(separator):
            continue
        if not seen and _RULE_LINE.fullmatch(line):
            raise InputError("it is a table drawn for the eye, not a CSV", row=row, value=line[:40], remedy=CSV_REMEDY)
        if len(cells) < len(HEADER) and (message := _CLIENT_MESSAGE.fullmatch(line)):
            if message["rows"] and int(message["rows"]) != seen:
                what = f"it ends with {line} and has {seen} rows: it is cut short, or text in it is not quoted"
                raise InputError(what, row=row, value=seen, remedy=CSV_REMEDY)
            continue
        seen += 1
        yield row, cells


def _is_escaped(text: str) -> bool:
    """Whether tabs and line ends within cells are written with backslashes, and these twice, as COPY does."""
    return "\t\\N" in text or re.search(r'\\\\[u"]', text[text.index("{") :].partition("\n")[0]) is not None


def _unescape(cell: str) -> str:
    return cell if cell == "\\N" else re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), cell)


def _normalise_decimals(
    text: str, names: Sequence[str], rows: list[FileRow], separator: str, decimal: str | None
) -> list[FileRow]:
    """Rows whose numbers have points before decimals, and no marks of thousands."""
    comma = r'"[-+]?\d*,\d' if separator == "," else rf"[{separator}\"][-+]?\d*,\d"
    if decimal is None and not re.search(comma, text):  # as in nearly all
        return rows
    at = [names.index(name) for name in FIGURE_COLUMNS]
    decimal = decimal or _decimal_mark([(row, cells[i].strip()) for row, cells in rows for i in at if i < len(cells)])
    other = "." if decimal == "," else ","
    for row, cells in rows:
        for i in (i for i in at if i < len(cells)):
            if other in cells[i] and not _NUMBER_WITH_THOUSANDS[decimal].fullmatch(cells[i].strip()):
                what = f"{cells[i]!r} is not a number with the decimal mark {decimal!r}"
                remedy = "pass its decimal mark (--decimal), or leave the option out"
                raise InputError(what, row=row, value=cells[i], remedy=remedy)
            cells[i] = cells[i].replace(other, "").replace(decimal, ".")
    return rows


def _decimal_mark(cells: Sequence[tuple[int, str]]) -> str:
    """What stands before decimals, where some number has a comma."""
    some = [(row, cell) for row, cell in cells if "," in cell]
    if not some:
        return "."
    points, grouped = any("." in cell for _, cell in cells), all(_THOUSANDS.fullmatch(cell) for _, cell in some)
    if not points and not grouped and all(_DECIMAL.fullmatch(cell) for _, cell in some):
        return ","
    row, cell = next(((row, cell) for row, cell in some if _THOUSANDS.match(cell)), some[0])
    remedy = "write numbers plain, 1234.5, or pass the decimal mark: --decimal . or --decimal ,"
    raise InputError(f"{cell!r} has a comma, of thousands or before decimals", row=row, value=cell, remedy=remedy)
