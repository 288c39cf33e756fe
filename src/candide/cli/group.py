"""The group of commands, and what they share: errors about models, warnings, and how a result is shown."""

import os
import shlex
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich_click as click

from candide import __version__
from candide.engines.addresses import redact_address, redact_passwords
from candide.errors import InputError, ModelFileError

click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.MAX_WIDTH = 100
click.rich_click.OPTIONS_TABLE_COLUMN_TYPES = ["required", "opt_all_metavar", "help"]  # help has the remaining width
_INDENT = len("note: ")


class ModelCommand(click.RichCommand):
    """A command whose errors about a model file say what the file is instead."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModelFileError:
            _explain_model_error(ctx)
            raise


def _explain_model_error(ctx: Any) -> None:
    """Raise a better error where MODEL and DATA are swapped, or a model is a table."""
    from candide.engines.duckdb.formats import FORMATS, SINGLE_FILE_FORMATS, file_suffix
    from candide.store import is_model_file

    given = [ctx.params[str(param.name)] for param in ctx.command.params if isinstance(param, click.Argument)]
    paths = [path for value in given if value for path in ([value] if isinstance(value, str) else value)]
    data = paths[1] if len(paths) == 2 and "models" not in ctx.params else None
    if paths and data is not None and is_model_file(data):
        model = redact_address(paths[0])
        remedy = f"did you mean: candide {ctx.info_name} {data} {model}"
        raise InputError(f"{model} is not a model, but {data} is", value=model, remedy=remedy) from None
    for path in paths:
        is_table = os.path.isfile(path) and file_suffix(path) in {**FORMATS, **SINGLE_FILE_FORMATS}
        if is_table and not is_model_file(path):
            remedy = f"fit a model to it: candide fit {shlex.quote(path)} --target COLUMN -o model.candide"
            raise ModelFileError(f"{path} is data, not a model", value=path, remedy=remedy) from None


class CommandGroup(click.RichGroup):
    """A group whose usage errors do not repeat a password."""

    command_class = ModelCommand

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _hide_passwords():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _hide_passwords():
            return super().invoke(ctx)


@contextmanager
def _hide_passwords() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.message = redact_passwords(error.message, sys.argv)  # type: ignore[misc]
        raise


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="candide")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Naive Bayes and generative classification by counting.

    Start with `candide demo`, or with a table of your own: `candide fit data.csv --target COLUMN`
    """
    warnings.showwarning = _print_warning
    if notes := sys.modules.get("candide.data.notes"):  # not imported for this: it would slow down --help
        notes.reset_issued_warnings()
    for stream in (sys.stdout, sys.stderr):  # characters that the terminal lacks are escaped, never an error
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_code(text: str) -> None:
    """Print a program or a query, which must not be escaped; an error if the output cannot encode it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        what = f"standard output is {encoding}, which cannot encode {text[error.start]!a}"
        raise InputError(what, value=encoding, remedy="name a file (-o FILE), or set PYTHONIOENCODING=utf-8") from None
    click.echo(text, nl=not text.endswith("\n"))


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a note on standard error; on a terminal, wrapped between words as a report is."""
    text, columns = f"note: {getattr(message, 'note', message)}", os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() else os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    if width > _INDENT:
        lines = textwrap.wrap(text, width - _INDENT, break_long_words=False, break_on_hyphens=False)
        text = f"\n{' ' * _INDENT}".join(lines)
    click.echo(text, err=True)


def iterate_commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of subgroups included."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", subcommand) for inner, subcommand in iterate_commands(command))
        else:
            yield name, command


def show_result(summary: Any, as_json: bool) -> None:
    """Print a summary for a person, or as a line of JSON."""
    if as_json:
        from candide.report import json

        click.echo(json.dumps(summary))
    else:
        from candide.report import terminal

        terminal.print_summary(summary)
