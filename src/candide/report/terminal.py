"""The terminal: sections of a report on a screen of any width. No line is broken: what does not fit is left out or cut.

>>> from candide.formatting import Column
>>> columns = [Column("herb", ""), Column("soil", "", is_text=True, is_optional=True), Column("weight", "")]
>>> rows = [["lavender", "chalk and sand", "12"], ["thyme", "sand", "3"]]
>>> Console(width=22).print(FittedTable(TableSection("Herbs", columns, rows)))
Herbs
herb      weight
lavender      12
thyme          3
"""

import io
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from candide import formatting
from candide.explain.words import shorten_highlights
from candide.report.records import Commands, Document, LabelledParagraphs, Literal, Paragraph, Section, TableSection

_WIDTH = 110  # columns of what is written to a file or a pipe
_CUT_POSITIONS = (
    1.0,
    0.5,
    0.6,
    0.4,
    0.7,
    0.3,
    0.8,
    0.2,
    0.9,
    0.1,
)  # the part of a cut name before the dots, tried in turn
_GAP, _MIN_COLUMN_WIDTH = 2, 10  # between columns; text is cut down to this width, numbers never
_MAX_CHARACTERS = 700  # of a document
_FAINT_FROM, _STRONG_FROM = 0.05, 0.5  # parts of the largest contribution: less has no colour, more is bold


