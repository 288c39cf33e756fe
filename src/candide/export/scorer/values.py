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
DAY = dt.timedelta(days=1)
EPOCH = dt.datetime(1970, 1, 1)
NUMBER = re.compile(r"\s*[+-]?(?:(?P<whole>\d+)|\d+\.\d*|\.\d+)(?P<power>[eE][+-]?\d{1,3})?\s*", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?", re.ASCII)
CLOCK = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
PERIOD = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
SPAN = re.compile(r"(?:(-?\d+) days?(?:,? |$))?(?:([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?))?", re.ASCII)


def is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value


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
        for code, level in enumerate(levels):
            if isinstance(level, str):
                self.text[level] = code
                if (means := meaning(level)) is not None:
                    key = isinstance(means, bool), means
                    self.meant[key] = NEW if key in self.meant else code
            elif isinstance(level, dict):
                since = dt.timedelta(microseconds=level["value"])
                self.typed[since if level["type"] == "duration" else EPOCH + since] = code
            else:
                self.typed[level] = code

    def place(self, value: Any) -> int:
        """The place of a level; NEW where the value is none of them, ABSENT where there is no value."""
        if is_missing(value) and not (value == "" and "" in self.text):
            return ABSENT
        if isinstance(value, str):
            means = None if value in self.text else meaning(value)
            return self.text.get(value, NEW) if means is None else self._typed(means)
        means = moment(value)
        for code in (self.typed.get(means), self.text.get(spelled(value))):
            if code is not None:
                return code
        if (code := self._typed(means)) == NEW:
            truth = isinstance(value, bool)
            ways = (self.meant.get((one, means), NEW) for one in (truth, not truth))
            code = next((one for one in ways if one != NEW), NEW)
        return code

    def _typed(self, means: Any) -> int:
        code = self.typed.get(means, NEW)
        if code == NEW and self.days and isinstance(means, dt.datetime):  # a time of a known day
            code = self.typed.get(dt.datetime(means.year, means.month, means.day), NEW)
        return code


def number_of(column: dict[str, Any], value: Any) -> float:
    """The number that a value is, NaN where it is missing; days since 1970 of a date."""
    if is_missing(value):
        return math.nan
    read = text_value(column, value) if isinstance(value, str) else moment(value)
    if isinstance(read, dt.datetime):
        return (read - EPOCH) / DAY
    try:
        number = read / DAY if isinstance(read, dt.timedelta) else float(read)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"column {column['name']!r}: {value!r} is not a number") from None
    if math.isinf(number):
        raise ValueError(f"column {column['name']!r}: {value!r} is not a finite number")
    return number


def text_value(column: dict[str, Any], text: str) -> Any:
    """What a text means in a column of numbers or dates; the text itself where that is not known."""
    how, bare = column.get("spelled", {}), text.strip()
    if bare.lower() in how.get("missing", ()):
        return math.nan
    if column["kind"] != "date":
        if "pattern" not in how or not re.fullmatch(how["pattern"], text):
            return text
        for old, new in how["put"]:
            text = text.replace(old, new)
        return float(f"{text.strip()}e-2" if how["percent"] else text)
    for read in (lambda: dt.datetime.strptime(bare, how.get("date", "")), lambda: dt.datetime.fromisoformat(bare)):
        try:
            return moment(read())
        except ValueError:
            continue
    return text
