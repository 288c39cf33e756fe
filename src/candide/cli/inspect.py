"""Commands that show models, drift and this installation: show, diff, drift, demo and doctor."""

from typing import Any

import rich_click as click

from candide.cli.group import cli, show_result
from candide.cli.options import AS_JSON, MODEL, reading_options


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--levels", default=12, show_default=True, help="Number of levels of a category to show.")
@click.option("--class", "classes", multiple=True, metavar="CLASS", help="Show this class only (repeatable).")
@click.option("--column", "columns", multiple=True, metavar="COL", help="Show this column only (repeatable).")
@AS_JSON
def show(model: str, levels: int, classes: tuple[str, ...], columns: tuple[str, ...], as_json: bool) -> None:
    """Show a model: the class prior, and every column given the class; or some of the columns and classes.

    Examples: `candide show adult.candide`, `candide show letters.candide --class A --class B --column width`
    """
    from candide import api

    show_result(api.describe_model(model, levels, classes=classes, columns=columns), as_json)


@cli.command()
@click.argument("before", type=MODEL)
@click.argument("after", type=MODEL)
@click.option(
    "--limit", default=12, show_default=True, type=click.IntRange(1), metavar="N", help="Differences of each kind."
)
@AS_JSON
def diff(before: str, after: str, limit: int, as_json: bool) -> None:
    """Show the differences between two models: classes, columns and levels, largest first.

    Example: `candide diff may.candide june.candide`
    """
    from candide import api
    from candide.report import summary

    show_result(summary.summarize_diff(api.diff_models(before, after, limit)), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option("--before", metavar="DATA", help="Training rows of the model, to compare log p(x) with.")
@reading_options
@AS_JSON
def drift(model: str, data: str, before: str | None, as_json: bool, **options: Any) -> None:
    """Detect drift between training data and new, unlabelled rows: columns, log p(x), expected accuracy.

    Example: `candide drift adult.candide new.csv --before adult.parquet`
    """
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary

    found = api.detect_drift(model, data, before=before, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_drift(found), as_json)


@cli.command()
@click.option(
    "--rows", default=20_000, show_default=True, type=click.IntRange(40), metavar="N", help="Number of rows to make."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the random numbers.")
@AS_JSON
def demo(rows: int, seed: int, as_json: bool) -> None:
    """Make a mixed table, fit it, evaluate on held-out rows, show the result.

    Example: `candide demo --rows 100000`
    """
    from candide.demo import run_demo
    from candide.report import summary

    show_result(summary.summarize_demo(run_demo(rows, seed)), as_json)


@cli.command()
@AS_JSON
def doctor(as_json: bool) -> None:
    """Show what this installation runs on: kernels, threads, versions.

    Example: `candide doctor`
    """
    from candide.cli.doctor import inspect_installation

    show_result(inspect_installation(), as_json)
