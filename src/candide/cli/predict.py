"""Commands that apply a model to rows: predict and explain."""

import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import rich_click as click

from candide import files
from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import (
    AS_JSON,
    CLASS_PRIOR,
    MODEL,
    POLICY_NAMES,
    output_option,
    parse_policy,
    policy_options,
    reading_options,
    typed_arguments,
)
from candide.engines.reading import ReadOptions
from candide.errors import InputError


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@click.option("--text", metavar="TEXT", help="Score this one document instead of DATA, and say which words decided.")
@output_option("OUT", "A .parquet, .csv, .tsv or .jsonl file; else the terminal.")
@click.option("--keep", multiple=True, metavar="COL", help="Pass an input column through (repeatable; 'all' for all).")
@click.option(
    "--intervals",
    type=float,
    metavar="LEVEL",
    help="Tell how sure each probability is, of the model naive: .95.",
)
@click.option(
    "--server", metavar="URL", help="Have DATA, named alone, scored by a server: candide predict DATA --server URL."
)
@click.option(
    "--token", envvar="CANDIDE_TOKEN", metavar="TOKEN", help="What a private server asks for (or CANDIDE_TOKEN)."
)
@policy_options
@CLASS_PRIOR
@reading_options
@AS_JSON
def predict(
    model: str,
    data: str | None,
    text: str | None,
    output: str | None,
    force: bool,
    keep: tuple[str, ...],
    intervals: float | None,
    server: str | None,
    token: str | None,
    class_prior: Any,
    as_json: bool,
    **options: Any,
) -> None:
    """Score a table: the prediction, the probability of each class, and log p(x) of every row.

    Of a model that weighs its columns log p(x) is empty: a weighted score is no density. Costs, a threshold or
    --abstain-below decide in the place of what the model was saved with; of rows left open the prediction is empty.

    Examples: `candide predict adult.candide new.csv -o scored.parquet --keep id`,
    `candide predict sms.candide --text "free prize, call now"`,
    `candide predict new.csv --server http://127.0.0.1:8000 -o scored.parquet`
    """
    from candide import operations
    from candide.report import summary
    from candide.store import outputs
    from candide.store.scored_files import is_scored_file

    policy, _ = parse_policy(options, class_prior)
    how: dict[str, Any] = {"keep": keep, "force": force, "reading": ReadOptions(**options)}
    if server is not None:
        _check_remote(model, data)
        _show_scored(partial(operations.predict_remotely, server, model, token=token, **how), output, as_json)
        return
    fitted = load_to_predict(model, data).with_policy(policy)
    if (data is None) == (text is None):
        raise InputError("pass DATA, or one document with --text")
    if text is not None:
        show_result(summary.summarize_text(fitted, text), as_json)
        return
    outputs.check_destination(output, model, data, ours=is_scored_file, force=force)
    _show_scored(partial(operations.predict, fitted, data, intervals=intervals, **how), output, as_json)


def _check_remote(data: str, options: str | None) -> None:
    """An error where something is asked for that the server alone decides."""
    if options is not None:
        remedy = f"name DATA alone: candide predict {shlex.quote(options)} --server URL"
        raise InputError("a server has its own model", value=data, remedy=remedy)
    if given := typed_arguments({"text", "intervals", "class_prior", *POLICY_NAMES}):
        named = ", ".join(word.partition("=")[0] for word in given if word.startswith("--"))
        what = f"{named}: a server decides by what its model was saved with"
        raise InputError(what, value=named, remedy="leave it out, or predict with the model file")


def _show_scored(predict: Callable[..., Any], output: str | None, as_json: bool) -> None:
    """The scored table: in a file, in a pipe, or on the terminal."""
    from candide.cli import progress
    from candide.report import summary

    if output is None and not as_json and not sys.stdout.isatty():  # in a pipe: for another program
        path = files.temporary_file(".csv")
        try:
            predict(out=path, force=True)  # an empty file of our own
            with open(path, "rb") as scored_rows:
                shutil.copyfileobj(scored_rows, sys.stdout.buffer, 1 << 20)
        finally:
            files.remove_temporary(path)
        return
    with progress.show_progress(output is not None and not as_json) as watch:
        scored: Any = predict(out=output, watch=watch)
    if output is not None:
        show_result(summary.ScoredFileSummary(scored, output), as_json)
    elif as_json:
        for row in scored.to_pylist():
            show_result(row, as_json)
    else:
        show_result(summary.summarize_rows(scored), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option(
    "--row",
    "--rows",
    "rows",
    multiple=True,
    metavar="N|A-B",
    help="Which row of DATA, counted from 1, or which rows: 3,7-9 (repeatable). The first if not given.",
)
@click.option(
    "--by",
    type=click.Choice(["term", "column"]),
    default="term",
    show_default=True,
    help="Show joint terms as they are, or divide each among its columns that are not missing.",
)
@reading_options
@AS_JSON
def explain(model: str, data: str, rows: tuple[str, ...], by: str, as_json: bool, **options: Any) -> None:
    """Say why rows are given their class: how much each column speaks for it, in nats, against the runner-up.

    With --json there is one object a row, each on a line of its own.

    Examples: `candide explain adult.candide new.csv --row 7`, `candide explain adult.candide new.csv --rows 3,7-9`
    """
    from candide import operations
    from candide.report import summary

    fitted = load_to_predict(model, data)
    ranges = [_parse_range(text) for row in rows or ["1"] for text in row.split(",")]
    for explained in operations.explain_rows(fitted, data, ranges, ReadOptions(**options), by):
        show_result(summary.summarize_decision(*explained), as_json)


def _parse_range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first.strip().isdecimal() and (last.strip().isdecimal() or not dash)):
        remedy = "pass a number, such as 7, or a range, such as 3-9"
        raise InputError(f"--row {text!r} is no row", value=text, remedy=remedy)
    ends = int(first), int(last or first)
    if not 1 <= ends[0] <= ends[1]:
        remedy = "rows are counted from 1, and a range goes up"
        raise InputError(f"--row {text!r} is no row", value=text, remedy=remedy)
    return ends
