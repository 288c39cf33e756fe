"""Commands that change models: update, forget, merge, weigh and adapt."""

from collections.abc import Callable
from functools import partial
from typing import Any

import rich_click as click

from candide.cli.group import check_model_paths, cli, load_model, show_result
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.engines.reading import ReadOptions

_WAIT_OPTION = click.option(
    "--wait",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another process that is changing the model.",
)

_CHANGED_OUTPUT = output_option("FILE", "Write the changed model here. Default: replace MODEL.")


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@_CHANGED_OUTPUT
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Let what was counted before count so many times: 0.99 forgets a hundredth.",
)
@TARGET
@WEIGHT
@_WAIT_OPTION
@reading_options
@AS_JSON
def update(model: str, data: str, output: str | None, force: bool, scale: float, as_json: bool, **options: Any) -> None:
    """Count more rows into a model. New classes and new levels may come at any time; a note names a new class.

    The file of the model is replaced, whole or not at all, unless -o names another.

    Example: `candide update shop.candide monday.csv -o shop_monday.candide`
    """
    from candide import operations

    task = partial(operations.update, scale=scale, out=output, force=force)
    _change(task, model, data, "counted into", as_json, options, output)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@_CHANGED_OUTPUT
@TARGET
@WEIGHT
@_WAIT_OPTION
@reading_options
@AS_JSON
def forget(model: str, data: str, output: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Take rows that were counted earlier out of a model, as if they had never been seen.

    Classes, levels and words that nothing else holds are forgotten with them. The file of the model is replaced, whole
    or not at all, unless -o names another.

    Rows that the counts rule out are an error: those by which a class, a level, a word or the missing values of a
    column would fall below zero. Counts cannot prove that a row was counted; one that could have been is taken out.

    Example: `candide forget shop.candide customer_4711.csv -o shop_without.candide`
    """
    from candide import operations

    task = partial(operations.forget, out=output, force=force)
    _change(task, model, data, "taken out of", as_json, options, output)


def _change(
    task: Callable, model: str, data: str, action: str, as_json: bool, options: dict[str, Any], output: str | None
) -> None:
    """Change a model by the rows of a source, in its own file or another."""
    from candide.cli import progress
    from candide.report import summary
    from candide.store import is_model_file

    how = {name: options.pop(name) for name in ("target", "weight", "wait")}
    if not is_model_file(model):
        load_model(model, data)  # an error that says what is wrong with it
    with progress.show_progress(not as_json) as watch:
        change = task(model, data, reading=ReadOptions(**options), watch=watch, **how)
    show_result(summary.summarize_update(model, action, change, output), as_json)


@cli.command()
@click.argument("models", nargs=-1, required=True, type=MODEL, metavar="A B ...")
@output_option("MODEL", "Where to keep the sum.", required=True)
@click.option(
    "--detail",
    default="tally",
    show_default=True,
    type=click.Choice(["tally", "explain", "score"]),
    help="What to keep: the counts, or the parameters alone (with or without how much each column tells).",
)
@AS_JSON
def merge(models: tuple[str, ...], output: str, force: bool, detail: str, as_json: bool) -> None:
    """Add models: the sum is the model of all their rows. Classes and levels are united.

    Models add if they count alike. Naive Bayes models of the same columns do. A default model chooses its bins and
    pairs of columns from its rows, so fit the first one, and the others like it:
    `candide fit south.csv -t COLUMN --like north.candide -o south.candide`.

    Example: `candide merge north.candide south.candide west.candide -o all.candide`
    """
    from candide import operations
    from candide.report import summary

    check_model_paths(*models)
    merged = operations.merge(models, output, detail=detail, force=force)
    show_result(summary.summarize_merge(models, merged, output, detail), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@_CHANGED_OUTPUT
@click.option("--new", is_flag=True, help="The model has counted none of these rows, so none is left out.")
@click.option(
    "--rows", default=20_000, show_default=True, type=click.IntRange(1), metavar="N", help="Of how many, at most."
)
@click.option("--seed", default=0, show_default=True, help="Which rows these are, where there are more.")
@TARGET
@WEIGHT
@_WAIT_OPTION
@reading_options
@AS_JSON
def reweight(model: str, data: str, output: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Learn again how much each voice of a model counts, from rows that it has counted.

    To be done after models were merged, rows forgotten, or many rows counted in: `candide show` says so. Each row is
    left out of the counts while it teaches, so that no voice is trusted because it has seen the answer.
    Rows that cannot have been counted are an error, and the model stays as it is.

    Example: `candide weigh all.candide north.csv`
    """
    from candide import operations
    from candide.cli import progress
    from candide.report import summary

    how = {name: options.pop(name) for name in ("new", "rows", "seed", "target", "weight", "wait")}
    load_model(model, data)  # an error that says what is wrong with it
    with progress.show_progress(not as_json) as watch:
        change = operations.reweight(
            model, data, output, force=force, reading=ReadOptions(**options), watch=watch, **how
        )
    show_result(summary.summarize_reweight(model, change, output), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@output_option("MODEL", "Where to keep the model; if not given the shares are told only.")
@reading_options
@AS_JSON
def adapt(model: str, data: str, output: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Turn a model to the shares that its classes have in new rows, whose labels nobody knows.

    The shares are found by EM from what the model says of the rows. That holds where the classes are met more or less
    often than before but look as they did: `candide drift` tells whether they do.

    Example: `candide adapt adult.candide new.csv -o adapted.candide`
    """
    from candide import operations
    from candide.cli import progress
    from candide.report import summary
    from candide.store import outputs

    outputs.check_destination(output, model, data, force=force)
    fitted = load_model(model, data)
    with progress.show_progress(not as_json) as watch:
        found = operations.adapt_prior(fitted, data, output, force=force, reading=ReadOptions(**options), watch=watch)
    show_result(summary.summarize_adaptation(model, found, output), as_json)
