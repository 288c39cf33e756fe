"""Rows on a terminal: why one was given its class, what decided of a document, and scored rows."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from candide import wording
from candide.explain.marks import Mark, excerpt
from candide.report.summary import DecisionSummary, RowsSummary, TextSummary
from candide.report.terminal.layout import Parts, Sheet, escape, panel, parts

_LINES, _TERMS = 36, 12  # contributions, and terms of a document, shown one by one
_LETTERS = 700  # of a document that are shown at most
_FAINT, _STRONG = 0.05, 0.5  # shares of the strongest: less has no colour, more is bold


@parts.register
def _(found: DecisionSummary) -> Parts:
    """The class of a row, and what speaks for it against the runner-up."""
    decision = found.decision
    first, second = escape(str(decision.prediction)), escape(str(decision.runner_up))
    one, other = wording.probability(decision.probability), wording.probability(decision.runner_up_probability)
    text = f"{first}, p {one}; then {second}, p {other}"
    if decision.decided:
        text = f"{escape(decision.decided)}\n{text}"
    if found.label is not None:
        text += f"\nlabelled {escape(wording.label(found.label))}"
    rows = [[escape(one.title), escape(one.shown), wording.nats(one.nats)] for one in decision.contributions[:_LINES]]
    if more := len(decision.contributions[_LINES:]):
        rows.append([f"and {more:,} more", "", wording.nats(found.nats_after(_LINES))])
    rows.append([f"[dim]{decision.prior_title}[/dim]", "", wording.nats(decision.class_prior)])
    rows += [["[dim]calibration[/dim]", "", wording.nats(decision.calibration)]] if decision.calibration else []
    rows.append(["[dim]together[/dim]", "", wording.nats(decision.log_odds)])
    title = f"What speaks for {first} [dim]against {second}, in nats[/dim]"
    sheet = Sheet(title, decision.heading, "value", "nats", text=["value"], rows=rows)
    words = [_words(one, first) for one in decision.contributions if one.words]
    return [panel(text, f"candide explain, row {found.row}"), sheet, *words]


def _words(one: Any, label: str) -> RenderableType:
    """The terms of a document, which add up to what the document says; and the document, where colours can be shown."""
    rows = [[escape(word.term), f"{word.count:g}", wording.nats(word.weight)] for word in one.words[:_TERMS]]
    if more := one.words[_TERMS:]:
        rows.append([f"and {len(more):,} more", "", wording.nats(sum(word.weight for word in more))])
    if abs(one.rest) > 5e-4:
        rows.append(["[dim]length, and terms it lacks[/dim]", "", wording.nats(one.rest)])
    rows.append(["[dim]together[/dim]", "", wording.nats(one.nats)])
    sheet = Sheet(f"Terms of {escape(wording.column(one.column))}", "term", "times", "nats", rows=rows)
    return Group(sheet, Marked(one.marks, label))


class Marked:
    """A document in colours: what speaks for a class (markup), and underlined what speaks against it.

    Of a long one, what stands around the pieces that say most. Without colours nothing is to be seen, nor printed.

    >>> said = Marked([Mark("Free", 2.0), Mark(" ", 0.0), Mark("lunch", -1.0)], "spam")
    >>> [style for _, style in said.pieces()]
    ['bold green', '', 'underline red']
    """

    def __init__(self, marks: Sequence[Mark], label: str):
        self.marks, self.label = marks, label

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if console.color_system is None or not any(mark.nats for mark in self.marks):
            return
        yield ""
        yield Text.assemble(*self.pieces())
        yield f"[dim][green]for[/green] {self.label}, [underline red]against[/] it; the strongest are bold[/dim]"

    def pieces(self) -> Iterator[tuple[str, str]]:
        """The pieces that are shown, and the style of each."""
        most = max(abs(mark.nats) for mark in self.marks)
        for mark in excerpt(self.marks, _LETTERS):
            share = abs(mark.nats) / most
            colour = "" if share < _FAINT else "green" if mark.nats > 0 else "underline red"
            yield wording.printable(mark.text).replace("\n", " "), f"bold {colour}" if share > _STRONG else colour


@parts.register
def _(found: TextSummary) -> Parts:
    likely = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    shares = [[escape(wording.label(label)), f"{p:.4f}"] for label, p in likely]
    words = [[escape(one.term), f"{one.count:g}", wording.nats(one.weight)] for one in found.words]
    label = escape(str(found.prediction))
    title = "Words that decided"
    if len(likely) > 2:  # of two classes the other is known
        title += f" for {label} over {escape(str(found.against))}"
    decided = Sheet(title, "term", "count", "log-odds", rows=words)
    return [
        panel(label, "candide predict"),
        Sheet("Probabilities", "class", "probability", rows=shares),
        Group(decided, Marked(found.marks, label)),
    ]


@parts.register
def _(found: RowsSummary) -> Parts:
    names = [escape(name) for name in found.columns]
    text = [name for name, *cells in zip(names, *found.head, strict=True) if any(isinstance(v, str) for v in cells)]
    title = wording.plural(found.rows) + (f", the first {len(found.head)}" if found.rows > len(found.head) else "")
    rows = [list(map(_cell, row)) for row in found.head]
    return [Sheet(title, *names, text=text, vital=list(map(escape, found.results)), rows=rows)]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))
