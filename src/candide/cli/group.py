"""The group of commands, and the options and habits they share."""

import json
import math
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import rich_click as click
from click import get_current_context

from candide import __version__
from candide.errors import InputError, ModelFileError

EVENTS = "bernoulli, categorical, complement, exponential, gaussian, lognormal, multinomial, poisson, text"
LEARNING = ("events", "drop", "weight", "class_prior", "estimate", "select")
READING = ("na", "delimiter", "header", "encoding", "errors", "table", "memory_limit", "threads")
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
            help=f"The event model of a column (repeatable). NAME is one of {EVENTS}. Of columns modelled together: "
            "COL,COL=gaussian-full (or gaussian-tied, gaussian-spherical).",
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


def learning_of(options: dict[str, Any], data: str) -> dict[str, Any]:
    from candide.model.settings import Settings

    asked, known = options.pop("events"), {"drop": options.pop("drop"), "weight": options.pop("weight")}
    settings = Settings(
        class_prior=options.pop("class_prior"), estimate=options.pop("estimate"), select=_select(options.pop("select"))
    )
    reading = reading_of(options)
    return {"events": _events(asked, data, reading) or "auto", "settings": settings, "reading": reading, **known}


def _events(texts: Collection[str], data: str, reading: Any) -> dict[Any, str]:
    """Event models by column, or by group of columns where they are modelled together."""
    from candide.engines.duckdb.source import Source
    from candide.events import event_of

    events: dict[Any, str] = {}
    columns: Collection[str] = ()
    if data != "-" and any("," in text for text in texts):  # a name may have a comma in it
        with Source.open(data, reading) as source:
            columns = list(source.columns)
    for text in texts:
        column, equals, name = text.rpartition("=")
        if not equals:
            raise InputError(f"--event {text!r}: pass COL=NAME, such as --event zip=categorical")
        if "," not in column or column in columns:
            events[column] = name
        elif event_of(name).groups:
            events[tuple(column.split(","))] = name
        else:
            events |= dict.fromkeys(column.split(","), name)
    return events


def _select(text: str | None) -> int | str | None:
    from candide.model.select import checked_select

    try:
        return checked_select(int(text) if text and text.removeprefix("-").isdigit() else text)
    except InputError:
        raise InputError(f"--select {text!r}: pass a number of columns >= 1, or 'evidence'") from None


def reading_of(options: dict[str, Any]) -> Any:
    from candide.engines.duckdb.source import Reading

    return Reading(**options)


def retyped(names: Collection[str]) -> list[str]:
    """Those of the options of these names that were typed, as they may be typed again."""
    context, words = get_current_context(), list[str]()
    for option in context.command.params:
        if option.name not in names or context.get_parameter_source(option.name).name != "COMMANDLINE":  # type: ignore[union-attr]
            continue
        given = context.params[option.name]
        if isinstance(given, bool):
            words.append((option.opts if given else option.secondary_opts)[0])
            continue
        for value in given if isinstance(given, tuple) else [given]:
            words += [f"{option.opts[0]}={value}"] if str(value).startswith("-") else [option.opts[0], str(value)]
    return words


def output_option(metavar: str, text: str, *, required: bool = False) -> Callable:
    """Where a result is written; a folder that is not there is an error before any work is done."""
    path = click.Path(dir_okay=False)
    return click.option("--output", "-o", metavar=metavar, type=path, help=text, required=required, callback=_in_folder)


def _in_folder(context: Any, option: Any, path: str | None) -> str | None:
    folder = os.path.dirname(path or "")
    if folder and not os.path.isdir(folder):
        raise InputError(f"{path}: there is no folder {folder!r}; make it first, or write elsewhere")
    return path


def load_model(model: str, data: str | None = None) -> Any:
    """The model of a file; where MODEL and DATA seem to be swapped an error says so."""
    from candide import store

    try:
        return store.load(model)
    except ModelFileError:
        if data is not None and is_model(data):
            command = get_current_context().info_name
            raise InputError(
                f"{model} is no model, but {data} is; did you mean: candide {command} {data} {model}"
            ) from None
        raise


def is_model(path: str) -> bool:
    """Whether a file begins as a model file does: the length of its header, and a brace."""
    if not os.path.isfile(path):
        return False
    from candide.store.container import LARGEST_HEADER

    with open(path, "rb") as file:
        head = file.read(9)
    return int.from_bytes(head[:8], "little") <= LARGEST_HEADER and head[8:] == b"{"


def warn_if_empty(model: str, fitted: Any) -> None:
    """A word where a model has no rows left, and so nothing to say."""
    if fitted.has_counts and not fitted.census.class_weight.any():
        warnings.warn(f"{model} has no rows: it answers by its priors alone", stacklevel=2)


def print_json(facts: Any) -> None:
    click.echo(json.dumps(_plain(facts), allow_nan=False, default=str))


def _plain(value: Any) -> Any:
    """Facts in which what JSON cannot say, NaN and the infinities, is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
