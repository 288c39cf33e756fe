"""Rows on a terminal: why one was given its class, what decided of a document, and scored rows."""

from typing import Any

from rich.markup import escape

from candide import wording
from candide.report.summary import DecisionSummary, RowsSummary, TextSummary
from candide.report.terminal.layout import Parts, Sheet, panel, parts

_LINES, _TERMS = 36, 12  # contributions, and terms of a document, shown one by one


@parts.register
def _(found: DecisionSummary) -> Parts:
    """The class of a row, and what speaks for it against the runner-up."""
    decision = found.decision
    first, second = escape(str(decision.prediction)), escape(str(decision.runner_up))
    one, other = wording.probability(decision.probability), wording.probability(decision.runner_up_probability)
    text = f"{first}, p {one}; then {second}, p {other}"
    if found.label is not None:
        text += f"\nlabelled {escape(str(found.label))}"
    rows = [[escape(one.title), escape(one.shown), wording.nats(one.nats)] for one in decision.contributions[:_LINES]]
    if more := len(decision.contributions[_LINES:]):
        rows.append([f"and {more:,} more", "", wording.nats(found.nats_after(_LINES))])
    rows.append([f"[dim]{decision.prior_title}[/dim]", "", wording.nats(decision.class_prior)])
    rows += [["[dim]calibration[/dim]", "", wording.nats(decision.calibration)]] if decision.calibration else []
    rows.append(["[dim]together[/dim]", "", wording.nats(decision.log_odds)])
    title = f"What speaks for {first} [dim]against {second}, in nats[/dim]"
    sheet = Sheet(title, decision.heading, "value", "nats", text=["value"], rows=rows)
    words = [_words(one) for one in decision.contributions if one.words]
    return [panel(text, f"candide explain, row {found.row}"), sheet, *words]


def _words(one: Any) -> Sheet:
    """The terms of a document, which add up to what the document says."""
    rows = [[escape(word.term), f"{word.count:g}", wording.nats(word.weight)] for word in one.words[:_TERMS]]
    if more := one.words[_TERMS:]:
        rows.append([f"and {len(more):,} more", "", wording.nats(sum(word.weight for word in more))])
    if abs(one.rest) > 5e-4:
        rows.append(["[dim]length, and terms it lacks[/dim]", "", wording.nats(one.rest)])
    rows.append(["[dim]together[/dim]", "", wording.nats(one.nats)])
    return Sheet(f"Terms of {escape(wording.column(one.column))}", "term", "times", "nats", rows=rows)


@parts.register
def _(found: TextSummary) -> Parts:
    likely = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    shares = [[escape(str(label)), f"{p:.4f}"] for label, p in likely]
    words = [[escape(one.term), f"{one.count:g}", wording.nats(one.weight)] for one in found.words]
    return [
        panel(escape(str(found.prediction)), "candide predict"),
        Sheet("Probabilities", "class", "probability", rows=shares),
        Sheet("Words that decided", "term", "count", "log-odds", rows=words),
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
