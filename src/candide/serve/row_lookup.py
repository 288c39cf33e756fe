"""Found: where rows that are to be forgotten were learned.

A row is the same however it is spelled, if it is counted as the same: ``1``, ``1.0`` and, in a column of numbers,
``"1"``. What was learned twice is found once for each time that it is asked for, the latest first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.serve.journal import Entry
from candide.serve.learned_rows import count_row, decode_columns, encode_columns, is_same_row

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class EntryMatch:
    """Rows of an entry that are to go, and what is left of it then."""

    matched_rows: bytes
    remaining_entry: Entry


class RowSearch:
    """Rows that are looked for, until they are found."""

    def __init__(self, rows: bytes, fitted: FittedModel, target: str):
        self._columns, self._fitted, self._target = decode_columns(rows), fitted, target
        self._pending: dict[tuple, dict[tuple, list[int]]] = {}  # places of each spelling of what may mean the same
        self._row_counts: dict[tuple, ModelCounts] = {}
        for i, row in enumerate(zip(*self._columns.values(), strict=True)):
            self._pending.setdefault(_comparable_row(row), {}).setdefault(_exact_row(row), []).append(i)

    def find_in(self, entries: Iterable[Entry]) -> Iterator[EntryMatch]:
        """What is found in entries, in their order."""
        for entry in entries:
            if not self._pending:
                return
            if entry.rows is not None and (part := self._match_entry(entry, decode_columns(entry.rows))) is not None:
                yield part

    def _match_entry(self, entry: Entry, columns: Columns) -> EntryMatch | None:
        taken = [i for i, row in enumerate(zip(*columns.values(), strict=True)) if self._take_match(row)]
        if not taken:
            return None
        rest = sorted(set(range(entry.n)) - set(taken))
        left = entry.with_remaining(encode_columns(_select_rows(columns, rest)) if rest else None, len(rest))
        return EntryMatch(encode_columns(_select_rows(columns, taken)), left)

    def _take_match(self, row: tuple) -> bool:
        key, own = _comparable_row(row), _exact_row(row)
        spellings = self._pending.get(key)
        if spellings is None:
            return False
        if own not in spellings:
            alike = [other for other in spellings if is_same_row(self._count_row(other), self._count_row(own))]
            if not alike:
                return False
            own = alike[0]
        spellings[own].pop()
        if not spellings[own]:
            del spellings[own]
        if not spellings:
            del self._pending[key]
        return True

    def _count_row(self, spelled: tuple) -> ModelCounts:
        """What a row is counted as, asked once for each spelling."""
        if spelled not in self._row_counts:
            columns = {name: [value] for name, (_, value) in zip(self._columns, spelled, strict=True)}
            self._row_counts[spelled] = count_row(self._fitted, encode_columns(columns), self._target)
        return self._row_counts[spelled]

    def unmatched_rows(self) -> tuple[bytes | None, int]:
        """The rows that were not found, and how many these are."""
        left = sorted(i for spellings in self._pending.values() for some in spellings.values() for i in some)
        return encode_columns(_select_rows(self._columns, left)) if left else None, len(left)


def _select_rows(columns: Columns, at: list[int]) -> Columns:
    return {name: [column[i] for i in at] for name, column in columns.items()}


def _comparable_row(row: tuple) -> tuple:
    """A row by values that are equal wherever two spellings may be of the same value.

    >>> _comparable_row((1, "1.0", True, "oak", None, "nan")) == _comparable_row((1.0, 1, "1", "oak", None, "nan"))
    True
    """
    return tuple(_number(value) if isinstance(value, str) else value for value in row)


def _exact_row(row: tuple) -> tuple:
    """A row as it is spelled: 1, 1.0 and a truth are three."""
    return tuple((type(value), value) for value in row)


def _number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text
