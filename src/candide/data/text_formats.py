"""Plain values, and the formats in which text writes numbers, dates, times, durations and booleans.

A value is kept plain, so that it is the same level or class whichever source it comes from. A number of any width, or a
decimal, is a number; a float32 is its shortest decimal. A date or timestamp is exact to the microsecond, and with a
zone it is the instant in UTC. A model remembers the format of each column of text, so that later rows are read in the
same way.
"""

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

NUMBER_BLANKS = " \t\n\r\f\v\u00a0\u202f"  # around a number: the last two are no-break spaces
SPACE_CLASS = r" \t\n\r\f\v" + NUMBER_BLANKS[-2:]  # in a class of a pattern
MINUS, APOSTROPHE = "\u2212", "\u2019"  # typographic forms of - and '
MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na")
COMPACT = "%Y%m%d"  # eight digits, which are a date in no other format
_THOUSANDS = {"": "", ",": ",", ".": r"\.", " ": "[ \u00a0\u202f]", "'": f"['{APOSTROPHE}]"}
_CURRENCY_CODES = """EUR USD GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH BRL MXN ARS CLP
COP ZAR KRW SGD HKD TWD THB IDR MYR PHP VND ILS AED SAR EGP NGN KES kr Kr Fr Rs R$ US$ A$ C$ z\u0142 K\u010d Ft lei"""
_CURRENCIES = frozenset(_CURRENCY_CODES.split())
_DATE_FORMAT = re.compile(r"(%[dmYyBbHMSIp]|[-/., :T])+")
_COMPACT_DATE = re.compile(r"[1-9]\d{7}", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1)
MIN_PROSE_WORDS = 4  # on average before text is prose: names and most categories have fewer
# Words of Chinese and Japanese have about two letters, those of Thai, Lao, Burmese and Khmer about four, with marks;
# twice as many are required, so that a first name and a family name are not four words.
_HAN, _THAI = "\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff", "\u0e00-\u109f\u1780-\u17ff"
_WORD = re.compile(f"[{_HAN}]{{1,2}}|[{_THAI}]{{1,8}}|[^\\s{_HAN}{_THAI}]+")
_PLAIN_TYPES = {str, int, float, bool, dt.date, dt.time, dt.timedelta}
_MAX_DIGITS = 400  # longer numbers are words: Python limits what it reads, and no number of a table is as long
NUMBER = re.compile(r"\s*[+-]?(?:(?P<whole>\d+)|\d+\.\d*|\.\d+)(?P<power>[eE][+-]?\d{1,3})?\s*", re.ASCII)
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
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, np.generic):
        if isinstance(value, np.floating) and value.dtype.itemsize < 8:
            return float(str(value))
        is_time = isinstance(value, np.datetime64 | np.timedelta64)  # finer ones would come out as bare integers
        return to_plain_value((value.astype(f"{value.dtype.kind}8[us]") if is_time else value).item())
    if isinstance(value, dt.datetime):
        utc = value if value.tzinfo is None else value.astimezone(dt.UTC)
        return dt.datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)
    if isinstance(value, dt.timedelta):
        return dt.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if hasattr(value, "nanoseconds") and hasattr(value, "months"):  # an interval of Arrow
        years = int(value.months / 12)  # of 365.25 days, months of 30, as in DuckDB and PostgreSQL
        days = 365.25 * years + 30 * (value.months - 12 * years) + value.days
        return dt.timedelta(days, microseconds=value.nanoseconds // 1000)
    return str(value) if isinstance(value, UUID) else value


def format_plain_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.timedelta):
        days, rest = divmod(value, dt.timedelta(1))
        return f"{days} day{'' if abs(days) == 1 else 's'} {(dt.datetime.min + rest).time().isoformat()}"
    return str(value)


def parse_value(text: str) -> Any:
    """The number, boolean, date, time of day or duration that a text means; None for other text."""
    if (match := NUMBER.fullmatch(text)) and len(text) < _MAX_DIGITS:
        number = int(text) if match["whole"] and not match["power"] else float(text)
        return number if abs(number) < float("inf") else None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if match := _MOMENT.fullmatch(text):
            moment = dt.datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+"))
            return to_timestamp(moment) if match["time"] else moment.date()
        if _TIME.fullmatch(text) and text < "24":
            return dt.time.fromisoformat(text)
        return parse_duration(text)
    except (ValueError, OverflowError):
        return None


