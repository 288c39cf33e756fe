"""Changes on a terminal: what moved between two models, and what counting did to one."""

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType

from candide import wording
from candide.report.summary import AdaptSummary, ChangeSummary, MergeSummary, UpdateSummary, WeighSummary
from candide.report.terminal.layout import Parts, Sheet, escape, notes, panel, parts

_LEAST = 0.05  # nats of surprise: below it stands 0.0


@parts.register
def _(found: ChangeSummary) -> Parts:
    """What moved between two models, most surprising first."""
    text = f"{wording.plural(found.rows[0])} before, {found.rows[1]:,} after"
    shown = [
        panel(text, "candide diff"),
        _moves(
            "Classes",
            found.classes,
            lambda m: (wording.label(m.label), _change(m.before, m.after, m.status, wording.percent)),
        ),
        _moves(
            "Columns",
            found.columns,
            lambda m: (f"{wording.column(m.column)}, {m.label}", _changes(m.values, m.column in found.dates)),
        ),
        _moves(
            "Levels",
            found.levels,
            lambda m: (f"{m.column} = {m.level}, {m.label}", _change(m.before, m.after, m.status, wording.percent)),
        ),
    ]
    if found.left_out:
        shown.append(f"[dim]not compared: {escape(', '.join(map(str, found.left_out)))}[/dim]")
    return [*shown, "[dim]moved: divergence in nats; surprise: in nats of evidence that it is no accident[/dim]"]


@parts.register
def _(found: UpdateSummary) -> Parts:
    text = f"{wording.plural(found.rows)} {found.done} {found.model}"
    if found.output is None:
        text += f", which now has {found.rows_in_model:,}"
    else:
        text += f"; the model of {wording.plural(found.rows_in_model)} is kept in {found.output}"
    return [escape(text), *notes(found.notes)]


@parts.register
def _(found: MergeSummary) -> Parts:
    many = wording.plural(found.models, "model"), wording.plural(found.rows)
    return [escape(f"{', '.join(many)}, added up in {found.output}"), *notes(found.notes)]


@parts.register
def _(found: WeighSummary) -> Parts:
    where = "" if found.output is None else f", kept in {found.output}"
    return [escape(f"{found.model}: {found.weights}{where}")]


@parts.register
def _(found: AdaptSummary) -> Parts:
    rows = [
        [escape(wording.label(one.label)), *map(wording.percent, (one.before, one.after)), _between(one.low, one.high)]
        for one in found.shares
    ]
    title = f"What {wording.plural(found.rows)} say of the shares of the classes"
    kept = [] if found.output is None else [escape(f"{found.model}, turned to these shares, is kept in {found.output}")]
    return [Sheet(title, "class", "learned", "here", "95 %", rows=rows), *kept, *notes(found.notes)]


def _between(low: float, high: float) -> str:
    return f"{wording.percent(low)} to {wording.percent(high)}"


def _moves(title: str, moves: tuple[Any, ...], words: Callable[[Any], tuple[str, str]]) -> RenderableType:
    """A table of the moves whose surprise does not round to nothing: ``words`` says of one what moved, and how."""
    if not (moves := tuple(one for one in moves if one.surprise >= _LEAST)):
        return f"[dim]{title}: nothing moved but by accident[/dim]"
    rows = [[*map(escape, words(one)), f"{one.moved:.4f}", f"{one.surprise:,.1f}"] for one in moves]
    heads = (title.lower(), "how", "moved", "surprise")
    return Sheet(f"{title} that moved, most surprising first", *heads, text=["how"], spare=["moved"], rows=rows)


def _change(before: float, after: float, status: str, form: Callable[[float], str] = wording.number) -> str:
    return f"{form(before)} -> {form(after)}" + (f" ({status})" if status else "")


def _changes(values: dict[str, tuple[float, float]], is_date: bool) -> str:
    pairs = {name: [wording.figure(name, one, is_date) for one in pair] for name, pair in values.items()}
    return "; ".join(f"{name} {' -> '.join(pair)}" for name, pair in pairs.items())
