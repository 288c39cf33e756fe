"""Commands that fit a model: check, fit, and sql count for tables that Candide cannot reach."""

import shlex
from typing import Any

import rich_click as click
from click import get_current_context

from candide.cli import options as shared
from candide.cli.group import cli, print_code, show_progress, show_result, summary
from candide.cli.group import fitting as api
from candide.engines.reading import redact_address
from candide.engines.sql.dialects.registry import DIALECTS
from candide.errors import InputError
from candide.model.settings import CALIBRATIONS

EXIT_FINDINGS = 3  # exit status of a check with findings
_FILE_NAMES = ("encoding", "errors", "delimiter", "decimal")  # reading options of a file of counts
_COUNTS_NAMES = ("from_counts", "model", *_FILE_NAMES, *shared.SETTINGS_NAMES)


@cli.command()
@click.argument("data")
@shared.TARGET_TO_LEARN
@shared.planning_options
@shared.reading_options
@shared.AS_JSON
def check(data: str, target: str, as_json: bool, **options: Any) -> None:
    """Check a table for problems before you fit a model to it.

    Finds columns that leak the class, copies, identifiers, constants, values that stand for "missing", names that
    differ only in case or spaces, and levels and classes with too few rows. Exit status: 0 without findings, 3 with
    findings.

    Example: `candide check adult.parquet --target class`
    """
    keywords = shared.parse_planning_options(options, data)
    result = api.check_data(data, target, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_check(redact_address(data), target, result), as_json)
    if result.findings:
        raise SystemExit(EXIT_FINDINGS)


@cli.command()
@click.argument("data", required=False)
@click.option("--target", "-t", metavar="COL", help="Column to predict.")
@click.option(
    "--from-counts",
    type=shared.MODEL,
    metavar="FILE",
    help="Instead of DATA, the CSV result of the query of candide sql count; the model is naive Bayes.",
)
@shared.output_option("MODEL", "Write the model to this .candide file.")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Also cross-validate with N folds.")
@shared.FOLD_BY
@click.option("--quick", is_flag=True, help="Skip the held-out figures of a weighted model.")
@click.option(
    "--calibration", type=click.Choice(list(CALIBRATIONS)), help="Calibrate predicted probabilities on held-out rows."
)
@click.option(
    "--like",
    type=shared.MODEL,
    metavar="MODEL",
    help="Use the bins and terms of this model, so that both can be merged.",
)
@click.option(
    "--provenance/--no-provenance",
    default=True,
    help="Store source, rows, date, version and options in the model. Default: on.",
)
@shared.policy_and_aim_options
@shared.learning_options
@shared.reading_options
@shared.AS_JSON
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
    policy, aim = shared.parse_policy(options)
    common: dict[str, Any] = {"policy": policy, "force": force}
    if from_counts is not None:
        typed = shared.typed_arguments(_COUNTS_NAMES) if provenance else None
        common |= {"target": target, "provenance": typed, **_counts_options(data, options)}
        result, validation = api.fit_from_counts(from_counts, output, **common), None
        commands = _next_commands_from_counts(from_counts, output)
    elif data is None or target is None:
        raise click.UsageError("Missing argument 'DATA'." if data is None else "Missing option '--target' / '-t'.")
    else:
        names, like = ("calibration", "like", "folds", "fold_by"), options["like"]
        common |= {name: options.pop(name) for name in names} | shared.parse_learning_options(options, data) | aim
        common |= {"keep_held_out": not quick, "watch": show_progress(not as_json)}
        typed = shared.typed_arguments([*shared.LEARNING_NAMES, "like", *shared.DECISION_NAMES, *shared.READING_NAMES])
        result, validation = api.fit_model(data, target, output, provenance=typed if provenance else None, **common)
        commands = _next_commands(data, target, output, like, validation is not None)
    threshold = None if validation is None else validation.threshold
    shown = [f"candide {shlex.join(command)}" for command in commands]
    show_result(summary.summarize_fit(result, validation, output, shown, threshold), as_json)


def _counts_options(data: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a fit to counts; options that need rows are refused."""
    names = {str(option.name) for option in get_current_context().command.params}
    allowed = {*_COUNTS_NAMES, "data", "target", "output", "force", "provenance", "as_json", *shared.POLICY_NAMES}
    if refused := [*([data] if data else []), *shared.typed_arguments(names - allowed)]:
        remedy = "leave it out: columns and their event models are options of candide sql count"
        raise InputError(f"{refused[0]}: counts have no rows to read", value=refused[0], remedy=remedy)
    if shared.typed_arguments(["model"]) and options["model"] != "naive":
        what, remedy = "weights are learned from rows, not from counts", "pass --model naive, or leave it out"
        raise InputError(what, value=options["model"], remedy=remedy)
    keywords = shared.parse_learning_options(options, None)
    return {name: keywords[name] for name in (*shared.SETTINGS_NAMES, *_FILE_NAMES) if name in keywords}


def _next_commands_from_counts(counts: str, output: str | None) -> list[list[str]]:
    if output:
        return [["predict", output, "NEW_DATA", "-o", "scored.parquet"], ["show", output]]
    return [["fit", "--from-counts", counts, *shared.typed_arguments(_COUNTS_NAMES[1:]), "-o", "model.candide"]]


def _next_commands(data: str, target: str, output: str | None, like: str | None, is_validated: bool) -> list[list[str]]:
    """Commands to continue with, ready to be copied, with the typed options for learning and reading."""
    data, reading = redact_address(data), shared.typed_arguments(shared.READING_NAMES)
    if output:
        commands = [
            ["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"],
            ["explain", output, "NEW_DATA", *reading, "--row", "1"],
            ["show", output],
            ["report", output, "NEW_DATA", *reading, "-o", "report.html"],
        ]
    else:
        typed = shared.typed_arguments([*shared.LEARNING_NAMES, "like", *shared.DECISION_NAMES])
        commands = [["fit", data, "--target", target, *typed, *reading, "-o", "model.candide"]]
    if like is not None:
        commands.append(["merge", like, output or "model.candide", "-o", "all.candide"])
    elif not is_validated:
        learning = shared.typed_arguments([*shared.LEARNING_NAMES, *shared.DECISION_NAMES])
        commands.append(["evaluate", data, "--target", target, "--folds", "10", *learning, *reading])
    return commands


@cli.group()
def sql() -> None:
    """Queries for a database that Candide cannot reach.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """


@sql.command()
@click.argument("sample", metavar="SAMPLE")
@shared.TARGET_TO_LEARN
@click.option("--table", required=True, metavar="TABLE", help="Table to count, as named after FROM, or a query.")
@click.option("--dialect", required=True, type=click.Choice(list(DIALECTS)), help="SQL dialect of the database.")
@click.option(
    "--like", type=shared.MODEL, metavar="MODEL", help="Count as this model does, so that both can be merged."
)
@shared.output_option("FILE", "Write the query to this file. Default: print it.")
@shared.planning_options
@shared.reading_options_except("table")
def count(sample: str, target: str, output: str | None, table: str, **options: Any) -> None:
    """Print a query that counts a table in any database, for you to run there.

    SAMPLE holds some rows of the table; they determine how each column is handled. Save the result of the query as a
    CSV; `candide fit --from-counts` makes the model from it. No row leaves the database.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """
    keywords = {name: options.pop(name) for name in ("dialect", "like", "force")}
    keywords |= shared.parse_planning_options(options, sample)
    query = api.make_counting_query(sample, target, output, table=table, **keywords)
    if output is None:
        print_code(query)
