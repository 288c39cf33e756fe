"""Rows on a terminal: why one was given its class, what decided of a document, and scored rows."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from candide import formatting
from candide.explain.highlight import HighlightedText, shorten_highlights
from candide.report.summary import DecisionSummary, RowsSummary, TextSummary
from candide.report.terminal.layout import Parts, TextTable, escape, make_panel, render_parts

_MAX_LINES, _MAX_WORDS = 36, 12  # contributions, and terms of a document, shown one by one
_MAX_CHARACTERS = 700  # of a document that are shown at most
_FAINT_FROM, _STRONG_FROM = 0.05, 0.5  # shares of the strongest: less has no colour, more is bold


@render_parts.register
def _(found: DecisionSummary) -> Parts:
    """The class of a row, and what speaks for it against the runner-up."""
    decision = found.decision
    first, second = escape(str(decision.prediction)), escape(str(decision.runner_up))
    one, other = (
        formatting.format_probability(decision.probability),
        formatting.format_probability(decision.runner_up_probability),
    )
    text = f"{first}, p {one}; then {second}, p {other}"
    if decision.decision_note:
        text = f"{escape(decision.decision_note)}\n{text}"
    if found.label is not None:
        text += f"\nlabelled {escape(formatting.format_label(found.label))}"
    rows = [
        [escape(one.title), escape(one.display_value), formatting.format_log_odds(one.log_odds)]
        for one in decision.contributions[:_MAX_LINES]
    ]
    if more := len(decision.contributions[_MAX_LINES:]):
        rows.append([f"and {more:,} more", "", formatting.format_log_odds(found.log_odds_after(_MAX_LINES))])
    rows.append([f"[dim]{decision.prior_title}[/dim]", "", formatting.format_log_odds(decision.class_prior)])
    rows += (
        [["[dim]calibration[/dim]", "", formatting.format_log_odds(decision.calibration)]]
        if decision.calibration
        else []
    )
    rows.append(["[dim]together[/dim]", "", formatting.format_log_odds(decision.log_odds)])
    title = f"What speaks for {first} [dim]against {second}, in nats[/dim]"
    sheet = TextTable(title, decision.row_heading, "value", "nats", text_columns=["value"], rows=rows)
    words = [_document_parts(one, first) for one in decision.contributions if one.words]
    return [make_panel(text, f"candide explain, row {found.row}"), sheet, *words]


def _document_parts(one: Any, label: str) -> RenderableType:
    """The terms of a document, which add up to what the document says; and the document, where colours can be shown."""
    rows = [
        [escape(word.word), f"{word.count:g}", formatting.format_log_odds(word.log_odds)]
        for word in one.words[:_MAX_WORDS]
    ]
    if more := one.words[_MAX_WORDS:]:
        rows.append([f"and {len(more):,} more", "", formatting.format_log_odds(sum(word.log_odds for word in more))])
    if abs(one.remainder) > 5e-4:
        rows.append(["[dim]length, and terms it lacks[/dim]", "", formatting.format_log_odds(one.remainder)])
    rows.append(["[dim]together[/dim]", "", formatting.format_log_odds(one.log_odds)])
    sheet = TextTable(f"Terms of {escape(formatting.format_column(one.column))}", "term", "times", "nats", rows=rows)
    return Group(sheet, HighlightedDocument(one.highlights, label))


class HighlightedDocument:
    """A document in colours: what speaks for a class (markup), and underlined what speaks against it.

    Of a long one, what stands around the pieces that say most. Without colours nothing is to be seen, nor printed.

    >>> said = HighlightedDocument(
    ...     [HighlightedText("Free", 2.0), HighlightedText(" ", 0.0), HighlightedText("lunch", -1.0)], "spam"
    ... )
    >>> [style for _, style in said.pieces()]
    ['bold green', '', 'underline red']
    """

    def __init__(self, highlights: Sequence[HighlightedText], label: str):
        self.highlights, self.label = highlights, label

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if console.color_system is None or not any(mark.log_odds for mark in self.highlights):
            return
        yield ""
        yield Text.assemble(*self.pieces())
        yield f"[dim][green]for[/green] {self.label}, [underline red]against[/] it; the strongest are bold[/dim]"

    def pieces(self) -> Iterator[tuple[str, str]]:
        """The pieces that are shown, and the style of each."""
        most = max(abs(mark.log_odds) for mark in self.highlights)
        for mark in shorten_highlights(self.highlights, _MAX_CHARACTERS):
            share = abs(mark.log_odds) / most
            colour = "" if share < _FAINT_FROM else "green" if mark.log_odds > 0 else "underline red"
            yield (
                formatting.make_printable(mark.text).replace("\n", " "),
                f"bold {colour}" if share > _STRONG_FROM else colour,
            )


@render_parts.register
def _(found: TextSummary) -> Parts:
    likely = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    shares = [[escape(formatting.format_label(label)), f"{p:.4f}"] for label, p in likely]
    words = [[escape(one.word), f"{one.count:g}", formatting.format_log_odds(one.log_odds)] for one in found.words]
    label = escape(str(found.prediction))
    title = "Words that decided"
    if len(likely) > 2:  # of two classes the other is known
        title += f" for {label} over {escape(str(found.runner_up))}"
    decided = TextTable(title, "term", "count", "log-odds", rows=words)
    return [
        make_panel(label, "candide predict"),
        TextTable("Probabilities", "class", "probability", rows=shares),
        Group(decided, HighlightedDocument(found.highlights, label)),
    ]


@render_parts.register
def _(found: RowsSummary) -> Parts:
    names = [escape(name) for name in found.columns]
    text = [
        name for name, *cells in zip(names, *found.first_rows, strict=True) if any(isinstance(v, str) for v in cells)
    ]
    title = formatting.format_count(found.rows) + (
        f", the first {len(found.first_rows)}" if found.rows > len(found.first_rows) else ""
    )
    rows = [list(map(_cell, row)) for row in found.first_rows]
    return [
        TextTable(title, *names, text_columns=text, required_columns=list(map(escape, found.result_columns)), rows=rows)
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))
