"""Scores on a terminal: every metric beside its baseline, and the confusion matrix."""

from rich.console import RenderableType
from rich.markup import escape

from candide import wording
from candide.report.summary import ScoreSummary, TrustSummary
from candide.report.terminal.layout import Parts, Sheet, notes, parts


@parts.register
def _(found: ScoreSummary) -> Parts:
    rows = wording.plural(found.rows)
    title = f"Cross-validated, {found.folds} folds, {rows}" if found.folds > 1 else f"Scored on {rows}"
    return [metrics(found, title), *notes(found.notes), confusion(found)]


def cross_validated(found: ScoreSummary) -> Parts:
    """The scores of folds, below what was learned of all rows."""
    return [metrics(found, f"Cross-validated, {found.folds} folds"), *notes(found.notes), confusion(found)]


@parts.register
def _(found: TrustSummary) -> Parts:
    return [trusted(found)]


def trusted(found: TrustSummary) -> str:
    """One line: what is heard, and how that does on rows held out, beside naive Bayes and the class shares."""
    heard = ", ".join(wording.plural(n, kind) for kind, n in found.voices.items()) or "nothing but the class shares"
    named = ", ".join(f"{name.replace('_', '-').replace('auc', 'AUC')} {v:.3f}" for name, v in found.model.items())
    plain, shares = (", ".join(f"{v:.3f}" for v in of.values()) for of in (found.plain, found.baseline))
    held = f"rows held out, {found.folds} folds of {found.rows:,}"
    return f"[bold]Heard:[/bold] {heard}; on {held}: {named} (naive Bayes {plain}; class shares {shares})"


def metrics(found: ScoreSummary, title: str) -> Sheet:
    """Every metric of all rows, its spread over folds, what the class shares alone would have, and its meaning."""
    several, rows = found.folds > 1, []
    for one in found.metrics:
        values = [_number(one.value), *([_number(one.fold_sd)] if several else []), _number(one.baseline)]
        rows.append([one.name.replace("_", " "), *values, f"[dim]{one.meaning}[/dim]"])
    heads = ["metric", "value", *(["± fold sd"] if several else []), "baseline", "meaning"]
    return Sheet(f"{title} [dim](baseline: the class shares alone)[/dim]", *heads, text=["meaning"], rows=rows)


def confusion(found: ScoreSummary) -> RenderableType:
    """True classes down, predicted classes across."""
    if len(found.labels) > 12:
        return f"[dim]The confusion matrix of {len(found.labels)} classes is in --json.[/dim]"
    names = [escape(str(label)) for label in found.labels]
    rows = [[name, *(f"{n:,.10g}" for n in row)] for name, row in zip(names, found.confusion, strict=True)]
    return Sheet("Confusion", "true \\ predicted", *names, rows=rows)


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
