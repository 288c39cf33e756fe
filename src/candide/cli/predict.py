"""Commands that apply a model to rows: predict and explain."""

import shutil
import sys
from functools import partial
from typing import Any

import rich_click as click

from candide import files
from candide.cli import options as shared
from candide.cli.group import cli, show_progress, show_result, summary
from candide.cli.group import models as api
from candide.errors import InputError


@cli.command()
@click.argument("model", type=shared.MODEL)
@click.argument("data", required=False)
@click.option("--text", metavar="TEXT", help="Score this one document instead of DATA, and list its strongest words.")
@shared.output_option("OUT", "Write a .parquet, .csv, .tsv or .jsonl file. Default: the terminal.")
@click.option("--keep", multiple=True, metavar="COL", help="Pass an input column through (repeatable; 'all' for all).")
@click.option(
    "--intervals", type=float, metavar="LEVEL", help="Add credible intervals of this level, such as .95 (naive Bayes)."
)
@shared.policy_options
@shared.CLASS_PRIOR
@shared.reading_options
@shared.AS_JSON
def predict(
    model: str, data: str | None, text: str | None, output: str | None, class_prior: Any, as_json: bool, **options: Any
) -> None:
    """Score a table: the prediction, the probability of each class, and log p(x) of every row.

    log p(x) is empty for a weighted model, whose score is not a density. Costs, a threshold or --abstain-below replace
    the policy that the model was saved with; the prediction is empty where it abstains.

    Examples: `candide predict adult.candide new.csv -o scored.parquet --keep id`,
    `candide predict sms.candide --text "free prize, call now"`
    """
    policy, _ = shared.parse_policy(options, class_prior)
    if (data is None) == (text is None):
        raise InputError("pass DATA, or one document with --text")
    if text is not None:
        show_result(api.predict_text(model, text, policy=policy), as_json)
    else:
        _show_scored(partial(api.predict_table, model, data, policy=policy, **options), output, as_json)


def _show_scored(predict: Any, output: str | None, as_json: bool) -> None:
    """Write the scored table to a file or a pipe, or print its first rows."""
    if output is None and not as_json and not sys.stdout.isatty():  # a pipe: for another program
        path = files.temporary_file(".csv")
        try:
            predict(path, force=True)  # an empty file of our own
            with open(path, "rb") as rows:
                shutil.copyfileobj(rows, sys.stdout.buffer, 1 << 20)
        finally:
            files.remove_temporary(path)
        return
    scored = predict(output, watch=show_progress(output is not None and not as_json))
    if output is not None:
        show_result(summary.ScoredFileSummary(scored, output), as_json)
    elif as_json:
        for row in scored.to_pylist():
            show_result(row, as_json)
    else:
        show_result(summary.summarize_rows(scored), as_json)


@cli.command()
@click.argument("model", type=shared.MODEL)
@click.argument("data")
@click.option(
    "--row",
    "--rows",
    "rows",
    multiple=True,
    metavar="N|A-B",
    help="Row of DATA, counted from 1, or rows: 3,7-9 (repeatable). Default: the first.",
)
@click.option(
    "--by",
    type=click.Choice(["term", "column"]),
    default="term",
    show_default=True,
    help="Show joint terms as they are, or divide each among its columns that are not missing.",
)
@shared.reading_options
@shared.AS_JSON
def explain(model: str, data: str, rows: tuple[str, ...], by: str, as_json: bool, **options: Any) -> None:
    """Explain predictions: the contribution of each term to the log-odds against the runner-up.

    With --json there is one object per row, each on its own line.

    Examples: `candide explain adult.candide new.csv --row 7`, `candide explain adult.candide new.csv --rows 3,7-9`
    """
    ranges = []
    for text in ",".join(rows or ["1"]).split(","):
        first, dash, last = text.partition("-")
        if not (first.strip().isdecimal() and (last.strip().isdecimal() or not dash)):
            remedy = "pass a number, such as 7, or a range, such as 3-9"
            raise InputError(f"--row {text!r} is not a valid row", value=text, remedy=remedy)
        ranges.append((int(first), int(last or first)))
    for explained in api.explain_rows(model, data, ranges, by=by, **options):
        show_result(summary.DecisionSummary(*explained), as_json)
