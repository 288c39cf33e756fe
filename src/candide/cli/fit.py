"""Commands that fit a model: check, fit, and sql count for tables that Candide cannot reach."""

import shlex
from collections.abc import Sequence
from typing import Any

import rich_click as click
from click import get_current_context

from candide.cli.group import cli, print_code, show_result
from candide.cli.options import (
    AS_JSON,
    DECISION_NAMES,
    FOLD_BY,
    LEARNING_NAMES,
    MODEL,
    POLICY_NAMES,
    READING_NAMES,
    SETTINGS_NAMES,
    TARGET_TO_LEARN,
    learning_options,
    output_option,
    parse_learning_options,
    parse_planning_options,
    parse_policy,
    planning_options,
    policy_and_aim_options,
    reading_options,
    reading_options_except,
    typed_arguments,
)
from candide.engines.addresses import redact_address
from candide.engines.sql.dialects.registry import DIALECTS
from candide.errors import InputError
from candide.model.settings import CALIBRATIONS

EXIT_FINDINGS = 3  # exit status of a check with findings
_FILE_NAMES = ("encoding", "errors", "delimiter", "decimal")  # reading options of a file of counts
_COUNTS_NAMES = ("from_counts", "model", *_FILE_NAMES, *SETTINGS_NAMES)


@cli.command()
@click.argument("data")
@TARGET_TO_LEARN
@planning_options
@reading_options
@AS_JSON
def check(data: str, target: str, as_json: bool, **options: Any) -> None:
    """Check a table for problems before you fit a model to it.

    Finds columns that leak the class, copies, identifiers, constants, values that stand for "missing", names that
    differ only in case or spaces, and levels and classes with too few rows. Exit status: 0 without findings, 3 with
    findings.

    Example: `candide check adult.parquet --target class`
    """
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary

    keywords = parse_planning_options(options, data)
    result = api.check_data(data, target, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_check(redact_address(data), target, result), as_json)
    if result.findings:
        raise SystemExit(EXIT_FINDINGS)


