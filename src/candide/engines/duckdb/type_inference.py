"""Infer the types of text columns from the first rows of a source, and from rows all over it where these mislead.

A CSV has no types: its columns hold whole numbers, numbers, dates, true/false, or text. How numbers and dates are
written is detected in :mod:`candide.engines.duckdb.number_formats`.
"""

import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.data.text_columns import temporal_kind_of
from candide.data.text_formats import PLAIN_FORMAT, TextFormat, parse_plain_numbers
from candide.engines.duckdb import number_formats
from candide.engines.duckdb.number_formats import FormatOptions, all_match, has_match, without_missing
from candide.engines.reading import ReadOptions

if TYPE_CHECKING:
    from candide.engines.duckdb.csv_files import CsvOptions

_PLAIN_INTEGER = r"^(0|-?[1-9]\d{0,17})$"
_LEADING_ZEROS = r"^\s*[+-]?0\d"  # as codes begin, and numbers do not
_BOOLEAN = r"^(?i:true|false)$"
_NOT_TEXT = {kind for _, kind in number_formats.TYPE_PATTERNS}
_N_SHOWN = 3  # values in a note
_N_FIRST_VALUES = 64  # values that decide which formats are tried
_FEW = 0.1  # proportion of distinct values that are named one by one, where all are numbers in several formats
_N_POSITIONS = 32  # of a CSV, at which lines are read
_MIN_BYTES = 1 << 18  # bytes of a CSV that is worth it


