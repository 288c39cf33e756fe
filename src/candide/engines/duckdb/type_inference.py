"""Types of text columns, inferred from the first rows of a source before all rows are read.

A CSV has no types: its columns hold whole numbers, numbers, dates, true/false, or text. How numbers and dates are
written is detected in :mod:`candide.engines.duckdb.format_detection`.

>>> columns = ["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"]
>>> [infer_csv_type(pa.array(values)) for values in columns]
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
from candide.engines.duckdb.format_detection import (
    DATE_PATTERNS,
    PLAIN_DATES,
    TYPE_PATTERNS,
    FormatOptions,
    all_match,
    choose_formats,
    date_examples,
    default_format,
    format_notes,
    format_options,
    number_patterns,
    type_with_format,
    without_missing,
)
from candide.engines.reading import ReadOptions

_PLAIN_INTEGER = r"^(0|-?[1-9]\d{0,17})$"
_LEADING_ZEROS = r"^\s*[+-]?0\d"  # as codes begin, and numbers do not
_BOOLEAN = r"^(?i:true|false)$"
_NOTHING: Mapping[Any, str] = MappingProxyType({})
_NOT_TEXT = {"BIGINT", "HUGEINT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL"}
_N_SHOWN = 3  # values in a note
_N_FIRST_VALUES = 64  # values that decide which formats are tried
_FEW = 0.1  # proportion of distinct values that are named one by one, where all are numbers in several formats


@dataclass
class InferredTypes:
    """The types of columns, the formats of numbers and dates that are not plain, and notes on these."""

    types: dict[str, str] = field(default_factory=dict)
    text_formats: dict[str, TextFormat] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def infer_csv_type(column: Any, *, is_label: bool = False, is_category: bool = False) -> str:
    """The SQL type of a text column. Categories and columns of 0 and 1 are counted as text and parsed afterwards."""
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
    """The types of all columns; a column that can be read in two ways may be decided by the others.

    ``codes_in`` are text columns in which whole numbers are codes. ``typed``: the source has types of its own, so text
    such as "true" stays text.
    """
    read, undecided, codes = InferredTypes(), dict[str, FormatOptions](), []
    for name, column in zip(head.column_names, head.columns, strict=True):
        kind = infer_csv_type(column, is_label=name == target, is_category=name in as_text)
        is_code_column = name in codes_in and name not in as_numbers
        read.types[name] = "VARCHAR" if typed and kind not in _NOT_TEXT else kind
        if kind == "HUGEINT" and is_code_column:
            read.types[name] = "VARCHAR"
        if name == target or name in as_text or kind not in ("VARCHAR", "BIGINT", "DOUBLE"):
            continue
        options = format_options(con, column, None if kind == "VARCHAR" else kind)
        if typed and options and not _NOT_TEXT.issuperset(options.types.values()):
            options = None
        if kind == "VARCHAR" and name not in as_numbers and options and options.is_plain:  # all 0 and 1
            continue
        if options and options.is_whole and options.is_plain and is_code_column:
            read.types[name] = "VARCHAR"
        elif options and options.is_whole and name not in as_numbers and _has_leading_zeros(column):
            read.types[name] = "VARCHAR"
            codes.append(name)
        elif options:
            undecided[name] = options
        elif typed:
            read.types[name] = "VARCHAR"
    chosen = choose_formats(undecided, reading)
    read.types |= {name: options.types[key] for name, (options, key) in chosen.items()}
    formats = {name: options.formats[key] for name, (options, key) in chosen.items()}
    read.text_formats = {name: text_format for name, text_format in formats.items() if text_format != TextFormat()}
    if codes:
        text = (
            f"{formatting.format_columns(codes)}: numbers that begin with 0 are taken for codes, which are categories"
        )
        remedy = f"pass --event {codes[0]}=gaussian (events={{...}}) if they are quantities"
        read.notes.append(Note("leading-zeros", text, codes[0], remedy))
    columns = dict(zip(head.column_names, head.columns, strict=True))
    read.notes += format_notes(columns, chosen) + missing_marker_notes(columns, read.text_formats)
    return read


def infer_number_types(
    con: Any,
    head: Any,
    known_formats: Mapping[str, TextFormat],
    reading: ReadOptions,
    temporal: Mapping[Any, str] = _NOTHING,
) -> InferredTypes:
    """The types of columns that hold numbers or dates: in the known format, unless the values are in another.

    ``temporal`` columns are read as dates, or as times and durations, and as nothing else.
    """
    read, undecided = InferredTypes(), dict[str, FormatOptions]()
    for name, column in zip(head.column_names, head.columns, strict=True):
        known = known_formats.get(name)
        kind = type_with_format(con, column, known) if known else None
        options = None if kind else format_options(con, column)
        text_format = known or TextFormat()
        missing = text_format.missing or default_format(column).missing  # markers that the rows fitted did not have
        text_format = replace(text_format, missing=missing)
        required = temporal.get(name)
        kinds = [kind] if kind else [] if options is None else options.types.values()
        if required and any(temporal_kind_of(each) != required for each in kinds):
            kind, options = None, None
        if kind is not None:
            read.types[name], read.text_formats[name] = kind, text_format
        elif options and _has_same_unit(options, known):
            undecided[name] = options
        else:
            read.types[name] = {"date": "TIMESTAMP", "time": "INTERVAL"}.get(required or "", "DOUBLE")
            read.text_formats[name] = text_format
    chosen = choose_formats(undecided, reading)
    for name, (options, key) in chosen.items():
        read.types[name] = "DOUBLE" if options.types[key] == "BIGINT" else options.types[key]
        read.text_formats[name] = options.formats[key]
    columns = dict(zip(head.column_names, head.columns, strict=True))
    read.notes = format_notes(columns, chosen, fitted=True, is_known=known_formats)
    has_markers = {name for name, text_format in known_formats.items() if text_format.missing}  # noted before
    new = {name: text_format for name, text_format in read.text_formats.items() if name not in has_markers}
    read.notes += missing_marker_notes(columns, new)
    return read


def _has_same_unit(options: FormatOptions, known: TextFormat | None) -> bool:
    """Whether numbers in another format have the unit of the rows fitted: 14 is not 14 %."""
    units = {text_format.unit for text_format in options.formats.values()}
    if known is None or not known.unit:
        return True
    return units <= ({"%"} if known.unit == "%" else {known.unit, ""})


def _has_leading_zeros(column: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, _LEADING_ZEROS)).as_py())


def missing_marker_notes(columns: Mapping[str, Any], text_formats: Mapping[str, TextFormat]) -> list[Note]:
    """Notes on missing-value markers among numbers."""
    notes = []
    for name, text_format in text_formats.items():
        if text_format.missing:
            words = columns[name].drop_null().unique().to_pylist()
            markers = sorted(word for word in words if word.strip().lower() in text_format.missing)
            text = f"column {name!r}: {', '.join(map(repr, markers))} taken as missing"
            notes += [Note("taken-as-missing", text, name)] if markers else []
    return notes


def is_string(table: Any, name: str) -> bool:
    """Whether a column of an Arrow table has a plain type of text."""
    return str(table.schema.field(name).type) in ("string", "large_string")


@dataclass(frozen=True)
class StrayValues:
    """Values that keep a text column from being read as numbers or dates, though most of its values are.

    >>> stray_values(pa.array(["$53.20", "$41.75", "about 50"]))
    StrayValues(values=['about 50'], kind='numbers', is_mixed=False)
    >>> stray_values(pa.array(["cook", "smith", "judge"])) is None
    True
    """

    values: list[str]
    kind: str  # "numbers" or "dates"
    is_mixed: bool = False  # all are numbers, but in several units or formats, of which ``values`` has one each


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
            return StrayValues([candidates.filter(fits)[0].as_py(), others[0]], kind, is_mixed=True)
    if not others:  # only missing-value markers, among whole numbers that are codes
        others = sorted(set(distinct.to_pylist()) - set(candidates.to_pylist()))
    if not 0 < len(others) < _count(fits):
        return None
    if kind == "dates" and date_examples(column):  # dates in several formats have a note of their own
        return None
    return StrayValues(others, kind)


def stray_note(name: Any, column: Any, untyped: bool) -> list[Note]:
    """The note on the values because of which a column is read as text; ``untyped``: ``na=`` can help."""
    stray = stray_values(column)
    if stray is None:
        return []
    values = formatting.format_list(stray.values, _N_SHOWN)
    if stray.is_mixed:
        text = f"column {name!r} is read as text because its numbers have different units or formats, such as {values}"
        return [Note("numbers-as-text", text, name, "to read it as numbers, write all of them in one unit and format")]
    na = " ".join(f"--na {shlex.quote(word)}" for word in stray.values[:_N_SHOWN])
    remedy = f"fix these values or pass {na} (na=[...])" if untyped else f"fix these and store it as {stray.kind}"
    if untyped and any(map(parse_plain_numbers, [[word] for word in stray.values])):  # --na is for every column
        remedy = "fix these values"
    text = f"column {name!r} is read as text because of {values}"
    return [Note("numbers-as-text", text, name, f"to read it as {stray.kind}, {remedy}")]


def _strings(column: Any) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _count(mask: Any) -> int:
    return pc.sum(mask).as_py() or 0


def _formats(values: Any) -> Iterator[tuple[str, str]]:
    """The formats that one of the first values has: the kind, and a pattern."""
    first = values.slice(0, _N_FIRST_VALUES)
    dates = [("dates", pattern) for pattern in (*PLAIN_DATES, *DATE_PATTERNS)]
    for kind, pattern in [*(("numbers", pattern) for pattern in number_patterns(values)), *dates]:
        if pc.any(pc.match_substring_regex(first, pattern)).as_py():
            yield kind, pattern
