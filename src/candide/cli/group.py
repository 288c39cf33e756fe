"""The group of commands, how it runs, and what commands share: errors, notes, progress, and the printed result."""

import os
import shlex
import sys
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import rich_click as click

from candide import __version__
from candide.cli.completion import attach_completion
from candide.engines.reading import redact_address, redact_passwords
from candide.errors import CandideError, InputError, ModelFileError

click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.MAX_WIDTH = 100
click.rich_click.OPTIONS_TABLE_COLUMN_TYPES = ["required", "opt_all_metavar", "help"]  # help has the remaining width
_INDENT = len("note: ")
_NO_THREAD = "can't start new thread"
_PROGRESS_DELAY = 1.0  # seconds before a progress bar is shown


class _LazyModule:
    """A module that is imported when one of its names is first used, so that --help stays quick."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    from candide.api import fitting, models
    from candide.report import summary
else:
    fitting, models, summary = map(_LazyModule, ("candide.api.fitting", "candide.api.models", "candide.report.summary"))


class ModelCommand(click.RichCommand):
    """A command whose errors about a model file name what the file is instead."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModelFileError:
            _explain_model_error(ctx)
            raise


def _explain_model_error(ctx: Any) -> None:
    """Raise a better error if MODEL and DATA are swapped, or a model is a table."""
    from candide.engines.duckdb.formats import FORMATS, SINGLE_FILE_FORMATS, file_suffix
    from candide.store import is_model_file

    given = [ctx.params[str(param.name)] for param in ctx.command.params if isinstance(param, click.Argument)]
    paths = [path for value in given if value for path in ([value] if isinstance(value, str) else value)]
    if len(paths) == 2 and "models" not in ctx.params and is_model_file(paths[1]):
        model, data = redact_address(paths[0]), paths[1]
        remedy = f"did you mean: candide {ctx.info_name} {data} {model}"
        raise InputError(f"{model} is not a model, but {data} is", value=model, remedy=remedy) from None
    models = paths[:1] if ctx.params.keys() & {"data", "what"} else paths  # the other path is DATA
    for path in models:
        is_table = os.path.isfile(path) and file_suffix(path) in {**FORMATS, **SINGLE_FILE_FORMATS}
        if is_table and not is_model_file(path):
            remedy = f"fit a model to it: candide fit {shlex.quote(path)} --target COLUMN -o model.candide"
            raise ModelFileError(f"{path} is data, not a model", value=path, remedy=remedy) from None


class CommandGroup(click.RichGroup):
    """A group whose usage errors do not repeat a password, and whose commands complete names from files."""

    command_class = ModelCommand

    def add_command(self, cmd: click.Command, *args: Any, **kwargs: Any) -> None:
        attach_completion(cmd)
        super().add_command(cmd, *args, **kwargs)

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


def main() -> None:
    """Run a command; exit status 1 and one line for an error, 2 for wrong usage."""
    debug = "--debug" in sys.argv
    try:
        cli(prog_name="candide")
    except (CandideError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        text = str(error)
        if not isinstance(error, CandideError | OSError):
            remedy = "pass --memory-limit or --threads 1, or give it more"
            text = f"not enough memory{f' ({error})' if text else ''}; {remedy}"
        text = redact_passwords(traceback.format_exc() if debug else text, sys.argv)
        print(text if debug else f"candide: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(1)


def iterate_commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of subgroups included."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", subcommand) for inner, subcommand in iterate_commands(command))
        else:
            yield name, command


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a note on standard error; on a terminal, wrapped between words as a report is."""
    text, columns = f"note: {getattr(message, 'note', message)}", os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() else os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    if width > _INDENT:
        lines = textwrap.wrap(text, width - _INDENT, break_long_words=False, break_on_hyphens=False)
        text = f"\n{' ' * _INDENT}".join(lines)
    click.echo(text, err=True)


def print_code(text: str) -> None:
    """Print a program or a query, which must not be escaped; an error if the output cannot encode it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        what = f"standard output is {encoding}, which cannot encode {text[error.start]!a}"
        raise InputError(what, value=encoding, remedy="name a file (-o FILE), or set PYTHONIOENCODING=utf-8") from None
    click.echo(text, nl=not text.endswith("\n"))


def show_result(summary: Any, as_json: bool) -> None:
    """Print a summary for a person, or as a line of JSON."""
    if as_json:
        from candide.report.records import dump_json

        click.echo(dump_json(summary))
    else:
        from candide.report import terminal

        terminal.print_summary(summary)


def show_progress(enabled: bool) -> Any:
    """A progress display for work longer than a second, on a terminal; elsewhere one that shows nothing."""
    from candide.engines.base import no_progress

    return _watch if enabled and sys.stderr.isatty() else no_progress


@contextmanager
def _watch(source: Any, what: str) -> Iterator[None]:
    source.start_progress()
    done = threading.Event()
    drawer = threading.Thread(target=_draw_progress, args=(source, what, done), daemon=True)
    drawer.start()
    try:
        yield
    finally:
        done.set()
        drawer.join()


def _draw_progress(source: Any, what: str, done: threading.Event) -> None:
    """Show how far the work is, and rows per second, until it is done."""
    if done.wait(_PROGRESS_DELAY):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    texts = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}")
    remaining = TimeRemainingColumn(elapsed_when_finished=True)
    bar = Progress(SpinnerColumn(), *texts, remaining, console=Console(stderr=True), transient=True)
    start, completed = time.monotonic() - _PROGRESS_DELAY, 0.0
    with bar:
        task = bar.add_task(what, total=1.0, rate="")
        while not done.wait(0.1):
            fraction, rows = source.progress(), source.rows_read
            completed = max(completed, fraction)  # rows may have to be read once more
            rate = f"{rows / (time.monotonic() - start):,.0f} rows/s" if rows else ""
            bar.update(task, total=1.0 if fraction >= 0 else None, completed=completed, rate=rate)
        bar.remove_task(task)
