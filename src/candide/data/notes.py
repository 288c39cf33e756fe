"""Notes on the data that are not errors: listed in a report, issued as warnings in Python."""

import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from candide.data.table import Name

_OPTION = re.compile(r"--[a-z][a-z-]*(?: (?P<value>(?:(?!--)[^;])*?))? \((?P<name>[a-z_]+)=(?P<form>[^()]*)\)")
_ONCE_ACTIONS = ("default", "module", "once")  # actions of filters that show a warning once
_PACKAGE_FOLDERS = ("site-packages", "dist-packages", "<frozen ")
_issued_warnings: set[tuple[Any, ...]] = set()  # what was issued, and where


@dataclass(frozen=True)
class Note:
    """A note: a code for machines, a sentence, the column it is about, and a remedy."""

    code: str
    text: str
    column: Name | None = None
    remedy: str = ""
    columns: tuple[Name, ...] = ()  # where they may be several

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


class DataWarning(UserWarning):
    """A note as a warning. The message names parameters of Python, not options of the command line."""

    def __init__(self, note: Note):
        super().__init__(replace_options_with_parameters(str(note)))
        self.note = note


def replace_options_with_parameters(text: str) -> str:
    """Replace options of the command line by the Python parameters in parentheses behind them.

    "leave it out: --drop zip (drop=[...])" becomes "leave it out: drop=['zip']".
    """
    return _OPTION.sub(_option_to_parameter, text)


def _option_to_parameter(match: re.Match[str]) -> str:
    value, name, form = match.group("value") or "", match.group("name"), match.group("form")
    if form == "{...}" and "=" in value:
        column, _, event = value.rpartition("=")
        return f"{name}={{{column!r}: {event!r}}}"
    if form == "[...]" and value:
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        return f"{name}=[{value if quoted else repr(value)}]"
    return f"{name}={form}"


def issue_warnings(notes: Iterable[Note], stacklevel: int = 2) -> None:
    """Issue notes as warnings, at the line of the user's code.

    A note with the same code and columns is issued once for that line, however many models are fitted there, as in
    cross-validation, and again when the cell of a notebook is run again. A filter "always" shows all of them.
    """
    frame = _find_caller(sys._getframe(stacklevel))
    inputs = frame.f_globals.get("In")  # what IPython keeps of all cells
    place, cell = (frame.f_code.co_filename, frame.f_lineno), len(inputs) if isinstance(inputs, list) else 0
    for note in notes:
        warning, key = DataWarning(note), (*place, cell, note.code, note.column, note.columns)
        if _filter_action(str(warning), *place) in _ONCE_ACTIONS:
            if key in _issued_warnings:
                continue
            _issued_warnings.add(key)
        warnings.warn_explicit(warning, DataWarning, *place, registry={})  # that of the module would suppress it


def reset_issued_warnings() -> None:
    """Issue every warning again: a new command starts."""
    _issued_warnings.clear()


def _find_caller(frame: FrameType) -> FrameType:
    """The nearest frame that is not of an installed package; else the one given."""
    caller: FrameType | None = frame
    while caller is not None:
        is_ours = caller.f_globals.get("__name__", "").partition(".")[0] == "candide"
        if not is_ours and not any(folder in caller.f_code.co_filename for folder in _PACKAGE_FOLDERS):
            return caller
        caller = caller.f_back
    return frame


def _filter_action(text: str, filename: str, line: int) -> str:
    name = filename.removesuffix(".py")
    for action, message, category, module, lineno in warnings.filters:
        is_match = (message is None or re.match(message, text)) and (module is None or re.match(module, name))
        if is_match and issubclass(DataWarning, category) and lineno in (0, line):
            return action
    return "default"


def left_out_notes(n: int, reason: str, column: Name) -> list[Note]:
    """A note on rows that were left out because of what they have, or lack."""
    if not n:
        return []
    verbs = ("has", "was") if n == 1 else ("have", "were")
    text = f"{n:,} row{'' if n == 1 else 's'} {verbs[0]} {reason} and {verbs[1]} left out"
    return [Note("label-missing", text, column)]
