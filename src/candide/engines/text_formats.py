"""Number, date and time formats of text columns in memory: decided by the rules for files, with the same notes.

>>> table = Table.of({"price": ["€ 1,787.00", "€ 79.50"] * 5, "job": ["cook", "smith"] * 5})
>>> formats = formats_of(table)
>>> formats.spelled["price"].unit, formats.read(table).numbers(("price",))[:2].ravel().tolist()
('€', [1787.0, 79.5])
>>> [remark.code for remark in formats.remarks]
['read-as']
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from candide import wording
from candide.errors import InputError
from candide.rows.labels import is_arrow
from candide.rows.remarks import Remark, warn
from candide.rows.spelling import NAS, PLAIN, Spelling
from candide.rows.table import Name, Table
from candide.rows.written import has_declared_levels, in_types, is_text

if TYPE_CHECKING:
    from candide.engines.reading import Reading
    from candide.model.fitted import Fitted

_FEW = 64  # values that tell most of the time that a column holds words


@dataclass(frozen=True)
class TextFormats:
    """How columns of text write numbers, dates and times, and the notes on these."""

    spelled: dict[str, Spelling] = field(default_factory=dict)
    dates: frozenset[Name] = frozenset()
    times: frozenset[Name] = frozenset()  # times of day and durations
    remarks: list[Remark] = field(default_factory=list, compare=False)

    def read(self, table: Table) -> Table:
        """The same rows with numbers, dates and times in the place of text."""
        return in_types(table, self.spelled, self.dates, self.times) if self.spelled else table

    def of_model(self, columns: Collection[Name], dates: Collection[Name], times: Collection[Name]) -> dict[str, Any]:
        """What a model of some columns remembers, some of which are dates or times by their type."""
        names = {str(name) for name in columns}
        spelled = {name: how for name, how in self.spelled.items() if name in names and how != PLAIN}
        kept = {"dates": self.dates | frozenset(dates), "times": self.times | frozenset(times)}
        return {"spelled": spelled, **{kind: frozenset(columns) & some for kind, some in kept.items()}}


NO_FORMATS = TextFormats()


def formats_of(table: Table, events: Any = "auto", reading: "Reading | None" = None) -> TextFormats:
    """Decide which text columns hold numbers, dates or times, from the rows that kinds of columns are decided from.

    Columns that ``events`` declares to be categories or text are kept as they are written.
    """
    texts = text_columns(table)
    as_text, as_numbers = declared_columns(events, table.names) if texts else (set(), set())
    names = {str(name): name for name in texts if name not in as_text}
    if not names:
        return NO_FORMATS
    import pyarrow as pa

    from candide.engines.duckdb import infer
    from candide.engines.reading import Reading
    from candide.rows.kinds import rows_of_look

    most = rows_of_look(len(table.names))
    heads = {text: _strings(table.head(name, most)) for text, name in names.items()}
    heads = {text: head for text, head in heads.items() if head is not None}
    if not heads:
        return NO_FORMATS
    wanted = [str(name) for name in as_numbers]
    read = infer.types_of(None, pa.table(heads), None, (), wanted, reading or Reading(), heads, typed=True)
    spelled = {text: read.spelled.get(text, PLAIN) for text, kind in read.types.items() if kind != "VARCHAR"}
    dates = {names[text] for text, kind in read.types.items() if kind.startswith(("DATE", "TIMESTAMP"))}
    times = {names[text] for text, kind in read.types.items() if kind in ("TIME", "INTERVAL")}
    return TextFormats(spelled, frozenset(dates), frozenset(times), read.remarks)


def unread_text(head: Any, names: Collection[str], double: str, quote: str = '"') -> list[Remark]:
    """Return notes on text columns of a database that hold numbers, dates or times, and that it keeps as categories.

    ``head`` is an Arrow table of the first rows, ``double`` the name of the type of numbers, ``quote``
    the mark around names.

    >>> import pyarrow as pa
    >>> print(*unread_text(pa.table({"size": ["1.5", "2.25", "3.0"] * 4}), ["size"], "double precision"))
    column 'size': numbers kept as text, such as '1.5', are categories here; to count them as numbers, store them \
