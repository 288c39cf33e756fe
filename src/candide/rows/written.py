"""Text in memory as a model knows it: the numbers and dates of columns that it counts as such.

>>> table = Table.of({"day": ["1970-01-02", "03.01.1970"], "price": ["1,5", "2,5"], "job": ["cook", "smith"]})
>>> read = as_spelled(table, {"day": Spelling(date="%d.%m.%Y"), "price": Spelling(decimal=",")}, {"day"})
>>> read.numbers(("day", "price")).tolist()
[[1.0, 1.5], [2.0, 2.5]]
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.rows.labels import is_arrow
from candide.rows.spelling import PLAIN, Spelling, numbers_among, value
from candide.rows.table import Name, Table


def as_spelled(table: Table, spelled: Mapping[str, Spelling], dates: Collection[str]) -> Table:
    """The same rows, with the text of some columns read as numbers, and of dates as days since 1970."""
    if not isinstance(table.source, dict):
        return table
    wanted = [name for name in {*spelled, *dates} if name in table.source and _is_text(table.head(name, 1))]
    read = {name: _read(table.column(name), spelled.get(name, PLAIN), name in dates) for name in wanted}
    return Table(table.names, table.n_rows, {**table.source, **read}) if read else table


def without(table: Table, names: Iterable[Name], na: tuple[str, ...]) -> Table:
    """The same rows, with what means a missing value missing: numbers by what they are, text by how it is written.

    >>> without(Table.of({"x": [-999, 5]}), ["x"], ("-999.0",)).numbers(("x",)).tolist()
    [[nan], [5.0]]
    """
    if not na or not isinstance(table.source, dict):
        return table
    numbers, out = numbers_among(na), dict(table.source)
    for name in (name for name in names if name in out):
        column = table.column(name)
        if not is_arrow(column) and column.dtype.kind in "fiu":
            absent = np.isin(column, numbers)
            out[name] = np.where(absent, np.nan, column) if absent.any() else column
        elif _is_text(column):
            values = column.to_pylist() if is_arrow(column) else column.tolist()
            out[name] = np.array([None if isinstance(v, str) and v in na else v for v in values], object)
    return Table(table.names, table.n_rows, out)


def _is_text(column: Any) -> bool:
    """Whether an ndarray or Arrow array may hold text."""
    return "string" in str(column.type) if is_arrow(column) else column.dtype.kind in "OU"


def _read(column: Any, how: Spelling, is_date: bool) -> NDArray:
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    met = {text: value(text, how, is_date) for text in values if isinstance(text, str)}
    return np.array([met[each] if isinstance(each, str) else each for each in values], object)
