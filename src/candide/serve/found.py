"""Found: where rows that are to be forgotten were learned.

A row is the same however it is spelled, if it is counted as the same: ``1``, ``1.0`` and, in a column of numbers,
``"1"``. What was learned twice is found once for each time that it is asked for, the latest first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.serve.journal import Entry
from candide.serve.learned import decoded, encoded, meaning, same

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Part:
    """Rows of an entry that are to go, and what is left of it then."""

    rows: bytes
    left: Entry


class Search:
    """Rows that are looked for, until they are found."""

    def __init__(self, rows: bytes, fitted: Fitted, target: str):
        self._columns, self._fitted, self._target = decoded(rows), fitted, target
        self._wanted: dict[tuple, dict[tuple, list[int]]] = {}  # places of each spelling of what may mean the same
        self._meanings: dict[tuple, Census] = {}
        for i, row in enumerate(zip(*self._columns.values(), strict=True)):
            self._wanted.setdefault(_plain(row), {}).setdefault(_spelled(row), []).append(i)

    def among(self, entries: Iterable[Entry]) -> Iterator[Part]:
        """What is found in entries, in their order."""
        for entry in entries:
            if not self._wanted:
                return
            if entry.rows is not None and (part := self._in(entry, decoded(entry.rows))) is not None:
                yield part

    def _in(self, entry: Entry, columns: Columns) -> Part | None:
        taken = [i for i, row in enumerate(zip(*columns.values(), strict=True)) if self._takes(row)]
        if not taken:
            return None
        rest = sorted(set(range(entry.n)) - set(taken))
        left = entry.without(encoded(_some(columns, rest)) if rest else None, len(rest))
        return Part(encoded(_some(columns, taken)), left)

    def _takes(self, row: tuple) -> bool:
        key, own = _plain(row), _spelled(row)
        spellings = self._wanted.get(key)
        if spellings is None:
            return False
        if own not in spellings:
            alike = [other for other in spellings if same(self._means(other), self._means(own))]
            if not alike:
                return False
            own = alike[0]
        spellings[own].pop()
        if not spellings[own]:
            del spellings[own]
        if not spellings:
            del self._wanted[key]
        return True

    def _means(self, spelled: tuple) -> Census:
        """What a row is counted as, asked once for each spelling."""
        if spelled not in self._meanings:
            columns = {name: [value] for name, (_, value) in zip(self._columns, spelled, strict=True)}
            self._meanings[spelled] = meaning(self._fitted, encoded(columns), self._target)
        return self._meanings[spelled]

    def rest(self) -> tuple[bytes | None, int]:
        """The rows that were not found, and how many these are."""
        left = sorted(i for spellings in self._wanted.values() for some in spellings.values() for i in some)
        return encoded(_some(self._columns, left)) if left else None, len(left)


def _some(columns: Columns, at: list[int]) -> Columns:
    return {name: [column[i] for i in at] for name, column in columns.items()}


def _plain(row: tuple) -> tuple:
    """A row by values that are equal wherever two spellings may be of the same value.

    >>> _plain((1, "1.0", True, "oak", None, "nan")) == _plain((1.0, 1, "1", "oak", None, "nan"))
    True
    """
    return tuple(_number(value) if isinstance(value, str) else value for value in row)


def _spelled(row: tuple) -> tuple:
    """A row as it is spelled: 1, 1.0 and a truth are three."""
    return tuple((type(value), value) for value in row)


def _number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text
