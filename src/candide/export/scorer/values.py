"""Values: what a number, a date or a level is, however it is written.

>>> known = Levels([1, 2, "1.50", {"text": "2024-02-29", "type": "day", "value": 1709164800000000}])
>>> [known.place(value) for value in ("2.0", True, 1.5, "2024-02-29 12:00", "x", None)]
[1, 0, 2, 3, -2, -1]
>>> number_of({"name": "day", "kind": "date", "spelled": {"date": "%d.%m.%Y"}}, "03.01.1970")
2.0
"""

import datetime as dt
import math
import re
from typing import Any

ABSENT, NEW = -1, -2  # of values that are no level
COMPACT = "%Y%m%d"  # the form of dates of eight digits
DAY = dt.timedelta(days=1)
EPOCH = dt.datetime(1970, 1, 1)
NUMBER = re.compile(r"\s*[+-]?(?:(?P<whole>\d+)|\d+\.\d*|\.\d+)(?P<power>[eE][+-]?\d{1,3})?\s*", re.ASCII)
BLANKS = " \t\n\r\f\v\u00a0\u202f"  # around a number
ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?", re.ASCII)
CLOCK = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na")
TRUTHS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))
PERIOD = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
SPAN = re.compile(r"(?:(-?\d+) days?(?:,? |$))?(?:([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?))?", re.ASCII)


def is_absent(value: Any) -> bool:
    """None, NaN, and what cannot say whether it equals itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
    except ValueError:  # of several values, each would say for itself
        return False


def is_missing(value: Any) -> bool:
    return is_absent(value) or (isinstance(value, str) and value == "")


def plain(value: Any) -> Any:
    """A scalar of numpy as a value of Python, to the microsecond; a short float as its decimals spell it."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is None or value.ndim:
        return value
    if kind in "mM":
        return value.astype(f"{kind}8[us]").item()
    return float(str(value)) if kind == "f" and value.dtype.itemsize < 8 else value.item()


