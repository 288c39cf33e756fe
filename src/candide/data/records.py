"""Rows as a list of dictionaries, and the checks that every named column passes.

>>> columns_from_records([{"age": 30, "job": "cook"}, {"age": 41}])
{'age': [30, 41], 'job': ['cook', None]}
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from candide.errors import InputTypeError

_FLATTEN = "give each column one name: frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
_REAL = "pass real numbers, such as the real and imaginary parts or the modulus"


def is_record_list(data: Any) -> bool:
    """Whether these are rows as a list or tuple of dictionaries."""
    return isinstance(data, list | tuple) and any(isinstance(row, Mapping) for row in data[:1])


def columns_from_records(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """The columns of rows that are dictionaries, in the order in which they first occur; None where a row lacks one."""
    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            what = f"expected a dictionary of values by column, as row 0 is, got {type(row).__name__}"
            raise InputTypeError(what, row=i, value=row, remedy="pass every row as a dictionary, or a data frame")
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def check_column(name: Any, kind: Any) -> None:
    """Refuse a name of several parts, and the type of complex numbers."""
    if isinstance(name, tuple):
        what = f"expected one name for a column, got the {len(name)} levels {name!r}"
        raise InputTypeError(what, value=name, remedy=_FLATTEN)
    if isinstance(kind, np.dtype) and kind.kind == "c":
        raise InputTypeError("holds complex numbers, which cannot be modelled", column=name, remedy=_REAL)


def check_values(name: Any, values: Sequence[Any]) -> None:
    """Refuse complex numbers among objects."""
    for row, value in enumerate(values):
        if isinstance(value, complex | np.complexfloating):
            what = f"{value!r} is a complex number, which cannot be modelled"
            raise InputTypeError(what, column=name, row=row, value=value, remedy=_REAL)
