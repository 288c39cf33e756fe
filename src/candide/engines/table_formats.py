"""Number, date and time formats of text columns in memory: decided by the rules for files, with the same notes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from candide import formatting
from candide.data.labels import is_absent, is_arrow
from candide.data.notes import Note, issue_warnings
from candide.data.table import LIMITS, Name, Table
from candide.data.text_columns import has_declared_levels, is_text, temporal_kind_of, to_typed_table
from candide.data.text_formats import MISSING_MARKERS, PLAIN_FORMAT, TextFormat
from candide.engines.reading import ReadOptions
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.model.fitted import FittedModel

_N_FIRST_VALUES = 64  # values that mostly show that a column holds words


@dataclass(frozen=True)
class ColumnTextFormats:
    """How columns of text write numbers, dates and times, and the notes on these."""

    text_formats: dict[str, TextFormat] = field(default_factory=dict)
    dates: frozenset[Name] = frozenset()
    times: frozenset[Name] = frozenset()  # times of day and durations
    notes: list[Note] = field(default_factory=list, compare=False)

    def parse_table(self, table: Table) -> Table:
        return to_typed_table(table, self.text_formats, self.dates, self.times) if self.text_formats else table

    def model_record(
        self, columns: Collection[Name], dates: Collection[Name], times: Collection[Name]
    ) -> dict[str, Any]:
        """What a model of these columns remembers; ``dates`` and ``times`` are such by their type."""
        names, used = {str(name) for name in columns}, set(columns)
        formats = {name: fmt for name, fmt in self.text_formats.items() if name in names and fmt != PLAIN_FORMAT}
        return {
            "text_formats": formats,
            "dates": self.dates.union(dates) & used,
            "times": self.times.union(times) & used,
        }


NO_FORMATS = ColumnTextFormats()


def infer_text_formats(table: Table, events: Any = "auto", reading: ReadOptions | None = None) -> ColumnTextFormats:
    """Decide which text columns hold numbers, dates or times, from the rows that column types are inferred from.

    Columns that ``events`` declares to be categories or text are kept as they are written.
    """
    texts = text_columns(table)
    as_text, as_numbers = declared_columns(events, table.names) if texts else (set(), set())
    names = {str(name): name for name in texts if name not in as_text}
    if not names:
        return NO_FORMATS
    import pyarrow as pa

    from candide.engines.duckdb import type_inference

    heads = {text: _as_strings(table.head(name, LIMITS.head_rows(len(table.names)))) for text, name in names.items()}
    heads = {text: head for text, head in heads.items() if head is not None}
    if not heads:
        return NO_FORMATS
    declared, options = [str(name) for name in as_numbers], reading or ReadOptions()
    read = type_inference.infer_types(None, pa.table(heads), None, (), declared, options, heads, typed=True)
    types = {text: kind for text, kind in read.types.items() if kind != "VARCHAR"}
    formats = {text: read.text_formats.get(text, PLAIN_FORMAT) for text in types}
    dates = {names[text] for text, kind in types.items() if temporal_kind_of(kind) == "date"}
    times = {names[text] for text, kind in types.items() if temporal_kind_of(kind) == "time"}
    return ColumnTextFormats(formats, frozenset(dates), frozenset(times), read.notes)


def unread_text(head: Any, names: Collection[str], double: str, quote: str = '"') -> list[Note]:
    """Notes on text columns of a database that hold numbers, dates or times, and are categories here.

    ``head`` is an Arrow table of the first rows, ``double`` the name of the type of numbers, ``quote``
    the mark around names.
    """
    from candide.engines.duckdb import type_inference
    from candide.engines.duckdb.number_formats import is_string

    texts = head.select([name for name in names if is_string(head, name)])
    read = type_inference.infer_types(None, texts, None, (), (), ReadOptions(), texts.column_names, typed=True)
    groups: dict[tuple[str, str], list[str]] = {}
    for name, kind in read.types.items():
        if kind != "VARCHAR":
            what = {"date": "dates", "time": "times", "": "numbers"}[temporal_kind_of(kind)]
            group = what, double if what == "numbers" else kind.partition(" ")[0].lower()
            groups.setdefault(group, []).append(name)
    notes = []
    for (what, kind), columns in groups.items():
        name = columns[0]
        first = next(value for value in texts.column(name).to_pylist() if value is not None)
        text = f"{formatting.format_columns(columns)}: {what} kept as text, such as {first!r}, are categories here"
        is_plain = name not in read.text_formats
        way = f"CAST({quote}{name}{quote} AS {kind})" if is_plain else "by its functions for text"
        remedy = f"to count them as {what}, store them as such or convert them in a view or a query: {way}"
        notes.append(Note("text-kept", text, name, remedy, tuple(columns)))
    return notes


def stray_notes(table: Table, names: Collection[Name]) -> list[Note]:
    """Notes on text columns, of these names, that hold numbers or dates but for a few values."""
    undeclared = set(_undeclared_columns(table))
    names = [n for n in names if n in undeclared and is_text(table.head(n, _N_FIRST_VALUES))]
    if not names:
        return []
    from candide.engines.duckdb.type_inference import stray_note

    heads = {name: _as_strings(table.head(name, LIMITS.head_rows(len(table.names)))) for name in names}
    return [note for name, head in heads.items() if head is not None for note in stray_note(name, head, False)]


def read_as_fitted(fitted: "FittedModel", table: Table) -> Table:
    """Rows as a model reads them; dates in another format than that of its rows are read as in a file, with a note."""
    try:
        return fitted.parse_table(table)
    except InputError:
        formats = _other_dates(fitted, table)
        if not formats.text_formats:
            raise
    read = fitted.parse_table(formats.parse_table(table))
    issue_warnings(formats.notes)
    return read


def _other_dates(fitted: "FittedModel", table: Table) -> ColumnTextFormats:
    """The formats of text in columns of dates that are not those of the rows fitted, where all values have one."""
    import pyarrow as pa

    from candide.engines.duckdb import type_inference

    names = {str(name): name for name, kind in fitted.temporal.items() if kind == "date" and name in table.names}
    columns = {text: table.column(name) for text, name in names.items()}
    texts = {text: _as_strings(column) for text, column in columns.items() if is_text(column)}
    texts = {text: column for text, column in texts.items() if column is not None and column.null_count < len(column)}
    known = {text: fitted.text_formats[text] for text in texts if text in fitted.text_formats}
    if not texts:
        return NO_FORMATS
    read = type_inference.infer_number_types(None, pa.table(texts), known, ReadOptions(), dict.fromkeys(texts, "date"))
    dates = {text: text_format for text, text_format in read.text_formats.items() if text_format.date}
    other = {text: fmt for text, fmt in dates.items() if fmt.date != known.get(text, PLAIN_FORMAT).date}
    # rather than name an option
    notes = [replace(note, remedy=note.remedy and "write dates as 2024-12-31") for note in read.notes]
    return ColumnTextFormats(other, frozenset(names[text] for text in other), notes=notes)


def declared_columns(events: Any, names: Collection[Name]) -> tuple[set[Name], set[Name]]:
    """The columns that are declared to be categories or text, and those that are declared to be numbers."""
    from candide.events import resolve_event
    from candide.model.plan import expand_wildcard, is_single_event, named_events

    if is_single_event(events):
        named = dict.fromkeys(names, resolve_event(events))
    else:
        events = expand_wildcard(events, names)
        named = named_events(events) if isinstance(events, Mapping) else {}
    as_text = {name for name, event in named.items() if event.encoding.is_read_as_text}
    return as_text, named.keys() - as_text


def _undeclared_columns(table: Table) -> list[Name]:
    """The columns of a table that may hold text, without those of declared levels."""
    if table.is_sparse or (isinstance(table.source, np.ndarray) and table.source.dtype.kind not in "OUS"):
        return []
    columns = table.source if isinstance(table.source, dict) else {}
    return [name for name in table.names if not has_declared_levels(columns.get(name))]


def text_columns(table: Table) -> list[Name]:
    out = []
    for name in _undeclared_columns(table):
        head = table.head(name, _N_FIRST_VALUES)
        if is_arrow(head) and head.null_count == len(head):
            head = table.column(name)
        if is_text(head):
            values = head.to_pylist() if is_arrow(head) else head.tolist()
            texts = [value for value in values if isinstance(value, str)]
            is_number = (any(map(str.isdigit, t)) or t.strip().lower() in MISSING_MARKERS for t in texts)
            out += [name] if all(is_number) else []
    return out


def _as_strings(column: Any) -> Any:
    """An Arrow array of text; None where a value is neither text nor missing."""
    import pyarrow as pa

    if is_arrow(column):
        return column.cast(pa.string())
    values = [None if is_absent(value) else value for value in column.tolist()]
    if not all(value is None or isinstance(value, str) for value in values):
        return None
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # half of a character
        return None
