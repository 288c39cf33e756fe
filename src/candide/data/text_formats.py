"""Spellings: how the numbers or dates of a column of text are written, where it is not the plain way.

A number may have a decimal comma, separated thousands, a currency sign or a percent sign, a date the order of some
country. A model remembers the spelling of each column, so that later rows are read in the same way.

>>> german = TextFormat(decimal=",", thousands=".", unit="€")
>>> [bool(re.fullmatch(german.pattern, text)) for text in ("1.234,56 €", "€ 378,5", "-12", "12.5", "1.23,4")]
[True, True, True, False, False]
>>> parse_number("1.234,56 €", german), parse_number("14.3%", TextFormat(unit="%"))
(1234.56, 0.143)
"""

import datetime as dt
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from candide.data.value_identity import parse_value, to_timestamp

NUMBER_BLANKS = " \t\n\r\f\v\u00a0\u202f"  # around a number: the last two are no-break spaces
SPACE_CLASS = r" \t\n\r\f\v" + NUMBER_BLANKS[-2:]  # in a class of a pattern
MINUS, APOSTROPHE = "\u2212", "\u2019"  # as print has them, for - and '
MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na")
_THOUSANDS = {"": "", ",": ",", ".": r"\.", " ": "[ \u00a0\u202f]", "'": f"['{APOSTROPHE}]"}
_DATE = re.compile(r"(%[dmYyBbHMSIp]|[-/., :T])+")
_CURRENCY_CODES = """EUR USD GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH BRL MXN ARS CLP
COP ZAR KRW SGD HKD TWD THB IDR MYR PHP VND ILS AED SAR EGP NGN KES kr Kr Fr Rs R$ US$ A$ C$ z\u0142 K\u010d Ft lei"""
_CURRENCIES = frozenset(_CURRENCY_CODES.split())
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1)
COMPACT = "%Y%m%d"  # eight digits, which are a date in no other form
_COMPACT = re.compile(r"[1-9]\d{7}", re.ASCII)


@dataclass(frozen=True)
class TextFormat:
    """How the numbers or dates of a column are written."""

    decimal: str = "."  # before the decimals
    thousands: str = ""  # between them
    unit: str = ""  # a currency, before or after the number, or not at all; or %, after each, for hundredths
    date: str = ""  # of a date its form, as strptime has it
    missing: tuple[str, ...] = ()  # words for a missing value, in lower case

    def __post_init__(self) -> None:
        good = self.decimal in (".", ",") and self.thousands in _THOUSANDS and self.thousands != self.decimal
        good = good and (self.unit in ("", "%") or is_currency(self.unit))
        if not (good and (not self.date or (_DATE.fullmatch(self.date) and len(self.date) < 40))):
            raise ValueError(f"no spelling of numbers or dates: {self}")

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
        """A number in this format.

        >>> TextFormat(decimal=",", thousands=".", unit="€").example, TextFormat(unit="%").example
        ('€1.234,5', '12.5%')
        """
        text = f"{f'1{self.thousands}234' if self.thousands else '12'}{self.decimal}5"
        return f"{text}%" if self.unit == "%" else f"{self.unit}{text}"

    @property
    def replacements(self) -> dict[str, str]:
        """What stands in a number, and what Python and SQL have for it."""
        other = {APOSTROPHE: ""} if self.thousands == "'" else {}
        gone = {text: "" for text in (self.thousands, self.unit, " ", "\u00a0", "\u202f") if text}
        return {**gone, **other, MINUS: "-", **({} if self.decimal == "." else {self.decimal: "."})}

    def to_export_dict(self) -> dict[str, Any]:
        """How another program reads the text: what a number matches, what is replaced in it, the form of a date."""
        numbers: dict[str, Any] = {}
        if not self.is_plain:
            numbers = {"pattern": self.pattern, "put": list(self.replacements.items())}
            numbers |= {"decimal": self.decimal, "thousands": self.thousands, "unit": self.unit}
        return {**numbers, "percent": self.unit == "%", "date": self.date, "missing": self.missing}

    def settings(self) -> dict[str, Any]:
        """What differs from the plain way, as plain values."""
        held = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in held.items()}


PLAIN_FORMAT = TextFormat()


def is_currency(sign: str) -> bool:
    """Whether this is a currency's sign or usual name."""
    return sign in _CURRENCIES or (len(sign) == 1 and unicodedata.category(sign) == "Sc")


