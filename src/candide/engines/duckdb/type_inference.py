"""Looks: what a first glance at a source's head tells before it is read whole.

A CSV has no types, so they are read from its first values: whole numbers, numbers, dates, true/false; the rest is text.
How numbers and dates are spelled is found out in :mod:`candide.engines.duckdb.text_formats`.

>>> import pyarrow as pa
>>> [
...     infer_csv_type(pa.array(v))
...     for v in (["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"])
... ]
['BIGINT', 'DOUBLE', 'BOOLEAN', 'VARCHAR', 'VARCHAR']
>>> infer_csv_type(pa.array(["01", "02"]), is_label=True)  # a label is text unless it is plainly a number
'VARCHAR'
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.data.text_formats import TextFormat
from candide.engines.duckdb import text_formats
from candide.engines.duckdb.text_formats import TYPE_PATTERNS, FormatOptions, all_match
from candide.engines.reading import ReadOptions
from candide.engines.temporal import temporal_kind_of

_PLAIN_INTEGER = r"^(0|-?[1-9]\d{0,17})$"
_LEADING_ZEROS = r"^\s*[+-]?0\d"  # as codes begin, and numbers do not
_BOOLEAN = r"^(?i:true|false)$"
_NOTHING: Mapping[Any, str] = MappingProxyType({})
_NOT_TEXT = {"BIGINT", "HUGEINT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL"}


@dataclass
class InferredTypes:
    """The types of a CSV's columns, how numbers and dates are spelled where not plainly, and what to say of it."""

    types: dict[str, str] = field(default_factory=dict)
    text_formats: dict[str, TextFormat] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def infer_csv_type(column: Any, *, is_label: bool = False, is_category: bool = False) -> str:
    """The SQL type of a column of text. Categories, and what is all 0 and 1, are counted as text and read after."""
    present = column.drop_null()
    if len(present) == 0 or (not is_label and (is_category or all_match(present, "^[01]$"))):
        return "VARCHAR"
    if is_label:
        return "BIGINT" if all_match(present, _PLAIN_INTEGER) else "VARCHAR"
    kinds = (*TYPE_PATTERNS, (_BOOLEAN, "BOOLEAN"))
    return next((kind for pattern, kind in kinds if all_match(present, pattern)), "VARCHAR")


def infer_types(
    con: Any,
    head: Any,
    target: str | None,
    as_text: Collection[str],
    as_numbers: Collection[str],
    reading: ReadOptions,
    codes_in: Collection[str] = (),
    *,
    typed: bool = False,
) -> InferredTypes:
    """The types of all columns; what one column leaves open others may decide.

    ``codes_in`` are columns of text, in which whole numbers are codes. ``typed``: the source has types of its own, so
    that truths would not be text; these stay as they are.
    """
    read, found, codes = InferredTypes(), dict[str, FormatOptions](), []
    for name, column in zip(head.column_names, head.columns, strict=True):
        kind = infer_csv_type(column, is_label=name == target, is_category=name in as_text)
        read.types[name] = "VARCHAR" if typed and kind not in _NOT_TEXT else kind
        if kind == "HUGEINT" and name in codes_in and name not in as_numbers:
            read.types[name] = "VARCHAR"
        if name == target or name in as_text or kind not in ("VARCHAR", "BIGINT", "DOUBLE"):
            continue
        options = text_formats.format_options(con, column, None if kind == "VARCHAR" else kind)
        if typed and options and not _NOT_TEXT.issuperset(options.types.values()):
            options = None
        if kind == "VARCHAR" and name not in as_numbers and options and options.is_plain:  # all 0 and 1
            continue
        if options and options.is_whole and options.is_plain and name in codes_in and name not in as_numbers:
            read.types[name] = "VARCHAR"
        elif options and options.is_whole and name not in as_numbers and _has_leading_zeros(column):
            read.types[name] = "VARCHAR"
            codes.append(name)
        elif options:
            found[name] = options
        elif typed:
            read.types[name] = "VARCHAR"
    chosen = text_formats.choose_formats(found, reading)
    read.types |= {name: options.types[key] for name, (options, key) in chosen.items()}
    hows = {name: options.formats[key] for name, (options, key) in chosen.items()}
    read.text_formats = {name: how for name, how in hows.items() if how != TextFormat()}
    if codes:
        text = (
            f"{formatting.format_columns(codes)}: numbers that begin with 0 are taken for codes, which are categories"
        )
        remedy = f"pass --event {codes[0]}=gaussian (events={{...}}) if they are quantities"
        read.notes.append(Note("leading-zeros", text, codes[0], remedy))
    columns = dict(zip(head.column_names, head.columns, strict=True))
    read.notes += text_formats.format_notes(columns, chosen) + missing_marker_notes(columns, read.text_formats)
    return read


