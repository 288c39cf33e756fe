"""Scores on a terminal: every metric beside its baseline, and the confusion matrix."""

from rich.console import Group, RenderableType

from candide import formatting
from candide.report.summary import HeldOutSummary, ScoreSummary
from candide.report.summary.scores import describe_chosen_threshold
from candide.report.terminal.layout import Parts, TextTable, escape, render_notes, render_parts


@render_parts.register
def _(found: ScoreSummary) -> Parts:
    rows = formatting.format_count(found.rows)
    title = f"Cross-validated, {found.folds} folds, {rows}" if found.folds > 1 else f"Scored on {rows}"
    return [metric_table(found, title), *render_notes(found.notes), *_detail_parts(found), confusion_parts(found)]


def cross_validation_parts(found: ScoreSummary) -> Parts:
    """The scores of folds, below what was learned of all rows."""
    return [
        metric_table(found, f"Cross-validated, {found.folds} folds"),
        *render_notes(found.notes),
        confusion_parts(found),
    ]


def _detail_parts(found: ScoreSummary) -> Parts:
    """What probabilities are worth, each class by itself, and what thresholds would do."""
    shown: Parts = [*_decision_parts(found)]
    if found.calibration_note:
        shown.append(escape(found.calibration_note))
    if found.top_k_accuracy:
        among = ", ".join(
            f"{k} most probable in {formatting.format_percent(share)}" for k, share in found.top_k_accuracy.items()
        )
        shown.append(f"The true class is among the {among}.")
    by_class = list[list[str]]()
    for one in found.by_class:
        figures = map(_format_number, (one.precision, one.recall, one.f1, one.auc, one.average_precision))
        by_class.append(
            [
                escape(formatting.format_label(one.label)),
                formatting.format_weight(one.weight),
                *figures,
                _format_factor(one.lift),
            ]
        )
    heads = "class", "rows", "precision", "recall", "F1", "AUC", "PR-AUC", "lift"
    title = "By class [dim](lift: of the tenth of the rows that are its most probable ones)[/dim]"
    shown.append(TextTable(title, *heads, optional_columns=["PR-AUC", "lift"], rows=by_class))
    if found.thresholds:
        shown.append(_threshold_table(found))
    return shown


def _decision_parts(found: ScoreSummary) -> Parts:
    """What decisions come to, where a policy makes them, and what a threshold does that was chosen."""
    shown: Parts = []
    if (at := found.chosen_threshold) is not None:
        shown.append(escape(f"R{describe_chosen_threshold(at)[1:]}."))
    if (one := found.policy_result) is not None:
        some = f"{formatting.format_percent(one.coverage)} of the rows are decided, the rest left open; "
        cost = f"a row costs {one.mean_cost:.4g}, all {one.total_cost:,.6g}"
        alone = f"{one.baseline_cost:.4g}" if one.baseline_coverage else "no row is decided"
        alone = f"by the class shares alone {alone}"
        shown.append(
            f"[bold]By a rule[/bold], {escape(one.policy)}: {'' if one.coverage == 1 else some}{cost}; {alone}."
        )
    return shown


def _threshold_table(found: ScoreSummary) -> TextTable:
    label = escape(formatting.format_label(found.thresholds[0].label))
    title = f"If rows are taken for {label} from a probability on"
    rows = [
        [
            f"{one.threshold:g}",
            formatting.format_percent(one.flagged),
            *map(_format_number, (one.precision, one.recall, one.f1)),
        ]
        for one in found.thresholds
    ]
    return TextTable(title, "threshold", "taken", "precision", "recall", "F1", rows=rows)


@render_parts.register
def _(found: HeldOutSummary) -> Parts:
    return held_out_parts(found)


