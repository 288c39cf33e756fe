"""Commands that change models: update, forget, merge, reweight and adapt."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import rich_click as click

from candide.cli.group import cli, show_progress, show_result, summary
from candide.cli.group import models as api
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options

_WAIT = click.option(
    "--wait",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds to wait for another process that is changing the model.",
)


def _combine(*decorators: Callable) -> Callable:
    """One decorator for several, the first outermost."""
    return lambda command: reduce(lambda inner, decorator: decorator(inner), reversed(decorators), command)


_MODEL_AND_DATA = _combine(click.argument("model", type=MODEL), click.argument("data"))
_CHANGED_OUTPUT = output_option("FILE", "Write the changed model here. Default: replace MODEL.")
_COUNTING = _combine(TARGET, WEIGHT, _WAIT, reading_options, AS_JSON)


@cli.command()
@_MODEL_AND_DATA
@_CHANGED_OUTPUT
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Multiply the earlier counts: 0.99 forgets one percent of them.",
)
@_COUNTING
def update(model: str, data: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Count more rows into a model. New classes and levels may appear at any time; a note names a new class.

    The model file is replaced, completely or not at all, unless -o names another.

    Example: `candide update shop.candide monday.csv -o shop_monday.candide`
    """
    change = api.update_model(model, data, output, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_update(model, "counted into", change, output), as_json)


@cli.command()
@_MODEL_AND_DATA
@_CHANGED_OUTPUT
@_COUNTING
def forget(model: str, data: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Subtract rows that were counted earlier from a model, as if they had never been seen.

    Classes, levels and words that no other row has are forgotten with them. The model file is replaced, completely or
    not at all, unless -o names another.

    Rows that the counts rule out are an error: those that would make the count of a class, a level, a word or the
    missing values of a column negative. Counts cannot prove that a row was counted; one that could have been is
    subtracted.

    Example: `candide forget shop.candide customer_4711.csv -o shop_without.candide`
    """
    change = api.forget_rows(model, data, output, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_update(model, "taken out of", change, output), as_json)


@cli.command()
@click.argument("models", nargs=-1, required=True, type=MODEL, metavar="A B ...")
@output_option("MODEL", "Write the sum to this file.", required=True)
@click.option(
    "--detail",
    default="tally",
    show_default=True,
    type=click.Choice(["tally", "explain", "score"]),
    help="Keep the counts, or the parameters alone, with (explain) or without (score) the importance of columns.",
)
@AS_JSON
def merge(models: tuple[str, ...], output: str, force: bool, detail: str, as_json: bool) -> None:
    """Add models: the sum is the model of all their rows. Classes and levels are united.

    Models must have the same bins and terms. Naive Bayes models of the same columns do. A weighted model selects its
    bins and terms from its rows, so fit the first one, and the others like it:
    `candide fit south.csv -t COLUMN --like north.candide -o south.candide`.

    Example: `candide merge north.candide south.candide west.candide -o all.candide`
    """
    merged = api.merge_models(models, output, detail=detail, force=force)
    show_result(summary.summarize_merge(models, merged, output, detail), as_json)


@cli.command()
@_MODEL_AND_DATA
@_CHANGED_OUTPUT
@click.option("--rows-are-new", is_flag=True, help="The model has counted none of these rows, so none is left out.")
@click.option(
    "--sample-rows", default=20_000, show_default=True, type=click.IntRange(1), metavar="N", help="Rows used, at most."
)
@click.option("--seed", default=0, show_default=True, help="Seed for drawing these rows.")
@_COUNTING
def reweight(model: str, data: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Learn the weights of a model's terms again, from rows that it has counted.

    Do this after models were merged, rows forgotten, or many rows counted in: `candide show` recommends it. Each row is
    left out of the counts while it is used, so that no term is trusted because it has seen the label. Rows that cannot
    have been counted are an error, and the model stays as it is.

    Example: `candide reweight all.candide north.csv`
    """
    change = api.reweight_model(model, data, output, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_reweight(model, change, output), as_json)


@cli.command()
@_MODEL_AND_DATA
@output_option("MODEL", "Write the adapted model to this file. Default: print the class proportions only.")
@reading_options
@AS_JSON
def adapt(model: str, data: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Re-estimate the class prior from unlabelled rows (Saerens et al. 2002).

    This is valid if classes are more or less frequent than before and otherwise the same: check with `candide drift`.

    Example: `candide adapt adult.candide new.csv -o adapted.candide`
    """
    adapted = api.adapt_prior(model, data, output, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_adaptation(model, adapted, output), as_json)
