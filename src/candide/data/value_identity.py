"""Identity: what a value is as a level or a class, so that it is the same one whichever door it came through.

A value is kept plain. A number of any width, or a decimal, is a number; a float32 is what its shortest decimal spells.
A date or timestamp is itself to the microsecond, and with a zone it is the instant in UTC. Text is itself. Where one
source has text for what another has as a number, a truth, a date, a time or a duration, the text means what it spells.

>>> to_plain_value(Decimal("2.50")), to_plain_value(np.float32(0.1)), to_plain_value(Decimal(2**60 + 1)) == 2**60 + 1
(2.5, 0.1, True)
>>> to_plain_value(dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))))
datetime.datetime(2024, 2, 29, 10, 0)
>>> [parse_value(text) for text in ("1.50", "TRUE", "2024-02-29", "12:30", "1 days 02:00:00", "1.5 kg")]
[1.5, True, datetime.date(2024, 2, 29), datetime.time(12, 30), datetime.timedelta(days=1, seconds=7200), None]
>>> [format_plain_value(value) for value in (2**60 + 1, 2.5, True, dt.time(12, 30), dt.timedelta(1, 7200))]
['1152921504606846977', '2.5', 'true', '12:30:00', '1 day 02:00:00']
"""

import datetime as dt
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

_PLAIN = {str, int, float, bool, dt.date, dt.time, dt.timedelta}
_MAX_DIGITS = 400  # longer numbers are words: Python limits what it reads, and no number of a table is as long
_NUMBER = re.compile(r"\s*[+-]?(?:(?P<whole>\d+)|\d+\.\d*|\.\d+)(?P<power>[eE][+-]?\d{1,3})?\s*", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
_BOOLEAN_WORDS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))  # as databases read them
_CLOCK = ("days", "hours", "minutes", "seconds")
_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(\.\d+)?)S)?)?"
    r"|(?:(?P<days>-?\d+) days?(?:,? |$))?"
    r"(?:(?P<back>[+-])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(\.\d+)?))?",
    re.ASCII,
)


def to_plain_value(value: Any) -> Any:
    """A value as it is kept among labels."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return to_plain_value(_from_numpy(value))
    if isinstance(value, dt.datetime):
        utc = value if value.tzinfo is None else value.astimezone(dt.UTC)
        at = (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)
        return dt.datetime(*at)
    if isinstance(value, dt.timedelta):
        return dt.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if hasattr(value, "nanoseconds") and hasattr(value, "months"):  # an interval of Arrow
        return dt.timedelta(_days_of_months(value.months) + value.days, microseconds=value.nanoseconds // 1000)
    return str(value) if isinstance(value, UUID) else value


def _days_of_months(months: int) -> float:
    """The length of some months as DuckDB and PostgreSQL have it: years of 365.25 days, months of 30."""
    years = int(months / 12)
    return 365.25 * years + 30 * (months - 12 * years)


def _from_numpy(value: np.generic) -> Any:
    if isinstance(value, np.floating) and value.dtype.itemsize < 8:
        return float(str(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{value.dtype.kind}8[us]").item()  # finer ones would come out as bare integers
    return value.item()


def format_plain_value(value: Any) -> str:
    """A plain value as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.timedelta):
        days, rest = divmod(value, dt.timedelta(1))
        clock = (dt.datetime.min + rest).time().isoformat()
        return f"{days} day{'' if abs(days) == 1 else 's'} {clock}"
    return str(value)


def parse_value(text: str) -> Any:
    """The number, truth, date, time of day or duration that a text spells; None where it is but text."""
    if (found := _NUMBER.fullmatch(text)) and len(text) < _MAX_DIGITS:
        number = int(text) if found["whole"] and not found["power"] else float(text)
        return number if abs(number) < float("inf") else None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if found := _MOMENT.fullmatch(text):
            read = dt.datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+"))
            return to_plain_value(read) if found["time"] else read.date()
        if _TIME.fullmatch(text) and text < "24":
            return dt.time.fromisoformat(text)
        return parse_duration(text)
    except (ValueError, OverflowError):
        return None


def parse_boolean(text: str) -> bool | None:
    """The boolean that a word stands for; None where it is another word.

    >>> parse_boolean("Yes"), parse_boolean("f"), parse_boolean("maybe")
    (True, False, None)
    """
    word = text.lower()
    return next((word == yes for yes, no in _BOOLEAN_WORDS if word in (yes, no)), None)


def parse_booleans(texts: Iterable[str]) -> dict[str, bool]:
    """The booleans that levels stand for: those of a pair of words of which both are there, or nothing else is.

    So the booleans that a CSV reader made of yes and no find their levels, and ``n`` among the letters is a letter.

    >>> parse_booleans(["Yes", "no", "unknown"]), parse_booleans(["n", "e", "s", "w"]), parse_booleans(["y"])
    ({'Yes': True, 'no': False}, {}, {'y': True})
    """
    words: dict[str, list[str]] = {}
    for text in texts:
        words.setdefault(text.lower(), []).append(text)
    pairs = [pair for pair in _BOOLEAN_WORDS if words.keys() >= set(pair) or words.keys() <= set(pair)]
    return {text: word == yes for yes, no in pairs for word in (yes, no) for text in words.get(word, ())}


def parse_duration(text: str) -> dt.timedelta | None:
    """The duration that a text spells: as pandas, Python, SQL or ISO 8601 write it."""
    found = _DURATION.fullmatch(text)
    if found is None or not re.search(r"\d", text):
        return None
    iso = text.lstrip("-").startswith("P")
    days, *clock = (float(found[key] or 0) for key in (("d", "h", "m", "s") if iso else _CLOCK))
    rest = dt.timedelta(**dict(zip(_CLOCK[1:], clock, strict=True)))
    if iso:
        return (dt.timedelta(days) + rest) * (-1 if found["sign"] else 1)
    return dt.timedelta(days) + rest * (-1 if found["back"] == "-" else 1)


def to_timestamp(value: Any) -> Any:
    """A date as the timestamp of its midnight, a time of day as that since midnight; other values as they are."""
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return dt.datetime(value.year, value.month, value.day) if is_date else value
