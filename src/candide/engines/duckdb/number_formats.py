"""Detect the format of the numbers or dates of a text column, from all values of its first rows.

An ambiguous value may be decided by another value, and an ambiguous column by another column of the file: ``1.234`` and
``1,234`` may have decimals or thousands, ``03/04/2024`` is in March or in April. If nothing decides, the point is the
decimal separator and the month comes first between slashes; a note reports it, and an option changes it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data import text_formats
from candide.data.notes import Note
from candide.data.text_formats import MISSING_MARKERS, PLAIN_FORMAT, TextFormat, is_currency, parse_number
from candide.engines.reading import ReadOptions

_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|^\s*(?i:nan|[+-]?inf(inity)?)\s*$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"
_ZONED_TIME = rf"{_TIME[:-1]} ?(Z|UTC|[+-]\d{{2}}(:?\d{{2}})?)$"
TYPE_PATTERNS = (  # of the plain format
    (r"^\s*[+-]?\d{1,18}\s*$", "BIGINT"),
    (r"^\s*[+-]?\d{1,38}\s*$", "HUGEINT"),
    (_NUMBER, "DOUBLE"),
    (_DATE, "DATE"),
    (_TIME, "TIMESTAMP"),
    (_ZONED_TIME, "TIMESTAMP WITH TIME ZONE"),
    (r"^([01]\d|2[0-3]):\d{2}(:\d{2}(\.\d+)?)?$", "TIME"),
    (r"^(-?\d+ days?( -?\d+:\d{2}:\d{2}(\.\d+)?)?|-?\d{2,}:\d{2}:\d{2}(\.\d+)?)$", "INTERVAL"),
)
_NUMBERS = ("BIGINT", "HUGEINT", "DOUBLE")
_TYPE_NAMES = {"TIME": "time of day", "INTERVAL": "duration"}
_NUMBER_CHARACTERS = rf"\d.,'{text_formats.APOSTROPHE}{text_formats.SPACE_CLASS}+{text_formats.MINUS}-"  # without units
_NUMERIC = rf"^[{_NUMBER_CHARACTERS}]*[^\d.,]{{0,3}}[{_NUMBER_CHARACTERS}]*\d[{_NUMBER_CHARACTERS}]*[^\d.,]{{0,5}}$"
_THOUSANDS_SEPARATORS = {".": ("", ",", " ", "'"), ",": ("", ".", " ", "'")}  # by the decimal separator
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
    kind: str  # SQL type
    is_whole: bool = False  # whether all are whole numbers, written plainly

    @property
    def is_plain(self) -> bool:
        return all(text_format == PLAIN_FORMAT for text_format in self.formats.values())

    @property
    def only_format(self) -> str | None:
        """The only possible format, which may decide that of other columns."""
        return next(iter(self.formats)) if len(self.formats) == 1 and not self.is_whole else None


def is_string(table: Any, name: str) -> bool:
    return str(table.schema.field(name).type) in ("string", "large_string")


def all_match(column: Any, pattern: str) -> bool:
    """Whether all values match; the first few mostly show that not all do."""
    few = column.slice(0, 16)
    return all(bool(pc.all(pc.match_substring_regex(part, pattern)).as_py()) for part in (few, column))


def has_match(values: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


def plain_type(values: Any) -> str | None:
    """The SQL type of numbers, dates, times or durations in the plain format; None if they are not."""
    return next((kind for pattern, kind in TYPE_PATTERNS if all_match(values, pattern)), None)


def time_type(values: Any) -> str | None:
    """The SQL type of text that holds dates, times or durations in the plain format; None if it does not."""
    kind = plain_type(values) if len(values) else None
    return None if kind in _NUMBERS else kind


def format_options(con: Any, column: Any, kind: str | None = None) -> FormatOptions | None:
    """How a text column may be read as numbers or dates; None if it cannot.

    Missing-value markers are ignored. ``kind`` is the type of a plain column without markers, where known.
    """
    values, missing = without_missing(column) if kind is None else (column.drop_null(), ())
    if len(values) == 0:
        return None
    plain = TextFormat(missing=missing)
    kind = kind or plain_type(values)
    if kind not in (None, "DOUBLE"):
        key = "." if kind == "BIGINT" else _YEAR
        return FormatOptions({key: plain}, str(kind), is_whole=key == ".")
    if formats := _number_formats(values, plain, kind is not None):
        return FormatOptions(formats, "DOUBLE", not has_match(values, r"[.,eE]"))
    return _date_options(con, values, plain)


def without_missing(column: Any) -> tuple[Any, tuple[str, ...]]:
    """The values that are not missing-value markers, and the markers if there are any."""
    present = column.drop_null()
    present = present.combine_chunks() if isinstance(present, pa.ChunkedArray) else present
    is_marker = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(present)), pa.array(MISSING_MARKERS))
    values = present.filter(pc.invert(is_marker))
    return values, MISSING_MARKERS if len(values) < len(present) else ()


def type_with_format(con: Any, column: Any, text_format: TextFormat) -> str | None:
    """The SQL type of a column in this format; None if it is in another."""
    values, _ = without_missing(column)
    if text_format.date:
        return _date_type(text_format.date) if _can_parse_all(con, values, text_format.date) else None
    if text_format.is_plain:
        kind = plain_type(values)
        return "DOUBLE" if kind == "BIGINT" else kind
    return "DOUBLE" if all_match(values, f"^(?:{text_format.pattern})$") else None


def _number_formats(values: Any, plain: TextFormat, is_plain: bool) -> dict[str, TextFormat]:
    """With a decimal point and with a decimal comma, the simplest format that fits all values."""
    if not is_plain and not all_match(values, _NUMERIC):
        return {}
    units = set() if is_plain else set(_units(values))
    unit = next(iter(units - {""}), "")
    if unit and units != {"%"} and not (len(units - {""}) == 1 and is_currency(unit)):
        return {}
    out = {".": plain} if is_plain else {}
    has_blanks = has_match(values, f"[{text_formats.NUMBER_BLANKS[-2:]}]")  # no cast reads these
    for decimal, separators in _THOUSANDS_SEPARATORS.items():
        if decimal not in out:
            parts = separators[1:] if has_blanks else separators
            formats = (replace(plain, decimal=decimal, thousands=part, unit=unit) for part in parts)
            fitting = next((each for each in formats if all_match(values, f"^(?:{each.pattern})$")), None)
            out |= {decimal: fitting} if fitting else {}
    if len(out) > 1 and not has_match(values, "[.,]"):  # both are the same
        del out[","]
    return out


def number_patterns(values: Any) -> list[str]:
    """Patterns of the number formats that some values may have, by the units that are found among them."""
    units = _units(values.filter(pc.match_substring_regex(values, _NUMERIC)))
    formats = [
        TextFormat(decimal=decimal, thousands=part, unit=unit)
        for unit in ("", *(unit for unit in units if unit == "%" or (unit and is_currency(unit))))
        for decimal, separators in _THOUSANDS_SEPARATORS.items()
        for part in separators
    ]
    return [_NUMBER, *(f"^(?:{text_format.pattern})$" for text_format in formats)]


def _units(values: Any) -> list[str]:
    """The distinct texts that are left of values without the characters of numbers."""
    return pc.replace_substring_regex(values, f"[{_NUMBER_CHARACTERS}]", "").unique().to_pylist()


def _date_options(con: Any, values: Any, plain: TextFormat) -> FormatOptions | None:
    for day, forms in _DATES:
        if not has_match(values.slice(0, 1), rf"^\s*{day}"):
            continue
        for time, suffix in _TIMES:
            if all_match(values, rf"^\s*{day}{time}\s*$"):
                dates = {first: form + suffix for first, form in forms.items()}
                formats = {f: replace(plain, date=d) for f, d in dates.items() if _can_parse_all(con, values, d)}
                return FormatOptions(formats, _date_type(suffix)) if formats else None
    return None


def date_examples(column: Any) -> list[str]:
    """One value of each format, where a text column holds dates in more than one; otherwise none."""
    few = column.slice(0, _N_FIRST_VALUES).drop_null().to_pylist()
    if 2 * sum(any(map(str.isdigit, text)) for text in few) <= len(few):
        return []
    values, _ = without_missing(column.unique())
    rest, examples = values, list[str]()
    for day, forms in _DATES:
        is_date = pc.match_substring_regex(rest, rf"^\s*{day}([ T]\d{{1,2}}:\d{{2}}.*)?\s*$")
        dates, rest = rest.filter(is_date), rest.filter(pc.invert(is_date))
        late = [dates.filter(pc.match_substring_regex(dates, pattern)) for pattern in _LATE] if len(forms) > 1 else []
        if late and all(map(len, late)):  # a day after the 12th comes first in one value, and second in another
            examples += [each[0].as_py() for each in late]
        elif len(dates):
            examples.append(dates[0].as_py())
    return examples if len(examples) > 1 and len(values) - len(rest) >= _MIN_DATES * len(values) else []


def _date_type(form: str) -> str:
    return "TIMESTAMP" if ":" in form else "DATE"


def _can_parse_all(con: Any, values: Any, date: str) -> bool:
    """Whether all values are dates in a format; dates of rows in memory are read by Python."""
    if con is None:
        try:
            return all(datetime.strptime(text.strip(), date) for text in values.unique().to_pylist())
        except ValueError:
            return False
    from candide.engines.sql.dialect import quote_text  # here, because rows in memory need no SQL

    con.register("head_values", pa.table({"x": values}))
    try:
        query = f"SELECT count(try_strptime(trim(x), {quote_text(date)})) FROM head_values"
        return con.sql(query).fetchall()[0][0] == len(values)
    finally:
        con.unregister("head_values")


ChosenFormats = dict[str, tuple[FormatOptions, str]]


def choose_formats(column_options: Mapping[str, FormatOptions], reading: ReadOptions) -> ChosenFormats:
    """The format of each column: the only one, the one declared, that of other columns, or the usual one."""
    certain = {options.only_format for options in column_options.values()}
    decimal = reading.decimal or ("," if "," in certain and "." not in certain else ".")
    first = {True: _DAY, False: _MONTH, None: None}[reading.day_first]
    if first is None and len(certain & {_DAY, _MONTH}) == 1:
        first = _DAY if _DAY in certain else _MONTH
    elif first is None and decimal == ",":
        first = _DAY
    out = {}
    for name, options in column_options.items():
        out[name] = options, next(key for key in (decimal, first, *options.formats) if key in options.formats)
    return out


def format_notes(
    columns: Mapping[str, Any], chosen_formats: ChosenFormats, *, fitted: bool = False, known: Collection[str] = ()
) -> list[Note]:
    """Notes on columns in a format that is not plain or is ambiguous: one for all columns of the same format.

    ``fitted``: a model has these columns; those in ``known`` had another format there.
    """
    groups: dict[tuple[str, TextFormat, str, bool, bool], list[str]] = {}
    for name, (options, key) in chosen_formats.items():
        text_format, is_ambiguous, is_new = options.formats[key], len(options.formats) > 1, name in known
        if is_new or not text_format.is_plain or (is_ambiguous and not fitted):
            group = key, replace(text_format, missing=()), options.kind, is_ambiguous, is_new
            groups.setdefault(group, []).append(name)
    notes = []
    for (key, text_format, kind, is_ambiguous, is_new), names in groups.items():
        text, remedy = _describe_reading(columns[names[0]], key, text_format, kind)
        text = f"{formatting.format_columns(names)}: {text}"
        text += "; the rows of the model were written otherwise" if is_new else ""
        if is_ambiguous:
            notes.append(Note("read-as-open", f"{text}, but this is ambiguous", names[0], f"pass {remedy}"))
        else:
            keep = "" if fitted else f"pass --event {names[0]}=categorical (events={{...}}) to keep it as text"
            notes.append(Note("read-as", text, names[0], keep))
    return notes


def _describe_reading(column: Any, key: str, text_format: TextFormat, kind: str) -> tuple[str, str]:
    """How a value of a column is read, and the option that has it read in the other way."""
    values = without_missing(column)[0]
    odd = values.filter(pc.match_substring_regex(values, r"[^\d+-]"))
    text, why, option = (odd if len(odd) else values)[0].as_py(), "", ""
    if text_format.date:
        date = datetime.strptime(text.strip(), text_format.date).isoformat(" ").removesuffix(" 00:00:00")
        read, why = f"the date {date}", f" (the {key} comes first)" if key != _YEAR else ""
        option = "--day-first (day_first=True)" if key == _MONTH else "--no-day-first (day_first=False)"
        option = f"{option} if the {_DAY if key == _MONTH else _MONTH} comes first"
    elif kind not in _NUMBERS:  # in the plain format, which is not ambiguous
        read = f"a {_TYPE_NAMES.get(kind, 'date')}"
    else:
        read = f"the number {parse_number(text, text_format):.15g}"
        if text_format.decimal == ",":
            why = " (decimal commas)" if "," in text else " (as other columns have decimal commas)"
        option = "--decimal , (decimal=',')" if key == "." else "--decimal . (decimal='.')"
        option = f"{option} if the decimal separator is a {'comma' if key == '.' else 'point'}"
    return f"{text!r} is read as {read}{why}", option