def parse_boolean(text: str) -> bool | None:
    """The boolean that a word stands for; None where it is another word."""
    word = text.lower()
    return next((word == yes for yes, no in _BOOLEAN_WORDS if word in (yes, no)), None)


def parse_booleans(texts: Iterable[str]) -> dict[str, bool]:
    """The booleans among levels: pairs of words of which both are levels, or which are the only levels.

    So the booleans that a CSV reader made of yes and no match their levels, and ``n`` among the letters is a letter.
    """
    words: dict[str, list[str]] = {}
    for text in texts:
        words.setdefault(text.lower(), []).append(text)
    pairs = [pair for pair in _BOOLEAN_WORDS if words.keys() >= set(pair) or words.keys() <= set(pair)]
    return {text: word == yes for yes, no in pairs for word in (yes, no) for text in words.get(word, ())}


def parse_duration(text: str) -> dt.timedelta | None:
    """The duration that a text means, as pandas, Python, SQL or ISO 8601 write it."""
    match = _DURATION.fullmatch(text)
    if match is None or not re.search(r"\d", text):
        return None
    is_iso = text.lstrip("-").startswith("P")
    days, *clock = (float(match[key] or 0) for key in (("d", "h", "m", "s") if is_iso else _CLOCK))
    rest = dt.timedelta(**dict(zip(_CLOCK[1:], clock, strict=True)))
    if is_iso:
        return (dt.timedelta(days) + rest) * (-1 if match["sign"] else 1)
    return dt.timedelta(days) + rest * (-1 if match["back"] == "-" else 1)


