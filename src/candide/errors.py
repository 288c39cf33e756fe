"""Errors a user can act on: each names what was wrong, where, and the remedy.

All derive from :class:`CandideError`; those about values also derive from ``ValueError``,
so code written against scikit-learn keeps catching them.

>>> issubclass(InputError, ValueError) and issubclass(InputError, CandideError)
True
>>> str(unknown("event", "gausian", ["gaussian", "poisson"]))
"unknown event 'gausian'; did you mean 'gaussian'? Known: gaussian, poisson"
"""

from collections.abc import Iterable, Sequence


class CandideError(Exception):
    """Anything Candide raises on purpose."""


class InputError(CandideError, ValueError):
    """The data or a setting is not usable as given."""


class InputTypeError(InputError, TypeError):
    """The kind of input is not supported here (sparse where dense is needed, text where numbers are)."""


class UnknownNameError(InputError):
    """A name (event, prior, column, setting) that is not in its table."""


class CellError(InputError):
    """Something about one (class, column) cell, known by position until someone who knows the names says it."""

    def __init__(self, class_code: int, feature: int, why: str):
        super().__init__(f"class {class_code}, column {feature}: {why}")
        self.class_code, self.feature, self.why = class_code, feature, why


class MergeError(InputError):
    """Two tallies, censuses or models whose encodings do not agree."""


class NotWithinError(InputError):
    """A subtraction of rows that were never counted; ``cell`` is the class and position, where one is to blame."""

    def __init__(self, why: str, cell: tuple[int, int] | None = None):
        super().__init__(why if cell is None else f"{why} (class {cell[0]}, position {cell[1]})")
        self.why, self.cell = why, cell

    def __reduce__(self) -> tuple[type, tuple[str, tuple[int, int] | None]]:
        return type(self), (self.why, self.cell)


class ModelFileError(InputError):
    """A file that is not a model, or not a whole one."""


class MissingLibraryError(CandideError, ImportError):
    """Something asked for needs a library that is optional, and not installed."""


class BusyError(CandideError):
    """A file that another process is writing, and has been for too long."""


def few(names: Sequence[object], most: int = 8) -> str:
    """The first of some names or values, quoted, and how many more there are.

    >>> few(["a", "b"]), few(range(5), 3)
    ("'a', 'b'", '0, 1, 2 and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def unknown(what: str, name: object, known: Iterable[object]) -> UnknownNameError:
    """The error for ``name`` not being one of ``known``, with the nearest name suggested."""
    from difflib import get_close_matches

    names = [str(k) for k in known]
    near = get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return UnknownNameError(f"unknown {what} {name!r}{hint} Known: {', '.join(names)}")
