"""Layout: how a report lies on a terminal of any width. No line is broken: what does not fit is left out or cut.

>>> Console(width=22).print(TextTable("Herbs", "herb", "soil", "weight", text_columns=["soil"], optional_columns=["soil"], rows=[
...     ["lavender", "chalk and sand", "12"], ["thyme", "sand", "3"]]))
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

from rich import markup as rich_markup
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from candide import formatting

MAX_TABLE_ROWS = 40  # columns, classes or levels in a table for the eye
_WIDTH = 110  # of what is written to a file or a pipe
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
)  # of a name that is cut, how much of it stands first
_GAP, _MIN_COLUMN_WIDTH = 2, 10  # between columns; text is cut down to this width, numbers never


Parts = list[RenderableType]  # one under another, a line between


@singledispatch
def render_parts(found: Any) -> Parts:
    """A summary for a person, part by part. A Text is to be copied, however long its lines; a string is markup."""
    raise TypeError(f"{type(found).__name__} has no renderer for a terminal")


def print_summary(found: Any) -> None:
    """Print a summary."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if known else _WIDTH)
    console.print()
    for part in render_parts(found):
        _print_part(console, part)
        console.print()


def render_text(found: Any) -> str:
    """A summary as it is printed, without colours."""
    width = int(os.environ.get("COLUMNS") or _WIDTH)
    console = Console(highlight=False, width=width, file=io.StringIO(), color_system=None, force_jupyter=False)
    with console.capture() as printed:
        for i, part in enumerate(render_parts(found)):
            if i:
                console.print()
            _print_part(console, part)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def _print_part(console: Console, part: RenderableType) -> None:
    console.print(part, soft_wrap=isinstance(part, Text | CommandList))


def escape(text: str) -> str:
    """Any text as markup that shows it, whatever it holds."""
    return rich_markup.escape(formatting.make_printable(text))


def make_panel(text: str, title: str) -> Panel:
    return Panel(text, title=title, title_align="left", expand=False)


def render_notes(texts: Sequence[str]) -> Parts:
    """Remarks that a person should see, as one part; no part where there is none."""
    return [HangingParagraphs([("[yellow]note[/yellow]", escape(text)) for text in texts])] if texts else []


class HangingParagraphs:
    """Paragraphs of markup beside their labels, each as wide as there is room.

    >>> Console(width=26).print(HangingParagraphs([("note", "the soil is dry, and so is the air"), ("leak", "none")]))
    note  the soil is dry, and
          so is the air
    leak  none
    """

    def __init__(self, rows: Sequence[tuple[str, str]]):
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        indent = max(_cell_length(label) for label, _ in self.rows) + _GAP
        for label, markup in self.rows:
            first = Text.from_markup(label)
            first.pad_right(indent - len(first))
            for line in Text.from_markup(markup).wrap(console, max(options.max_width - indent, _MIN_COLUMN_WIDTH)):
                line.rstrip()
                yield first + line
                first = Text(" " * indent)


class CommandList:
    """Commands to be copied, under a title. A long one goes on in the next line, as a shell reads it.

    >>> Console(width=30).print(CommandList("Next", ["candide fit rows.csv --target y -o m.candide"]))
    Next
      candide fit rows.csv \\
        --target y -o m.candide
    """

    def __init__(self, title: str, commands: Sequence[str]):
        self.title, self.commands = title, commands

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        lines = [line for command in self.commands for line in _break_command(command, options.max_width - 2)]
        yield Text.assemble((f"{self.title}\n", "bold"), "\n".join(f"  {line}" for line in lines))


def _break_command(command: str, width: int) -> list[str]:
    """A command in lines that fit, as far as that can be: it is broken before options."""
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


