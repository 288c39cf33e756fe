"""Shell completion: columns and classes of the files on the line, event models, keywords.

The metavar of an option decides what it completes: COL a column, COL=NAME a column and its event model, CLASS a class,
PRIOR classes with proportions, DATA a file, DIALECT a dialect. An error completes nothing and prints nothing.
"""

import csv
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import rich_click as click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from candide.engines.sql.dialects.registry import DIALECTS

_HEAD_BYTES = 1 << 18  # read from a text table
_HEAD_ROWS = 2000  # read from any other table, to find classes
_MAX_VALUES = 200  # classes that are offered
_TEXT_FILE = re.compile(r"\.(?:csv|tsv|tab|txt|data)(?:\.gz)?$", re.IGNORECASE)
_PARQUET_FILE = re.compile(r"\.(?:parquet|pq)$", re.IGNORECASE)
_DELIMITERS = ",;\t|"


def list_columns(path: str, reading: dict[str, Any] | None = None) -> list[str]:
    """The columns of a table, or those of a model."""
    if _TEXT_FILE.search(path):
        return _read_records(path, reading)[0]
    if _PARQUET_FILE.search(path):
        import duckdb

        return duckdb.read_parquet(path).columns  # in a fraction of the time that the engine takes to start
    if (fitted := _load_model(path)) is not None:
        return [*map(str, fitted.plan.columns), *([fitted.target] if fitted.target else [])]
    with _open_source(path, reading) as source:
        return list(source.columns)


def list_classes(path: str, target: str | None, reading: dict[str, Any] | None = None) -> list[str]:
    """The classes of a model, or the values in the first rows of a table's target."""
    if _TEXT_FILE.search(path):
        header, *rows = _read_records(path, reading)
        at = header.index(str(target))
        return _distinct(row[at] for row in rows if len(row) == len(header))
    if (fitted := _load_model(path)) is not None:
        return [str(label) for label in fitted.labels.values]
    with _open_source(path, reading) as source:
        return _distinct(source.head(_HEAD_ROWS).column(target).to_pylist())


def _read_records(path: str, reading: dict[str, Any] | None) -> list[list[str]]:
    """The first records of a text table, without the last, which may be cut short."""
    import gzip

    with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as file:
        start = file.read(_HEAD_BYTES)
    text = start.decode("utf-8-sig", "replace")
    delimiter = (reading or {}).get("delimiter") or max(_DELIMITERS, key=text.split("\n", 1)[0].count)
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return records if len(start) < _HEAD_BYTES else records[:-1]


def _load_model(path: str) -> Any:
    from candide import store

    return store.load(path) if store.is_model_file(path) else None


def _open_source(path: str, reading: dict[str, Any] | None) -> Any:
    from candide.engines.base import open_source
    from candide.engines.reading import ReadOptions

    return open_source(path, ReadOptions(**(reading or {})))


def _distinct(values: Iterable[Any]) -> list[str]:
    return sorted({str(value) for value in values if value not in (None, "")})[:_MAX_VALUES]


class CompletedText(click.ParamType):
    """Text that is completed by a function of the context and the incomplete text."""

    name = "text"

    def __init__(self, list_values: Callable[[click.Context, str], Iterable[str]], kind: str = "plain"):
        self._list_values, self._kind = list_values, kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        values = self._list_values(ctx, incomplete)
        return [CompletionItem(value, type=self._kind) for value in values if value.startswith(incomplete)]


class KeywordParam(CompletedText):
    """One of several keywords; others are left to the function that reads the value."""

    def __init__(self, keywords: Iterable[str]):
        super().__init__(lambda ctx, incomplete: keywords)
        self.keywords = keywords


def _from_files(list_candidates: Callable[[str, click.Context, str], Sequence[str]]) -> CompletedText:
    """Complete from the files on the line, the last first, by a function of path, context and incomplete text."""

    def list_values(ctx: click.Context, incomplete: str) -> list[str]:
        for path in reversed(argument_files(ctx)):
            with suppress(Exception), warnings.catch_warnings():  # a shell shows no messages
                warnings.simplefilter("ignore")
                candidates = list_candidates(path, ctx, incomplete)
                if values := [value for value in candidates if value.startswith(incomplete) and value.isprintable()]:
                    return values
        return []

    return CompletedText(list_values)