def infer_number_types(
    con: Any,
    head: Any,
    known_formats: Mapping[str, TextFormat],
    reading: ReadOptions,
    temporal: Mapping[Any, str] = _NOTHING,
) -> InferredTypes:
    """The types of columns that hold numbers or dates: spelled as is known, unless they are seen not to be.

    ``temporal`` columns are read as dates, or as times and durations, and as nothing else.
    """
    read, found = InferredTypes(), dict[str, FormatOptions]()
    for name, column in zip(head.column_names, head.columns, strict=True):
        kind = text_formats.type_with_format(con, column, known_formats[name]) if name in known_formats else None
        options = None if kind else text_formats.format_options(con, column)
        how = known_formats.get(name, TextFormat())
        how = replace(
            how, missing=how.missing or text_formats.default_format(column).missing
        )  # words that the rows fitted had not
        wanted = temporal.get(name)
        kinds = [kind] if kind else [] if options is None else options.types.values()
        if wanted and any(temporal_kind_of(one) != wanted for one in kinds):
            kind, options = None, None
        if kind is not None:
            read.types[name], read.text_formats[name] = kind, how
        elif options and _is_of_unit(options, known_formats.get(name)):
            found[name] = options
        else:
            read.types[name] = {"date": "TIMESTAMP", "time": "INTERVAL"}.get(wanted or "", "DOUBLE")
            read.text_formats[name] = how
    chosen = text_formats.choose_formats(found, reading)
    for name, (options, key) in chosen.items():
        read.types[name] = "DOUBLE" if options.types[key] == "BIGINT" else options.types[key]
        read.text_formats[name] = options.formats[key]
    columns = dict(zip(head.column_names, head.columns, strict=True))
    read.notes = text_formats.format_notes(columns, chosen, fitted=True, is_known=known_formats)
    new = {
        name: how
        for name, how in read.text_formats.items()
        if name not in known_formats or not known_formats[name].missing
    }
    read.notes += missing_marker_notes(columns, new)  # what the rows fitted had is not noted again
    return read


def _is_of_unit(options: FormatOptions, known: TextFormat | None) -> bool:
    """Whether numbers in another format are in the unit of the rows fitted: a number without % is another number."""
    units = {how.unit for how in options.formats.values()}
    if known is None or not known.unit:
        return True
    return units <= ({"%"} if known.unit == "%" else {known.unit, ""})


def _has_leading_zeros(column: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, _LEADING_ZEROS)).as_py())


def missing_marker_notes(columns: Mapping[str, Any], text_formats: Mapping[str, TextFormat]) -> list[Note]:
    """A word on words for "missing" among numbers."""
    remarks = []
    for name, how in text_formats.items():
        if how.missing:
            words = columns[name].drop_null().unique().to_pylist()
            met = [word for word in words if word.strip().lower() in how.missing]
            text = f"column {name!r}: {', '.join(map(repr, sorted(met)))} taken as missing"
            remarks += [Note("taken-as-missing", text, name)] if met else []
    return remarks


def is_string(table: Any, name: str) -> bool:
    """Whether a column of an Arrow table holds text, plainly."""
    return str(table.schema.field(name).type) in ("string", "large_string")
