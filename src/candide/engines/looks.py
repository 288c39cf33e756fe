"""Looks: what a first glance at a source's head tells before it is read whole.

A CSV has no types, so they are read from its first values: whole numbers, numbers, true/false; the rest is text.

>>> [csv_type(pa.array(v)) for v in (["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"])]
['BIGINT', 'DOUBLE', 'BOOLEAN', 'VARCHAR', 'VARCHAR']
>>> csv_type(pa.array(["01", "02"]), is_label=True)  # a label is text unless it is plainly a number
'VARCHAR'
"""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide.errors import InputError

_WHOLE = r"^\s*[+-]?\d{1,18}\s*$"
_PLAIN = r"^(0|-?[1-9]\d{0,17})$"
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|^\s*(?i:nan|[+-]?inf(inity)?)\s*$"
_TRUTH = r"^(?i:true|false)$"
_FEW = 1000  # classes
_NAS = re.compile(r"^(na|n/a|nan|null|none|nil|missing|unknown|\?|-|\.|#n/a)$", re.IGNORECASE)


def csv_type(column: Any, *, is_label: bool = False, is_category: bool = False) -> str:
    """The SQL type of a column of text. Categories, and what is all 0 and 1, are counted as text and read after."""
    present = column.drop_null()
    if len(present) == 0 or (not is_label and (is_category or _all(present, "^[01]$"))):
        return "VARCHAR"
    if is_label:
        return "BIGINT" if _all(present, _PLAIN) else "VARCHAR"
    for pattern, kind in ((_WHOLE, "BIGINT"), (_NUMBER, "DOUBLE"), (_TRUTH, "BOOLEAN")):
        if _all(present, pattern):
            return kind
    return "VARCHAR"


def _all(column: Any, pattern: str) -> bool:
    """Whether all values match; a few tell most of the time that not all do."""
    few = column.slice(0, 16)
    return all(bool(pc.all(pc.match_substring_regex(part, pattern)).as_py()) for part in (few, column))


def read_levels(levels: list[Any]) -> dict[Any, Any]:
    """What levels counted as text stand for: whole numbers where all of them are plainly that.

    >>> read_levels(["10", "9"]), read_levels(["01", "2"])
    ({'10': 10, '9': 9}, {'01': '01', '2': '2'})
    """
    plain = all(isinstance(v, str) and re.match(_PLAIN, v) for v in levels)
    return {v: int(v) if plain else v for v in levels}


def describe_target(name: str, column: Any) -> list[str]:
    """Refuse a target that cannot be a class; a word where it is strange."""
    present = column.drop_null()
    if pa.types.is_nested(column.type):
        raise InputError(f"column {name!r} holds lists or structures; a class is one value")
    distinct = len(present.unique())
    quantity = pa.types.is_floating(column.type) or (pa.types.is_string(column.type) and _all(present, _NUMBER))
    if distinct > _FEW or (quantity and distinct > 20):
        raise InputError(
            f"column {name!r} has {distinct:,} different values in the first {len(column):,} rows: "
            "an identifier or a quantity, not a class; name another target, or bin it"
        )
    return []


def spelled_numbers(name: str, column: Any) -> list[str]:
    """A word where a column of numbers became text because of one spelling of "missing"."""
    if not pa.types.is_string(column.type):
        return []
    values = column.drop_null().unique()
    odd = values.filter(pc.invert(pc.match_substring_regex(values, _NUMBER))).to_pylist()
    if 0 < len(odd) <= 3 and len(odd) < len(values) / 4 and all(_NAS.match(v) for v in odd):
        return [
            f"column {name!r} is read as categories because of {odd[0]!r}; pass --na {odd[0]!r} to read it as numbers"
        ]
    return []
