"""Looks: what a first glance at a source's head tells before it is read whole.

A CSV has no types, so they are read from its first values: whole numbers, numbers, true/false; the rest is text.

>>> [csv_type(pa.array(v)) for v in (["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"])]
['BIGINT', 'DOUBLE', 'BOOLEAN', 'VARCHAR', 'VARCHAR']
>>> csv_type(pa.array(["01", "02"]), is_label=True)  # a label is text unless it is plainly a number
'VARCHAR'
>>> number_type(pa.array(["1,5", "2"]), comma=True), number_type(pa.array(["2020-02-29"]), comma=False)[0]
(('DOUBLE', NumberFormat(comma=True, missing=())), 'DATE')
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide.engines.duckdb.csv_form import PLAIN, NumberFormat
from candide.rows.remarks import Remark

_WHOLE = r"^\s*[+-]?\d{1,18}\s*$"
_PLAIN = r"^(0|-?[1-9]\d{0,17})$"
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|^\s*(?i:nan|[+-]?inf(inity)?)\s*$"
_COMMA = r"^\s*[+-]?\d+(,\d+)?\s*$"
_FRACTION = r",(\d{1,2}|\d{4,})\s*$"  # three digits may be thousands
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$"
_TRUTH = r"^(?i:true|false)$"
_KINDS = ((_WHOLE, "BIGINT"), (_NUMBER, "DOUBLE"), (_DATE, "DATE"), (_TIME, "TIMESTAMP"), (_TRUTH, "BOOLEAN"))
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


def types_of(
    head: Any, target: str, as_text: Sequence[str], *, comma: bool
) -> tuple[dict[str, str], dict[str, NumberFormat]]:
    """The types of a CSV's columns, and how numbers are written where SQL alone would not read them."""
    types, formats = dict[str, str](), dict[str, NumberFormat]()
    for name, column in zip(head.column_names, head.columns, strict=True):
        types[name] = csv_type(column, is_label=name == target, is_category=name in as_text)
        if types[name] == "VARCHAR" and name != target and name not in as_text:
            kind, how = number_type(column, comma=comma)
            if how != PLAIN:
                types[name], formats[name] = kind, how
    return types, formats


def number_format_remarks(formats: Mapping[str, NumberFormat], head: Any) -> list[Remark]:
    """A word on columns whose numbers are not written plainly."""
    remarks = [
        Remark("decimal-comma", f"column {n!r} has decimal commas", n) for n, how in formats.items() if how.comma
    ]
    for name, how in formats.items():
        if how.missing:
            words = head.column(name).drop_null().unique().to_pylist()
            met = [word for word in words if word.strip().lower() in how.missing]
            text = f"column {name!r}: {', '.join(map(repr, sorted(met)))} taken as missing"
            remarks.append(Remark("taken-as-missing", text, name))
    return remarks
