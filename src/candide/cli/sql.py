"""Commands for tables that Candide cannot reach: a query to be pasted, and the model of what it returned."""

import shlex
from dataclasses import replace
from typing import Any

import rich_click as click
from click import get_current_context

from candide.cli.group import cli, print_code, show_result
from candide.cli.options import (
    MODEL,
    POLICY_NAMES,
    options_from_fields,
    output_option,
    parse_learning_options,
    parse_planning_options,
    parse_policy,
    planning_options,
    reading_options_except,
    typed_arguments,
)
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialects.registry import DIALECTS
from candide.errors import InputError
from candide.model.settings import Settings


@cli.group()
def sql() -> None:
    """Queries for a database that Candide cannot reach.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """


@sql.command()
@click.argument("sample", metavar="SAMPLE")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@click.option("--table", required=True, metavar="TABLE", help="The table to count, as named after FROM, or a query.")
@click.option("--dialect", required=True, type=click.Choice(list(DIALECTS)), help="The SQL of the database.")
@click.option("--like", type=MODEL, metavar="MODEL", help="Count as this model does, so that both can be merged.")
@output_option("FILE", "Where to write the query; printed if not given.")
@planning_options
@reading_options_except("table")
def count(
    sample: str,
    target: str,
    table: str,
    dialect: str,
    like: str | None,
    output: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Print the query that counts a table in any database, to be run by hand.

    SAMPLE holds some rows of the table: by them is found what is made of each column. Keep what the query returns as a
    CSV; `candide fit --from-counts` makes the model of it, without a row having left the database.

    Example: `candide sql count sample.csv --target class --table shop.orders --dialect snowflake`
    """
    from candide import files, operations
    from candide.store import outputs

    outputs.check_destination(output, sample, like, ours=_is_query, force=force)
    asked = parse_planning_options(options, sample)
    query = operations.make_counting_query(sample, target, table=table, dialect=dialect, like=like, **asked)
    if output is None:
        print_code(query)
    else:
        files.write_atomically(output, [f"{query}\n".encode()])


def _is_query(path: str) -> bool:
    """Whether a file is a query that was written here."""
    with open(path, "rb") as file:
        return file.read(13) == b"SELECT 'plan'"


_FILE_OPTIONS = ("encoding", "errors", "delimiter", "decimal")
_COUNTS_OPTIONS = (
    "from_counts",
    "model",
    *_FILE_OPTIONS,
    *(str(option.name) for option in options_from_fields(Settings)),
)


def fit_counts(
    counts: str,
    data: str | None,
    target: str | None,
    output: str | None,
    force: bool,
    provenance: bool,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Fit a model to counts; what is asked of rows is refused."""
    from candide import operations, store
    from candide.report import summary
    from candide.store import outputs
    from candide.store.provenance import make_provenance as provenance_of

    names = {str(option.name) for option in get_current_context().command.params}
    no_rows = names - {*_COUNTS_OPTIONS, "data", "target", "output", "force", "provenance", "as_json", *POLICY_NAMES}
    if refused := [data, *typed_arguments(no_rows)] if data else typed_arguments(no_rows):
        remedy = "leave it out: columns and their event models are said to candide sql count"
        raise InputError(f"{refused[0]}: counts have no rows to read", value=refused[0], remedy=remedy)
    if "--model" in typed_arguments(["model"]) and options["model"] != "naive":
        what, remedy = "weights are learned from rows, and not from counts", "pass --model naive, or leave it out"
        raise InputError(what, value=options["model"], remedy=remedy)
    outputs.check_destination(output, counts, force=force)
    policy, _ = parse_policy(options)
    settings = parse_learning_options({**options, "model": "naive"}, "-")["settings"]
    reading = ReadOptions(**{name: options[name] for name in _FILE_OPTIONS})
    learned = operations.fit_from_counts(counts, target=target, settings=settings, reading=reading)
    learned = learned if policy is None else replace(learned, fitted=learned.fitted.with_policy(policy))
    if output:
        origin = (
            provenance_of(counts, learned.fitted.counts.n_rows, typed_arguments(_COUNTS_OPTIONS)) if provenance else {}
        )
        store.save(learned.fitted, output, provenance=origin, force=force)
    commands = [["predict", output, "NEW_DATA", "-o", "scored.parquet"], ["show", output]] if output else []
    again = commands or [["fit", "--from-counts", counts, *typed_arguments(_COUNTS_OPTIONS[1:]), "-o", "model.candide"]]
    show_result(
        summary.summarize_fit(learned, None, output, [f"candide {shlex.join(words)}" for words in again]), as_json
    )