@dataclass
class InferredTypes:
    """The types of columns, the formats of numbers and dates that are not plain, and notes on these."""

    types: dict[str, str] = field(default_factory=dict)
    text_formats: dict[str, TextFormat] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def infer_csv_type(column: Any, *, is_label: bool = False, is_category: bool = False) -> str:
    """The SQL type of a text column. Categories and columns of 0 and 1 are counted as text and parsed afterwards."""
    present = column.drop_null()
    if is_label:  # text unless it is plainly a number
        return "BIGINT" if len(present) and all_match(present, _PLAIN_INTEGER) else "VARCHAR"
    if len(present) == 0 or is_category or all_match(present, "^[01]$"):
        return "VARCHAR"
    return number_formats.plain_type(present) or ("BOOLEAN" if all_match(present, _BOOLEAN) else "VARCHAR")


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

    ``codes_in`` are text columns in which whole numbers are codes. In a ``typed`` source text such as "true" stays
    text.
    """
    columns = dict(zip(head.column_names, head.columns, strict=True))
    out, undecided, codes = InferredTypes(), dict[str, FormatOptions](), list[str]()
    for name, column in columns.items():
        kind = infer_csv_type(column, is_label=name == target, is_category=name in as_text)
        is_declared = name in as_numbers
        is_code_column = name in codes_in and not is_declared
        is_text = (typed and kind not in _NOT_TEXT) or (kind == "HUGEINT" and is_code_column)
        out.types[name] = "VARCHAR" if is_text else kind
        if name == target or name in as_text or kind not in ("VARCHAR", "BIGINT", "DOUBLE"):
            continue
        options = number_formats.format_options(con, column, None if kind == "VARCHAR" else kind)
        if options is None:
            out.types[name] = "VARCHAR" if typed else kind
        elif kind == "VARCHAR" and not is_declared and options.is_plain:  # all 0 and 1
            continue
        elif options.is_whole and options.is_plain and is_code_column:
            out.types[name] = "VARCHAR"
        elif options.is_whole and not is_declared and has_match(column, _LEADING_ZEROS):
            out.types[name] = "VARCHAR"
            codes.append(name)
        else:
            undecided[name] = options
    chosen = number_formats.choose_formats(undecided, reading)
    out.types |= {name: options.kind for name, (options, _) in chosen.items()}
    formats = {name: options.formats[key] for name, (options, key) in chosen.items()}
    out.text_formats = {name: text_format for name, text_format in formats.items() if text_format != PLAIN_FORMAT}
    if codes:
        what = "numbers that begin with 0 are taken for codes, which are categories"
        remedy = f"pass --event {codes[0]}=gaussian (events={{...}}) if they are quantities"
        out.notes.append(Note("leading-zeros", f"{formatting.format_columns(codes)}: {what}", codes[0], remedy))
    out.notes += number_formats.format_notes(columns, chosen) + missing_marker_notes(columns, out.text_formats)
    return out


def infer_number_types(
    con: Any,
    head: Any,
    known_formats: Mapping[str, TextFormat],
    reading: ReadOptions,
    temporal: Mapping[Any, str] = {},
) -> InferredTypes:
    """The types of columns that hold numbers or dates: in the known format, unless the values are in another.

    ``temporal`` columns are read as dates, or as times and durations, and as nothing else.
    """
    columns = dict(zip(head.column_names, head.columns, strict=True))
    out, undecided = InferredTypes(), dict[str, FormatOptions]()
    for name, column in columns.items():
        known, required = known_formats.get(name), temporal.get(name)
        kind = number_formats.type_with_format(con, column, known) if known else None
        options = None if kind else number_formats.format_options(con, column)
        actual = kind or (options and options.kind)
        if required and actual and temporal_kind_of(actual) != required:
            kind, options = None, None
        units = {text_format.unit for text_format in options.formats.values()} if options else set()
        if known is not None and known.unit and not units <= ({"%"} if known.unit == "%" else {known.unit, ""}):
            options = None  # 14 is not 14 %
        if kind is None and options:
            undecided[name] = options
            continue
        out.types[name] = kind or {"date": "TIMESTAMP", "time": "INTERVAL"}.get(required or "", "DOUBLE")
        text_format = known or PLAIN_FORMAT
        missing = text_format.missing or without_missing(column)[1]  # markers that the rows fitted did not have
        out.text_formats[name] = replace(text_format, missing=missing)
    chosen = number_formats.choose_formats(undecided, reading)
    for name, (options, key) in chosen.items():
        out.types[name] = "DOUBLE" if options.kind == "BIGINT" else options.kind
        out.text_formats[name] = options.formats[key]
    noted = {name for name, text_format in known_formats.items() if text_format.missing}  # when the model was fitted
    new = {name: text_format for name, text_format in out.text_formats.items() if name not in noted}
    out.notes = number_formats.format_notes(columns, chosen, fitted=True, known=known_formats)
    out.notes += missing_marker_notes(columns, new)
    return out


def missing_marker_notes(columns: Mapping[str, Any], text_formats: Mapping[str, TextFormat]) -> list[Note]:
    notes = []
    for name, text_format in text_formats.items():
        if text_format.missing:
            words = columns[name].drop_null().unique().to_pylist()
            markers = sorted(word for word in words if word.strip().lower() in text_format.missing)
            text = f"column {name!r}: {', '.join(map(repr, markers))} taken as missing"
            notes += [Note("taken-as-missing", text, name)] if markers else []
    return notes


# Values that keep a column from being read as numbers or dates


class StrayValues(NamedTuple):
    """Values that keep a text column from being read as numbers or dates, though most of its values are."""

    values: list[str]
    kind: str  # "numbers" or "dates"
    is_mixed: bool = False  # all are numbers, but in several units or formats, of which ``values`` has one each


def stray_values(column: Any) -> StrayValues | None:
    """The values of a text column that do not fit the number or date format that most of its distinct values have."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    distinct = column.cast(pa.string()).drop_null().unique()
    values, _ = without_missing(distinct)
    if 2 * pc.match_substring_regex(values, r"\d").true_count <= len(values):
        return None
    first = values.slice(0, _N_FIRST_VALUES)
    patterns = [("numbers", pattern) for pattern in number_formats.number_patterns(values)]
    patterns += [("dates", pattern) for pattern in (*number_formats.PLAIN_DATES, *number_formats.DATE_PATTERNS)]
    masks = [(kind, pc.match_substring_regex(values, p)) for kind, p in patterns if has_match(first, p)]
    if not masks:
        return None
    kind, fits = max(masks, key=lambda each: each[1].true_count)
    others = values.filter(pc.invert(fits)).to_pylist()
    if kind == "numbers" and len(others) > _FEW * len(values):
        is_number = reduce(pc.or_, [mask for kind, mask in masks if kind == "numbers"])
        if is_number.false_count == 0:
            return StrayValues([values.filter(fits)[0].as_py(), others[0]], kind, is_mixed=True)
    n_fitting = len(values) - len(others)
    if not others:  # only missing-value markers, among whole numbers that are codes
        others = sorted(set(distinct.to_pylist()) - set(values.to_pylist()))
    if not 0 < len(others) < n_fitting:
        return None
    if kind == "dates" and number_formats.date_examples(column):  # there is another note on dates in several formats
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


