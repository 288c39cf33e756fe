"""The group of commands, and the habits they share: how a model is loaded, and how a result is shown."""

import os
import shlex
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from candide import __version__
from candide.engines.addresses import redact_address, redact_passwords
from candide.errors import InputError, ModelFileError

if TYPE_CHECKING:
    from candide.model.fitted import FittedModel

click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.MAX_WIDTH = 100
click.rich_click.OPTIONS_TABLE_COLUMN_TYPES = ["required", "opt_all_metavar", "help"]  # help has the room of the rest
_INDENT = len("note: ")


class CommandGroup(click.RichGroup):
    """A group whose complaints of what was typed do not repeat a password."""

    def make_context(self, *args: Any, **how: Any) -> Any:
        with _hide_passwords():
            return super().make_context(*args, **how)

    def invoke(self, ctx: Any) -> Any:
        with _hide_passwords():
            return super().invoke(ctx)


@contextmanager
def _hide_passwords() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.message = redact_passwords(error.message, sys.argv)  # type: ignore[misc]  # all that is shown of it
        raise


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="candide")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Naive Bayes and generative classification by counting.

    Start with `candide demo`, or with a table of your own: `candide fit data.csv --target COLUMN`
    """
    warnings.showwarning = _print_warning
    if loaded := sys.modules.get("candide.data.notes"):  # not imported for this: it would slow down --help
        loaded.reset_issued_warnings()
    for stream in (sys.stdout, sys.stderr):  # names in letters that the terminal lacks are escaped, never an error
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_code(text: str) -> None:
    """Print a program or a query, which must not be escaped; an error where the output cannot hold its characters."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        what = f"standard output is {encoding}, which cannot hold {text[error.start]!a}"
        raise InputError(what, value=encoding, remedy="name a file (-o FILE), or set PYTHONIOENCODING=utf-8") from None
    click.echo(text, nl=not text.endswith("\n"))


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A remark on standard error; on a terminal its lines are broken between words, as those of a report."""
    text, asked = (
        f"note: {getattr(message, 'note', message)}",
        os.environ.get("COLUMNS", ""),
    )  # with options, as typed
    width = int(asked) if asked.isdecimal() else os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    if width > _INDENT:
        lines = textwrap.wrap(text, width - _INDENT, break_long_words=False, break_on_hyphens=False)
        text = f"\n{' ' * _INDENT}".join(lines)
    click.echo(text, err=True)


def iterate_commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Every command by its whole name, those of groups among them."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", one) for inner, one in iterate_commands(command))
        else:
            yield name, command


def show_result(summary: Any, as_json: bool) -> None:
    """Show a summary: for a person, or as a line of JSON."""
    if as_json:
        from candide.report import json

        click.echo(json.dumps(summary))
    else:
        from candide.report import terminal

        terminal.print_summary(summary)


def load_model(model: str, data: str | None = None) -> "FittedModel":
    """The model of a file; where MODEL and DATA seem to be swapped an error says so."""
    from candide import store

    try:
        return store.load(model)
    except ModelFileError:
        if data is not None and store.is_model_file(data):
            model = redact_address(model)
            remedy = f"did you mean: candide {get_current_context().info_name} {data} {model}"
            raise InputError(f"{model} is no model, but {data} is", value=model, remedy=remedy) from None
        check_model_paths(model)
        raise


def check_model_paths(*paths: str) -> None:
    """An error where one of the files is data, by the ending of its name, and so no model."""
    from candide import store
    from candide.engines.duckdb.formats import FORMATS, SINGLE_FILE_FORMATS, file_suffix

    for path in paths:
        if (
            os.path.isfile(path)
            and file_suffix(path) in {**FORMATS, **SINGLE_FILE_FORMATS}
            and not store.is_model_file(path)
        ):
            remedy = f"fit a model to it: candide fit {shlex.quote(path)} --target COLUMN -o model.candide"
            raise ModelFileError(f"{path} is data, and no model", value=path, remedy=remedy) from None


def load_to_predict(model: str, data: str | None = None) -> "FittedModel":
    """The model of a file, with a word where it has no rows left, and so nothing to say."""
    fitted = load_model(model, data)
    if fitted.has_counts and len(fitted.labels) and not fitted.counts.class_weight.any():
        warnings.warn(f"{model} has no rows: it answers by its priors alone", stacklevel=2)
    return fitted
