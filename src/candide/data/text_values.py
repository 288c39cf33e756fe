"""Text in memory as a model knows it: the numbers and dates of columns that it counts as such.

>>> table = Table.from_data({"day": ["1970-01-02", "03.01.1970"], "price": ["1,5", "2,5"], "job": ["cook", "smith"]})
>>> read = parse_text_columns(table, {"day": TextFormat(date="%d.%m.%Y"), "price": TextFormat(decimal=",")}, {"day"})
>>> read.numbers(("day", "price")).tolist()
[[1.0, 1.5], [2.0, 2.5]]
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import is_arrow
from candide.data.table import Name, Table, to_numbers
from candide.data.temporal import read_temporal
from candide.data.text_formats import PLAIN_FORMAT, TextFormat, parse_plain_numbers, parse_text_value
from candide.errors import InputError

_DAY = 86_400e6  # microseconds
_UNITS = {"date": "M8[us]", "time": "m8[us]"}


def parse_text_columns(
    table: Table, text_formats: Mapping[str, TextFormat], dates: Collection[Name], times: Collection[Name] = ()
) -> Table:
    """The same rows, with text of some columns read as numbers, and columns of dates and of times in these types.

    Whatever is not a date in a column of ``dates``, or not a time of day or a duration in one of ``times``, is an
    error: a number there would be taken for days since 1970.
    """
    kinds = {**dict.fromkeys(dates, "date"), **dict.fromkeys(times, "time")}
    is_plain = table.is_sparse or (isinstance(table.source, np.ndarray) and table.source.dtype.kind not in "OU")
    if is_plain and not any(name in kinds for name in table.names):
        return table
    read: dict[Name, NDArray] = {}
    for name in table.names:
        how = text_formats.get(str(name), PLAIN_FORMAT)
        if name in kinds:
            found = read_temporal(table.column(name), how, kinds[name], name)
            read |= {} if found is None else {name: found}
        elif str(name) in text_formats and is_text(table.column(name)):  # not the first value: it may be missing
            read[name] = _parse_column(table.column(name), how, "number")
            if not how.is_plain:
                _refuse_other_formats(read[name], name, how)
    return _replace_columns(table, read)


def _refuse_other_formats(values: NDArray, name: Name, how: TextFormat) -> None:
    """Refuse text that is not in the format of the rows fitted: it may be in another unit."""
    row = next((row for row, value in enumerate(values.tolist()) if isinstance(value, str)), None)
    if row is not None:
        found = f"{values[row]!r} is not a number in the format of the rows fitted, such as {how.example!r}"
        remedy = "write it in that format, pass a number, or null (None) where it is missing"
        raise InputError(found, column=name, row=row, value=values[row], remedy=remedy)


def to_typed_table(
    table: Table, text_formats: Mapping[str, TextFormat], dates: Collection[Name], times: Collection[Name] = ()
) -> Table:
    """The same rows with columns of numbers, dates and times in the place of text; another value is an error.

    >>> to_typed_table(Table.from_data({"day": ["02.01.1970"]}), {"day": TextFormat(date="%d.%m.%Y")}, {"day"}).column(
    ...     "day"
    ... )
    array(['1970-01-02T00:00:00.000000'], dtype='datetime64[us]')
    >>> to_typed_table(Table.from_data({"at": ["00:00:02"]}), {"at": PLAIN_FORMAT}, (), {"at"}).column("at")
    array([2000000], dtype='timedelta64[us]')
    """
    out = {}
    for name in (name for name in table.names if str(name) in text_formats):
        how, kind = text_formats[str(name)], "date" if name in dates else "time" if name in times else "number"
        values = _parse_column(table.column(name), how, kind)
        if not how.is_plain or kind != "number":
            _refuse_text(values, name, kind)
        days = to_numbers(values, name)
        out[name] = days if kind == "number" else np.round(days * _DAY).astype(_UNITS[kind])
    return _replace_columns(table, out)


def _refuse_text(values: NDArray, name: Name, what: str) -> None:
    """Refuse what is not written as the other values of its column are."""
    row = next((row for row, value in enumerate(values.tolist()) if isinstance(value, str)), None)
    if row is not None:
        remedy = f"mend it, or keep the column as text with events={{{name!r}: 'categorical'}}"
        found = f"{values[row]!r} is not a {what} in the format of the other rows"
        raise InputError(found, column=name, row=row, value=values[row], remedy=remedy)


def _replace_columns(table: Table, columns: Mapping[Name, NDArray]) -> Table:
    """The same rows with other values in some columns."""
    if not columns:
        return table
    own = table.source
    held = own if isinstance(own, dict) else {name: own[:, j] for j, name in enumerate(table.names)}
    return Table(table.names, table.n_rows, {**held, **columns})


def replace_missing_markers(table: Table, names: Iterable[Name], markers: tuple[str, ...]) -> Table:
    """The same rows, with what means a missing value missing: numbers by what they are, text by how it is written.

    >>> replace_missing_markers(Table.from_data({"x": [-999, 5]}), ["x"], ("-999.0",)).numbers(("x",)).tolist()
    [[nan], [5.0]]
    """
    if not markers or not isinstance(table.source, dict):
        return table
    numbers, out = parse_plain_numbers(markers), dict(table.source)
    for name in (name for name in names if name in out):
        column = table.column(name)
        if not is_arrow(column) and column.dtype.kind in "fiu":
            absent = np.isin(column, numbers)
            out[name] = np.where(absent, np.nan, column) if absent.any() else column
        elif is_text(column):
            values = column.to_pylist() if is_arrow(column) else column.tolist()
            out[name] = np.array([None if isinstance(v, str) and v in markers else v for v in values], object)
    return Table(table.names, table.n_rows, out)


def is_text(column: Any) -> bool:
    """Whether an ndarray or Arrow array may hold text."""
    if not is_arrow(column):
        return column.dtype.kind in "OU"
    kind = str(column.type)
    return kind.startswith(("dictionary<values=string", "dictionary<values=large_string")) or kind in (
        "string",
        "large_string",
        "string_view",
    )


def has_declared_levels(column: Any) -> bool:
    """Whether somebody declared the values of a column to be categories."""
    kind = str(getattr(column, "type", None) or getattr(column, "dtype", "")).lower()
    return kind.startswith(("dictionary", "categorical", "category", "enum"))


def _parse_column(column: Any, how: TextFormat, kind: str) -> NDArray:
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    parsed = {text: parse_text_value(text, how, kind) for text in values if isinstance(text, str)}
    return np.array([parsed[value] if isinstance(value, str) else value for value in values], object)
