"""Looks: what a first glance at a source's head tells before it is read whole.

A CSV has no types, so they are read from its first values: whole numbers, numbers, true/false; the rest is text.

>>> [csv_type(pa.array(v)) for v in (["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"])]
['BIGINT', 'DOUBLE', 'BOOLEAN', 'VARCHAR', 'VARCHAR']
>>> csv_type(pa.array(["01", "02"]), is_label=True)  # a label is text unless it is plainly a number
'VARCHAR'
>>> number_type(pa.array(["1,5", "2"]), comma=True), number_type(pa.array(["2020-02-29"]), comma=False)[0]
(('DOUBLE', NumberFormat(comma=True, missing=())), 'DATE')
"""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide import wording
from candide.engines.duckdb.csv_form import PLAIN, NumberFormat
from candide.errors import InputError

_WHOLE = r"^\s*[+-]?\d{1,18}\s*$"
_PLAIN = r"^(0|-?[1-9]\d{0,17})$"
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|^\s*(?i:nan|[+-]?inf(inity)?)\s*$"
_COMMA = r"^\s*[+-]?\d+(,\d+)?\s*$"
_FRACTION = r",(\d{1,2}|\d{4,})\s*$"  # three digits may be thousands
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"
_TRUTH = r"^(?i:true|false)$"
_KINDS = ((_WHOLE, "BIGINT"), (_NUMBER, "DOUBLE"), (_DATE, "DATE"), (_TIME, "TIMESTAMP"), (_TRUTH, "BOOLEAN"))
_FEW = 1000  # classes
_NAS = ("na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", ".", "#n/a", "#na")


def csv_type(column: Any, *, is_label: bool = False, is_category: bool = False) -> str:
    """The SQL type of a column of text. Categories, and what is all 0 and 1, are counted as text and read after."""
    present = column.drop_null()
    if len(present) == 0 or (not is_label and (is_category or _all(present, "^[01]$"))):
        return "VARCHAR"
    if is_label:
        return "BIGINT" if _all(present, _PLAIN) else "VARCHAR"
    return next((kind for pattern, kind in _KINDS if _all(present, pattern)), "VARCHAR")


def number_type(column: Any, *, comma: bool) -> tuple[str, NumberFormat]:
    """The SQL type of a column of text that should hold numbers or dates, and how they are written there.

    A word for "missing" is none among numbers; ``comma`` says that one may stand before decimals.
    """
    present = column.drop_null()
    is_word = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(present)), pa.array(_NAS))
    numbers = present.filter(pc.invert(is_word))
    missing = _NAS if len(numbers) < len(present) else ()
    if len(numbers) == 0:
        return "VARCHAR", PLAIN
    kind = next((kind for pattern, kind in _KINDS[:-1] if _all(numbers, pattern)), "VARCHAR")
    if kind != "VARCHAR":
        return kind, NumberFormat(missing=missing)
    if comma and _all(numbers, _COMMA) and pc.any(pc.match_substring_regex(numbers, _FRACTION)).as_py():
        return "DOUBLE", NumberFormat(True, missing)
    return "VARCHAR", PLAIN


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


def check_target(name: str, column: Any) -> None:
    """Refuse a target that cannot be a class."""
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


def spelled_numbers(name: str, column: Any) -> list[str]:
    """A word where a column became text though most of its values are numbers."""
    if not pa.types.is_string(column.type):
        return []
    values = column.drop_null().unique()
    odd = values.filter(pc.invert(pc.match_substring_regex(values, _NUMBER))).to_pylist()
    if not 0 < len(odd) < len(values) / 2:
        return []
    return [
        f"column {name!r} is read as text because of {wording.listing(odd, 3)}; to read it as numbers, mend these "
        f"or pass --na {odd[0]!r} (na=[...])"
    ]


def number_format_remarks(formats: Mapping[str, NumberFormat], head: Any) -> list[str]:
    """A word on columns whose numbers are not written plainly."""
    notes = [f"column {name!r} has decimal commas" for name, how in formats.items() if how.comma]
    for name, how in formats.items():
        if how.missing:
            words = head.column(name).drop_null().unique().to_pylist()
            met = [word for word in words if word.strip().lower() in how.missing]
            notes.append(f"column {name!r}: {', '.join(map(repr, sorted(met)))} taken as missing")
    return notes
