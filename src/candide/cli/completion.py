"""What a shell may complete: the columns and classes of a file that is named already, on the same line.

An option says by its metavar what it wants: COL a column, COL=NAME a column and its event model, CLASS a class, SHARES
classes with their shares, DATA a file. The header of a text table is read by Python alone, any other source as it is
for counting. Whatever goes wrong, nothing is completed and nothing is said.

>>> import os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "rows.csv")
>>> _ = open(path, "w").write("age;full name;kind\\n30;Ada;a\\n40;Bo;b\\n")
>>> list_columns(path), list_classes(path, "kind")
(['age', 'full name', 'kind'], ['a', 'b'])
"""

import csv
import io
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import rich_click as click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from candide.cli.group import iterate_commands

_HEAD_BYTES = 1 << 18  # bytes of a text table that are looked at
_HEAD_ROWS = 2000  # rows of any other in which classes are looked for
_MAX_VALUES = 200  # classes that are offered
_TEXT_FILE = re.compile(r"\.(?:csv|tsv|tab|txt|data)(?:\.gz)?$", re.IGNORECASE)
_PARQUET_FILE = re.compile(r"\.(?:parquet|pq)$", re.IGNORECASE)
_DELIMITERS = ",;\t|"


def list_columns(path: str, reading: dict[str, Any] | None = None) -> list[str]:
    """The columns of a table, or those that a model knows."""
    if _TEXT_FILE.search(path):
        return _records(path, reading)[0]
    if _PARQUET_FILE.search(path):
        import duckdb

        return duckdb.read_parquet(path).columns  # at a fraction of what the engine takes to start
    if (fitted := _model(path)) is not None:
        return [*map(str, fitted.plan.columns), *([fitted.target] if fitted.target else [])]
    with _open_source(path, reading) as source:
        return list(source.columns)


def list_classes(path: str, target: str | None, reading: dict[str, Any] | None = None) -> list[str]:
    """The classes that a model knows, or the values that stand in the first rows of a table's target."""
    if _TEXT_FILE.search(path):
        header, *rows = _records(path, reading)
        at = header.index(str(target))
        return _distinct(row[at] for row in rows if len(row) == len(header))
    if (fitted := _model(path)) is not None:
        return [str(label) for label in fitted.labels.values]
    with _open_source(path, reading) as source:
        return _distinct(source.head(_HEAD_ROWS).column(target).to_pylist())


def _records(path: str, reading: dict[str, Any] | None) -> list[list[str]]:
    """The first records of a text table, without the last, which may be cut short."""
    with _open_file(path) as file:
        start = file.read(_HEAD_BYTES)
    text = start.decode("utf-8-sig", "replace")
    first = text.split("\n", 1)[0]
    delimiter = (reading or {}).get("delimiter") or max(_DELIMITERS, key=first.count)
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return records if len(start) < _HEAD_BYTES else records[:-1]


def _open_file(path: str) -> Any:
    if not path.lower().endswith(".gz"):
        return open(path, "rb")
    import gzip

    return gzip.open(path)


def _model(path: str) -> Any:
    from candide import store

    return store.load(path) if store.is_model_file(path) else None


def _open_source(path: str, reading: dict[str, Any] | None) -> Any:
    from candide.engines.base import open_source
    from candide.engines.reading import ReadOptions

    return open_source(path, ReadOptions(**(reading or {})))


def _distinct(values: Iterable[Any]) -> list[str]:
    return sorted({str(value) for value in values if value not in (None, "")})[:_MAX_VALUES]


# What an option wants


