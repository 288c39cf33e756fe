"""The command that writes a model in another language."""

from typing import Any

import rich_click as click

from candide.cli.completion import KeywordParam
from candide.cli.group import cli, load_to_predict, print_code, show_result
from candide.cli.options import AS_JSON, MODEL, output_option


@cli.command()
@click.argument("model", type=MODEL)
@click.option(
    "--to",
    metavar="NAME",
    required=True,
    type=KeywordParam(["js", "onnx", "python", "sql"]),
    help="js (an ES module), python (a module without packages), onnx, or sql (one SELECT).",
)
@click.option("--dialect", metavar="DIALECT", help="Of sql: duckdb, postgres, spark, sqlite, snowflake, bigquery, ...")
@click.option("--table", metavar="TABLE", help="Of sql: the table whose rows are scored.")
@click.option("--keep", multiple=True, metavar="COL", help="Of sql: a column of the table to keep (repeatable).")
@output_option("FILE", "Where to write it; printed if not given.")
@AS_JSON
def export(
    model: str,
    to: str,
    dialect: str | None,
    table: str | None,
    keep: tuple[str, ...],
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a model as one file of another language, which scores rows without Candide.

    Its probabilities are those of `candide predict`. A module of Python scores a CSV file by itself:
    `python adult.py new.csv`. A query scores the rows of a table where they are.

    Examples: `candide export adult.candide --to js -o adult.mjs`,
    `candide export adult.candide --to python -o adult.py`, `candide export adult.candide --to onnx -o adult.onnx`,
    `candide export adult.candide --to sql --dialect postgres --table people --keep id`
    """
    from candide import operations
    from candide.errors import InputError
    from candide.export.targets import find_target, is_exported_file
    from candide.report import summary
    from candide.store import outputs

    chosen = find_target(to)  # errors before any work is done
    outputs.check_destination(output, model, ours=is_exported_file, force=force)
    if output is None and chosen.is_binary:
        raise InputError(
            f"{chosen.description} is no text, and cannot be printed", remedy="name a file for it: -o FILE"
        )
    options: dict[str, Any] = {"dialect": dialect, "table": table, "keep": keep}
    found = operations.export_model(load_to_predict(model), to, output, force=force, **options)
    if output is None:
        print_code(str(found))
    else:
        size = len(found.encode("utf-8") if isinstance(found, str) else found)
        show_result(summary.ExportSummary(model, to, chosen.description, output, size), as_json)
