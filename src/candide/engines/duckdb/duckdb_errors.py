"""Translate DuckDB's errors on bad input into one line that names the place and the remedy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from candide.data import temporal
from candide.errors import InputError, SourceError

_INTERRUPTED = re.compile(r"^Query interrupted$|Python exception.*: KeyboardInterrupt", re.DOTALL)
INVALID_MARK = "\x1f"  # after text in another format than that of its column, so that no cast reads it
_LINE = re.compile(r"Line: (\d+)")
_CONVERT = re.compile(r'converting column "(?P<column>.*?)"\. Could not convert string "(?P<value>.*?)"', re.DOTALL)
_CAST = re.compile(
    r"(?:convert string|field format:|out of range:) ['\"](?P<value>.*?)['\"](?: to|,|(?= when))"
    r".* when casting from source column (?P<column>.*)"
)
_DATE_OR_TIME = re.compile(r"'(DATE|TIMESTAMP)|\b(date|timestamp) field", re.IGNORECASE)
_CLOCK = re.compile(r"'(TIME|INTERVAL)|to INTERVAL|\btime field", re.IGNORECASE)
_STREAM = re.compile(r"failed: Invalid: (.*?)\. Detail: Python exception", re.DOTALL)  # an error of our own stream
_TOO_LONG = re.compile(r"Maximum line size of (\d+) bytes exceeded\. Actual Size: ?(\d+)")
_COLUMNS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except (duckdb.Error, RuntimeError, OSError) as error:
        if isinstance(error, duckdb.InterruptException) or _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from None
        of_stream = type(error) is OSError and error.errno is None  # how Arrow reports an error of DuckDB's stream
        if not isinstance(error, duckdb.Error) and not of_stream:
            raise
        raise _make_error(name, str(error)) from error


def _make_error(name: str, text: str) -> InputError:
    """The error by its place, what was expected there, and the remedy."""
    if stream_error := _STREAM.search(text):
        return InputError(stream_error[1])
    found = _LINE.search(text)
    where: dict[str, Any] = {"source": name, "line": int(found[1]) if found else None}
    if bad := _TOO_LONG.search(text):
        where["line"] = _long_line(name, int(bad[1])) or (where["line"] if where["line"] != 1 else None)
        remedy = "shorten its fields, or store the table as Parquet; an open quote may join lines, too"
        return SourceError(f"a row is longer than {int(bad[1]):,} bytes", value=int(bad[2]), remedy=remedy, **where)
    if bad := _CONVERT.search(text) or _CAST.search(text):
        column, value = bad["column"], _shorten(bad["value"])
        kind = "date" if _DATE_OR_TIME.search(text) else "time" if _CLOCK.search(text) else ""
        remedy = (
            f"{temporal.remedy(kind) + ', or ' if kind else ''}pass --na {value!r} (na=[...]) if it means a missing "
            f"value; a model fitted with --event {column}=categorical (events={{...}}) takes it for a category"
        )
        form = ""
        if value == column:
            remedy = "if the line repeats the header, delete it"
        elif not kind and bad["value"].endswith(INVALID_MARK):  # a number, perhaps, in another unit
            form = " in the format of the other rows, or of the rows fitted"
            remedy = f"write it in that format; {remedy}"
        what = f"{value!r} is not a {temporal.CALLED.get(kind, 'number')}{form}"
        return SourceError(what, column=column, value=value, remedy=remedy, **where)
    if bad := _COLUMNS.search(text):
        remedy = "fix the line, or pass the delimiter"
        return SourceError(f"{bad[2]} fields where {bad[1]} are expected", value=int(bad[2]), remedy=remedy, **where)
    if "unterminated quote" in text:
        return SourceError("a quote is opened there, and not closed", remedy="fix the line", **where)
    if "invalid state" in text:
        remedy = "give all lines the same ending, for example with dos2unix"
        return SourceError("some lines end in \\r\\n, and some in \\n or \\r alone", remedy=remedy, **where)
    if "not utf-8" in text or "unicode" in text.lower():
        remedy = "pass the encoding, such as --encoding cp1252 (encoding='cp1252')"
        return SourceError("not UTF-8 text", remedy=remedy, **where)
    if "No files found" in text:
        return SourceError("no such file", source=name)
    return SourceError(text.strip().splitlines()[0], **where)


def _long_line(path: str, most: int) -> int | None:
    """The first line of a file that is too long: while it sniffs, DuckDB names line 1."""
    try:
        with open(path, "rb") as file:
            return next((number for number, line in enumerate(file, 1) if len(line) > most), None)
    except (OSError, ValueError):  # a name that is not a path, such as "standard input"
        return None


def _shorten(text: str) -> str:
    text = text.removesuffix(INVALID_MARK)
    return text if len(text) <= 40 else text[:37] + "..."
