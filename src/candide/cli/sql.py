"""Commands for tables that Candide cannot reach: a query to be pasted, and the model of what it returned."""

import shlex
from dataclasses import replace
from typing import Any

import rich_click as click
from click import get_current_context

from candide.cli.group import cli, print_code, show_result
from candide.cli.options import (
    MODEL,
    POLICY,
    learning_of,
    of_record,
    output_option,
    planning_of,
    planning_options,
    policy_from,
    reading_options_but,
    retyped,
)
from candide.engines.reading import Reading
from candide.engines.sql.dialects.table import DIALECTS
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
@reading_options_but("table")
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
    from candide import files, tasks
    from candide.tasks import outputs

    outputs.check(output, sample, like, ours=_is_query, force=force)
    asked = planning_of(options, sample)
    query = tasks.counting_query(sample, target, table=table, dialect=dialect, like=like, **asked)
    if output is None:
        print_code(query)
    else:
        files.write_whole(output, [f"{query}\n".encode()])


def _is_query(path: str) -> bool:
    """Whether a file is a query that was written here."""
    with open(path, "rb") as file:
        return file.read(13) == b"SELECT 'plan'"


_OF_A_FILE = ("encoding", "errors", "delimiter", "decimal")
_OF_COUNTS = ("from_counts", "model", *_OF_A_FILE, *(str(option.name) for option in of_record(Settings)))


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
    from candide import store, tasks
    from candide.report import summary
    from candide.tasks import outputs
    from candide.tasks.provenance import of as provenance_of

    names = {str(option.name) for option in get_current_context().command.params}
    no_rows = names - {*_OF_COUNTS, "data", "target", "output", "force", "provenance", "as_json", *POLICY}
    if refused := [data, *retyped(no_rows)] if data else retyped(no_rows):
        remedy = "leave it out: columns and their event models are said to candide sql count"
        raise InputError(f"{refused[0]}: counts have no rows to read", value=refused[0], remedy=remedy)
    if "--model" in retyped(["model"]) and options["model"] != "naive":
        what, remedy = "weights are learned from rows, and not from counts", "pass --model naive, or leave it out"
        raise InputError(what, value=options["model"], remedy=remedy)
    outputs.check(output, counts, force=force)
    policy, _ = policy_from(options)
    settings = learning_of({**options, "model": "naive"}, "-")["settings"]
    reading = Reading(**{name: options[name] for name in _OF_A_FILE})
    learned = tasks.learn_counts(counts, target=target, settings=settings, reading=reading)
    learned = learned if policy is None else replace(learned, fitted=learned.fitted.with_policy(policy))
    if output:
        origin = provenance_of(counts, learned.fitted.census.n_rows, retyped(_OF_COUNTS)) if provenance else {}
        store.save(learned.fitted, output, provenance=origin, force=force)
    commands = [["predict", output, "NEW_DATA", "-o", "scored.parquet"], ["show", output]] if output else []
    again = commands or [["fit", "--from-counts", counts, *retyped(_OF_COUNTS[1:]), "-o", "model.candide"]]
    show_result(summary.of_fit(learned, None, output, [f"candide {shlex.join(words)}" for words in again]), as_json)
