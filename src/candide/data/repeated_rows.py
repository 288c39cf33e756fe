"""Equal rows: pooled into one row with a frequency, and how many independent draws that frequency stands for.

Rows of small discrete tables are equal by chance: they are drawn independently, and each is one more observation. Rows
of an oversampled table, of a bootstrap sample or of a join that fans out are copies: two of them tell no more than one.
Both are only frequencies, as row weights are, so what tells them apart is whether chance explains them: how often a row
would come again if, within its class, its columns depended on each other along a tree at most. Beyond that, copies make
one draw.

>>> rng = np.random.default_rng(0)
>>> bits, y = rng.integers(0, 2, (400, 2)), np.zeros(400, np.intp)
>>> rows = DistinctRows.from_columns([bits[:, 0], bits[:, 1]], y)
>>> len(rows), bool((rows.draws == rows.frequency).all())  # four combinations, each of them often: by chance
(4, True)
>>> sizes = rng.normal(size=(50, 3))
>>> copies = np.repeat(sizes, 3, axis=0)
>>> DistinctRows.from_columns(list(copies.T), np.zeros(150, np.intp)).draws.tolist() == [1.0] * 50
True
>>> weights = np.full(50, 3.0)  # a weight of 3 is three copies
>>> weighted = DistinctRows.from_columns(list(sizes.T), np.zeros(50, np.intp), weights)
>>> weighted.frequency.tolist() == [3.0] * 50, weighted.draws.tolist() == [1.0] * 50
(True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats, check_finite
from candide.data.documents import Documents
from candide.data.independent_draws import CodedColumn, estimate_draws
from candide.data.notes import Note
from candide.data.row_hash import hash_row_numbers
from candide.data.table import Name, Table
from candide.errors import InputError

_HEAVY_RATIO = 3.0  # times the mean of the draws
_MOST_UNITS = 1 << 22  # draws that are assigned to folds one by one
_MIN_NOTED_SHARE = 0.05  # the share of rows that are copies, below which nothing is said
_NEGLIGIBLE = 1e-9  # the share of a number of draws that is a rounding error


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows without their repetitions, in the order in which they first appear."""

    first: Codes  # (distinct row,) a row that it stands for
    group: Codes  # (row,) the distinct row that it is
    y: Codes  # (distinct row,) its class
    frequency: Floats  # (distinct row,) the weight of all rows equal to it
    draws: Floats  # (distinct row,) the independent draws that they stand for
    order: Codes  # (distinct row,) its place in an order that is random, and that only contents and the seed decide
    class_start: Codes  # (class,) a random number of each class, likewise

    @classmethod
    def from_columns(
        cls, columns: Sequence[Any], y: Codes, weight: Floats | None = None, seed: int = 0, *, share: float = 1.0
    ) -> "DistinctRows":
        """The distinct rows of some columns and a class; a ``share`` of all distinct rows, where these are a sample."""
        coded = [CodedColumn.of(column) for column in columns]
        coded = [one for one in coded if len(one.code) and one.code.max() > one.code.min()]
        codes = [one.code for one in coded]
        identity = _combine_hashes([hash_row_numbers(one, j) for j, one in enumerate([*codes, y])], len(y))
        _, first, group = np.unique(identity, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))  # in the order of appearance
        first, group = np.sort(first), place[group]
        frequency = np.bincount(group, weight, len(first)).astype(np.float64)
        coded, own, identity = [one.take(first) for one in coded], y[first], identity[first]
        lot = _row_hashes([one.code for one in coded], len(first), seed)
        order = np.empty(len(first), np.intp)
        order[np.lexsort([identity, lot])] = np.arange(len(first))
        start = np.full(int(y.max(initial=-1)) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(start, own, lot)
        draws = estimate_draws(coded, own, frequency, share)
        return cls(first, group, own, frequency, draws, order, start.astype(np.intp))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def weight_per_draw(self) -> Floats:
        """(distinct row,) the weight of one independent draw."""
        return self.frequency / np.where(self.draws > 0, self.draws, 1.0)

    @property
    def share_copied(self) -> float:
        """The share of the weight of rows that are copies of each other."""
        return float(self.frequency[self.weight_per_draw > 1.0].sum()) / max(1e-300, float(self.frequency.sum()))

    @property
    def units(self) -> Floats:
        """(distinct row,) the parts that it can be divided into: independent draws, of which none is a fraction."""
        return np.maximum(np.floor(self.draws * (1.0 + _NEGLIGIBLE)), 1.0)

    def weight_per_draw_by_class(self, n_classes: int) -> Floats:
        """(class,) by how much its weights exceed what its rows can teach, at least 1: weights below 1 are fewer rows.

        The weight of a draw in the mean of the rows (Kish), in which no draw counts for more than some times the mean
        of the draws: a few heavy rows do not make all others next to nothing.

        >>> columns = [np.array([0.1, 0.7, 0.7, 0.7, 0.7]), np.arange(5) > 0]
        >>> y, weight = np.array([0, 1, 1, 1, 1]), np.array([0.5, 1.0, 1.0, 1.0, 1.0])
        >>> DistinctRows.from_columns(columns, y, weight).weight_per_draw_by_class(3).tolist()
        [1.0, 1.0, 1.0]
        """
        n, draws = (np.bincount(self.y, one, n_classes) for one in (self.frequency, self.draws))
        usual = np.where(draws > 0, n / np.where(draws > 0, draws, 1.0), 1.0)
        bounded = np.minimum(self.weight_per_draw, _HEAVY_RATIO * usual[self.y])
        mean = np.bincount(self.y, self.frequency * bounded, n_classes) / np.where(n > 0, n, 1.0)
        return np.maximum(mean, 1.0)

    def assign_folds(self, n: int) -> tuple[Codes, Codes, Floats]:
        """The distinct row, the fold and the weight of entries that divide the rows into ``n`` folds, class by class.

        Copies stay together; independent draws of equal rows are assigned to folds one by one.

        >>> rows = DistinctRows.from_columns([np.zeros(6), np.array([0, 0, 0, 0, 0, 1])], np.zeros(6, np.intp))
        >>> [entry.tolist() for entry in rows.assign_folds(3)]
        [[0, 0, 0, 1], [0, 1, 2, 1], [2.0, 1.0, 2.0, 1.0]]
        """
        units = self.units
        part = self._in_turn(n) if units.sum() > _MOST_UNITS else self._at_random(n)
        row, fold = np.nonzero(part)
        return row, fold, (self.frequency / units)[row] * part[row, fold]

    def _at_random(self, n: int) -> Floats:
        """(distinct row, fold) its draws in each fold: those of a class are assigned in turn, in random order.

        Were the draws of equal rows divided evenly, no fold would differ from the others by chance, and held-out
        figures would be too good.
        """
        units = self.units.astype(np.intp)
        row = np.repeat(np.arange(len(self)), units)
        number = np.arange(len(row)) - (np.cumsum(units) - units)[row]
        place = hash_row_numbers((self.order[row] << 23) + number) / 2.0**64 * len(self)
        place = np.where(number == 0, self.order[row], place)
        by_class = np.lexsort([place, self.y[row]])
        first = np.searchsorted(self.y[row][by_class], np.arange(len(self.class_start)))
        fold = np.empty(len(row), np.intp)
        own = self.y[row][by_class]
        fold[by_class] = (np.arange(len(row)) - first[own] + self.class_start[own] % n) % n
        return np.bincount(row * n + fold, minlength=len(self) * n).reshape(-1, n).astype(np.float64)

    def _in_turn(self, n: int) -> Floats:
        """(distinct row, fold) its draws in each fold, divided evenly: of so many, chance would hardly differ."""
        by_class, units = np.lexsort([self.order, self.y]), self.units
        before = np.cumsum(units[by_class]) - units[by_class]
        first = np.searchsorted(self.y[by_class], np.arange(len(self.class_start)))
        before -= before[np.minimum(first, len(before) - 1)][self.y[by_class]] if len(before) else 0
        start = np.empty(len(self), np.intp)
        start[by_class] = (before % n).astype(np.intp) + self.class_start[self.y[by_class]] % n
        turn = (np.arange(n) - start[:, None]) % n
        return np.floor(units / n)[:, None] + ((units % n)[:, None] > turn)


def find_distinct_rows(
    table: Table, y: Codes, weight: Floats | None = None, seed: int = 0, *, share: float = 1.0
) -> DistinctRows:
    """The distinct rows of a table and the codes of their classes; ``share`` as in :meth:`DistinctRows.of`."""
    if isinstance(table.source, dict):
        columns = {name: c if isinstance(c, Documents) else table.column(name) for name, c in table.source.items()}
    else:
        columns = {name: table.column(name) for name in table.names}
    for name, column in columns.items():
        _refuse_infinity(column, name)
    return DistinctRows.from_columns(list(columns.values()), y, weight, seed, share=share)


def repeated_row_notes(rows: DistinctRows) -> list[Note]:
    """A note where rows of a table are copied, with their share: equal ones that chance does not explain.

    >>> sizes = np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 2, axis=0)
    >>> print(repeated_row_notes(find_distinct_rows(Table.from_data(sizes), np.zeros(80, np.intp)))[0].text)
    100.0% of the rows equal another row more often than chance explains
    """
    if rows.share_copied < _MIN_NOTED_SHARE:
        return []
    text = f"{rows.share_copied:.1%} of the rows equal another row more often than chance explains"
    remedy = (
        "remove the copies if they are a mistake; naive Bayes counts every copy, "
        "the default model learns from each row once"
    )
    return [Note("repeated-rows", text, remedy=remedy)]


def _refuse_infinity(column: Any, name: Name) -> None:
    """Refuse an infinite number while the number of its row is known."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        try:
            check_finite(column)
        except InputError as error:
            error.column = name
            raise


def _combine_hashes(columns: Sequence[NDArray[np.uint64]], n_rows: int) -> NDArray[np.uint64]:
    """One number of all columns, whatever their order."""
    with np.errstate(over="ignore"):
        total: NDArray[Any] = np.zeros(n_rows, np.uint64)
        for column in columns:
            total += column
        return hash_row_numbers(total)


def _row_hashes(codes: Sequence[Codes], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A random number for each distinct row, by what it holds.

    The order of rows and columns, the direction in which numbers ascend and their units do not matter: a column is
    known by how many rows have each of its values.
    """
    columns = []
    for code in codes:
        size = np.bincount(code)
        there = np.flatnonzero(size[1:]) + 1  # the first is that of missing values
        rank = np.zeros(len(size), np.intp)
        rank[there] = 1 + np.arange(len(there))
        if size[there][::-1].tolist() < size[there].tolist():  # where both tails are as long
            rank[there] = rank[there][::-1]
        elif size[there].max(initial=0) > 1 and (size[there][::-1] == size[there]).all():  # it has no direction
            rank[there] = np.minimum(rank[there], rank[there][::-1])
        with np.errstate(over="ignore"):
            name = int((hash_row_numbers(rank) * size.astype(np.uint64)).sum() % np.uint64(1 << 31))
        columns.append(hash_row_numbers(rank[code], name))
    mixed: NDArray[Any] = _combine_hashes(columns, n_rows)
    return hash_row_numbers(mixed, seed)
