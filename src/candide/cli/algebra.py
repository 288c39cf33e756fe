"""Commands that add, take away and compare what models have counted."""

from typing import Any

import rich_click as click
from rich.markup import escape

from candide import wording
from candide.cli.group import cli, is_model, load_model, print_json
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.engines.reading import Reading

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
    _change("update", model, data, "counted into", as_json, {**options, "scale": scale})


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
    _change("forget", model, data, "taken out of", as_json, options)


def _change(task: str, model: str, data: str, done: str, as_json: bool, options: dict[str, Any]) -> None:
    from candide import report, tasks
    from candide.cli import progress

    how = {name: options.pop(name) for name in ("target", "weight", "wait", "scale") if name in options}
    if not is_model(model):
        load_model(model, data)  # says what is wrong with it
    with progress.watching(not as_json) as watch:
        change = getattr(tasks, task)(model, data, reading=Reading(**options), watch=watch, **how)
    new = change.fitted.census
    if as_json:
        weights = zip(map(str, new.labels.values), new.class_weight.tolist(), strict=True)
        met = [{"class": c.label, "rows": c.rows, "did_you_mean": c.did_you_mean} for c in change.new_classes]
        facts = {"model": model, "rows": change.rows, "rows_in_model": new.n_rows, "classes": dict(weights)}
        print_json({**facts, "new_classes": met, "notes": change.notes})
    else:
        text = f"{wording.plural(change.rows)} {done} {model}, which now has {new.n_rows:,}"
        report.say(escape(text), *report.notes(change.notes))


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
    from candide import report, tasks

    whole = tasks.merge(models, output, detail=detail)
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
    from candide import report, tasks

    found = tasks.compare(before, after, most)
    if as_json:
        print_json(report.change_facts(found))
    else:
        report.show_changes(found)
