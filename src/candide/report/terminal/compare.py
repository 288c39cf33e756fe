"""Comparisons on a terminal: settings beside each other, then the differences, then what they mean."""

from candide import wording
from candide.report.summary import CompareSummary, DifferenceSummary
from candide.report.terminal.layout import Parts, Sheet, escape, parts


@parts.register
def _(found: CompareSummary) -> Parts:
    title = f"Cross-validated on the same {found.folds} folds of {wording.plural(found.rows)}"
    names = [escape(name) for name in found.names]
    each = list(found.metrics[found.names[0]])
    rows = [
        [escape(found.title(metric)), *(_number(found.metrics[name][metric]) for name in found.names)]
        for metric in each
    ]
    shown: Parts = [Sheet(title, "metric", *names, rows=rows)]
    for name, verdict in zip(found.names[1:], found.verdicts, strict=True):
        lines = [
            [escape(found.title(one.metric)), f"{one.mean:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", _word(one)]
            for one in found.differences
            if one.name == name
        ]
        heading = f"{escape(name)} less {names[0]} [dim](fold by fold, with 95 % of chance)[/dim]"
        shown += [Sheet(heading, "metric", "difference", "between", "", text=[""], rows=lines), escape(f"{verdict}.")]
    return shown


def _word(one: DifferenceSummary) -> str:
    if not one.matters:
        return "[dim]may be chance[/dim]"
    return "[green]better[/green]" if one.better else "[red]worse[/red]"


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