def moment(value: Any) -> Any:
    """A date as the timestamp of its midnight, an instant in UTC, a time of day as that since midnight."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else value


def meaning(text: str) -> Any:
    """The number, truth, date, time of day or duration that a text spells; None where it is but text."""
    if (found := NUMBER.fullmatch(text)) and len(text) < 400:
        number = int(text) if found["whole"] and not found["power"] else float(text)
        return number if abs(number) < math.inf else None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if MOMENT.fullmatch(text):
            return moment(dt.datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+")))
        return moment(dt.time.fromisoformat(text)) if CLOCK.fullmatch(text) and text < "24" else duration(text)
    except (ValueError, OverflowError):
        return None


def truth(text: str) -> bool | None:
    """The boolean that a word stands for; None where it is another word."""
    word = text.lower()
    return next((word == yes for yes, no in TRUTHS if word in (yes, no)), None)


def truths(texts: list[str]) -> dict[str, bool]:
    """The booleans that levels stand for: those of a pair of words of which both are there, or nothing else is."""
    words = {text.lower() for text in texts}
    known = {word for pair in TRUTHS if words >= set(pair) or words <= set(pair) for word in pair}
    return {text: bool(truth(text)) for text in texts if text.lower() in known}


def duration(text: str) -> dt.timedelta | None:
    iso, span = PERIOD.fullmatch(text), SPAN.fullmatch(text)
    found = iso or span
    if found is None or not re.search(r"\d", text):
        return None
    sign, days = (found[1], found[2]) if iso else (found[2], found[1])
    hours, minutes, seconds = (float(found[i] or 0) for i in (3, 4, 5))
    rest, whole = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds), dt.timedelta(float(days or 0))
    if iso:
        return (whole + rest) * (-1 if sign else 1)
    return whole + rest * (-1 if sign == "-" else 1)


def spelled(value: Any) -> str:
    """A value as text."""
    if isinstance(value, dt.timedelta):
        days, rest = divmod(value, DAY)
        return f"{days} day{'' if abs(days) == 1 else 's'} {(dt.datetime.min + rest).time().isoformat()}"
    return str(value).lower() if isinstance(value, bool) else str(value)


class Levels:
    """Where the levels of a column are found, whatever a value is written as."""

    def __init__(self, levels: list[Any]):
        self.text: dict[str, int] = {}
        self.typed: dict[Any, int] = {}  # those that are no text, by what they are
        self.meant: dict[tuple[bool, Any], int] = {}  # those that are text, by what they spell; NEW: several do
        self.days = all(not isinstance(level, dict) or level["type"] != "moment" for level in levels)
        self.truths = any(isinstance(level, bool) for level in levels)
        words = truths([level for level in levels if isinstance(level, str)])
        for code, level in enumerate(levels):
            if isinstance(level, str):
                self.text[level] = code
                if (means := words.get(level, meaning(level))) is not None:
                    key = isinstance(means, bool), means
                    self.meant[key] = NEW if key in self.meant else code
            elif isinstance(level, dict):
                since = dt.timedelta(microseconds=level["value"])
                self.typed[since if level["type"] == "duration" else EPOCH + since] = code
            else:
                self.typed[level] = code

    def place(self, value: Any) -> int:
        """The place of a level; NEW where the value is none of them, ABSENT where there is no value."""
        if is_missing(value) and not (isinstance(value, str) and "" in self.text):
            return ABSENT
        if isinstance(value, str):
            means = None if value in self.text else meaning(value)
            if means is None and self.truths:
                means = truth(value)
            return self.text.get(value, NEW) if means is None else self._typed(means)
        value = plain(value)
        means = moment(value)
        for code in (self.typed.get(means), self.text.get(spelled(value))):
            if code is not None:
                return code
        if (code := self._typed(means)) == NEW:
            is_truth = isinstance(value, bool)
            ways = (self.meant.get((one, means), NEW) for one in (is_truth, not is_truth))
            code = next((one for one in ways if one != NEW), NEW)
        return code

    def _typed(self, means: Any) -> int:
        code = self.typed.get(means, NEW)
        if code == NEW and self.days and isinstance(means, dt.datetime):  # a time of a known day
            code = self.typed.get(dt.datetime(means.year, means.month, means.day), NEW)
        return code


def refused(column: dict[str, Any], value: Any, why: str, remedy: str) -> ValueError:
    """The error for a value that cannot be used; it has ``column``, ``value`` and ``remedy``."""
    shown = repr(value) if len(repr(value)) < 100 else f"{repr(value)[:97]}..."
    error = ValueError(f"column {column['name']!r}: {shown} {why}; {remedy}")
    error.column, error.value, error.remedy = column["name"], value, remedy  # type: ignore[attr-defined]
    return error


def number_of(column: dict[str, Any], value: Any) -> float:
    """The number that a value is, NaN where it is missing; days since 1970 of a date."""
    if is_missing(value):
        return math.nan
    times = getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")
    read = text_value(column, value) if isinstance(value, str) else moment(plain(value) if times else value)
    if column["kind"] in ("date", "time"):
        return days_of(column, value, read)
    if isinstance(read, dt.datetime):
        return (read - EPOCH) / DAY
    try:
        if isinstance(read, str) and not ((read := read.strip(BLANKS)).isascii() and read == read.strip()):
            raise ValueError("not a number")
        number = read / DAY if isinstance(read, dt.timedelta) else float(read)
    except (TypeError, ValueError, OverflowError):
        raise refused(column, value, "is not a number", "pass a number, or None where it is missing") from None
    if math.isinf(number):
        raise refused(column, value, "is not a finite number", "pass None where it is missing")
    return number


def days_of(column: dict[str, Any], value: Any, read: Any) -> float:
    """The days of a date since 1970, or of a time of day or a duration; anything else in their place is an error."""
    if isinstance(read, float) and math.isnan(read):
        return math.nan
    is_date, form = column["kind"] == "date", column.get("spelled", {}).get("date")
    is_whole = not isinstance(read, str | bool) and isinstance(read, int | float) and read % 1 == 0
    if is_date and form == COMPACT and is_whole:
        read = text_value(column, str(int(read)))
    if is_date and isinstance(read, dt.datetime):
        return (read - EPOCH) / DAY
    if not is_date and isinstance(read, dt.timedelta):
        return read / DAY
    what, how = ("date", "2024-12-31") if is_date else ("time of day or duration", "13:05:30 or 1 day 02:00:00")
    raise refused(column, value, f"is not a {what}", f"write it as {how}, or pass None where it is missing")


def place_of(column: dict[str, Any], value: Any) -> int:
    """The place of a value among the levels of its column."""
    try:
        return column["known"].place(value)
    except TypeError:
        remedy = "pass text, a number, a truth or a date, or None where it is missing"
        raise refused(column, value, "is not a level", remedy) from None


def text_of(column: dict[str, Any], value: Any) -> Any:
    """The text that a value is, or the words that it has; None where it is missing."""
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
        raise refused(column, value, "is not a text", remedy) from None


def text_value(column: dict[str, Any], text: str) -> Any:
    """What a text means in a column of numbers or dates; the text itself where it is plain; None: neither."""
    how, bare = column.get("spelled", {}), text.strip()
    if bare.lower() in MISSING or bare.lower() in how.get("missing", ()):
        return math.nan
    if column["kind"] == "time":
        since = meaning(bare)
        return since if isinstance(since, dt.timedelta) else text
    if column["kind"] != "date":
        if "pattern" not in how:
            return text
        if not re.fullmatch(how["pattern"], text):  # a number in another format may be in another unit
            return None
        for old, new in how["put"]:
            text = text.replace(old, new)
        return float(f"{text.strip()}e-2" if how["percent"] else text)
    form = how.get("date") or "%Y-%m-%d"  # an empty form would take no text for a date
    if form == COMPACT and not re.fullmatch(r"[1-9]\d{7}", bare, re.ASCII):
        form = "%Y-%m-%d"
    for read in (lambda: dt.datetime.strptime(bare, form), lambda: dt.datetime.fromisoformat(bare)):
        try:
            return moment(read())
        except ValueError:
            if not ISO.fullmatch(bare):
                break
    return text
