"""The terminal: sections of a report on a screen of any width. No line is broken: what does not fit is cut."""

import io
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from candide import formatting
from candide.explain.words import shorten_highlights
from candide.report.records import Commands, Document, LabelledParagraphs, Paragraph, Section, TableSection

_WIDTH = 110  # columns of what is written to a file or a pipe
_CUT_POSITIONS = (1.0, 0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1)  # the part of a name before the dots, tried in turn
_GAP, _MIN_COLUMN_WIDTH = 2, 10  # between columns; text is cut down to this width, numbers never
_MAX_CHARACTERS = 700  # of a document
_FAINT_FROM, _STRONG_FROM = 0.05, 0.5  # parts of the largest contribution: less has no colour, more is bold


def print_summary(summary: Any) -> None:
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if has_width else _WIDTH)
    console.print()
    _print_sections(console, summary)
    console.print()


def render_text(summary: Any) -> str:
    """Return a summary as it is printed, without colours."""
    width = int(os.environ.get("COLUMNS") or _WIDTH)
    console = Console(highlight=False, width=width, file=io.StringIO(), color_system=None, force_jupyter=False)
    with console.capture() as printed:
        _print_sections(console, summary)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def _print_sections(console: Console, summary: Any) -> None:
    """Print sections with a line between them, without documents where there are no colours to highlight them."""
    has_colours = console.color_system is not None
    sections = (section for section in summary.sections() if has_colours or not isinstance(section, Document))
    for i, section in enumerate(sections):
        if i:
            console.print()
        print_section(console, section)


def print_section(console: Console, section: Section) -> None:
    parts = Group(*_render(section, console, console.width))
    console.print(parts, soft_wrap=isinstance(section, Commands))


@singledispatch
def _render(section: Any, console: Console, width: int) -> Iterator[RenderableType]:
    raise TypeError(f"{type(section).__name__} is not a section of a report")


@_render.register
def _(section: Paragraph, console: Console, width: int) -> Iterator[RenderableType]:
    text = _make_text(section.text, section.style)
    yield Panel(text, title=section.frame, title_align="left", expand=False) if section.frame else text


@_render.register
def _(section: LabelledParagraphs, console: Console, width: int) -> Iterator[RenderableType]:
    """Yield paragraphs beside their labels, as wide as the terminal allows."""
    if section.title:
        yield _make_text(section.title, "bold")
    indent = max(cell_len(formatting.make_printable(label)) for label, *_ in section.rows) + _GAP
    for label, text, remedy in section.rows:
        first = _make_text(label, section.label_style)
        first.pad_right(indent - first.cell_len)
        for part, style in ((text, ""), (remedy, "dim")) if remedy else ((text, ""),):
            for line in _make_text(part, style).wrap(console, max(width - indent, _MIN_COLUMN_WIDTH)):
                line.rstrip()
                yield first + line
                first = Text(" " * indent)


@_render.register
def _(section: Commands, console: Console, width: int) -> Iterator[RenderableType]:
    """Yield commands to be copied; a long one continues before an option on the next line, as a shell reads it."""
    lines = list[str]()
    for command in section.commands:
        pieces = list[str]()
        for word in map(shlex.quote, shlex.split(command)):
            if word.startswith(("-", "'-")) or not pieces:
                pieces.append(word)
            else:
                pieces[-1] += f" {word}"
        lines += pieces[:1]
        for piece in pieces[1:]:
            if len(lines[-1]) + len(piece) + 5 > width:
                lines[-1] += " \\"
                lines.append(f"  {piece}")
            else:
                lines[-1] += f" {piece}"
    yield Text.assemble((f"{section.title}\n", "bold"), "\n".join(f"  {line}" for line in lines))


@_render.register
def _(section: Document, console: Console, width: int) -> Iterator[RenderableType]:
    """Yield a document in colours: green for a class, underlined red against it; of a long one the strongest parts."""
    largest, pieces = max(abs(piece.log_odds) for piece in section.highlights), list[tuple[str, str]]()
    for piece in shorten_highlights(section.highlights, _MAX_CHARACTERS):
        part = abs(piece.log_odds) / largest
        colour = "" if part < _FAINT_FROM else "green" if piece.log_odds > 0 else "underline red"
        text = formatting.make_printable(piece.text).replace("\n", " ")
        pieces.append((text, f"bold {colour}" if part > _STRONG_FROM else colour))
    yield Text.assemble(*pieces)
    legend = ("for", "green"), (f" {section.label}, ", "dim"), ("against", "underline red"), (" it", "dim")
    yield Text.assemble(*legend)