def non_missing_words(words: Iterable[Any]) -> list[Any]:
    """Of words among numbers those that do not mean "missing"; all, where there are no others.

    >>> non_missing_words(["-", "seventeen", "N/A"]), non_missing_words(["-"])
    (['seventeen'], ['-'])
    """
    words = list(words)
    return [word for word in words if str(word).strip().lower() not in MISSING_MARKERS] or words


def parse_plain_numbers(texts: Iterable[str]) -> tuple[float, ...]:
    """The numbers that some of the texts spell plainly.

    >>> parse_plain_numbers(("?", "-999", "9999.0", "nan"))
    (-999.0, 9999.0)
    """
    return tuple(float(text) for text in texts if _NUMBER.fullmatch(text))


def parse_plain_number(text: str) -> float:
    """The number that a text spells plainly; a ValueError where it spells none.

    Digits are 0 to 9, which may be parted by single underscores; those of other scripts are letters. White space
    around a number, no-break spaces among it, is ignored.

    >>> parse_plain_number("1_000"), parse_plain_number(" 2.5\u00a0")
    (1000.0, 2.5)
    >>> parse_plain_number("\u0661\u0662")
    Traceback (most recent call last):
    ValueError: not a number
    """
    bare = text.strip(NUMBER_BLANKS)
    if not bare.isascii() or bare != bare.strip():
        raise ValueError("not a number")
    return float(bare)


def parse_number(text: str, text_format: TextFormat) -> float:
    """The number that a text spells."""
    for old, new in text_format.replacements.items():
        text = text.replace(old, new)
    return float(f"{text.strip()}e-2" if text_format.unit == "%" else text)


def parse_text_value(text: str, text_format: TextFormat = PLAIN_FORMAT, kind: str = "number") -> float | str | None:
    """What a text means in a column of numbers, or of dates as days since 1970; the text itself where it is neither.

    In a column of times it is a time of day or a duration, as days.

    >>> (
    ...     parse_text_value("1.234,56 €", TextFormat(decimal=",", thousands=".", unit="€")),
    ...     parse_text_value("n/a", TextFormat(missing=("n/a",))),
    ... )
    (1234.56, None)
    >>> [
    ...     parse_text_value(text, TextFormat(date="%d.%m.%Y"), "date")
    ...     for text in ("02.01.1970", "1970-01-01T12:00", "soon")
    ... ]
    [1.0, 0.5, 'soon']
    >>> [parse_text_value(text, kind="time") for text in ("06:00", "1 day 12:00:00", "0.25", "soon")]
    [0.25, 1.5, '0.25', 'soon']
    """
    bare = text.strip()
    if bare.lower() in MISSING_MARKERS or bare.lower() in text_format.missing:
        return None
    if kind in ("date", "time"):
        read = temporal(bare, text_format, kind)
        since = read - _EPOCH if isinstance(read, dt.datetime) else read
        return text if since is None else since / dt.timedelta(days=1)
    return (
        parse_number(text, text_format)
        if not text_format.is_plain and re.fullmatch(text_format.pattern, text)
        else text
    )


def temporal(text: str, how: TextFormat = PLAIN_FORMAT, kind: str = "date") -> dt.datetime | dt.timedelta | None:
    """The date that a text spells, in UTC, or in a column of times the time since midnight or the duration.

    None where it spells neither. Eight digits are a date only where the rows fitted were written so.

    >>> temporal("2024-02-01"), temporal("20240201"), temporal("20240201", TextFormat(date="%Y%m%d"))
    (datetime.datetime(2024, 2, 1, 0, 0), None, datetime.datetime(2024, 2, 1, 0, 0))
    """
    if kind == "time":
        since = to_timestamp(parse_value(text))
        return since if isinstance(since, dt.timedelta) else None
    try:
        if how.date == COMPACT and not _COMPACT.fullmatch(text):  # strptime would take 2024111 for one
            raise ValueError
        when = dt.datetime.strptime(text, how.date or "%Y-%m-%d")  # an empty form would take no text for a date
    except ValueError:
        if not _ISO_DATE.fullmatch(text):
            return None
        try:
            when = dt.datetime.fromisoformat(text)
        except ValueError:
            return None
    return when.astimezone(dt.UTC).replace(tzinfo=None) if when.tzinfo else when