class _FileCompletedParam(click.ParamType):
    """Text that is completed by what a file holds."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        for path in reversed(argument_files(ctx)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = self.candidates(path, ctx, incomplete)
            except Exception:  # a shell is no place for messages
                continue
            fits = [value for value in found if value.startswith(incomplete) and value.isprintable()]
            if shown := [CompletionItem(value) for value in fits]:
                return shown
        return []

    def candidates(self, path: str, ctx: click.Context, incomplete: str) -> Sequence[str]:
        """All that might be meant."""
        raise NotImplementedError


class ColumnParam(_FileCompletedParam):
    def candidates(self, path: str, ctx: click.Context, incomplete: str) -> Sequence[str]:
        return list_columns(path, _reading(ctx))


class EventParam(_FileCompletedParam):
    def candidates(self, path: str, ctx: click.Context, incomplete: str) -> Sequence[str]:
        column, equals, _ = incomplete.rpartition("=")
        if not equals:
            return [f"{name}=" for name in list_columns(path, _reading(ctx))]
        from candide.events import EVENTS

        return [f"{column}={name}" for name in sorted(EVENTS)]


class ClassParam(_FileCompletedParam):
    def candidates(self, path: str, ctx: click.Context, incomplete: str) -> Sequence[str]:
        return list_classes(path, ctx.params.get("target"), _reading(ctx))


class ClassPriorParam(_FileCompletedParam):
    """Classes with shares, such as yes=.02,no=.98: the class that comes next."""

    def candidates(self, path: str, ctx: click.Context, incomplete: str) -> Sequence[str]:
        before, comma, last = incomplete.rpartition(",")
        known = {piece.partition("=")[0] for piece in before.split(",")}
        if "=" in last:
            return []
        each = list_classes(path, ctx.params.get("target"), _reading(ctx))
        return [*([] if comma else ["uniform"]), *(f"{before}{comma}{name}=" for name in each if name not in known)]


class KeywordParam(click.ParamType):
    """One of some words; another is left to whoever reads it, who says what is wrong."""

    name = "text"

    def __init__(self, keywords: Sequence[str]):
        self.keywords = keywords

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self.keywords if word.startswith(incomplete)]


class SourceParam(click.ParamType):
    """A file, or whatever else holds rows."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class DialectParam(KeywordParam):
    """A dialect of SQL."""

    def __init__(self) -> None:
        super().__init__(())

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from candide.engines.sql.dialects.registry import DIALECTS

        self.keywords = list(DIALECTS)
        return super().shell_complete(ctx, param, incomplete)


PARAM_BY_METAVAR = {
    "COL": ColumnParam(),
    "COL=NAME": EventParam(),
    "CLASS": ClassParam(),
    "PRIOR": ClassPriorParam(),
    "DATA": SourceParam(),
    "DIALECT": DialectParam(),
}


def attach_completion(group: click.Group) -> None:
    """Let every option of every command complete what its metavar says, and every argument a file."""
    for _, command in iterate_commands(group):
        for param in command.params:
            if isinstance(param.type, type(click.STRING)):
                argument = isinstance(param, click.Argument)
                param.type = SourceParam() if argument else PARAM_BY_METAVAR.get(str(param.metavar), param.type)
    add_completion_class(BashCompletion)


def argument_files(ctx: click.Context) -> list[str]:
    """The files that stand as arguments on the line so far."""
    found: list[str] = []
    for param in ctx.command.params:
        value = ctx.params.get(str(param.name)) if isinstance(param, click.Argument) else None
        found += [value] if isinstance(value, str) else value or []
    found += ctx.args  # where an option without its value stands last, arguments are left as they came
    return [path for path in map(os.path.expanduser, found) if os.path.exists(path)]


def _reading(ctx: click.Context) -> dict[str, Any]:
    from dataclasses import fields

    from candide.engines.reading import ReadOptions

    known = {field.name for field in fields(ReadOptions)}
    return {name: value for name, value in ctx.params.items() if name in known and value not in (None, ())}


class BashCompletion(BashComplete):
    """Bash cuts words at = and : and inserts what it is given as it is: words are joined again, and names quoted."""

    _prefix = ""  # of the word, the text before the part that bash completes
    _is_quoted = False

    def get_completion_args(self) -> tuple[list[str], str]:
        words, at = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
        whole = [*words[:at], words[at] if at < len(words) else ""]
        parts = [whole.pop()]
        if parts[0] in ("=", ":"):  # the cursor stands behind it
            parts.insert(0, "")
        while len(whole) > 1 and (parts[-1] in ("=", ":") or whole[-1] in ("=", ":")):
            parts.append(whole.pop())
        last, word = parts[0], "".join(reversed(parts))
        self._prefix = word.removesuffix(last) if last else word
        self._is_quoted = last[:1] in ("'", '"')
        return [text for some in whole[1:] for text in split_arg_string(some)], "".join(split_arg_string(word))

    def format_completion(self, item: CompletionItem) -> str:
        value = str(item.value)
        before = "".join(split_arg_string(self._prefix))
        if item.type == "plain" and before and value.startswith(before):
            value = value[len(before) :]
        if item.type == "plain" and not self._is_quoted:
            value = re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
        return f"{item.type},{value.replace(chr(92), 2 * chr(92))}"  # the script reads a stroke as the next sign
