"""Remarks: what a person should know of the data, though it is no error. A note in a report, a warning in Python.

>>> remark = Note("label-missing", "2 rows have no value of 'y' and were left out", column="y")
>>> str(remark), remark.code, remark.column
("2 rows have no value of 'y' and were left out", 'label-missing', 'y')
>>> str(Note("text", "column 'age' is read as text because of 'old'", "age", "mend it or pass --na 'old'"))
"column 'age' is read as text because of 'old'; mend it or pass --na 'old'"
"""

import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from candide.data.table import Name

_OPTION = re.compile(r"--[a-z][a-z-]*(?: (?P<value>(?:(?!--)[^;])*?))? \((?P<name>[a-z_]+)=(?P<form>[^()]*)\)")
_ONCE_ACTIONS = ("default", "module", "once")  # actions of filters that give a warning once
_PACKAGE_FOLDERS = ("site-packages", "dist-packages", "<frozen ")
_issued_warnings: set[tuple[Any, ...]] = set()  # what was warned of, and where


@dataclass(frozen=True)
class Note:
    """One thing to know: a code for machines, a sentence, the column it is about, and what may be done."""

    code: str
    text: str
    column: Name | None = None
    remedy: str = ""
    columns: tuple[Name, ...] = ()  # all that it is about, where they may be several

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


class DataWarning(UserWarning):
    """A note as a warning. The message names parameters of Python, not options of the command line."""

    def __init__(self, note: Note):
        super().__init__(replace_options_with_parameters(str(note)))
        self.note = note


def replace_options_with_parameters(text: str) -> str:
    """A sentence with the parameters in parentheses in the place of options of the command line.

    >>> replace_options_with_parameters(
    ...     "leave it out: --drop 'a b' (drop=[...]), or pass --event zip=categorical (events={...})"
    ... )
    "leave it out: drop=['a b'], or pass events={'zip': 'categorical'}"
    >>> replace_options_with_parameters("pass --force (force=True), or name the column: --target COL (target=...)")
    'pass force=True, or name the column: target=...'
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

    A note of one kind on the same columns comes once for that line, however many models are fitted there, as in
    cross-validation. In a notebook it comes again when the cell is run again. A filter "always" gets all of them.
    """
    frame = _caller(sys._getframe(stacklevel))
    place, cell = (frame.f_code.co_filename, frame.f_lineno), _notebook_cell(frame)
    for note in notes:
        warning, key = DataWarning(note), (*place, cell, note.code, note.column, note.columns)
        if _filter_action(str(warning), *place) in _ONCE_ACTIONS:
            if key in _issued_warnings:
                continue
            _issued_warnings.add(key)
        registry: dict[Any, Any] = {}  # not that of the module, which would suppress it
        warnings.warn_explicit(warning, DataWarning, *place, registry=registry)


def reset_issued_warnings() -> None:
    """Give every warning again: a new command starts."""
    _issued_warnings.clear()


def _caller(frame: FrameType) -> FrameType:
    """The nearest frame that is not of an installed package; else the one given."""
    there: FrameType | None = frame
    while there is not None:
        name = there.f_globals.get("__name__", "").partition(".")[0]
        if name != "candide" and not any(folder in there.f_code.co_filename for folder in _PACKAGE_FOLDERS):
            return there
        there = there.f_back
    return frame


def _notebook_cell(frame: FrameType) -> int:
    """The number of the cell of a notebook that is being run; 0 elsewhere."""
    typed = frame.f_globals.get("In")  # what IPython keeps of all cells
    return len(typed) if isinstance(typed, list) else 0


def _filter_action(text: str, filename: str, line: int) -> str:
    """What the filters want done with a warning."""
    module = filename.removesuffix(".py")
    for action, message, category, of, at in warnings.filters:
        if (
            issubclass(DataWarning, category)
            and (message is None or re.match(message, text))
            and (of is None or re.match(of, module))
            and at in (0, line)
        ):
            return action
    return "default"


def left_out_notes(n: int, reason: str, column: Name) -> list[Note]:
    """A remark on rows that have something, or lack it, and were left out."""
    if not n:
        return []
    verbs = ("has", "was") if n == 1 else ("have", "were")
    text = f"{n:,} row{'' if n == 1 else 's'} {verbs[0]} {reason} and {verbs[1]} left out"
    return [Note("label-missing", text, column)]
