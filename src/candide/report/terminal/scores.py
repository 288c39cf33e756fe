"""Scores on a terminal: every metric beside its baseline, and the confusion matrix."""

from rich.console import Group, RenderableType

from candide import wording
from candide.report.summary import ScoreSummary, TrustSummary
from candide.report.summary.scores import chosen_words
from candide.report.terminal.layout import Parts, Sheet, escape, notes, parts


@parts.register
def _(found: ScoreSummary) -> Parts:
    rows = wording.plural(found.rows)
    title = f"Cross-validated, {found.folds} folds, {rows}" if found.folds > 1 else f"Scored on {rows}"
    return [metrics(found, title), *notes(found.notes), *_in_detail(found), confusion(found)]


def cross_validated(found: ScoreSummary) -> Parts:
    """The scores of folds, below what was learned of all rows."""
    return [metrics(found, f"Cross-validated, {found.folds} folds"), *notes(found.notes), confusion(found)]


def _in_detail(found: ScoreSummary) -> Parts:
    """What probabilities are worth, each class by itself, and what thresholds would do."""
    shown: Parts = [*_decisions(found)]
    if found.calibration_words:
        shown.append(escape(found.calibration_words))
    if found.top:
        among = ", ".join(f"{k} most probable in {wording.percent(share)}" for k, share in found.top.items())
        shown.append(f"The true class is among the {among}.")
    by_class = list[list[str]]()
    for one in found.by_class:
        figures = map(_number, (one.precision, one.recall, one.f1, one.auc, one.average_precision))
        by_class.append([escape(wording.label(one.label)), wording.weight(one.rows), *figures, _times(one.lift)])
    heads = "class", "rows", "precision", "recall", "F1", "AUC", "PR-AUC", "lift"
    title = "By class [dim](lift: of the tenth of the rows that are its most probable ones)[/dim]"
    shown.append(Sheet(title, *heads, spare=["PR-AUC", "lift"], rows=by_class))
    if found.thresholds:
        shown.append(_thresholds(found))
    return shown


def _decisions(found: ScoreSummary) -> Parts:
    """What decisions come to, where a policy makes them, and what a threshold does that was chosen."""
    shown: Parts = []
    if (at := found.chosen) is not None:
        shown.append(escape(f"R{chosen_words(at)[1:]}."))
    if (one := found.decided) is not None:
        some = f"{wording.percent(one.coverage)} of the rows are decided, the rest left open; "
        cost = f"a row costs {one.mean_cost:.4g}, all {one.total_cost:,.6g}"
        alone = f"{one.baseline_cost:.4g}" if one.baseline_coverage else "no row is decided"
        alone = f"by the class shares alone {alone}"
        shown.append(
            f"[bold]By a rule[/bold], {escape(one.policy)}: {'' if one.coverage == 1 else some}{cost}; {alone}."
        )
    return shown


def _thresholds(found: ScoreSummary) -> Sheet:
    label = escape(wording.label(found.thresholds[0].label))
    title = f"If rows are taken for {label} from a probability on"
    rows = [
        [f"{one.threshold:g}", wording.percent(one.flagged), *map(_number, (one.precision, one.recall, one.f1))]
        for one in found.thresholds
    ]
    return Sheet(title, "threshold", "taken", "precision", "recall", "F1", rows=rows)


@parts.register
def _(found: TrustSummary) -> Parts:
    return trusted(found)


def trusted(found: TrustSummary) -> Parts:
    """What is heard and how often that is right, in a line; then metrics beside naive Bayes and the class shares."""
    heard = ", ".join(wording.plural(n, kind) for kind, n in found.voices.items()) or "nothing but the class shares"
    each = {"this model": found.model, "naive Bayes": found.plain, "class shares": found.baseline}
    right = f"right in {wording.percent(found.model['accuracy'])} of the rows held out"
    line = f"[bold]Heard:[/bold] {heard}; {right}. {_verdict(found)}"
    some = wording.plural(max(found.rows, found.of_rows))
    some = f"a sample of {found.rows:,} of {some}" if found.rows < found.of_rows else some
    title = f"On rows held out [dim]({found.folds}-fold cross-validation on {some})[/dim]"
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
        between = "" if one.low != one.low else f"{_number(one.low)} to {_number(one.high)}"
        rows.append([escape(one.title), values[0], between, *values[1:], f"[dim]{one.meaning}[/dim]"])
    heads = ["metric", "value", "95 %", *(["± fold sd"] if several else []), "baseline", "meaning"]
    title += ", most probable class" if found.chosen is not None else ""
    title = f"{title} [dim](95 %: on other such {found.intervals_by}; baseline: class shares)[/dim]"
    return Sheet(title, *heads, text=["meaning"], spare=["95 %"], rows=rows)


def confusion(found: ScoreSummary) -> RenderableType:
    """True classes down, predicted classes across; under a threshold that was chosen too, if one was."""
    if (at := found.chosen) is None:
        return _matrix(found, "Confusion")
    title = f"Confusion, {escape(wording.label(at.label))} from what the other folds choose on"
    own = sum(found.confusion[found.labels.index(at.label)])
    taken, wrong = at.recall * own, at.false_positive_rate * (found.rows - own)
    label, rest = escape(wording.label(at.label)), f"not {escape(wording.label(at.label))}"
    counts = {rest: (found.rows - own - wrong, wrong), label: (own - taken, taken)}
    rows = [[name, *(wording.weight(round(n, 6)) for n in each)] for name, each in counts.items()]
    return Group(
        Sheet(title, "true \\ predicted", rest, label, rows=rows), "", _matrix(found, "Confusion, most probable class")
    )


def _matrix(found: ScoreSummary, title: str) -> RenderableType:
    if len(found.labels) > 12:
        return f"[dim]The confusion matrix of {len(found.labels)} classes is in --json.[/dim]"
    names = [escape(wording.label(label)) for label in found.labels]
    rows = [[name, *map(wording.weight, row)] for name, row in zip(names, found.confusion, strict=True)]
    return Sheet(title, "true \\ predicted", *names, rows=rows)


def _times(value: float) -> str:
    return "" if value != value else f"{value:.2f}"


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