def print_summary(summary: Any) -> None:
    """Print a summary."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if has_width else _WIDTH)
    console.print()
    for shown in _visible_sections(summary, console):
        _print_section(console, shown)
        console.print()


def render_text(summary: Any) -> str:
    """Return a summary as it is printed, without colours."""
    width = int(os.environ.get("COLUMNS") or _WIDTH)
    console = Console(highlight=False, width=width, file=io.StringIO(), color_system=None, force_jupyter=False)
    with console.capture() as printed:
        for i, shown in enumerate(_visible_sections(summary, console)):
            if i:
                console.print()
            _print_section(console, shown)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def _visible_sections(summary: Any, console: Console) -> Iterator[Section]:
    """Yield sections without documents where there are no colours to highlight them."""
    return (one for one in summary.sections() if console.color_system is not None or not isinstance(one, Document))


def _print_section(console: Console, shown: Section) -> None:
    console.print(render_section(shown), soft_wrap=isinstance(shown, Literal | Commands))


@singledispatch
def render_section(shown: Any) -> RenderableType:
    """Return a section as something that rich can print."""
    raise TypeError(f"{type(shown).__name__} is not a section of a report")


@render_section.register
def _(shown: Paragraph) -> RenderableType:
    text = _make_text(shown.text, shown.style)
    return Panel(text, title=shown.frame, title_align="left", expand=False) if shown.frame else text


@render_section.register
def _(shown: Literal) -> RenderableType:
    return Text(shown.text)


@render_section.register
def _(shown: LabelledParagraphs) -> RenderableType:
    title = [_make_text(shown.title, "bold")] if shown.title else []
    return Group(*title, HangingParagraphs(shown))


@render_section.register
def _(shown: Commands) -> RenderableType:
    return BrokenCommands(shown)


@render_section.register
def _(shown: TableSection) -> RenderableType:
    return FittedTable(shown)


@render_section.register
def _(shown: Document) -> RenderableType:
    return HighlightedDocument(shown)


def _make_text(text: str, style: str = "") -> Text:
    """Return any text as text that moves no cursor and changes no colour."""
    return Text(formatting.make_printable(text), style=style)


class HangingParagraphs:
    """Paragraphs beside their labels, each as wide as the terminal allows.

    >>> rows = [("note", "the soil is dry, and so is the air", ""), ("leak", "none", "")]
    >>> Console(width=26).print(HangingParagraphs(LabelledParagraphs(rows)))
    note  the soil is dry, and
          so is the air
    leak  none
    """

    def __init__(self, shown: LabelledParagraphs):
        self.shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        indent = max(cell_len(formatting.make_printable(label)) for label, *_ in self.shown.rows) + _GAP
        for label, text, remedy in self.shown.rows:
            first = _make_text(label, self.shown.label_style)
            first.pad_right(indent - first.cell_len)
            for part, style in ((text, ""), (remedy, "dim")) if remedy else ((text, ""),):
                lines = _make_text(part, style).wrap(console, max(options.max_width - indent, _MIN_COLUMN_WIDTH))
                for line in lines:
                    line.rstrip()
                    yield first + line
                    first = Text(" " * indent)


class BrokenCommands:
    """Commands to be copied, under a title. A long one continues on the next line, as a shell reads it.

    >>> Console(width=30).print(BrokenCommands(Commands("Next", ["candide fit rows.csv --target y -o m.candide"])))
    Next
      candide fit rows.csv \\
        --target y -o m.candide
    """

    def __init__(self, shown: Commands):
        self.shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        lines = [line for command in self.shown.commands for line in _break_command(command, options.max_width - 2)]
        yield Text.assemble((f"{self.shown.title}\n", "bold"), "\n".join(f"  {line}" for line in lines))


def _break_command(command: str, width: int) -> list[str]:
    """Return a command in lines that fit where possible: it is broken before options."""
    pieces = list[str]()
    for word in shlex.split(command):
        if word.startswith("-") or not pieces:
            pieces.append(shlex.quote(word))
        else:
            pieces[-1] += f" {shlex.quote(word)}"
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) + 3 > width:
            lines[-1] += " \\"
            lines.append(f"  {piece}")
        else:
            lines[-1] += f" {piece}"
    return lines


class FittedTable:
    """A table that fits the terminal.

    Where space is short, optional columns are left out one after another; then text and headings are cut, the widest
    first; then columns are left out from the end, required ones last, and the title counts them. Different names stay
    different after they are cut.
    """

    def __init__(self, shown: TableSection):
        self.shown, self.columns = shown, shown.columns
        rows = [*shown.rows, *([[f"and {shown.n_more:,} more"]] if shown.n_more else []), *shown.totals]
        self.headings = [_make_text(column.heading.replace("\n", " ")) for column in shown.columns]
        self.rows = [self._row(i, row) for i, row in enumerate(rows)]

    def _row(self, i: int, row: Sequence[str]) -> list[Text]:
        """Return the cells of a row; rows after those of records are dim in their first cell."""
        styles = self.shown.styles[i] if i < len(self.shown.styles) else ()
        styles = ("dim",) if i >= len(self.shown.rows) else styles
        padded = [*row, *[""] * (len(self.columns) - len(row))]
        return [_make_text(c.replace("\n", " "), styles[j] if j < len(styles) else "") for j, c in enumerate(padded)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        shown, widths, n_hidden = self._fit_columns(options.max_width)
        hint = f" ({self.shown.hint})" if self.shown.hint else ""
        hint += f" ({formatting.format_count(n_hidden, 'more column')} not shown)" if n_hidden else ""
        title = Text.assemble((formatting.make_printable(self.shown.title), "bold"), (hint, "dim"), overflow="ellipsis")
        title.no_wrap = True
        yield title
        table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="cyan")
        headings = [self.headings[0], *cut_names([self.headings[i] for i in shown[1:]], widths[1:])]
        for i, heading, width in zip(shown, headings, widths, strict=True):
            side = "left" if self._is_text(i) else "right"
            table.add_column(heading, justify=side, no_wrap=True, overflow="ellipsis", width=width)  # type: ignore[arg-type]
        names = cut_names([row[0] for row in self.rows], [widths[0]] * len(self.rows))
        for name, row in zip(names, self.rows, strict=True):
            table.add_row(name, *(row[i] for i in shown[1:]))
        yield table

    def _is_text(self, i: int) -> bool:
        return i == 0 or self.columns[i].is_text

    def _fit_columns(self, max_width: int) -> tuple[list[int], list[int], int]:
        """Return the columns that fit, how wide each is, and how many that are not optional do not fit."""
        cells = [max([row[i].cell_len for row in self.rows], default=0) for i in range(len(self.columns))]
        width = [max(n, heading.cell_len) for n, heading in zip(cells, self.headings, strict=True)]
        least = [min(w, _MIN_COLUMN_WIDTH) if self._is_text(i) else cells[i] for i, w in enumerate(width)]
        shown = list(range(len(width)))

        def excess(widths: list[int]) -> int:
            return sum(widths[i] + _GAP for i in shown) - _GAP - max_width

        for i in [i for i, column in enumerate(self.columns) if column.is_optional]:
            if excess(width) > 0:
                shown.remove(i)
        n_fitting = len(shown)
        while excess(least) > 0 and len(shown) > 1:
            shown.remove(max(shown[1:], key=lambda i: (not self.columns[i].is_required, i)))
        while excess(width) > 0 and any(width[i] > least[i] for i in shown):
            width[max(shown, key=lambda i: (width[i] > least[i], width[i]))] -= 1
        return shown, [width[i] for i in shown], n_fitting - len(shown)


def cut_names(names: Sequence[Text], widths: Sequence[int]) -> list[Text]:
    """Cut names at their end, or in the middle, so that those that differ still do; otherwise number them.

    >>> def cut(names, width):
    ...     return [str(name) for name in cut_names(list(map(Text, names)), [width] * len(names))]
    >>> cut(["river sand", "shore sand", "clay"], 6), cut(["sand of the river", "sand of the shore", "clay"], 9)
    (['river…', 'shore…', 'clay'], ['sand…iver', 'sand…hore', 'clay'])
    >>> cut(["the wild rose of May", "the wild nose of May"], 7)
    ['the w…1', 'the w…2']
    """
    for part in _CUT_POSITIONS:
        short = [_cut_middle(name, width, part) for name, width in zip(names, widths, strict=True)]
        if len({name.plain for name in short}) == len({name.plain for name in names}):
            return short
    short = [_cut_middle(name, width, 1.0) for name, width in zip(names, widths, strict=True)]
    counts = Counter(name.plain for name in short)
    return [
        name if counts[name.plain] == 1 or name.plain == whole.plain else _cut_and_number(whole, width, i)
        for i, (name, whole, width) in enumerate(zip(short, names, widths, strict=True), start=1)
    ]


def _cut_middle(name: Text, width: int, part: float) -> Text:
    if name.cell_len <= width:
        return name
    left = round((width - 1) * part)
    right = max(width - 1 - left, 0)
    while True:  # characters may be two cells wide
        first, last = name[:left], name[len(name) - right :]
        first.rstrip()
        short = Text.assemble(first, "…", last)
        if short.cell_len <= width or not left + right:
            return short
        left, right = (left, right - 1) if right >= left else (left - 1, right)


def _cut_and_number(name: Text, width: int, i: int) -> Text:
    short = name.copy()
    short.truncate(max(width - len(f"…{i}"), 0))
    return Text.assemble(short, f"…{i}")


class HighlightedDocument:
    """A document in colours: green for a class, underlined red against it.

    >>> from candide.explain.words import HighlightedText
    >>> words = [HighlightedText("Free", 2.0), HighlightedText(" ", 0.0), HighlightedText("lunch", -1.0)]
    >>> [style for _, style in HighlightedDocument(Document(words, "spam")).pieces()]
    ['bold green', '', 'underline red']
    """

    def __init__(self, shown: Document):
        self.shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield Text.assemble(*self.pieces())
        parts = ("for", "green"), (f" {self.shown.label}, ", "dim"), ("against", "underline red"), (" it", "dim")
        yield Text.assemble(*parts)

    def pieces(self) -> Iterator[tuple[str, str]]:
        """Yield the pieces that are shown, and the style of each; of a long document those around the strongest."""
        largest = max(abs(piece.log_odds) for piece in self.shown.highlights)
        for piece in shorten_highlights(self.shown.highlights, _MAX_CHARACTERS):
            part = abs(piece.log_odds) / largest
            colour = "" if part < _FAINT_FROM else "green" if piece.log_odds > 0 else "underline red"
            text = formatting.make_printable(piece.text).replace("\n", " ")
            yield text, f"bold {colour}" if part > _STRONG_FROM else colour
