"""Comparisons on a terminal: settings beside each other, then the differences, then what they mean."""

from candide import formatting
from candide.report.summary import CompareSummary, DifferenceSummary
from candide.report.terminal.layout import Parts, TextTable, escape, render_parts


@render_parts.register
def _(found: CompareSummary) -> Parts:
    title = f"Cross-validated on the same {found.folds} folds of {formatting.format_count(found.rows)}"
    names = [escape(name) for name in found.names]
    each = list(found.metrics[found.names[0]])
    rows = [
        [escape(found.metric_title(metric)), *(_format_number(found.metrics[name][metric]) for name in found.names)]
        for metric in each
    ]
    shown: Parts = [TextTable(title, "metric", *names, rows=rows)]
    for name, verdict in zip(found.names[1:], found.conclusions, strict=True):
        lines = [
            [
                escape(found.metric_title(one.metric)),
                f"{one.mean:+.4f}",
                f"{one.low:+.4f} to {one.high:+.4f}",
                _significance_note(one),
            ]
            for one in found.differences
            if one.name == name
        ]
        heading = f"{escape(name)} less {names[0]} [dim](fold by fold, with 95 % of chance)[/dim]"
        shown += [
            TextTable(heading, "metric", "difference", "between", "", text_columns=[""], rows=lines),
            escape(f"{verdict}."),
        ]
    return shown


def _significance_note(one: DifferenceSummary) -> str:
    if not one.is_significant:
        return "[dim]may be chance[/dim]"
    return "[green]better[/green]" if one.is_better else "[red]worse[/red]"


def _format_number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"
