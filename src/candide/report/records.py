"""Records of reports: what was computed, as plain values, and how each field is shown.

A summary is a frozen dataclass; every value is computed when it is created. The metadata of a field define the section
of a report that shows it, with title, columns, formats and caption. The terminal and notebooks render sections, JSON
the fields.

>>> @dataclass(frozen=True, repr=False)
... class Finds(Summary):
...     garden: str
...     found: tuple[complex, ...] = field(metadata=table("Finds", Column("x", "real"), Column("y", "imag", ".1f")))
...
...     @property
...     def headline(self) -> str:
...         return f"Found in {self.garden}"
>>> print(Finds("the yard", (1 + 2j,)))
Found in the yard
<BLANKLINE>
Finds
x      y
1.0  2.0
>>> Finds("the yard", (1 + 2j,)).to_dict()
{'garden': 'the yard', 'found': [(1+2j)]}
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, ClassVar

from candide.explain.words import HighlightedText
from candide.formatting import Column, render_html_table, table_rows

MAX_TABLE_ROWS = 40  # rows of a table on a screen
INTERNAL = {"internal": True}  # metadata of a field that JSON leaves out

Title = str | Callable[[Any], str]  # of a section, or a function of its record


@dataclass(frozen=True)
class Paragraph:
    """A line or paragraph; ``style`` is "bold", "dim" or plain, and in a frame it has a title."""

    text: str
    style: str = ""
    frame: str = ""


@dataclass(frozen=True)
class Literal:
    """Text to be copied as it stands, however long its lines are."""

    text: str


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
        return cls(title, shown, rows, styles=styles, **{"n_more": len(records) - len(first), **how})

    @classmethod
    def from_cells(
        cls, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], **how: Any
    ) -> "TableSection":
        """Build a table of cells that are text already; the first column has the names of the rows."""
        columns = [Column(heading, "") for heading in headings]
        return cls(title, columns, rows[:MAX_TABLE_ROWS], n_more=max(len(rows) - MAX_TABLE_ROWS, 0), **how)


Section = Paragraph | Literal | LabelledParagraphs | Commands | Document | TableSection


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
            named = _call(title, record), _call(hint, record)
            yield TableSection.from_records(named[0], columns, tuple(rows(value)), hint=named[1])
            if text := _call(caption, record):
                yield Paragraph(text, "dim")

    return section(build)


def paragraph(describe: Callable[[Any], str] = str, style: str = "") -> dict[str, Any]:
    """Return metadata of a field that is shown as a sentence: ``describe`` of its value."""
    return section(lambda record, value: [Paragraph(describe(value), style)])


def notes() -> dict[str, Any]:
    """Return metadata of a field of notes."""
    return section(lambda record, texts: [LabelledParagraphs([("note", text, "") for text in texts])])


def _call(text: Title, record: Any) -> str:
    return text if isinstance(text, str) else text(record)


class Summary:
    """The base of every record of a report. Printed, it is what the command line shows."""

    __slots__ = ()
    frame: ClassVar[str] = ""  # the title of a frame around the headline

    @property
    def headline(self) -> str:
        """The first line or lines; a record without one begins with its first field."""
        return ""

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the headline, then the sections of the fields in their order; of some fields where these are named."""
        if self.headline and not names:
            yield Paragraph(self.headline, frame=self.frame)
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            is_shown = "sections" in one.metadata and (value or one.metadata.get("when_empty"))
            if is_shown and (not names or one.name in names):
                yield from one.metadata["sections"](self, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for a program; --json prints them."""
        from candide.report.json import to_plain_fields

        return to_plain_fields(self)

    def __str__(self) -> str:
        from candide.report.terminal import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_section_html, self.sections()))


def _section_html(shown: Section) -> str:
    if isinstance(shown, TableSection):
        n_text = next((i for i, column in enumerate(shown.columns) if i and not column.is_text), len(shown.columns))
        rows = [[column.heading for column in shown.columns], *shown.rows, *shown.totals]
        more = f"... and {shown.n_more:,} more" if shown.n_more else ""
        return f"<p>{render_html_table(shown.title, [list(row) for row in rows], n_text, note=more)}</p>"
    if isinstance(shown, Document):
        return ""
    if isinstance(shown, Commands):
        lines = shown.commands
    elif isinstance(shown, LabelledParagraphs):
        lines = [shown.title, *(": ".join(filter(None, row)) for row in shown.rows)]
    else:
        lines = [shown.text]
    return f"<p>{'<br>'.join(escape(line) for line in lines if line)}</p>"


__all__ = [
    "INTERNAL", "MAX_TABLE_ROWS", "Column", "Commands", "Document", "LabelledParagraphs", "Literal", "Paragraph",
    "Section", "Summary", "TableSection", "field", "notes", "paragraph", "section", "table",
]  # fmt: skip