@cli.command()
@click.argument("data", required=False)
@click.option("--target", "-t", metavar="COL", help="Column to predict.")
@click.option(
    "--from-counts",
    type=MODEL,
    metavar="FILE",
    help="Instead of DATA, the CSV result of the query of candide sql count; the model is naive Bayes.",
)
@output_option("MODEL", "Write the model to this .candide file.")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Also cross-validate with N folds.")
@FOLD_BY
@click.option("--quick", is_flag=True, help="Skip the held-out figures of a weighted model.")
@click.option(
    "--calibration",
    type=click.Choice(list(CALIBRATIONS)),
    help="Calibrate predicted probabilities on held-out rows.",
)
@click.option(
    "--like", type=MODEL, metavar="MODEL", help="Use the bins and terms of this model, so that both can be merged."
)
@click.option(
    "--provenance/--no-provenance",
    default=True,
    help="Store source, rows, date, version and options in the model. Default: on.",
)
@policy_and_aim_options
@learning_options
@reading_options
@AS_JSON
def fit(
    data: str | None,
    target: str | None,
    from_counts: str | None,
    output: str | None,
    force: bool,
    quick: bool,
    provenance: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a model to a table: CSV, Parquet, JSON lines, Arrow, a folder, a database, a workbook, ARFF, a query, or `-`.

    Costs, a threshold or --abstain-below are stored with the model and apply wherever it predicts.

    Examples: `candide fit adult.parquet --target class -o adult.candide`,
    `candide fit --from-counts counts.csv -o adult.candide`
    """
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary

    policy, aim = parse_policy(options)
    if from_counts is not None:
        _fit_counts(from_counts, data, target, output, policy, force, provenance, as_json, options)
        return
    if data is None or target is None:
        raise click.UsageError("Missing argument 'DATA'." if data is None else "Missing option '--target' / '-t'.")
    names = ("calibration", "like", "folds", "fold_by")
    keywords = {name: options.pop(name) for name in names} | parse_learning_options(options, data) | aim
    keywords |= {"policy": policy, "keep_held_out": not quick, "force": force, "watch": show_progress(not as_json)}
    typed = typed_arguments([*LEARNING_NAMES, "like", *DECISION_NAMES, *READING_NAMES])
    fit = api.fit_model(data, target, output, provenance=typed if provenance else None, **keywords)
    commands = _next_commands(data, target, output, keywords["like"], fit.validation is not None)
    threshold = None if fit.validation is None else fit.validation.threshold
    show_result(summary.summarize_fit(fit.fit_result, fit.validation, output, commands, threshold), as_json)


def _fit_counts(
    counts: str,
    data: str | None,
    target: str | None,
    output: str | None,
    policy: Any,
    force: bool,
    provenance: bool,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    from candide import api
    from candide.report import summary

    keywords = {"target": target, "policy": policy, "force": force, **_counts_options(data, options)}
    typed = typed_arguments(_COUNTS_NAMES) if provenance else None
    result = api.fit_from_counts(counts, output, provenance=typed, **keywords)
    if output:
        steps = [["predict", output, "NEW_DATA", "-o", "scored.parquet"], ["show", output]]
    else:
        steps = [["fit", "--from-counts", counts, *typed_arguments(_COUNTS_NAMES[1:]), "-o", "model.candide"]]
    commands = [f"candide {shlex.join(step)}" for step in steps]
    show_result(summary.summarize_fit(result, None, output, commands), as_json)


def _counts_options(data: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a fit to counts; options that need rows are refused."""
    names = {str(option.name) for option in get_current_context().command.params}
    allowed = {*_COUNTS_NAMES, "data", "target", "output", "force", "provenance", "as_json", *POLICY_NAMES}
    if refused := [*([data] if data else []), *typed_arguments(names - allowed)]:
        remedy = "leave it out: columns and their event models are options of candide sql count"
        raise InputError(f"{refused[0]}: counts have no rows to read", value=refused[0], remedy=remedy)
    if typed_arguments(["model"]) and options["model"] != "naive":
        what, remedy = "weights are learned from rows, not from counts", "pass --model naive, or leave it out"
        raise InputError(what, value=options["model"], remedy=remedy)
    keywords = parse_learning_options(options, None)
    return {name: keywords[name] for name in (*SETTINGS_NAMES, *_FILE_NAMES) if name in keywords}


def _next_commands(data: str, target: str, output: str | None, like: str | None, validated: bool) -> list[str]:
    """Commands to continue with, ready to be copied, with the typed options for learning and reading."""
    data, reading = redact_address(data), typed_arguments(READING_NAMES)
    learning = typed_arguments([*LEARNING_NAMES, *DECISION_NAMES])
    if output:
        steps: list[Sequence[str]] = [
            ["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"],
            ["explain", output, "NEW_DATA", *reading, "--row", "1"],
            ["show", output],
            ["report", output, "NEW_DATA", *reading, "-o", "report.html"],
        ]
    else:
        typed = typed_arguments([*LEARNING_NAMES, "like", *DECISION_NAMES])
        steps = [["fit", data, "--target", target, *typed, *reading, "-o", "model.candide"]]
    if like is not None:
        steps.append(["merge", like, output or "model.candide", "-o", "all.candide"])
    elif not validated:
        steps.append(["evaluate", data, "--target", target, "--folds", "10", *learning, *reading])
    return [f"candide {shlex.join(step)}" for step in steps]


@cli.group()
def sql() -> None:
    """Queries for a database that Candide cannot reach.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """


@sql.command()
@click.argument("sample", metavar="SAMPLE")
@TARGET_TO_LEARN
@click.option("--table", required=True, metavar="TABLE", help="Table to count, as named after FROM, or a query.")
@click.option("--dialect", required=True, type=click.Choice(list(DIALECTS)), help="SQL dialect of the database.")
@click.option("--like", type=MODEL, metavar="MODEL", help="Count as this model does, so that both can be merged.")
@output_option("FILE", "Write the query to this file. Default: print it.")
@planning_options
@reading_options_except("table")
def count(sample: str, target: str, output: str | None, table: str, **options: Any) -> None:
    """Print a query that counts a table in any database, for you to run there.

    SAMPLE holds some rows of the table; they determine how each column is handled. Save the result of the query as a
    CSV; `candide fit --from-counts` makes the model from it. No row leaves the database.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """
    from candide import api

    keywords = {name: options.pop(name) for name in ("dialect", "like", "force")}
    keywords |= parse_planning_options(options, sample)
    query = api.make_counting_query(sample, target, output, table=table, **keywords)
    if output is None:
        print_code(query)