def _make_text(text: str, style: str = "") -> Text:
    """Return any text as text that moves no cursor and changes no colour."""
    return Text(formatting.make_printable(text), style=style)


@_render.register
def _(section: TableSection, console: Console, width: int) -> Iterator[RenderableType]:
    """Yield a table that fits the terminal.

    Where space is short, optional columns are left out one after another; then text and headings are cut, the widest
    first; then columns are left out from the end, required ones last, and the title counts them. Different names stay
    different after they are cut.
    """
    headings = [_make_text(column.heading.replace("\n", " ")) for column in section.columns]
    more = [[f"and {section.n_more:,} more"]] if section.n_more else []
    rows, blank = [], [""] * len(section.columns)
    for i, cells in enumerate([*section.rows, *more, *section.totals]):
        styles: Sequence[str] = section.styles[i] if i < len(section.styles) else ()
        styles = ("dim",) if i >= len(section.rows) else styles  # in the first cell after the records
        pairs = zip([*cells, *blank[len(cells) :]], [*styles, *blank], strict=False)
        rows.append([_make_text(cell.replace("\n", " "), style) for cell, style in pairs])
    shown, widths, n_hidden = _fit_columns(section, headings, rows, width)
    hint = f" ({section.hint})" if section.hint else ""
    hint += f" ({formatting.format_count(n_hidden, 'more column')} not shown)" if n_hidden else ""
    title = Text.assemble((formatting.make_printable(section.title), "bold"), (hint, "dim"), overflow="ellipsis")
    title.no_wrap = True
    yield title
    table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="cyan")
    short = [headings[0], *cut_names([headings[i] for i in shown[1:]], widths[1:])]
    for i, heading, column_width in zip(shown, short, widths, strict=True):
        side: Any = "left" if i == 0 or section.columns[i].is_text else "right"
        table.add_column(heading, justify=side, no_wrap=True, overflow="ellipsis", width=column_width)
    names = cut_names([row[0] for row in rows], [widths[0]] * len(rows))
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *(row[i] for i in shown[1:]))
    yield table


def _fit_columns(
    section: TableSection, headings: list[Text], rows: list[list[Text]], max_width: int
) -> tuple[list[int], list[int], int]:
    """Return the columns that fit, the width of each, and how many that are not optional do not fit."""
    columns = section.columns
    cells = [max([row[i].cell_len for row in rows], default=0) for i in range(len(columns))]
    width = [max(n, heading.cell_len) for n, heading in zip(cells, headings, strict=True)]
    is_text = [i == 0 or column.is_text for i, column in enumerate(columns)]
    least = [min(w, _MIN_COLUMN_WIDTH) if text else n for w, text, n in zip(width, is_text, cells, strict=True)]
    shown = list(range(len(width)))

    def excess(widths: list[int]) -> int:
        return sum(widths[i] + _GAP for i in shown) - _GAP - max_width

    for i in [i for i, column in enumerate(columns) if column.is_optional]:
        if excess(width) > 0:
            shown.remove(i)
    n_fitting = len(shown)
    while excess(least) > 0 and len(shown) > 1:
        shown.remove(max(shown[1:], key=lambda i: (not columns[i].is_required, i)))
    while excess(width) > 0 and any(width[i] > least[i] for i in shown):
        width[max(shown, key=lambda i: (width[i] > least[i], width[i]))] -= 1
    return shown, [width[i] for i in shown], n_fitting - len(shown)


def cut_names(names: Sequence[Text], widths: Sequence[int]) -> list[Text]:
    """Cut names at their end, or in the middle, so that those that differ still do; otherwise number them."""
    for part in _CUT_POSITIONS:
        short = [_cut_middle(name, width, part) for name, width in zip(names, widths, strict=True)]
        if len({name.plain for name in short}) == len({name.plain for name in names}):
            return short
    short = [_cut_middle(name, width, 1.0) for name, width in zip(names, widths, strict=True)]
    counts = Counter(name.plain for name in short)
    for i, (whole, width) in enumerate(zip(names, widths, strict=True)):
        if counts[short[i].plain] > 1 and short[i].plain != whole.plain:
            start, number = whole.copy(), f"…{i + 1}"
            start.truncate(max(width - len(number), 0))
            short[i] = Text.assemble(start, number)
    return short


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
