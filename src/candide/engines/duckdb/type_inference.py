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

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.data.temporal import temporal_kind_of
from candide.data.text_formats import TextFormat, parse_plain_numbers
from candide.engines.duckdb import text_formats
from candide.engines.duckdb.text_formats import (
    DATE_PATTERNS,
    PLAIN_DATES,
    TYPE_PATTERNS,
    FormatOptions,
    all_match,
    date_examples,
    number_patterns,
    without_missing,
)
from candide.engines.reading import ReadOptions

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


_SHOWN = 3
_GLANCE = 64  # values that decide which formats are tried
_FEW = 0.1  # of distinct values are named one by one, where all are numbers in several formats


@dataclass(frozen=True)
class StrayValues:
    """The values that do not fit, and what the other values of the column are."""

    values: list[str]
    kind: str  # "numbers" or "dates"
    mixed: bool = False  # all are numbers, but in several units or formats, of which ``values`` has one each


def stray_values(column: Any) -> StrayValues | None:
    """The values of a text column that do not fit the number or date format that most of its distinct values have."""
    distinct = _strings(column).drop_null().unique()
    candidates, _ = without_missing(distinct)
    if 2 * _count(pc.match_substring_regex(candidates, r"\d")) <= len(candidates):
        return None
    masks = [(kind, pc.match_substring_regex(candidates, pattern)) for kind, pattern in _formats(candidates)]
    if not masks:
        return None
    kind, fits = max(masks, key=lambda each: _count(each[1]))
    others = candidates.filter(pc.invert(fits)).to_pylist()
    if kind == "numbers" and len(others) > _FEW * len(candidates):
        numeric = [mask for each, mask in masks if each == "numbers"]
        if _count(reduce(pc.or_, numeric)) == len(candidates):
            return StrayValues([candidates.filter(fits)[0].as_py(), others[0]], kind, mixed=True)
    if not others:  # only words for a missing value, among whole numbers that are codes
        others = sorted(set(distinct.to_pylist()) - set(candidates.to_pylist()))
    if not 0 < len(others) < _count(fits):
        return None
    if kind == "dates" and date_examples(column):  # dates in several formats have a note of their own
        return None
    return StrayValues(others, kind)


def stray_note(name: Any, column: Any, untyped: bool) -> list[Note]:
    """The note that names the values because of which a column is read as text; ``untyped``: ``na=`` can mend it."""
    found = stray_values(column)
    if found is None:
        return []
    values = formatting.format_list(found.values, _SHOWN)
    if found.mixed:
        text = f"column {name!r} is read as text because its numbers have different units or formats, such as {values}"
        return [Note("numbers-as-text", text, name, "to read it as numbers, write all of them in one unit and format")]
    na = " ".join(f"--na {shlex.quote(word)}" for word in found.values[:_SHOWN])
    way = f"mend these or pass {na} (na=[...])" if untyped else f"mend these and store it as {found.kind}"
    if untyped and any(map(parse_plain_numbers, [[word] for word in found.values])):  # --na is for every column
        way = "mend these"
    text = f"column {name!r} is read as text because of {values}"
    return [Note("numbers-as-text", text, name, f"to read it as {found.kind}, {way}")]


def _strings(column: Any) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _count(mask: Any) -> int:
    return pc.sum(mask).as_py() or 0


def _formats(values: Any) -> Iterator[tuple[str, str]]:
    """The formats that one of the first values has: what it holds, and a pattern."""
    first = values.slice(0, _GLANCE)
    dates = [("dates", pattern) for pattern in (*PLAIN_DATES, *DATE_PATTERNS)]
    for kind, pattern in [*(("numbers", pattern) for pattern in number_patterns(values)), *dates]:
        if pc.any(pc.match_substring_regex(first, pattern)).as_py():
            yield kind, pattern