as such or convert them in a view or a query: CAST("size" AS double precision)
    """
    from candide.engines.duckdb import infer
    from candide.engines.reading import Reading

    texts = head.select([name for name in names if infer.is_string(head, name)])
    found = infer.types_of(None, texts, None, (), (), Reading(), texts.column_names, typed=True)
    types = {"DATE": "date", "TIMESTAMP": "timestamp", "TIME": "time", "INTERVAL": "interval"}
    alike: dict[tuple[str, str], list[str]] = {}
    for name, kind in found.types.items():
        if kind != "VARCHAR":
            kind = types.get(kind.partition(" ")[0], double)
            what = "numbers" if kind == double else "times" if kind in ("time", "interval") else "dates"
            alike.setdefault((what, kind), []).append(name)
    notes = []
    for (what, kind), some in alike.items():
        first = next(value for value in texts.column(some[0]).to_pylist() if value is not None)
        text = f"{wording.columns(some)}: {what} kept as text, such as {first!r}, are categories here"
        way = (
            f"CAST({quote}{some[0]}{quote} AS {kind})" if some[0] not in found.spelled else "by its functions for text"
        )
        remedy = f"to count them as {what}, store them as such or convert them in a view or a query: {way}"
        notes.append(Remark("text-kept", text, some[0], remedy, tuple(some)))
    return notes


def stray_notes(table: Table, names: Collection[Name]) -> list[Remark]:
    """Notes on text columns, of these names, that hold numbers or dates but for a few values."""
    if table.is_sparse or (isinstance(table.source, np.ndarray) and table.source.dtype.kind not in "OUS"):
        return []
    held = table.source if isinstance(table.source, dict) else {}
    names = [name for name in names if not has_declared_levels(held.get(name))]
    names = [name for name in names if is_text(table.head(name, _FEW))]
    if not names:
        return []
    from candide.engines.duckdb.stray_values import stray_note
    from candide.rows.kinds import rows_of_look

    heads = {name: _strings(table.head(name, rows_of_look(len(table.names)))) for name in names}
    return [note for name, head in heads.items() if head is not None for note in stray_note(name, head, False)]


def read_as_fitted(fitted: "Fitted", table: Table) -> Table:
    """Rows as a model reads them; dates in another format than that of its rows are read as in a file, with a note."""
    try:
        return fitted.read(table)
    except InputError:
        formats = _other_dates(fitted, table)
        if not formats.spelled:
            raise
    read = fitted.read(formats.read(table))
    warn(formats.remarks)
    return read


def _other_dates(fitted: "Fitted", table: Table) -> TextFormats:
    """The formats of text in columns of dates that are not those of the rows fitted, where all values have one."""
    import pyarrow as pa

    from candide.engines.duckdb import infer
    from candide.engines.reading import Reading

    names = {str(name): name for name, kind in fitted.temporal.items() if kind == "date" and name in table.names}
    columns = {text: table.column(name) for text, name in names.items()}
    texts = {text: _strings(column) for text, column in columns.items() if is_text(column)}
    texts = {text: column for text, column in texts.items() if column is not None and column.null_count < len(column)}
    known = {text: fitted.spelled[text] for text in texts if text in fitted.spelled}
    if not texts:
        return NO_FORMATS
    read = infer.numbers_of(None, pa.table(texts), known, Reading(), dict.fromkeys(texts, "date"))
    other = {text: how for text, how in read.spelled.items() if how.date and how.date != known.get(text, PLAIN).date}
    remedies = [one.remedy and "write dates as 2024-12-31" for one in read.remarks]  # rather than name an option
    notes = [replace(one, remedy=remedy) for one, remedy in zip(read.remarks, remedies, strict=True)]
    return TextFormats(other, frozenset(names[text] for text in other), remarks=notes)


def declared_columns(events: Any, names: Collection[Name]) -> tuple[set[Name], set[Name]]:
    """The columns that are declared to be categories or text, and those that are declared to be numbers."""
    from candide.events import event_of
    from candide.model.plan import for_each, is_one, named_events

    if is_one(events):
        asked = dict.fromkeys(names, event_of(events))
    else:
        events = for_each(events, names)
        asked = named_events(events) if isinstance(events, Mapping) else {}
    as_text = {name for name, event in asked.items() if event.encoding.as_written}
    return as_text, asked.keys() - as_text


def text_columns(table: Table) -> list[Name]:
    """The columns that hold text which may spell numbers or dates, as their first values tell."""
    if table.is_sparse or (isinstance(table.source, np.ndarray) and table.source.dtype.kind not in "OUS"):
        return []
    held = table.source if isinstance(table.source, dict) else {}
    names = [name for name in table.names if not has_declared_levels(held.get(name))]
    heads = {name: table.head(name, _FEW) for name in names}
    heads |= {
        name: table.column(name) for name, head in heads.items() if is_arrow(head) and head.null_count == len(head)
    }
    return [name for name in names if _may_spell(heads[name])]


def _may_spell(column: Any) -> bool:
    """Whether a column is text, and each of some values has a digit or may stand for a missing one."""
    if not is_text(column):
        return False
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    texts = [value for value in values if isinstance(value, str)]
    return all(any(map(str.isdigit, text)) or text.strip().lower() in NAS for text in texts)


def _strings(column: Any) -> Any:
    """An Arrow array of text; None where a value is neither text nor missing."""
    import pyarrow as pa

    from candide.rows.labels import is_absent

    if is_arrow(column):
        return column.cast(pa.string())
    values = [None if is_absent(value) else value for value in column.tolist()]
    if not all(value is None or isinstance(value, str) for value in values):
        return None
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # half of a character
        return None