# Values from all over a source, for columns whose first rows hold only 0 and 1: further rows may hold numbers


def find_binary_columns(head: Any) -> list[str]:
    """The columns of an Arrow table that hold only 0 and 1, as numbers or as text."""
    return [name for name, column in zip(head.column_names, head.columns, strict=True) if _is_binary(column)]


def _is_binary(column: Any) -> bool:
    kind, present = column.type, column.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return len(present) > 0 and all_match(present, r"^[01](\.0*)?$")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    return len(present) > 0 and bool(pc.all(pc.is_in(present, pa.array([0, 1], kind))).as_py())


def find_other_values(query: Callable[[str], Any], view: str, names: Sequence[str], n: int) -> dict[str, Any]:
    """A sample of ``n`` values of each of the columns that hold other values than 0 and 1."""
    if not names:
        return {}
    from candide.engines.sql.dialect import quote_identifier  # here, because rows in memory need no SQL

    each = ", ".join(f"coalesce(bool_or({quote_identifier(name)} NOT IN (0, 1)), false)" for name in names)
    has_others = query(f"SELECT {each} FROM {view}").fetchall()[0]
    out = {}
    for name in (name for name, has in zip(names, has_others, strict=True) if has):
        sample = f"SELECT {quote_identifier(name)} FROM {view} USING SAMPLE reservoir({n} ROWS) REPEATABLE (0)"
        out[name] = query(sample).to_arrow_table().column(0)
    return out


def _sample_lines(options: "CsvOptions", n: int) -> list[bytes]:
    """About ``n`` lines of a CSV at even distances, without a pass over it.

    None where it cannot be read from its middle: it is compressed, or has line breaks within fields.
    """
    from candide.engines.duckdb.character_encodings import COMPRESSED_SUFFIXES

    path, quote = options.files[0], options.quote.encode()
    if options.parts or len(options.files) > 1 or path.lower().endswith(COMPRESSED_SUFFIXES):
        return []
    if (size := os.path.getsize(path)) < _MIN_BYTES:
        return []
    lines = list[bytes]()
    with open(path, "rb") as file:
        for i in range(1, _N_POSITIONS):
            file.seek(size * i // _N_POSITIONS)
            file.readline()  # the rest of a line
            lines += [file.readline() for _ in range(n // _N_POSITIONS)]
    lines = [line for line in lines if line.endswith(b"\n") and line.strip()]
    return [] if quote and any(line.count(quote) % 2 for line in lines) else lines


def sample_other_texts(
    con: Any, options: "CsvOptions", names: Sequence[str], n: int, path: Callable[[], str]
) -> dict[str, Any]:
    """The values of columns of a CSV at even distances, as text; {} where they cannot be read."""
    if not names or not (lines := _sample_lines(options, n)):
        return {}
    import duckdb

    from candide.engines.sql.dialect import quote_identifier

    where = path()
    with open(where, "wb") as file:
        file.writelines(lines)
    with suppress(duckdb.Error):  # reported when all lines are read
        sample = replace(options, files=(where,), header=False, skip=0, line_ending="")
        chosen = ", ".join(map(quote_identifier, names))
        table = con.sql(f"SELECT {chosen} FROM {sample.select_sql({})}").to_arrow_table()
        return {name: c for name, c in zip(names, table.columns, strict=True) if not _is_binary(c)}
    return {}


def append_values(head: Any, others: Mapping[str, Any]) -> Any:
    """Rows with other values at the end of columns, from which types are inferred."""
    for name, column in others.items():
        chunks = [*head.column(name).slice(0, head.num_rows - len(column)).chunks, *column.chunks]
        head = head.set_column(head.column_names.index(name), name, pa.chunked_array(chunks))
    return head
