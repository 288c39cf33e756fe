"""Drift on a terminal: a verdict, the columns, and what the model says of the rows before and after."""

from candide import formatting
from candide.report.summary import DriftSummary
from candide.report.summary.drift import describe_change
from candide.report.terminal.layout import Parts, TextTable, escape, render_notes, render_parts


@render_parts.register
def _(found: DriftSummary) -> Parts:
    rows = [
        [
            escape(str(one.column)),
            escape(describe_change(one)),
            f"{one.stability_index:.4f}",
            _format_p_value(one.adjusted_p_value),
            one.test,
        ]
        for one in found.columns
    ]
    count = f"{formatting.format_count(found.rows[1])} against {'?' if found.rows[0] is None else f'{found.rows[0]:,}'} counted"
    return [
        f"[bold]{escape(found.conclusion)}[/bold]",
        TextTable(
            f"Columns, {count}",
            "column",
            "how",
            "moved",
            "p",
            "test",
            text_columns=["how", "test"],
            optional_columns=["test"],
            rows=rows,
        ),
        "[dim]moved: stability index, nats; p: chance of any such move in all columns, if none has moved[/dim]",
        *_prediction_parts(found),
        *render_notes(found.notes),
    ]


def _prediction_parts(found: DriftSummary) -> Parts:
    now, then = found.after, found.before
    right = f"The model expects to be right in {formatting.format_percent(now.expected_accuracy)} of these rows"
    if then is not None and then.expected_accuracy == then.expected_accuracy:
        right += f", in {formatting.format_percent(then.expected_accuracy)} of those before"
    shown: Parts = [f"{right}, if its probabilities are right."]
    if now.density_quantiles and then is not None:
        of = "drawn from the model" if found.is_sampled else "before"
        mean = f"log p(x) is {now.mean_density:.2f} on average, {then.mean_density:.2f} of rows {of}"
        shown.append(
            f"{mean}; {formatting.format_percent(now.unlikely_share)} of these rows are less likely than all but 1% of those."
        )
    return shown


def _format_p_value(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
