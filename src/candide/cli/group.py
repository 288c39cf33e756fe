"""The group of commands, and the options and habits they share."""

import json
import warnings
from collections.abc import Callable
from typing import Any

import rich_click as click

from candide import __version__
from candide.errors import InputError

click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.MAX_WIDTH = 100
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="candide")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Naive Bayes and generative classification by counting.

    Start with `candide demo`, or with a table of your own: `candide fit data.csv --target COLUMN`
    """
    warnings.showwarning = _note


def _note(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"note: {message}", err=True)


def reading_options(command: Callable) -> Callable:
    """How a source is read; shared by every command that takes DATA."""
    options = [
        click.option("--na", multiple=True, metavar="TEXT", help="Text that means a missing value (repeatable)."),
        click.option("--delimiter", metavar="CHAR", help="What separates the fields of a CSV; found out if not given."),
        click.option("--header/--no-header", default=None, help="Whether a CSV names its columns in its first line."),
        click.option("--encoding", metavar="NAME", help="Of a CSV or documents that are not UTF-8, such as latin-1."),
        click.option(
            "--errors",
            default="strict",
            type=click.Choice(["strict", "replace", "ignore"]),
            help="What is done with bytes of documents that are not of the encoding.",
        ),
        click.option("--table", metavar="NAME", help="Which table of a DuckDB file."),
        click.option("--memory-limit", metavar="SIZE", help="Most memory the reader may use, such as 2GB."),
        click.option("--threads", type=click.IntRange(1), help="How many threads the reader may use."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def learning_options(command: Callable) -> Callable:
    """What is learned and how; shared by fit and evaluate."""
    options = [
        click.option(
            "--event",
            "events",
            multiple=True,
            metavar="COL=NAME",
            help="The event model of a column, or of columns modelled together: COL,COL=gaussian-full "
            "(or gaussian-tied, gaussian-spherical) (repeatable).",
        ),
        click.option("--drop", multiple=True, metavar="COL", help="Leave a column out (repeatable)."),
        click.option("--weight", metavar="COL", help="The column of row weights."),
        click.option(
            "--class-prior",
            default="empirical",
            show_default=True,
            type=click.Choice(["empirical", "uniform"]),
            help="The shares of the classes.",
        ),
        click.option(
            "--estimate",
            default="predictive",
            show_default=True,
            type=click.Choice(["predictive", "mean", "map", "mle"]),
            help="How counts become probabilities.",
        ),
        click.option(
            "--select",
            metavar="K|evidence",
            help="Use the K columns that tell most of the class, or all that tell; each fold chooses for itself.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def learning_of(options: dict[str, Any]) -> dict[str, Any]:
    from candide.fitted import Settings

    events: dict[Any, str] = {}
    for text in options.pop("events"):
        column, equals, name = text.rpartition("=")
        if not equals:
            raise InputError(f"--event {text!r}: pass COL=NAME, such as --event zip=categorical")
        events[tuple(column.split(",")) if "," in column and "-" in name else column] = name
    settings = Settings(
        class_prior=options.pop("class_prior"), estimate=options.pop("estimate"), select=_select(options.pop("select"))
    )
    known = {"drop": options.pop("drop"), "weight": options.pop("weight")}
    return {"events": events or "auto", "settings": settings, "reading": reading_of(options), **known}


def _select(text: str | None) -> int | str | None:
    from candide.features import checked_select

    try:
        return checked_select(int(text) if text and text.removeprefix("-").isdigit() else text)
    except InputError:
        raise InputError(f"--select {text!r}: pass a number of columns >= 1, or 'evidence'") from None


def reading_of(options: dict[str, Any]) -> Any:
    from candide.engines.sources import Reading

    return Reading(**options)


def print_json(facts: Any) -> None:
    click.echo(json.dumps(facts, allow_nan=True, default=str))
