"""Scores on a terminal: every metric beside its baseline, and the confusion matrix."""

from rich.console import RenderableType

from candide import wording
from candide.report.summary import ScoreSummary, TrustSummary
from candide.report.terminal.layout import Parts, Sheet, escape, notes, parts


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
    return trusted(found)


def trusted(found: TrustSummary) -> Parts:
    """What is heard and how often that is right, in a line; then metrics beside naive Bayes and the class shares."""
    heard = ", ".join(wording.plural(n, kind) for kind, n in found.voices.items()) or "nothing but the class shares"
    each = {"this model": found.model, "naive Bayes": found.plain, "class shares": found.baseline}
    right = f"right in {wording.percent(found.model['accuracy'])} of the rows held out"
    line = f"[bold]Heard:[/bold] {heard}; {right}. {_verdict(found)}"
    title = f"On rows held out [dim]({found.folds} folds of {wording.plural(found.rows)})[/dim]"
    names = [name.replace("_", "-").replace("auc", "AUC") for name in found.model]
    rows = [[who, *(f"{v:.3f}" for v in of.values())] for who, of in each.items()]
    return [line, Sheet(title, "", *names, rows=rows)]


def _verdict(found: TrustSummary) -> str:
    """What the probabilities are worth, by their log-loss."""
    own, plain, shares = (of["log_loss"] for of in (found.model, found.plain, found.baseline))
    if own >= shares:
        return "Its probabilities are worth no more than the class shares."
    if own >= plain:
        return "Naive Bayes does as well, and is simpler: --model naive."
    return "Its probabilities are better than those of naive Bayes and of the class shares."


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