def held_out_parts(held_out: HeldOutSummary) -> Parts:
    """What is heard and how often that is right, in a line; then metrics beside naive Bayes and the class shares."""
    heard = (
        ", ".join(formatting.format_count(n, kind) for kind, n in held_out.term_counts.items())
        or "nothing but the class shares"
    )
    each = {
        "this model": held_out.model_metrics,
        "naive Bayes": held_out.naive_bayes_metrics,
        "class shares": held_out.baseline_metrics,
    }
    right = f"right in {formatting.format_percent(held_out.model_metrics['accuracy'])} of the rows held out"
    line = f"[bold]Heard:[/bold] {heard}; {right}. {_conclude(held_out)}"
    some = formatting.format_count(max(held_out.rows, held_out.total_rows))
    some = f"a sample of {held_out.rows:,} of {some}" if held_out.rows < held_out.total_rows else some
    title = f"On rows held out [dim]({held_out.folds}-fold cross-validation on {some})[/dim]"
    names = [name.replace("_", "-").replace("auc", "AUC") for name in held_out.model_metrics]
    rows = [[who, *(f"{v:.3f}" for v in of.values())] for who, of in each.items()]
    return [line, TextTable(title, "", *names, rows=rows)]


def _conclude(found: HeldOutSummary) -> str:
    """What the probabilities are worth, by their log-loss."""
    own, plain, shares = (
        of["log_loss"] for of in (found.model_metrics, found.naive_bayes_metrics, found.baseline_metrics)
    )
    if own >= shares:
        return "Its probabilities are worth no more than the class shares."
    if own >= plain:
        return "Naive Bayes does as well, and is simpler: --model naive."
    return "Its probabilities are better than those of naive Bayes and of the class shares."


def metric_table(found: ScoreSummary, title: str) -> TextTable:
    """Every metric of all rows, its spread over folds, what the class shares alone would have, and its meaning."""
    several, rows = found.folds > 1, []
    for one in found.metrics:
        values = [
            _format_number(one.value),
            *([_format_number(one.fold_sd)] if several else []),
            _format_number(one.baseline),
        ]
        between = "" if one.low != one.low else f"{_format_number(one.low)} to {_format_number(one.high)}"
        rows.append([escape(one.title), values[0], between, *values[1:], f"[dim]{one.meaning}[/dim]"])
    heads = ["metric", "value", "95 %", *(["± fold sd"] if several else []), "baseline", "meaning"]
    title += ", most probable class" if found.chosen_threshold is not None else ""
    title = f"{title} [dim](95 %: on other such {found.intervals_by}; baseline: class shares)[/dim]"
    return TextTable(title, *heads, text_columns=["meaning"], optional_columns=["95 %"], rows=rows)


def confusion_parts(found: ScoreSummary) -> RenderableType:
    """True classes down, predicted classes across; under a threshold that was chosen too, if one was."""
    if (at := found.chosen_threshold) is None:
        return _confusion_table(found, "Confusion")
    title = f"Confusion, {escape(formatting.format_label(at.label))} from what the other folds choose on"
    own = sum(found.confusion[found.labels.index(at.label)])
    taken, wrong = at.recall * own, at.false_positive_rate * (found.rows - own)
    label, rest = escape(formatting.format_label(at.label)), f"not {escape(formatting.format_label(at.label))}"
    counts = {rest: (found.rows - own - wrong, wrong), label: (own - taken, taken)}
    rows = [[name, *(formatting.format_weight(round(n, 6)) for n in each)] for name, each in counts.items()]
    return Group(
        TextTable(title, "true \\ predicted", rest, label, rows=rows),
        "",
        _confusion_table(found, "Confusion, most probable class"),
    )


def _confusion_table(found: ScoreSummary, title: str) -> RenderableType:
    if len(found.labels) > 12:
        return f"[dim]The confusion matrix of {len(found.labels)} classes is in --json.[/dim]"
    names = [escape(formatting.format_label(label)) for label in found.labels]
    rows = [[name, *map(formatting.format_weight, row)] for name, row in zip(names, found.confusion, strict=True)]
    return TextTable(title, "true \\ predicted", *names, rows=rows)


def _format_factor(value: float) -> str:
    return "" if value != value else f"{value:.2f}"


def _format_number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
