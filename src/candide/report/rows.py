"""One row, or one document: its class, and what decided; for a person and as facts."""

from typing import Any

from rich.markup import escape

from candide import wording
from candide.explain import terms
from candide.explain.rows import Decision, said
from candide.report.layout import Sheet, panel, say
from candide.rows.table import Table


def decision_facts(row: int, label: Any, decision: Decision) -> dict[str, Any]:
    """A row, its class, and what every column says."""
    return {
        "row": row,
        "label": label,
        "prediction": decision.prediction,
        "probability": decision.probability,
        "runner_up": decision.runner_up,
        "runner_up_probability": decision.runner_up_probability,
        "log_odds": decision.log_odds,
        "class_prior": decision.class_prior,
        "columns": [vars(one) for one in decision.contributions],
    }


def show_decision(row: int, label: Any, decision: Decision) -> None:
    """The class of a row, and what speaks for it against the runner-up."""
    first, second = escape(str(decision.prediction)), escape(str(decision.runner_up))
    text = f"{first}, p = {decision.probability:.4f}; then {second}, p = {decision.runner_up_probability:.4f}"
    if label is not None:
        text += f"\nlabelled {escape(str(label))}"
    rows = [[escape(wording.column(r.column)), escape(said(r)), f"{r.nats:+.3f}"] for r in decision.contributions]
    rows = [*rows[:36], *([[f"and {len(rows) - 36:,} more", "", f"{_rest(decision):+.3f}"]] if rows[36:] else [])]
    rows += [["[dim]class prior[/dim]", "", f"{decision.class_prior:+.3f}"]]
    rows += [["[dim]together[/dim]", "", f"{decision.log_odds:+.3f}"]]
    title = f"What speaks for {first} [dim]against {second}, in nats[/dim]"
    say(panel(text, f"candide explain, row {row}"), Sheet(title, "column", "value", "nats", text=["value"], rows=rows))


def _rest(decision: Decision) -> float:
    return sum(one.nats for one in decision.contributions[36:])


def text_facts(fitted: Any, text: str) -> dict[str, Any]:
    """What a model makes of one document, and the words that decided."""
    column = terms.text_part(fitted)[1].columns[0]
    rows = {name: [text if name == column else None] for name in fitted.plan.columns}
    p = fitted.posterior(Table.of(rows))[0]
    words = [{"term": w.term, "count": w.count, "weight": w.weight} for w in terms.document_terms(fitted, text)]
    shares = {str(label): float(share) for label, share in zip(fitted.labels.values, p, strict=True)}
    return {"prediction": fitted.labels.values[int(p.argmax())], "probabilities": shares, "words": words}


def show_text(facts: dict[str, Any]) -> None:
    """The class of one document, the probabilities, and the words that decided."""
    likely = sorted(facts["probabilities"].items(), key=lambda pair: -pair[1])
    table = Sheet("Probabilities", "class", "probability", rows=[[escape(label), f"{p:.4f}"] for label, p in likely])
    told = [[escape(word["term"]), f"{word['count']:g}", f"{word['weight']:+.3f}"] for word in facts["words"]]
    words = Sheet("Words that decided", "term", "count", "log-odds", rows=told)
    say(panel(escape(str(facts["prediction"])), "candide predict"), table, words)
