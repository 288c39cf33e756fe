"""Values: numbers, dates and levels, however they are written.

>>> known = LevelLookup([1, 2, "1.50", {"text": "2024-02-29", "type": "day", "value": 1709164800000000}])
>>> [known.find(value) for value in ("2.0", True, 1.5, "2024-02-29 12:00", "x", None)]
[1, 0, 2, 3, -2, -1]
>>> read_number_value({"name": "day", "kind": "date", "text_formats": {"date": "%d.%m.%Y"}}, "03.01.1970")
2.0
"""

import datetime as dt
import math
import re
from typing import Any

from candide.data.arrow_columns import is_absent
from candide.data.text_formats import (
    COMPACT,
    MISSING_MARKERS,
    format_plain_value,
    parse_boolean,
    parse_booleans,
    parse_date,
    parse_plain_number,
    parse_value,
    to_timestamp,
)

MISSING_LEVEL, UNSEEN_LEVEL = -1, -2  # of values that are not levels
DAY = dt.timedelta(days=1)
EPOCH = dt.datetime(1970, 1, 1)


def is_missing(value: Any) -> bool:
    return is_absent(value) or (isinstance(value, str) and value == "")


def to_python_value(value: Any) -> Any:
    """A scalar of numpy as a value of Python, to the microsecond; a short float by its decimals."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is None or value.ndim:
        return value
    if kind in "mM":
        return value.astype(f"{kind}8[us]").item()
    return float(str(value)) if kind == "f" and value.dtype.itemsize < 8 else value.item()


class LevelLookup:
    """Looks up the levels of a column, however a value is written."""

    def __init__(self, levels: list[Any]):
        self.by_text: dict[str, int] = {}
        self.by_value: dict[Any, int] = {}  # levels that are not text, by value
        self.by_meaning: dict[tuple[bool, Any], int] = {}  # texts by what they represent; UNSEEN_LEVEL if several do
        self.by_day = all(not isinstance(level, dict) or level["type"] != "moment" for level in levels)
        self.booleans = any(isinstance(level, bool) for level in levels)
        words = parse_booleans(level for level in levels if isinstance(level, str))
        for code, level in enumerate(levels):
            if isinstance(level, str):
                self.by_text[level] = code
                if (means := to_timestamp(words.get(level, parse_value(level)))) is not None:
                    key = isinstance(means, bool), means
                    self.by_meaning[key] = UNSEEN_LEVEL if key in self.by_meaning else code
            elif isinstance(level, dict):
                since = dt.timedelta(microseconds=level["value"])
                self.by_value[since if level["type"] == "duration" else EPOCH + since] = code
            else:
                self.by_value[level] = code

    def find(self, value: Any) -> int:
        """The index of a level; UNSEEN_LEVEL or MISSING_LEVEL where it has none."""
        if is_missing(value) and not (isinstance(value, str) and "" in self.by_text):
            return MISSING_LEVEL
        if isinstance(value, str):
            means = None if value in self.by_text else to_timestamp(parse_value(value))
            if means is None and self.booleans:
                means = parse_boolean(value)
            return self.by_text.get(value, UNSEEN_LEVEL) if means is None else self._find_value(means)
        value = to_python_value(value)
        means = to_timestamp(value)
        for code in (self.by_value.get(means), self.by_text.get(format_plain_value(value))):
            if code is not None:
                return code
        if (code := self._find_value(means)) == UNSEEN_LEVEL:
            is_boolean = isinstance(value, bool)
            code = self.by_meaning.get((is_boolean, means), UNSEEN_LEVEL)
            code = self.by_meaning.get((not is_boolean, means), UNSEEN_LEVEL) if code == UNSEEN_LEVEL else code
        return code

    def _find_value(self, means: Any) -> int:
        code = self.by_value.get(means, UNSEEN_LEVEL)
        if code == UNSEEN_LEVEL and self.by_day and isinstance(means, dt.datetime):  # a time of a known day
            code = self.by_value.get(dt.datetime(means.year, means.month, means.day), UNSEEN_LEVEL)
        return code


def value_error(column: dict[str, Any], value: Any, reason: str, remedy: str) -> ValueError:
    """The error for a value that cannot be used; it has ``column``, ``value`` and ``remedy``."""
    shown = repr(value) if len(repr(value)) < 100 else f"{repr(value)[:97]}..."
    error = ValueError(f"column {column['name']!r}: {shown} {reason}; {remedy}")
    error.column, error.value, error.remedy = column["name"], value, remedy  # type: ignore[attr-defined]
    return error


def read_number_value(column: dict[str, Any], value: Any) -> float:
    """The number of a value, NaN where it is missing; for a date the days since 1970."""
    if is_missing(value):
        return math.nan
    if isinstance(value, str):
        read = parse_text_value(column, value)
    else:
        is_time = getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")
        read = to_timestamp(to_python_value(value) if is_time else value)
    if column["kind"] in ("date", "time"):
        return days_of(column, value, read)
    if isinstance(read, dt.datetime):
        return (read - EPOCH) / DAY
    try:
        days = read / DAY if isinstance(read, dt.timedelta) else read
        number = parse_plain_number(days) if isinstance(days, str) else float(days)
    except (TypeError, ValueError, OverflowError):
        raise value_error(column, value, "is not a number", "pass a number, or None where it is missing") from None
    if math.isinf(number):
        raise value_error(column, value, "is not a finite number", "pass None where it is missing")
    return number


def days_of(column: dict[str, Any], value: Any, read: Any) -> float:
    """The days of a date since 1970, of a time of day or of a duration; other values are an error."""
    if isinstance(read, float) and math.isnan(read):
        return math.nan
    is_date, form = column["kind"] == "date", column.get("text_formats", {}).get("date")
    is_whole = not isinstance(read, str | bool) and isinstance(read, int | float) and read % 1 == 0
    if is_date and form == COMPACT and is_whole:
        read = parse_text_value(column, str(int(read)))
    if is_date and isinstance(read, dt.datetime):
        return (read - EPOCH) / DAY
    if not is_date and isinstance(read, dt.timedelta):
        return read / DAY
    what, how = ("date", "2024-12-31") if is_date else ("time of day or duration", "13:05:30 or 1 day 02:00:00")
    raise value_error(column, value, f"is not a {what}", f"write it as {how}, or pass None where it is missing")


def find_level(column: dict[str, Any], value: Any) -> int:
    try:
        return column["known"].find(value)
    except TypeError:
        remedy = "pass text, a number, a boolean or a date, or None where it is missing"
        raise value_error(column, value, "is not a level", remedy) from None


def read_text_value(column: dict[str, Any], value: Any) -> Any:
    """The text of a value, or its list of words; None where it is missing."""
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1:
        value = value.tolist()
    if isinstance(value, str | list | tuple):
        return value
    if is_absent(value):
        return None
    try:
        return bytes.decode(value)
    except (TypeError, UnicodeDecodeError):
        remedy = "pass text, or a list of words, or None where it is missing"
        raise value_error(column, value, "is not a text", remedy) from None


def parse_text_value(column: dict[str, Any], text: str) -> Any:
    """The value of a text in a column of numbers or dates; the text itself if it is plain; None for another format."""
    how, bare = column.get("text_formats", {}), text.strip()
    if bare.lower() in MISSING_MARKERS or bare.lower() in how.get("missing", ()):
        return math.nan
    if column["kind"] == "time":
        since = to_timestamp(parse_value(bare))
        return since if isinstance(since, dt.timedelta) else text
    if column["kind"] != "date":
        if "pattern" not in how:
            return text
        if not re.fullmatch(how["pattern"], text):  # a number in another format may be in another unit
            return None
        for old, new in how["put"]:
            text = text.replace(old, new)
        return float(f"{text.strip()}e-2" if how["percent"] else text)
    when = parse_date(bare, how.get("date", ""))
    return text if when is None else when
