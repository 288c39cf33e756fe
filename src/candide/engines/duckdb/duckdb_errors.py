"""Complaints: what DuckDB says of bad input, in one line that names the place and the remedy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from candide.errors import InputError

_LINE = re.compile(r"Line: (\d+)")
_CONVERT = re.compile(r'converting column "(?P<column>.*?)"\. Could not convert string "(?P<value>.*?)"', re.DOTALL)
_CAST = re.compile(
    r"(?:convert string|field format:) ['\"](?P<value>.*?)['\"](?: to|,)"
    r".* when casting from source column (?P<column>.*)"
)
_MOMENT = re.compile(r"'(DATE|TIMESTAMP)'|invalid (date|timestamp) field", re.IGNORECASE)
_STREAM = re.compile(r"failed: Invalid: (.*?)\. Detail: Python exception", re.DOTALL)  # what a stream of ours said
_COLUMNS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except duckdb.Error as error:
        raise InputError(_say(name, str(error))) from error


def _say(name: str, text: str) -> str:
    line = _LINE.search(text)
    where = f"{name}, line {line[1]}" if line else name
    if said := _STREAM.search(text):
        return said[1]
    if bad := _CONVERT.search(text) or _CAST.search(text):
        column, value, kind = bad["column"], _short(bad["value"]), "date" if _MOMENT.search(text) else "number"
        return (
            f"{where}: column {column!r}: {value!r} is not a {kind}; to candide fit pass --event {column}=categorical "
            f"(events={{...}}), or --na {value!r} (na=[...]) if it means a missing value"
        )
    if bad := _COLUMNS.search(text):
        return f"{where}: {bad[2]} fields where {bad[1]} are expected; mend the line, or pass the delimiter"
    if "not utf-8" in text or "unicode" in text.lower():
        return f"{where}: not UTF-8 text; pass the encoding, such as --encoding latin-1 (encoding='latin-1')"
    if "No files found" in text:
        return f"{name}: no such file"
    first = text.strip().splitlines()[0]
    return f"{where}: {first}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