def to_timestamp(value: Any) -> Any:
    """A date as the timestamp of its midnight, an instant in UTC, a time of day as that since midnight."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else value


@dataclass(frozen=True)
class TextFormat:
    """How the numbers or dates of a column of text are written."""

    decimal: str = "."  # before the decimals
    thousands: str = ""  # between groups of three digits
    unit: str = ""  # a currency, before or after the number, or not at all; or %, after each, for hundredths
    date: str = ""  # the format of dates, as in strptime
    missing: tuple[str, ...] = ()  # words for a missing value, in lower case

    def __post_init__(self) -> None:
        is_valid = self.decimal in (".", ",") and self.thousands in _THOUSANDS and self.thousands != self.decimal
        is_valid = is_valid and (self.unit in ("", "%") or is_currency(self.unit))
        if not (is_valid and (not self.date or (_DATE_FORMAT.fullmatch(self.date) and len(self.date) < 40))):
            raise ValueError(f"not a valid format of numbers or dates: {self}")

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as SQL and Python write them."""
        return (self.decimal, self.thousands, self.unit, self.date) == (".", "", "", "")

    @property
    def pattern(self) -> str:
        """What every number matches, in the language of RE2 and of Python."""
        whole, sign, part = "[0-9]+", f"[-+{MINUS}]?", self.thousands
        if part:
            whole = f"(?:[1-9][0-9]{{0,2}}(?:{_THOUSANDS[part]}[0-9]{{3}})+|[0-9]+)"
        body = f"(?:{whole}(?:{re.escape(self.decimal)}[0-9]*)?|{re.escape(self.decimal)}[0-9]+)"
        if self.decimal == "." and not self.unit:
            body += "(?:[eE][-+]?[0-9]+)?"
        space, unit = f"[{SPACE_CLASS}]*", re.escape(self.unit)
        if self.unit == "%":
            return f"{space}{sign}{body}{space}%{space}"
        if unit:
            return f"{space}{sign}{space}(?:{unit}{space})?{sign}{body}{space}(?:{unit}{space})?"
        return f"{space}{sign}{body}{space}"

    @property
    def example(self) -> str:
        text = f"{f'1{self.thousands}234' if self.thousands else '12'}{self.decimal}5"
        return f"{text}%" if self.unit == "%" else f"{self.unit}{text}"

    @property
    def replacements(self) -> dict[str, str]:
        """What is replaced in a number, so that Python and SQL can read it."""
        removed = (self.thousands, self.unit, " ", "\u00a0", "\u202f", APOSTROPHE if self.thousands == "'" else "")
        out = {text: "" for text in removed if text} | {MINUS: "-"}
        return out if self.decimal == "." else {**out, self.decimal: "."}

    def to_export_dict(self) -> dict[str, Any]:
        """How another program reads the text: what a number matches, what is replaced in it, the format of a date."""
        numbers: dict[str, Any] = {}
        if not self.is_plain:
            numbers = {"pattern": self.pattern, "put": list(self.replacements.items())}
            numbers |= {"decimal": self.decimal, "thousands": self.thousands, "unit": self.unit}
        return {**numbers, "percent": self.unit == "%", "date": self.date, "missing": self.missing}

    def settings(self) -> dict[str, Any]:
        """The fields that differ from the plain format, as plain values."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


PLAIN_FORMAT = TextFormat()


def is_currency(sign: str) -> bool:
    return sign in _CURRENCIES or (len(sign) == 1 and unicodedata.category(sign) == "Sc")


def mean_words(texts: Collection[str]) -> float:
    """The mean number of words of texts; in scripts without spaces, a fixed number of letters counts as a word."""
    return sum(len(_WORD.findall(text)) for text in texts) / max(1, len(texts))


def is_prose(values: Collection[Any]) -> bool:
    """Whether values are texts with as many words as prose has."""
    texts = [value for value in values if isinstance(value, str)]
    return 2 * len(texts) > len(values) and mean_words(texts) >= MIN_PROSE_WORDS


def non_missing_words(words: Iterable[Any]) -> list[Any]:
    """The words among numbers that do not mean "missing"; all, if there are no others."""
    words = list(words)
    return [word for word in words if str(word).strip().lower() not in MISSING_MARKERS] or words


def parse_plain_numbers(texts: Iterable[str]) -> tuple[float, ...]:
    """The numbers among texts, in the plain format."""
    return tuple(float(text) for text in texts if NUMBER.fullmatch(text))


def parse_plain_number(text: str) -> float:
    """The number that a text means in the plain format; a ValueError if it is not one.

    Digits are 0 to 9, which single underscores may separate; those of other scripts are letters. White space around a
    number, including no-break spaces, is ignored.
    """
    bare = text.strip(NUMBER_BLANKS)
    if not bare.isascii() or bare != bare.strip():
        raise ValueError("not a number")
    return float(bare)


def parse_number(text: str, text_format: TextFormat) -> float:
    """The number that a text means in a format that it matches."""
    for old, new in text_format.replacements.items():
        text = text.replace(old, new)
    return float(f"{text.strip()}e-2" if text_format.unit == "%" else text)


def is_missing_text(text: str, text_format: TextFormat) -> bool:
    word = text.strip().lower()
    return word in MISSING_MARKERS or word in text_format.missing


def parse_text_value(text: str, text_format: TextFormat = PLAIN_FORMAT, kind: str = "number") -> float | str | None:
    """The number that a text means, of dates days since 1970, of times and durations days; None where missing.

    The text itself where it is not in the format, or where the format of numbers is plain.
    """
    if is_missing_text(text, text_format):
        return None
    if kind in ("date", "time"):
        value = parse_temporal(text.strip(), text_format, kind)
        since = value - _EPOCH if isinstance(value, dt.datetime) else value
        return text if since is None else since / dt.timedelta(days=1)
    is_number = not text_format.is_plain and re.fullmatch(text_format.pattern, text)
    return parse_number(text, text_format) if is_number else text


def parse_temporal(text: str, how: TextFormat = PLAIN_FORMAT, kind: str = "date") -> dt.datetime | dt.timedelta | None:
    """The date that a text means; if ``kind`` is "time", the time since midnight or the duration. None for others."""
    if kind != "time":
        return parse_date(text, how.date)
    since = to_timestamp(parse_value(text))
    return since if isinstance(since, dt.timedelta) else None


def parse_date(text: str, date_format: str) -> dt.datetime | None:
    """The date that a text means, in UTC. Eight digits are a date only in the format ``COMPACT``."""
    try:
        if date_format == COMPACT and not _COMPACT_DATE.fullmatch(text):  # strptime would take 2024111 for one
            raise ValueError
        when = dt.datetime.strptime(text, date_format or "%Y-%m-%d")  # an empty format would match empty text
    except ValueError:
        if not _ISO_DATE.fullmatch(text):
            return None
        try:
            when = dt.datetime.fromisoformat(text)
        except ValueError:
            return None
    return to_timestamp(when)
