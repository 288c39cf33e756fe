"""Records of reports: what was computed, as plain values, and how each field is shown.

A summary is a frozen dataclass; every value is computed when it is created. The metadata of a field define the section
of a report that shows it, with title, columns, formats and caption. The terminal and notebooks render sections, JSON
the fields: their names are keys of the documented interface.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any, ClassVar

from candide.explain.words import HighlightedText
from candide.formatting import Column, render_html_table, table_rows

MAX_TABLE_ROWS = 40  # rows of a table on a screen
INTERNAL = {"internal": True}  # metadata of a field that JSON leaves out
FLAT = {"flat": True}  # metadata of a field whose items stand beside the other fields in JSON

Title = str | Callable[[Any], str]  # of a section, or a function of its record


@dataclass(frozen=True)
class Paragraph:
    """A line or paragraph; ``style`` is "bold", "dim" or plain, and in a frame it has a title."""

    text: str
    style: str = ""
    frame: str = ""


@dataclass(frozen=True)
class LabelledParagraphs:
    """Paragraphs beside labels: (label, text, remedy), such as notes and findings."""

    rows: Sequence[tuple[str, str, str]]
    title: str = ""
    label_style: str = "yellow"


@dataclass(frozen=True)
class Commands:
    """Shell commands to go on with."""

    title: str
    commands: Sequence[str]


@dataclass(frozen=True)
class Document:
    """A document with the pieces highlighted that count for or against a class."""

    highlights: Sequence[HighlightedText]
    label: str


@dataclass(frozen=True)
class TableSection:
    """A title over rows of cells; ``hint`` stands beside the title, ``totals`` below the rows."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    hint: str = ""
    totals: Sequence[Sequence[str]] = ()
    styles: Sequence[Sequence[str]] = ()
    n_more: int = 0  # rows that are left out

    @classmethod
    def from_records(cls, title: str, columns: Sequence[Column], records: Sequence[Any], **how: Any) -> "TableSection":
        """Build a table of the first records; columns without any value are left out."""
        first = list(records)[:MAX_TABLE_ROWS]
        shown, rows = table_rows(columns, first)
        styles = [[column.style(record) if column.style else "" for column in shown] for record in first]
        return cls(title, shown, rows, styles=styles, n_more=len(records) - len(first), **how)

    @classmethod
    def from_cells(cls, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], hint: str = "") -> Any:
        """Build a table of cells that are text already; the first column has the names of the rows."""
        columns, n_more = [Column(heading, "") for heading in headings], max(len(rows) - MAX_TABLE_ROWS, 0)
        return cls(title, columns, rows[:MAX_TABLE_ROWS], hint, n_more=n_more)


Section = Paragraph | LabelledParagraphs | Commands | Document | TableSection


def section(build: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Return metadata of a field: a function of the record and the value that yields sections."""
    return {"sections": build}


def table(
    title: Title,
    *columns: Column,
    hint: Title = "",
    caption: Title = "",
    rows: Callable[[Any], Any] = tuple,
    when: Callable[[Any], bool] = bool,
) -> dict[str, Any]:
    """Return metadata of a field that is shown as a table of records, where ``when`` holds for its value."""

    def build(record: Any, value: Any) -> Iterator[Section]:
        if when(value):
            texts = [text if isinstance(text, str) else text(record) for text in (title, hint, caption)]
            yield TableSection.from_records(texts[0], columns, tuple(rows(value)), hint=texts[1])
            if texts[2]:
                yield Paragraph(texts[2], "dim")

    return section(build)


def paragraph(describe: Callable[[Any], str] = str, style: str = "") -> dict[str, Any]:
    """Return metadata of a field that is shown as a sentence: ``describe`` of its value."""
    return section(lambda record, value: [Paragraph(describe(value), style)])


def notes() -> dict[str, Any]:
    return section(lambda record, texts: [LabelledParagraphs([("note", text, "") for text in texts])])


class Summary:
    """The base of every record of a report. Printed, it is what the command line shows."""

    __slots__ = ()
    frame: ClassVar[str] = ""  # the title of a frame around the headline

    @property
    def headline(self) -> str:
        """The first line or lines; a record without one begins with its first field."""
        return ""

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the headline and the sections of all fields in their order, or only those of the named fields."""
        if self.headline and not names:
            yield Paragraph(self.headline, frame=self.frame)
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            is_shown = "sections" in field.metadata and (value or field.metadata.get("when_empty"))
            if is_shown and (not names or field.name in names):
                yield from field.metadata["sections"](self, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for a program; --json prints them."""
        return _plain_fields(self)

    def __str__(self) -> str:
        from candide.report.terminal import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_section_html, self.sections()))


def _section_html(section: Section) -> str:
    if isinstance(section, TableSection):
        is_number = (i for i, column in enumerate(section.columns) if i and not column.is_text)
        rows = [[column.heading for column in section.columns], *map(list, section.rows), *map(list, section.totals)]
        more = f"... and {section.n_more:,} more" if section.n_more else ""
        table = render_html_table(section.title, rows, next(is_number, len(section.columns)), note=more)
        return f"<p>{table}</p>"
    if isinstance(section, Document):
        return ""
    if isinstance(section, Commands):
        lines = section.commands
    elif isinstance(section, LabelledParagraphs):
        lines = [section.title, *(": ".join(filter(None, row)) for row in section.rows)]
    else:
        lines = [section.text]
    return f"<p>{'<br>'.join(escape(line) for line in lines if line)}</p>"


def dump_json(record: Any) -> str:
    """Return a record, or plain values, as one line of JSON."""
    return json.dumps(to_plain(record), allow_nan=False, default=str)


def to_plain(value: Any) -> Any:
    """Return records as dictionaries, sequences as lists; NaN and the infinities, which JSON lacks, are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        return [to_plain(item) for item in value]
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    return _plain_fields(value) if is_dataclass(value) else value


def _plain_fields(record: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in fields(record):
        if not field.metadata.get("internal"):
            value = to_plain(getattr(record, field.name))
            plain |= value if field.metadata.get("flat") else {field.name: value}
    return plain
