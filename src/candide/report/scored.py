"""Scores and scored rows, for a person and as facts."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.markup import escape

from candide import wording
from candide.report.layout import Sheet, notes, say
from candide.rows.labels import Labels
from candide.tasks.scores import Scores, by_shares, spread

_MEANING = {
    "accuracy": "the most probable class is right",
    "balanced_accuracy": "the same, classes counting alike",
    "log_loss": "surprise in nats; lower is better",
    "brier": "squared error; lower is better",
    "auc": "a row of a class ranks above others",
    "calibration_error": "confidence off from what came true",
}


def show_scores(folds: Sequence[Scores], labels: Labels, shares: np.ndarray) -> None:
    """Metrics with their spread, beside those of the class shares alone, and the confusion matrix."""
    total = sum(folds[1:], folds[0])
    rows = wording.plural(total.n)
    title = f"Cross-validated, {len(folds)} folds, {rows}" if len(folds) > 1 else f"Scored on {rows}"
    say(metrics(folds, title, shares), *notes(remarks(folds, shares)), confusion(total, labels))


def score_facts(folds: Sequence[Scores], labels: Labels, shares: np.ndarray) -> dict[str, Any]:
    total = sum(folds[1:], folds[0])
    facts: dict[str, Any] = {"rows": total.n, "folds": len(folds)}
    facts |= {name: {"mean": mean, "sd": sd} for name, (mean, sd) in spread(list(folds)).items()}
    facts |= {"baseline": by_shares(total, shares).metrics(), "notes": remarks(folds, shares)}
    return facts | {"classes": list(labels.values), "confusion": total.confusion.tolist()}


def metrics(folds: Sequence[Scores], title: str, shares: np.ndarray) -> Sheet:
    """Every metric, its spread over folds, what the class shares alone would have, and its meaning."""
    several, baseline = len(folds) > 1, by_shares(sum(folds[1:], folds[0]), shares).metrics()
    rows = []
    for name, (mean, sd) in spread(list(folds)).items():
        values = [_number(mean), *([_number(sd)] if several else []), _number(baseline[name])]
        rows.append([name.replace("_", " "), *values, f"[dim]{_MEANING[name]}[/dim]"])
    heads = ["metric", "value", *(["± sd"] if several else []), "baseline", "meaning"]
    return Sheet(f"{title} [dim](baseline: the class shares alone)[/dim]", *heads, text=["meaning"], rows=rows)


def remarks(folds: Sequence[Scores], shares: np.ndarray) -> list[str]:
    """A word where the probabilities are worse than none."""
    total = sum(folds[1:], folds[0])
    least = by_shares(total, shares).log_loss
    if not total.log_loss > least:
        return []
    return [
        f"the log loss, {total.log_loss:.4f}, is worse than the {least:.4f} of giving every row the class shares: "
        "trust the order of the rows, not the probabilities; columns that tell the same (--drop, --select) and "
        "event models that do not fit (--event) make them too sure"
    ]


def confusion(scores: Scores, labels: Labels) -> RenderableType:
    """True classes down, predicted classes across."""
    if len(labels) > 12:
        return f"[dim]The confusion matrix of {len(labels)} classes is in --json.[/dim]"
    names = [escape(str(v)) for v in labels.values]
    rows = [[name, *(f"{v:,.10g}" for v in row)] for name, row in zip(names, scores.confusion, strict=True)]
    return Sheet("Confusion", "true \\ predicted", *names, rows=rows)


def show_rows(table: Any) -> None:
    """Scored rows: a table for the eye on a terminal, CSV in a pipe."""
    if not sys.stdout.isatty():
        import pyarrow.csv

        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    head = table.slice(0, 20).to_pylist()
    names = [escape(name) for name in table.column_names]
    text = [name for name, *column in zip(names, *map(dict.values, head), strict=True) if any(map(_is_text, column))]
    rows = [list(map(_cell, row.values())) for row in head]
    title = wording.plural(table.num_rows) + (", the first 20" if table.num_rows > 20 else "")
    say(Sheet(title, *names, text=text, vital=names[table.column_names.index("prediction") :], rows=rows))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
