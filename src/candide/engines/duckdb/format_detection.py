"""Detect the format of the numbers or dates of a text column, from all values of its first rows.

An ambiguous value may be decided by another value, and an ambiguous column by another column of the file: ``1.234`` and
``1,234`` may have decimals or thousands, ``03/04/2024`` is in March or in April. If nothing decides, the point is the
decimal separator and the month comes first between slashes; a note reports it, and an option changes it.

>>> import duckdb
>>> con = duckdb.connect()
>>> prices, sizes = (format_options(con, pa.array(v)) for v in (["1.234", "2.345"], ["1,5", "2"]))
>>> {key: (how.decimal, how.thousands) for key, how in prices.formats.items()}
{'.': ('.', ''), ',': (',', '.')}
>>> {name: key for name, (_, key) in choose_formats({"price": prices, "size": sizes}, ReadOptions()).items()}
{'price': ',', 'size': ','}
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.data.text_formats import (
    APOSTROPHE,
    MINUS,
    MISSING_MARKERS,
    NUMBER_BLANKS,
    SPACE_CLASS,
    TextFormat,
    is_currency,
    parse_number,
)
from candide.engines.reading import ReadOptions
from candide.engines.sql.text import quote_text

_INTEGER = r"^\s*[+-]?\d{1,18}\s*$"
_WIDE_INTEGER = r"^\s*[+-]?\d{1,38}\s*$"
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|^\s*(?i:nan|[+-]?inf(inity)?)\s*$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"
_ZONED_TIME = rf"{_TIME[:-1]} ?(Z|UTC|[+-]\d{{2}}(:?\d{{2}})?)$"
_TIME_OF_DAY = r"^([01]\d|2[0-3]):\d{2}(:\d{2}(\.\d+)?)?$"
_DURATION = r"(-?\d+ days?( -?\d+:\d{2}:\d{2}(\.\d+)?)?|-?\d{2,}:\d{2}:\d{2}(\.\d+)?)"  # a duration, as SQL reads it
TYPE_PATTERNS = (  # the plain way
    (_INTEGER, "BIGINT"),
    (_WIDE_INTEGER, "HUGEINT"),
    (_NUMBER, "DOUBLE"),
    (_DATE, "DATE"),
    (_TIME, "TIMESTAMP"),
    (_ZONED_TIME, "TIMESTAMP WITH TIME ZONE"),
    (_TIME_OF_DAY, "TIME"),
    (f"^{_DURATION}$", "INTERVAL"),
)
_NUMBERS = ("BIGINT", "HUGEINT", "DOUBLE")
_TYPE_NAMES = {"TIME": "time of day", "INTERVAL": "duration"}

_NUMBER_CHARACTERS = rf"\d.,'{APOSTROPHE}{SPACE_CLASS}+{MINUS}-"  # of a number without its unit
_NUMERIC = rf"^[{_NUMBER_CHARACTERS}]*[^\d.,]{{0,3}}[{_NUMBER_CHARACTERS}]*\d[{_NUMBER_CHARACTERS}]*[^\d.,]{{0,5}}$"
_THOUSANDS_SEPARATORS = ("", ",", " ", "'"), ("", ".", " ", "'")  # with a decimal point; with a decimal comma
_DAY, _MONTH, _YEAR = "day", "month", "year"  # what comes first
_DATES: tuple[tuple[str, dict[str, str]], ...] = (  # a pattern, and its formats, the usual one first
    (r"\d{1,2}\.\d{1,2}\.\d{4}", {_DAY: "%d.%m.%Y"}),
    (r"\d{2}\.\d{2}\.\d{2}", {_DAY: "%d.%m.%y"}),
    (r"\d{1,2}/\d{1,2}/\d{4}", {_MONTH: "%m/%d/%Y", _DAY: "%d/%m/%Y"}),
    (r"\d{2}/\d{2}/\d{2}", {_MONTH: "%m/%d/%y", _DAY: "%d/%m/%y"}),
    (r"\d{1,2}-\d{1,2}-\d{4}", {_DAY: "%d-%m-%Y", _MONTH: "%m-%d-%Y"}),
    (r"\d{4}/\d{1,2}/\d{1,2}", {_YEAR: "%Y/%m/%d"}),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", {_YEAR: "%Y.%m.%d"}),
    (r"\d{4}-\d{1,2}-\d{1,2}", {_YEAR: "%Y-%m-%d"}),
    (r"\d{1,2} [A-Za-z]{3} \d{4}", {_YEAR: "%d %b %Y"}),
    (r"\d{1,2} [A-Za-z]{3,9} \d{4}", {_YEAR: "%d %B %Y"}),
    (r"[A-Za-z]{3} \d{1,2}, \d{4}", {_YEAR: "%b %d, %Y"}),
    (r"[A-Za-z]{3,9} \d{1,2}, \d{4}", {_YEAR: "%B %d, %Y"}),
    (r"\d{1,2}-[A-Za-z]{3}-\d{4}", {_YEAR: "%d-%b-%Y"}),
    (r"\d{1,2}-[A-Za-z]{3}-\d{2}", {_YEAR: "%d-%b-%y"}),
)
_LATE = (r"^\s*(1[3-9]|[23]\d)[/-]", r"^\s*\d{1,2}[/-](1[3-9]|[23]\d)[/-]")
_N_FIRST_VALUES = 32  # values that mostly show that a column does not hold dates
_MIN_DATES = 0.9  # proportion of dates in a column of dates
_TIMES = (
    ("", ""),
    (r" \d{1,2}:\d{2}", " %H:%M"),
    (r" \d{1,2}:\d{2}:\d{2}", " %H:%M:%S"),
    (r" \d{1,2}:\d{2} [AaPp][Mm]", " %I:%M %p"),
    (r" \d{1,2}:\d{2}:\d{2} [AaPp][Mm]", " %I:%M:%S %p"),
)
PLAIN_DATES = (_DATE, _TIME, _ZONED_TIME)
DATE_PATTERNS = tuple(rf"^\s*{day}{time}\s*$" for time, _ in _TIMES for day, _ in _DATES)


@dataclass(frozen=True)
class FormatOptions:
    """Possible formats of a column, by the decimal separator ("." or ","), or by what comes first in its dates."""

    formats: dict[str, TextFormat]
    types: dict[str, str]
    is_whole: bool = False  # whether all are whole numbers, written plainly

    @property
    def is_plain(self) -> bool:
        return all(text_format == TextFormat() for text_format in self.formats.values())

    @property
    def only_format(self) -> str | None:
        """The only possible format, which may decide that of other columns."""
        return next(iter(self.formats)) if len(self.formats) == 1 and not self.is_whole else None


def all_match(column: Any, pattern: str) -> bool:
    """Whether all values match; the first few mostly show that not all do."""
    few = column.slice(0, 16)
    return all(bool(pc.all(pc.match_substring_regex(part, pattern)).as_py()) for part in (few, column))


def time_type(column: Any) -> str | None:
    """The SQL type of text that holds dates, times or durations in the plain format; None if it does not."""
    times = ((pattern, kind) for pattern, kind in TYPE_PATTERNS if kind not in _NUMBERS)
    return next((kind for pattern, kind in times if len(column) and all_match(column, pattern)), None)


def format_options(con: Any, column: Any, kind: str | None = None) -> FormatOptions | None:
    """How a text column may be read as numbers or dates; None if it cannot.

    Missing-value markers are ignored. ``kind`` is the type of a plain column without markers, where known.
    """
    numbers, missing = without_missing(column) if kind is None else (column.drop_null(), ())
    if len(numbers) == 0:
        return None
    plain = TextFormat(missing=missing)
    kind = kind or next((kind for pattern, kind in TYPE_PATTERNS if all_match(numbers, pattern)), None)
    if kind not in (None, "DOUBLE"):
        key = "." if kind == "BIGINT" else _YEAR
        return FormatOptions({key: plain}, {key: str(kind)}, is_whole=key == ".")
    if found := _number_formats(numbers, plain, kind is not None):
        return FormatOptions(found, dict.fromkeys(found, "DOUBLE"), not _has_match(numbers, r"[.,eE]"))
    found, kind = _date_formats(con, numbers, plain)
    return FormatOptions(found, dict.fromkeys(found, kind)) if found else None


def without_missing(column: Any) -> tuple[Any, tuple[str, ...]]:
    """The values that are not missing-value markers, and the markers if there are any."""
    present = column.drop_null()
    present = present.combine_chunks() if isinstance(present, pa.ChunkedArray) else present
    is_marker = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(present)), pa.array(MISSING_MARKERS))
    numbers = present.filter(pc.invert(is_marker))
    return numbers, MISSING_MARKERS if len(numbers) < len(present) else ()


def default_format(column: Any) -> TextFormat:
    """The plain format, with missing-value markers if there are any."""
    return TextFormat(missing=without_missing(column)[1])


def type_with_format(con: Any, column: Any, text_format: TextFormat) -> str | None:
    """The SQL type of a column in this format; None if it is in another."""
    numbers, _ = without_missing(column)
    if text_format.date:
        return _date_type(text_format.date) if _can_parse_all(con, numbers, text_format.date) else None
    if text_format.is_plain:
        kind = next((kind for pattern, kind in TYPE_PATTERNS if all_match(numbers, pattern)), None)
        return "DOUBLE" if kind == "BIGINT" else kind
    return "DOUBLE" if all_match(numbers, f"^(?:{text_format.pattern})$") else None


def _number_formats(values: Any, plain: TextFormat, is_plain: bool) -> dict[str, TextFormat]:
    """With a decimal point and with a decimal comma, the simplest format that fits all values."""
    if not is_plain and not all_match(values, _NUMERIC):
        return {}
    units = set() if is_plain else set(_units(values))
    if units <= {""}:
        unit = ""
    elif units == {"%"} or (len(units - {""}) == 1 and is_currency(next(iter(units - {""})))):
        unit = next(iter(units - {""}))
    else:
        return {}
    found = {}
    for decimal, parts in zip(".,", _THOUSANDS_SEPARATORS, strict=True):
        formats = [replace(plain, decimal=decimal, thousands=part, unit=unit) for part in parts]
        if is_plain and decimal == ".":
            found[decimal] = plain
            continue
        if _has_match(values, f"[{NUMBER_BLANKS[-2:]}]"):  # no cast takes these: removed with the thousands separators
            formats = [text_format for text_format in formats if text_format.thousands]
        matching = (each for each in formats if all_match(values, f"^(?:{each.pattern})$"))
        if text_format := next(matching, None):
            found[decimal] = text_format
    if len(found) > 1 and not _has_match(values, "[.,]"):  # both are the same
        del found[","]
    return found


def number_patterns(values: Any) -> list[str]:
    """Patterns of the number formats that some values may have, by the units that are found among them."""
    units = _units(values.filter(pc.match_substring_regex(values, _NUMERIC)))
    valid = [unit for unit in units if unit in ("", "%") or is_currency(unit)]
    formats = [
        TextFormat(decimal=decimal, thousands=part, unit=unit)
        for unit in ("", *(unit for unit in valid if unit))
        for decimal, parts in zip(".,", _THOUSANDS_SEPARATORS, strict=True)
        for part in parts
    ]
    return [_NUMBER, *(f"^(?:{text_format.pattern})$" for text_format in formats)]


def _units(values: Any) -> list[str]:
    """The distinct texts that are left of values without the characters of numbers."""
    return pc.replace_substring_regex(values, f"[{_NUMBER_CHARACTERS}]", "").unique().to_pylist()


def _date_formats(con: Any, values: Any, plain: TextFormat) -> tuple[dict[str, TextFormat], str]:
    for day, forms in _DATES:
        if not pc.match_substring_regex(values.slice(0, 1), rf"^\s*{day}")[0].as_py():
            continue
        for time, suffix in _TIMES:
            if all_match(values, rf"^\s*{day}{time}\s*$"):
                dates = {first: form + suffix for first, form in forms.items()}
                fits = {first: date for first, date in dates.items() if _can_parse_all(con, values, date)}
                return {first: replace(plain, date=date) for first, date in fits.items()}, _date_type(suffix)
    return {}, ""


def date_examples(column: Any) -> list[str]:
    """One value of each format, where a text column holds dates in more than one; otherwise none.

    >>> date_examples(pa.array(["2024-01-05", "06.01.2024", "2024-01-07"])), date_examples(pa.array(["a", "b"]))
    (['06.01.2024', '2024-01-05'], [])
    >>> date_examples(pa.array(["13/10/2024", "10/13/2024"]))
    ['13/10/2024', '10/13/2024']
    """
    few = column.slice(0, _N_FIRST_VALUES).drop_null().to_pylist()
    if 2 * sum(any(map(str.isdigit, text)) for text in few) <= len(few):
        return []
    left, n, examples = without_missing(column.unique())[0], 0, list[str]()
    n_values = len(left)
    for day, forms in _DATES:
        is_one = pc.match_substring_regex(left, rf"^\s*{day}([ T]\d{{1,2}}:\d{{2}}.*)?\s*$")
        dates, left = left.filter(is_one), left.filter(pc.invert(is_one))
        n += len(dates)
        if not len(dates):
            continue
        examples.append(dates[0].as_py())
        if len(forms) > 1:  # a day after the 12th comes first in one value, and second in another
            firsts = [dates.filter(pc.match_substring_regex(dates, late)) for late in _LATE]
            examples[-1:] = [late[0].as_py() for late in firsts] if all(map(len, firsts)) else examples[-1:]
    return examples if len(examples) > 1 and n >= _MIN_DATES * n_values else []


def _date_type(form: str) -> str:
    return "TIMESTAMP" if ":" in form else "DATE"


def _can_parse_all(con: Any, values: Any, date: str) -> bool:
    """Whether all values are dates in a format."""
    if con is None:  # rows in memory, whose dates Python reads
        return all(_is_date(text, date) for text in values.unique().to_pylist())
    con.register("head_values", pa.table({"x": values}))
    try:
        query = f"SELECT count(try_strptime(trim(x), {quote_text(date)})) FROM head_values"
        return con.sql(query).fetchall()[0][0] == len(values)
    finally:
        con.unregister("head_values")


def _is_date(text: str, form: str) -> bool:
    try:
        datetime.strptime(text.strip(), form)
    except ValueError:
        return False
    return True


def _has_match(values: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


ChosenFormats = dict[str, tuple[FormatOptions, str]]


def choose_formats(column_options: Mapping[str, FormatOptions], reading: ReadOptions) -> ChosenFormats:
    """The format of each column: the only one, the one declared, that of other columns, or the usual one."""
    certain = {options.only_format for options in column_options.values()}
    decimal = reading.decimal or ("," if "," in certain and "." not in certain else ".")
    first = {True: _DAY, False: _MONTH, None: None}[reading.day_first]
    if first is None and len(certain & {_DAY, _MONTH}) == 1:
        first = next(iter(certain & {_DAY, _MONTH}))
    elif first is None and decimal == ",":
        first = _DAY
    out = {}
    for name, options in column_options.items():
        usual = next(iter(options.formats))
        out[name] = options, next((key for key in (decimal, first) if key in options.formats), usual)
    return out


def format_notes(
    columns: Mapping[str, Any], chosen_formats: ChosenFormats, *, fitted: bool = False, is_known: Collection[str] = ()
) -> list[Note]:
    """Notes on columns in a format that is not plain or is ambiguous: one for all columns of the same format.

    ``fitted``: a model has these columns; those in ``is_known`` had another format there.
    """
    groups: dict[tuple[TextFormat, str, bool, str, bool], list[str]] = {}
    for name, (options, key) in chosen_formats.items():
        text_format, is_open = options.formats[key], len(options.formats) > 1
        if name in is_known or not text_format.is_plain or (is_open and not fitted):
            group = replace(text_format, missing=()), options.types[key], is_open, key, name in is_known
            groups.setdefault(group, []).append(name)
    return [_format_note(names, columns[names[0]], *group, fitted) for group, names in groups.items()]


def _format_note(
    names: list[str],
    column: Any,
    text_format: TextFormat,
    kind: str,
    is_open: bool,
    key: str,
    is_new: bool,
    fitted: bool,
) -> Note:
    """A note on how a value is read, and how to change it."""
    values = without_missing(column)[0]
    odd = values.filter(pc.match_substring_regex(values, r"[^\d+-]"))
    text = (odd if len(odd) else values)[0].as_py()
    if text_format.date:
        read = datetime.strptime(text.strip(), text_format.date).isoformat(" ").removesuffix(" 00:00:00")
        as_what, why = f"the date {read}", f"the {key} comes first" if key != _YEAR else ""
        swap = "--day-first (day_first=True)" if key == _MONTH else "--no-day-first (day_first=False)"
        swap = f"{swap} if the {_DAY if key == _MONTH else _MONTH} comes first"
    elif kind not in _NUMBERS:  # in the plain format, which is not ambiguous
        as_what, why, swap = f"a {_TYPE_NAMES.get(kind, 'date')}", "", ""
    else:
        as_what, why = (
            f"the number {parse_number(text, text_format):.15g}",
            "decimal commas" if text_format.decimal == "," else "",
        )
        if why and "," not in text:
            why = "as other columns have decimal commas"
        swap = "--decimal , (decimal=',')" if key == "." else "--decimal . (decimal='.')"
        swap = f"{swap} if the decimal separator is a {'comma' if key == '.' else 'point'}"
    note = f"{formatting.format_columns(names)}: {text!r} is read as {as_what}{f' ({why})' if why else ''}"
    if is_new:
        note = f"{note}; the rows of the model were written otherwise"
    if is_open:
        return Note("read-as-open", f"{note}, but this is ambiguous", names[0], f"pass {swap}")
    remedy = "" if fitted else f"pass --event {names[0]}=categorical (events={{...}}) to keep it as text"
    return Note("read-as", note, names[0], remedy)
