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

MISSING_LEVEL, UNSEEN_LEVEL = -1, -2  # of values that are not levels
COMPACT = "%Y%m%d"  # the format of dates of eight digits
DAY = dt.timedelta(days=1)
EPOCH = dt.datetime(1970, 1, 1)
NUMBER = re.compile(r"\s*[+-]?(?:(?P<whole>\d+)|\d+\.\d*|\.\d+)(?P<power>[eE][+-]?\d{1,3})?\s*", re.ASCII)
BLANKS = " \t\n\r\f\v\u00a0\u202f"  # around a number
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?", re.ASCII)
TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?", re.ASCII
)
TIME_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na")
BOOLEAN_PAIRS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))
ISO_DURATION = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
CLOCK_DURATION = re.compile(r"(?:(-?\d+) days?(?:,? |$))?(?:([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?))?", re.ASCII)


def is_absent(value: Any) -> bool:
    """Whether a value is None, NaN, or has no truth value when compared with itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
    except ValueError:  # several values, compared one by one
        return False


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


def to_timestamp(value: Any) -> Any:
    """A date as the timestamp of its midnight, an instant in UTC, a time of day as that since midnight."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else value


def parse_value(text: str) -> Any:
    """The number, boolean, date, time of day or duration that a text represents; None for other text."""
    if (found := NUMBER.fullmatch(text)) and len(text) < 400:
        number = int(text) if found["whole"] and not found["power"] else float(text)
        return number if abs(number) < math.inf else None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if TIMESTAMP.fullmatch(text):
            return to_timestamp(dt.datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+")))
        if TIME_OF_DAY.fullmatch(text) and text < "24":
            return to_timestamp(dt.time.fromisoformat(text))
        return parse_duration(text)
    except (ValueError, OverflowError):
        return None


def parse_boolean(text: str) -> bool | None:
    """The boolean that a word stands for; None where it is another word."""
    word = text.lower()
    return next((word == yes for yes, no in BOOLEAN_PAIRS if word in (yes, no)), None)


def boolean_levels(texts: list[str]) -> dict[str, bool]:
    """The booleans that levels stand for: words of a pair of which both occur, or that are the only levels."""
    words = {text.lower() for text in texts}
    known = {word for pair in BOOLEAN_PAIRS if words >= set(pair) or words <= set(pair) for word in pair}
    return {text: bool(parse_boolean(text)) for text in texts if text.lower() in known}


def parse_duration(text: str) -> dt.timedelta | None:
    iso, span = ISO_DURATION.fullmatch(text), CLOCK_DURATION.fullmatch(text)
    found = iso or span
    if found is None or not re.search(r"\d", text):
        return None
    sign, days = (found[1], found[2]) if iso else (found[2], found[1])
    hours, minutes, seconds = (float(found[i] or 0) for i in (3, 4, 5))
    rest, whole = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds), dt.timedelta(float(days or 0))
    if iso:
        return (whole + rest) * (-1 if sign else 1)
    return whole + rest * (-1 if sign == "-" else 1)


def format_value(value: Any) -> str:
    """A value as text."""
    if isinstance(value, dt.timedelta):
        days, rest = divmod(value, DAY)
        return f"{days} day{'' if abs(days) == 1 else 's'} {(dt.datetime.min + rest).time().isoformat()}"
    return str(value).lower() if isinstance(value, bool) else str(value)


class LevelLookup:
    """Looks up the levels of a column, however a value is written."""

    def __init__(self, levels: list[Any]):
        self.by_text: dict[str, int] = {}
        self.by_value: dict[Any, int] = {}  # levels that are not text, by value
        self.by_meaning: dict[tuple[bool, Any], int] = {}  # texts by what they represent; UNSEEN_LEVEL if several do
        self.by_day = all(not isinstance(level, dict) or level["type"] != "moment" for level in levels)
        self.booleans = any(isinstance(level, bool) for level in levels)
        words = boolean_levels([level for level in levels if isinstance(level, str)])
        for code, level in enumerate(levels):
            if isinstance(level, str):
                self.by_text[level] = code
                if (means := words.get(level, parse_value(level))) is not None:
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
            means = None if value in self.by_text else parse_value(value)
            if means is None and self.booleans:
                means = parse_boolean(value)
            return self.by_text.get(value, UNSEEN_LEVEL) if means is None else self._find_value(means)
        value = to_python_value(value)
        means = to_timestamp(value)
        for code in (self.by_value.get(means), self.by_text.get(format_value(value))):
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
        if isinstance(read, str) and not ((read := read.strip(BLANKS)).isascii() and read == read.strip()):
            raise ValueError("not a number")
        number = read / DAY if isinstance(read, dt.timedelta) else float(read)
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
    """The index of a value among the levels of its column."""
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
    if bare.lower() in MISSING or bare.lower() in how.get("missing", ()):
        return math.nan
    if column["kind"] == "time":
        since = parse_value(bare)
        return since if isinstance(since, dt.timedelta) else text
    if column["kind"] != "date":
        if "pattern" not in how:
            return text
        if not re.fullmatch(how["pattern"], text):  # a number in another format may be in another unit
            return None
        for old, new in how["put"]:
            text = text.replace(old, new)
        return float(f"{text.strip()}e-2" if how["percent"] else text)
    form = how.get("date") or "%Y-%m-%d"  # an empty format would match no date
    if form == COMPACT and not re.fullmatch(r"[1-9]\d{7}", bare, re.ASCII):
        form = "%Y-%m-%d"
    for read in (lambda: dt.datetime.strptime(bare, form), lambda: dt.datetime.fromisoformat(bare)):
        try:
            return to_timestamp(read())
        except ValueError:
            if not ISO_DATE.fullmatch(bare):
                break
    return text