def _complete_event(path: str, ctx: click.Context, incomplete: str) -> list[str]:
    column, equals, _ = incomplete.rpartition("=")
    if not equals:
        return [f"{name}=" for name in list_columns(path, _reading(ctx))]
    from candide.events import EVENTS

    return [f"{column}={name}" for name in sorted(EVENTS)]


def _complete_class(path: str, ctx: click.Context, incomplete: str) -> list[str]:
    return list_classes(path, ctx.params.get("target"), _reading(ctx))


def _complete_class_prior(path: str, ctx: click.Context, incomplete: str) -> list[str]:
    """The next class of proportions such as yes=.02,no=.98."""
    before, comma, last = incomplete.rpartition(",")
    if "=" in last:
        return []
    used = {piece.partition("=")[0] for piece in before.split(",")}
    classes = [name for name in _complete_class(path, ctx, incomplete) if name not in used]
    return [*([] if comma else ["uniform"]), *(f"{before}{comma}{name}=" for name in classes)]


PARAM_BY_METAVAR = {
    "COL": _from_files(lambda path, ctx, incomplete: list_columns(path, _reading(ctx))),
    "COL=NAME": _from_files(_complete_event),
    "CLASS": _from_files(_complete_class),
    "PRIOR": _from_files(_complete_class_prior),
    "DATA": CompletedText(lambda ctx, incomplete: [incomplete], "file"),
    "DIALECT": KeywordParam(DIALECTS),
}


def attach_completion(command: click.Command) -> None:
    """Let every option of a command complete what its metavar stands for, and every argument a file."""
    for param in command.params:
        if isinstance(param.type, type(click.STRING)):
            metavar = "DATA" if isinstance(param, click.Argument) else str(param.metavar)
            param.type = PARAM_BY_METAVAR.get(metavar, param.type)


def argument_files(ctx: click.Context) -> list[str]:
    """The files among the arguments so far."""
    paths: list[str] = []
    for param in ctx.command.params:
        value = ctx.params.get(str(param.name)) if isinstance(param, click.Argument) else None
        paths += [value] if isinstance(value, str) else value or []
    paths += ctx.args  # arguments are left here if the last option has no value
    return [path for path in map(os.path.expanduser, paths) if os.path.exists(path)]


def _reading(ctx: click.Context) -> dict[str, Any]:
    from dataclasses import fields

    from candide.engines.reading import ReadOptions

    names = {field.name for field in fields(ReadOptions)}
    return {name: value for name, value in ctx.params.items() if name in names and value not in (None, ())}


class BashCompletion(BashComplete):
    """Bash splits words at = and : and does not quote what it inserts: join the words again, and quote names."""

    _prefix = ""  # of the word, the text before the part that bash completes
    _is_quoted = False

    def get_completion_args(self) -> tuple[list[str], str]:
        words, at = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
        whole = [*words[:at], words[at] if at < len(words) else ""]
        parts = [whole.pop()]
        if parts[0] in ("=", ":"):  # the cursor is behind it
            parts.insert(0, "")
        while len(whole) > 1 and (parts[-1] in ("=", ":") or whole[-1] in ("=", ":")):
            parts.append(whole.pop())
        last, word = parts[0], "".join(reversed(parts))
        self._prefix = word.removesuffix(last) if last else word
        self._is_quoted = last[:1] in ("'", '"')
        return [text for piece in whole[1:] for text in split_arg_string(piece)], "".join(split_arg_string(word))

    def format_completion(self, item: CompletionItem) -> str:
        value = str(item.value)
        if item.type == "plain":
            value = value.removeprefix("".join(split_arg_string(self._prefix)))
            value = value if self._is_quoted else re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
        return f"{item.type},{value.replace(chr(92), 2 * chr(92))}"  # bash's script reads a backslash as an escape


add_completion_class(BashCompletion)
