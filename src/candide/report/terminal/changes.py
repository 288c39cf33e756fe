"""Changes on a terminal: what moved between two models, and what counting did to one."""

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType

from candide import formatting
from candide.report.summary import AdaptSummary, DiffSummary, MergeSummary, ReweightSummary, UpdateSummary
from candide.report.terminal.layout import Parts, TextTable, escape, make_panel, render_notes, render_parts

_MIN_SURPRISE = 0.05  # nats of surprise: below it stands 0.0


@render_parts.register
def _(found: DiffSummary) -> Parts:
    """What moved between two models, most surprising first."""
    text = f"{formatting.format_count(found.rows[0])} before, {found.rows[1]:,} after"
    shown = [
        make_panel(text, "candide diff"),
        _change_table(
            "Classes",
            found.classes,
            lambda m: (
                formatting.format_label(m.label),
                _format_change(m.before, m.after, m.status, formatting.format_percent),
            ),
        ),
        _change_table(
            "Columns",
            found.columns,
            lambda m: (
                f"{formatting.format_column(m.column)}, {m.label}",
                _format_changes(m.values, m.column in found.dates),
            ),
        ),
        _change_table(
            "Levels",
            found.levels,
            lambda m: (
                f"{m.column} = {m.level}, {m.label}",
                _format_change(m.before, m.after, m.status, formatting.format_percent),
            ),
        ),
    ]
    if found.skipped_columns:
        shown.append(f"[dim]not compared: {escape(', '.join(map(str, found.skipped_columns)))}[/dim]")
    return [*shown, "[dim]moved: divergence in nats; surprise: in nats of evidence that it is no accident[/dim]"]


@render_parts.register
def _(found: UpdateSummary) -> Parts:
    text = f"{formatting.format_count(found.rows)} {found.action} {found.model}"
    if found.output is None:
        text += f", which now has {found.rows_in_model:,}"
    else:
        text += f"; the model of {formatting.format_count(found.rows_in_model)} is kept in {found.output}"
    return [escape(text), *render_notes(found.notes)]


@render_parts.register
def _(found: MergeSummary) -> Parts:
    many = formatting.format_count(found.models, "model"), formatting.format_count(found.rows)
    return [escape(f"{', '.join(many)}, added up in {found.output}"), *render_notes(found.notes)]


@render_parts.register
def _(found: ReweightSummary) -> Parts:
    where = "" if found.output is None else f", kept in {found.output}"
    return [escape(f"{found.model}: {found.weights}{where}")]


@render_parts.register
def _(found: AdaptSummary) -> Parts:
    rows = [
        [
            escape(formatting.format_label(one.label)),
            *map(formatting.format_percent, (one.before, one.after)),
            _format_interval(one.low, one.high),
        ]
        for one in found.class_proportions
    ]
    title = f"What {formatting.format_count(found.rows)} say of the shares of the classes"
    kept = [] if found.output is None else [escape(f"{found.model}, turned to these shares, is kept in {found.output}")]
    return [TextTable(title, "class", "learned", "here", "95 %", rows=rows), *kept, *render_notes(found.notes)]


def _format_interval(low: float, high: float) -> str:
    return f"{formatting.format_percent(low)} to {formatting.format_percent(high)}"


def _change_table(title: str, moves: tuple[Any, ...], words: Callable[[Any], tuple[str, str]]) -> RenderableType:
    """A table of the moves whose surprise does not round to nothing: ``words`` says of one what moved, and how."""
    if not (moves := tuple(one for one in moves if one.surprise >= _MIN_SURPRISE)):
        return f"[dim]{title}: nothing moved but by accident[/dim]"
    rows = [[*map(escape, words(one)), f"{one.divergence:.4f}", f"{one.surprise:,.1f}"] for one in moves]
    heads = (title.lower(), "how", "moved", "surprise")
    return TextTable(
        f"{title} that moved, most surprising first",
        *heads,
        text_columns=["how"],
        optional_columns=["moved"],
        rows=rows,
    )


def _format_change(
    before: float, after: float, status: str, form: Callable[[float], str] = formatting.format_number
) -> str:
    return f"{form(before)} -> {form(after)}" + (f" ({status})" if status else "")


def _format_changes(values: dict[str, tuple[float, float]], is_date: bool) -> str:
    pairs = {name: [formatting.format_parameter(name, one, is_date) for one in pair] for name, pair in values.items()}
    return "; ".join(f"{name} {' -> '.join(pair)}" for name, pair in pairs.items())