class TextTable:
    """A title over rows of cells, which are markup. The first column and those of ``text`` are words, others numbers.

    Where there is no room the columns of ``spare`` are left out, one after another; then words and headings are cut,
    the widest first; then columns are left out from the end, those of ``vital`` last, and the title says how many.
    Headings and the first column are names, and names that differ do so when they are cut.
    """

    def __init__(
        self,
        title: str,
        *headings: str,
        text_columns: Sequence[str] = (),
        optional_columns: Sequence[str] = (),
        required_columns: Sequence[str] = (),
        rows: Sequence[Sequence[str]] = (),
        more: int = 0,
    ):
        self.title, self.text_columns, self.optional_columns, self.required_columns = (
            title,
            text_columns,
            optional_columns,
            required_columns,
        )
        self.headings = tuple(heading.replace("\n", " ") for heading in headings)
        self.rows = [[cell.replace("\n", " ") for cell in row] for row in rows[:MAX_TABLE_ROWS]]
        if more := more or len(rows[MAX_TABLE_ROWS:]):
            self.rows.append([f"[dim]and {more:,} more[/dim]", *[""] * (len(headings) - 1)])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        shown, widths, gone = self._fit_columns(options.max_width)
        more = f" [dim]({formatting.format_count(gone, 'more column')} without room)[/dim]" if gone else ""
        title = Text.from_markup(self.title + more, style="bold", overflow="ellipsis")
        title.no_wrap = True
        yield title
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="cyan")
        corner = Text.from_markup(self.headings[0])  # what the names below it are
        headings = [corner, *cut_names([self.headings[i] for i in shown[1:]], widths[1:])]
        for i, heading, width in zip(shown, headings, widths, strict=True):
            side = "left" if self._is_text(i) else "right"
            table.add_column(heading, justify=side, no_wrap=True, overflow="ellipsis", width=width)  # type: ignore[arg-type]
        names = cut_names([row[0] for row in self.rows], [widths[0]] * len(self.rows))
        for name, row in zip(names, self.rows, strict=True):
            table.add_row(name, *(row[i] for i in shown[1:]))
        yield table

    def _is_text(self, i: int) -> bool:
        return i == 0 or self.headings[i] in self.text_columns

    def _fit_columns(self, room: int) -> tuple[list[int], list[int], int]:
        """Which columns there is room for, how wide each is, and how many that are not spare there is no room for."""
        cells = [max([_cell_length(row[i]) for row in self.rows], default=0) for i in range(len(self.headings))]
        width = [max(n, _cell_length(head)) for n, head in zip(cells, self.headings, strict=True)]
        least = [min(w, _MIN_COLUMN_WIDTH) if self._is_text(i) else cells[i] for i, w in enumerate(width)]
        shown = list(range(len(width)))

        def over(of: list[int]) -> int:
            return sum(of[i] + _GAP for i in shown) - _GAP - room

        for heading in self.optional_columns:
            if over(width) > 0:
                shown.remove(self.headings.index(heading))
        wanted = len(shown)
        while over(least) > 0 and len(shown) > 1:
            shown.remove(max(shown[1:], key=lambda i: (self.headings[i] not in self.required_columns, i)))
        while over(width) > 0 and any(width[i] > least[i] for i in shown):
            width[max(shown, key=lambda i: (width[i] > least[i], width[i]))] -= 1
        return shown, [width[i] for i in shown], wanted - len(shown)


def cut_names(names: Sequence[str], widths: Sequence[int]) -> list[Text]:
    """Names, which are markup, cut at their end, or in the middle, where those that differ still do; else numbered.

    >>> [str(name) for name in cut_names(["river sand", "shore sand", "clay"], [6, 6, 6])]
    ['river…', 'shore…', 'clay']
    >>> [str(name) for name in cut_names(["sand of the river", "sand of the shore", "clay"], [9, 9, 9])]
    ['sand…iver', 'sand…hore', 'clay']
    >>> [str(name) for name in cut_names(["the wild rose of May", "the wild nose of May"], [7, 7])]
    ['the w…1', 'the w…2']
    """
    whole = [Text.from_markup(name) for name in names]
    for share in _CUT_POSITIONS:
        short = [_without_middle(name, width, share) for name, width in zip(whole, widths, strict=True)]
        if len({name.plain for name in short}) == len({name.plain for name in whole}):
            return short
    short = [_without_middle(name, width, 1.0) for name, width in zip(whole, widths, strict=True)]
    met = Counter(name.plain for name in short)
    return [
        name if met[name.plain] == 1 or name.plain == old.plain else _numbered(old, width, i)
        for i, (name, old, width) in enumerate(zip(short, whole, widths, strict=True), start=1)
    ]


def _without_middle(name: Text, width: int, share: float) -> Text:
    if name.cell_len <= width:
        return name
    left = round((width - 1) * share)
    right = max(width - 1 - left, 0)
    while True:  # letters may be two cells wide
        first, last = name[:left], name[len(name) - right :]
        first.rstrip()
        short = Text.assemble(first, "…", last)
        if short.cell_len <= width or not left + right:
            return short
        left, right = (left, right - 1) if right >= left else (left - 1, right)


def _numbered(name: Text, width: int, i: int) -> Text:
    short = name.copy()
    short.truncate(max(width - len(f"…{i}"), 0))
    return Text.assemble(short, f"…{i}")


def _cell_length(markup: str) -> int:
    return cell_len(Text.from_markup(markup).plain)
