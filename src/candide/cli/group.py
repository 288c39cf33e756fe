"""The group of commands, and the options and habits they share."""

import json
import math
import os
import warnings
from collections.abc import Mapping
from typing import Any

import rich_click as click
from click import get_current_context

from candide import __version__
from candide.errors import InputError, ModelFileError

click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.MAX_WIDTH = 100


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
