"""Read columns of text as the numbers, dates and times that a model counts.

A date counts as days since 1970, a time of day or a duration as days. So a plain number, a boolean or a value of the
other kind would be taken for a day; here it is an error with the column, the row and the value.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import is_absent, is_arrow, is_string
from candide.data.table import DAY, EncodedColumn, Name, Table, to_numbers
from candide.data.text_formats import (
    COMPACT,
    PLAIN_FORMAT,
    TextFormat,
    is_missing_text,
    parse_plain_numbers,
    parse_temporal,
    parse_text_value,
    to_plain_value,
    to_timestamp,
)
from candide.errors import InputError

_NUMPY = {"date": "M", "time": "m"}
KIND_NAMES = {"date": "date", "time": "time of day or duration"}
_EXAMPLE = dt.datetime(2024, 12, 31)


def parse_text_columns(
    table: Table, text_formats: Mapping[str, TextFormat], dates: Collection[Name], times: Collection[Name] = ()
) -> Table:
    """The same rows, with text read as numbers, and columns of dates and of times in these types.

    A value that is not a date in a column of ``dates``, or not a time of day or a duration in one of ``times``, is an
    error.
    """
    kinds = {**dict.fromkeys(dates, "date"), **dict.fromkeys(times, "time")}
    is_plain = table.is_sparse or (isinstance(table.source, np.ndarray) and table.source.dtype.kind not in "OU")
    if is_plain and not any(name in kinds for name in table.names):
        return table
    parsed: dict[Name, NDArray] = {}
    for name in table.names:
        how = text_formats.get(str(name), PLAIN_FORMAT)
        if name in kinds:
            values = _read_temporal(table.column(name), how, kinds[name], name)
            parsed |= {} if values is None else {name: values}
        elif str(name) in text_formats and is_text(table.column(name)):  # not the first value: it may be missing
            parsed[name] = _parse_column(table.column(name), how, "number")
            if not how.is_plain:
                what = f"a number in the format of the rows fitted, such as {how.example!r}"
                remedy = "write it in that format, pass a number, or null (None) where it is missing"
                _refuse_text(parsed[name], name, what, remedy)
    return _replace_columns(table, parsed)


def to_typed_table(
    table: Table, text_formats: Mapping[str, TextFormat], dates: Collection[Name], times: Collection[Name] = ()
) -> Table:
    """The same rows with columns of numbers, dates and times in the place of text; another value is an error."""
    out = {}
    for name in (name for name in table.names if str(name) in text_formats):
        how, kind = text_formats[str(name)], "date" if name in dates else "time" if name in times else "number"
        values = _parse_column(table.column(name), how, kind)
        if not how.is_plain or kind != "number":
            remedy = f"fix it, or keep the column as text with events={{{name!r}: 'categorical'}}"
            _refuse_text(values, name, f"a {kind} in the format of the other rows", remedy)
        days = to_numbers(values, name)
        out[name] = days if kind == "number" else np.round(days * DAY).astype(f"{_NUMPY[kind]}8[us]")
    return _replace_columns(table, out)


def _refuse_text(values: NDArray, name: Name, expected: str, remedy: str) -> None:
    """Refuse text that could not be parsed: it may be in another unit."""
    for row, value in enumerate(values.tolist()):
        if isinstance(value, str):
            raise InputError(f"{value!r} is not {expected}", column=name, row=row, value=value, remedy=remedy)


def _replace_columns(table: Table, columns: Mapping[Name, NDArray]) -> Table:
    if not columns:
        return table
    source = table.source
    others = source if isinstance(source, dict) else {name: source[:, j] for j, name in enumerate(table.names)}
    return Table(table.names, table.n_rows, {**others, **columns})


def replace_missing_markers(table: Table, names: Iterable[Name], markers: tuple[str, ...]) -> Table:
    """The same rows, with markers of missing values removed: numbers by value, text letter by letter."""
    if not markers or not isinstance(table.source, dict):
        return table
    numbers, out = parse_plain_numbers(markers), dict(table.source)
    for name in (name for name in names if name in out):
        column = table.column(name)
        if not is_arrow(column) and column.dtype.kind in "fiu":
            absent = np.isin(column, numbers)
            out[name] = np.where(absent, np.nan, column) if absent.any() else column
        elif is_text(column):
            values = [None if isinstance(v, str) and v in markers else v for v in _to_list(column)]
            out[name] = np.array(values, object)
    return Table(table.names, table.n_rows, out)


def is_text(column: Any) -> bool:
    """Whether an ndarray or Arrow array may hold text."""
    return is_string(column.type) if is_arrow(column) else column.dtype.kind in "OU"


def has_declared_levels(column: Any) -> bool:
    """Whether the values of a column are declared to be categories."""
    kind = str(getattr(column, "type", None) or getattr(column, "dtype", "")).lower()
    return kind.startswith(("dictionary", "categorical", "category", "enum"))


def _parse_column(column: Any, how: TextFormat, kind: str) -> NDArray:
    values = _to_list(column)
    parsed = {text: parse_text_value(text, how, kind) for text in values if isinstance(text, str)}
    return np.array([parsed[value] if isinstance(value, str) else value for value in values], object)


def _to_list(column: Any) -> list[Any]:
    if not is_arrow(column) and column.dtype.kind in "mM":  # those of nanoseconds would come out as numbers
        column = column.astype(f"{column.dtype.kind}8[us]")
    return column.to_pylist() if is_arrow(column) else column.tolist()


def _read_temporal(column: Any, how: TextFormat, kind: str, name: Name) -> NDArray | None:
    """A column of the ``kind`` "date" or "time" in a type of numpy; None where it already is one."""
    if isinstance(column, EncodedColumn):
        return None
    if is_arrow(column):
        if str(column.type) == "null" or temporal_kind_of(str(column.type)) == kind:
            return None
    elif column.dtype.kind == _NUMPY[kind]:
        return None
    elif column.dtype.kind in "fiub":
        present = np.flatnonzero(column == column)
        if not len(present):
            return None  # all are missing
        if kind != "date" or how.date != COMPACT or column.dtype.kind == "b":
            raise temporal_error(column[present[0]].item(), kind, how, name, int(present[0]))
    parsed: dict[str, Any] = {}
    values = [_read_value(value, how, kind, name, row, parsed) for row, value in enumerate(_to_list(column))]
    return np.array(values, f"{_NUMPY[kind]}8[us]")


def _read_value(value: Any, how: TextFormat, kind: str, name: Name, row: int, parsed: dict[str, Any]) -> Any:
    if isinstance(value, str):
        if value not in parsed:
            is_missing = is_missing_text(value, how)
            parsed[value] = None if is_missing else parse_temporal(value.strip(), how, kind)
            if parsed[value] is None and not is_missing:
                raise temporal_error(value, kind, how, name, row)
        return parsed[value]
    if is_absent(value):
        return None
    plain = to_timestamp(to_plain_value(value))
    if isinstance(plain, dt.datetime if kind == "date" else dt.timedelta):
        return plain
    if kind == "date" and how.date == COMPACT and not isinstance(plain, bool) and isinstance(plain, int | float):
        date = parse_temporal(str(int(plain)), how) if plain == plain // 1 and abs(plain) < 1e9 else None
        if date is not None:
            return date
    raise temporal_error(value, kind, how, name, row)


def days_to_temporal(days: NDArray, kind: str) -> NDArray:
    """Days since 1970 as dates, or days as durations; missing where they are NaN. Other types stay as they are."""
    if days.dtype.kind != "f":
        return days
    out, present = np.full(len(days), "NaT", f"{_NUMPY[kind]}8[us]"), np.isfinite(days)
    out[present] = np.rint(days[present] * DAY).astype(np.int64).astype(out.dtype)
    return out


def temporal_kind_of(type_name: str) -> str:
    """ "date" or "time" (of day, or a duration) for the name of a type in any engine; "" for other types."""
    name = type_name.lower().removeprefix("dictionary<values=")
    if name.startswith(("date", "timestamp")):
        return "date"
    return "time" if name.startswith(("time", "duration", "month", "interval")) else ""


def temporal_error(value: Any, kind: str, how: TextFormat, name: Name, row: int | None) -> InputError:
    """The error for a value that is not a date, or not a time, in a column of these."""
    text = repr(value) if isinstance(value, str | bool | int | float) else str(to_plain_value(value))
    text = text if len(text) <= 60 else f"{text[:57]}..."
    what = f"{text} is not a {KIND_NAMES[kind]}"
    return InputError(what, column=name, row=row, value=value, remedy=temporal_remedy(kind, how))


def temporal_remedy(kind: str, how: TextFormat = PLAIN_FORMAT) -> str:
    if kind == "time":
        return "write times as 13:05:30, and durations as 1 day 02:00:00"
    fitted = f", or as in the rows fitted, {_EXAMPLE.strftime(how.date)}" if how.date else ""
    return f"write dates as 2024-12-31{fitted}"
