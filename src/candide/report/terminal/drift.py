"""Drift on a terminal: a verdict, the columns, and what the model says of the rows before and after."""

from candide import wording
from candide.report.summary import DriftSummary
from candide.report.summary.drift import how
from candide.report.terminal.layout import Parts, Sheet, escape, notes, parts


@parts.register
def _(found: DriftSummary) -> Parts:
    rows = [
        [escape(str(one.column)), escape(how(one)), f"{one.moved:.4f}", _p(one.adjusted), one.test]
        for one in found.columns
    ]
    count = f"{wording.plural(found.rows[1])} against {'?' if found.rows[0] is None else f'{found.rows[0]:,}'} counted"
    return [
        f"[bold]{escape(found.verdict)}[/bold]",
        Sheet(
            f"Columns, {count}", "column", "how", "moved", "p", "test", text=["how", "test"], spare=["test"], rows=rows
        ),
        "[dim]moved: stability index, nats; p: chance of any such move in all columns, if none has moved[/dim]",
        *_said(found),
        *notes(found.notes),
    ]


def _said(found: DriftSummary) -> Parts:
    now, then = found.after, found.before
    right = f"The model expects to be right in {wording.percent(now.expected_accuracy)} of these rows"
    if then is not None and then.expected_accuracy == then.expected_accuracy:
        right += f", in {wording.percent(then.expected_accuracy)} of those before"
    shown: Parts = [f"{right}, if its probabilities are right."]
    if now.density and then is not None:
        of = "drawn from the model" if found.drawn else "before"
        mean = f"log p(x) is {now.mean_density:.2f} on average, {then.mean_density:.2f} of rows {of}"
        shown.append(f"{mean}; {wording.percent(now.unlikely)} of these rows are less likely than all but 1% of those.")
    return shown


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
