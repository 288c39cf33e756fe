"""Commands that add, take away and compare what models have counted."""

from functools import reduce
from typing import Any

import rich_click as click
from rich.markup import escape

from candide import wording
from candide.cli.group import cli, load_model, print_json
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.engines.reading import Reading
from candide.errors import InputError, MergeError

_WAIT = click.option(
    "--wait",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another process that is changing the model.",
)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Let what was counted before count so many times: 0.99 forgets a hundredth.",
)
@TARGET
@WEIGHT
@_WAIT
@reading_options
@AS_JSON
def update(model: str, data: str, scale: float, as_json: bool, **options: Any) -> None:
    """Count more rows into a model. New classes and new levels may come at any time; a new class is told.

    Example: `candide update shop.candide monday.csv`
    """
    _change(model, data, lambda fitted, census: fitted.scale(scale).census + census, "counted into", as_json, options)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@TARGET
@WEIGHT
@_WAIT
@reading_options
@AS_JSON
def forget(model: str, data: str, as_json: bool, **options: Any) -> None:
    """Take rows that were counted earlier out of a model, as if they had never been seen.

    Rows that were never counted are an error, and the model stays as it is.

    Example: `candide forget shop.candide customer_4711.csv`
    """
    _change(model, data, lambda fitted, census: fitted.census - census, "taken out of", as_json, options)


def _change(model: str, data: str, change: Any, done: str, as_json: bool, options: dict[str, Any]) -> None:
    """Count first, which may take long, and hold the model only while the counts go in or out."""
    from candide import report, store
    from candide.cli import progress
    from candide.tasks import tables

    target, weight, wait = (options.pop(name) for name in ("target", "weight", "wait"))
    with progress.watching(not as_json) as watch:
        fitted: Any = load_model(model, data)
        reading = Reading(**options)
        census = tables.count_like(fitted, data, target=target, weight=weight, reading=reading, watch=watch)
    known: list[Any] = []

    def changed(before: Any) -> Any:
        known.extend(before.labels.values)
        return before.with_census(change(before, census))

    new = store.update(model, changed, wait=wait).census
    facts = {"model": model, "rows": census.n_rows, "rows_in_model": new.n_rows, "classes": _weights(new)}
    met = _new_classes(census, known)
    notes = [_told(one) for one in met]
    if not new.class_weight.any():
        notes.append(f"{model} has no rows left: it answers by its priors alone; count rows into it, or remove it")
    if as_json:
        print_json({**facts, "new_classes": met, "notes": notes})
    else:
        text = f"{wording.plural(census.n_rows)} {done} {model}, which now has {new.n_rows:,}"
        report.say(escape(text), *report.notes(notes))


def _new_classes(census: Any, known: list[Any]) -> list[dict[str, Any]]:
    """The classes that a model did not have, with their weight, and the known one that may be meant."""
    from difflib import get_close_matches

    spelled = {str(label).casefold(): label for label in known}
    found = []
    for label, weight in zip(census.labels.values, census.class_weight.tolist(), strict=True):
        if weight and label not in known:
            near = get_close_matches(str(label).casefold(), spelled, 1, 0.7)
            found.append({"class": label, "rows": weight, "did_you_mean": spelled[near[0]] if near else None})
    return found


def _told(new: dict[str, Any]) -> str:
    hint = "" if new["did_you_mean"] is None else f"; did you mean {new['did_you_mean']!r}?"
    return f"new class {new['class']!r} ({wording.plural(new['rows'])}){hint}"


def _weights(census: Any) -> dict[str, float]:
    weights = zip(census.labels.values, census.class_weight.tolist(), strict=True)
    return {str(label): weight for label, weight in weights}


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
def merge(models: tuple[str, ...], output: str, detail: str, as_json: bool) -> None:
    """Add models: the sum is the model of all their rows. Classes and levels are united.

    Example: `candide merge north.candide south.candide west.candide -o all.candide`
    """
    from candide import report, store

    def plus(whole: Any, path: str) -> Any:
        try:
            return whole + store.load(path)
        except MergeError as error:
            raise MergeError(f"{models[0]} and {path}: {error}") from None

    whole = reduce(plus, models[1:], store.load(models[0]))
    store.save(whole, output, detail=detail)
    facts = {"models": len(models), "rows": whole.census.n_rows, "output": output, "detail": detail}
    if as_json:
        print_json(facts)
    else:
        many = wording.plural(len(models), "model"), wording.plural(whole.census.n_rows)
        report.say(escape(f"{', '.join(many)}, added up in {output}"))


@cli.command()
@click.argument("before", type=MODEL)
@click.argument("after", type=MODEL)
@click.option("--most", default=12, show_default=True, type=click.IntRange(1), help="How many moves of each sort.")
@AS_JSON
def diff(before: str, after: str, most: int, as_json: bool) -> None:
    """Say what moved between two models: classes, columns and levels, most surprising first.

    Example: `candide diff may.candide june.candide`
    """
    from candide import report, store
    from candide.explain.compare import compare

    try:
        found = compare(store.load(before), store.load(after), most)
    except InputError as error:
        raise InputError(f"{before} and {after}: {error}") from None
    if as_json:
        print_json(report.change_facts(found))
    else:
        report.show_changes(found)
