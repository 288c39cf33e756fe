"""Errors a user can act on: each names what was wrong, where, and the remedy, in its text and as attributes.

All derive from :class:`CandideError`; those about values also derive from ``ValueError``, so code written against
scikit-learn keeps catching them.

>>> error = InputError("'forty' is not a number", column="age", row=3, value="forty", remedy="drop the row")
>>> str(error), error.column, error.row, error.value, error.remedy
("column 'age' (row 3): 'forty' is not a number; drop the row", 'age', 3, 'forty', 'drop the row')
"""

import re
from collections.abc import Iterable
from typing import Any


class CandideError(Exception):
    """Anything Candide raises on purpose.

    ``column``, ``row`` and ``value`` locate the problem, ``remedy`` is what to do; None if not applicable. ``code``
    names the kind of problem, such as "unknown-name", whatever the wording of the message.
    """

    def __init__(self, problem: str = "", *, column: Any = None, row: Any = None, value: Any = None, remedy: str = ""):
        super().__init__(problem)
        self.problem, self.column, self.row, self.value, self.remedy = problem, column, row, value, remedy or None

    def __str__(self) -> str:
        place = [] if self.column is None else [f"column {self.column!r}"]
        place += [] if self.row is None else [f"(row {self.row})" if place else f"row {self.row}"]
        text = f"{' '.join(place)}: {self.problem}" if place else self.problem
        return text if self.remedy is None else f"{text}; {self.remedy}"

    @property
    def code(self) -> str:
        return re.sub("(?<=[a-z])(?=[A-Z])", "-", type(self).__name__.removesuffix("Error")).lower()

    def __reduce__(self) -> Any:
        return _restore_error, (type(self), self.args), self.__dict__


def _restore_error(cls: type[CandideError], args: tuple) -> CandideError:
    """An error as it was pickled, whatever arguments its class requires."""
    return BaseException.__new__(cls, *args)  # cls.__new__ may be MemoryError's, which refuses other classes


class InputError(CandideError, ValueError):
    """The data or a setting is not usable as given."""


class InputTypeError(InputError, TypeError):
    """The kind of input is not supported here (sparse where dense is needed, text where numbers are)."""


class UnknownNameError(InputError):
    """A name (event, prior, column, setting) that is not in its table; ``value`` is the name."""


class SourceError(InputError):
    """A source that cannot be read as it is; ``line`` is the line at fault, if there is one."""

    def __init__(self, problem: str, *, source: str, line: int | None = None, **place: Any):
        super().__init__(problem, **place)
        self.source, self.line = source, line

    def __str__(self) -> str:
        return f"{self.source}{'' if self.line is None else f', line {self.line}'}: {super().__str__()}"


class UnlabelledError(InputError):
    """None of the rows has a label of the model: there is nothing to score."""


class CellError(InputError):
    """A problem with one (class, column) cell, by position until a caller adds the names.

    ``row`` is the row that was left out, where an estimate without it fails.
    """

    def __init__(self, class_code: int, feature: int, reason: str, row: int | None = None):
        super().__init__(f"class {class_code}, column {feature}: {reason}", row=row)
        self.class_code, self.feature, self.reason = class_code, feature, reason


class MergeError(InputError):
    """Two tallies, counts or models whose encodings do not agree."""


_MAX_LISTED_NAMES = 16  # names that an error lists
MERGE_REMEDY = "fit one model like the other (like=..., or candide fit --like MODEL)"  # of a MergeError


class NotCountedError(InputError):
    """A subtraction of rows that were never counted; ``cell`` is the class and position at fault, if there is one."""

    def __init__(self, reason: str, cell: tuple[int, int] | None = None, **place: Any):
        super().__init__(reason if cell is None else f"{reason} (class {cell[0]}, position {cell[1]})", **place)
        self.reason, self.cell = reason, cell


class SumTooLargeError(InputError):
    """Values whose sums are too large to be counted, merged and written to a file."""


class ModelFileError(InputError):
    """A file that is not a model, or an incomplete one."""


class MissingLibraryError(CandideError, ImportError):
    """A feature needs an optional library that is not installed."""


class MemoryLimitError(CandideError, MemoryError):
    """There is not enough memory for the request."""


class BusyError(CandideError):
    """Another process has been writing a file for too long."""


def unknown_name_error(kind: str, name: object, choices: Iterable[object]) -> UnknownNameError:
    """The error for a ``name`` that is not one of ``choices``, with the nearest name suggested."""
    from difflib import get_close_matches

    names = [str(choice) for choice in choices]
    if type(name).__module__ == "numpy" and getattr(name, "ndim", 1) == 0:
        name = name.item()  # type: ignore[attr-defined]  # a text as Python shows it
    near = [choice for choice in names if choice.casefold() == str(name).casefold()]
    near = near or get_close_matches(str(name), names, n=1)
    near = near or [choice for choice in names if len(str(name)) > 1 and choice.startswith(str(name))]
    hint = f"; did you mean {near[0]!r}?" if near else "."
    parts = [part.strip() for part in str(name).split(",")]
    remedy = "repeat the option for each, or pass a list" if len(parts) > 1 and set(parts) <= set(names) else ""
    rest = f" and {len(names) - _MAX_LISTED_NAMES:,} more" if len(names) > _MAX_LISTED_NAMES + 1 else ""
    shown = ", ".join(names[:_MAX_LISTED_NAMES] if rest else names) + rest
    return UnknownNameError(f"unknown {kind} {name!r}{hint} Known: {shown}", value=name, remedy=remedy)
