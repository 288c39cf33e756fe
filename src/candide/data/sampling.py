"""Which rows of very many are sampled, and the fold of each: by a hash of their numbers, or of their contents.

The choice depends on the seed only: not on threads, batches or the engine. A sample by contents has each distinct row
with all of its copies and their true frequency, so that copies can be told from independent draws. Rows that repeat by
chance are sampled one by one: a sample of distinct rows would miss a row that half of the table has, or give it too
much weight.

>>> draw_rows(np.arange(8), 3).tolist(), draw_rows(np.arange(8), 9).tolist() == list(range(8))
([2, 4, 6], True)
>>> set(draw_rows(np.arange(8), 3)) < set(draw_rows(np.arange(8), 5))  # a smaller sample is part of a larger one
True
>>> sizes = np.repeat(np.random.default_rng(0).normal(size=(300, 2)), 67, axis=0)
>>> sample = draw_table_rows(Table.from_data(sizes), np.zeros(len(sizes), np.intp), Labels(("a",)), None, 20_000)
>>> len(sample.row), set(sample.frequency.tolist()), sample.share
(300, {67.0}, 1.0)
"""

from collections.abc import Callable
from hashlib import md5
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels
from candide.data.repeated_rows import DistinctRows
from candide.data.row_hash import Hashes, hash_column, hash_row_numbers, hash_rows, mix
from candide.data.table import Table
from candide.errors import InputError

BIN_FOLDS = 5  # among which the independent draws of equal rows are divided
_TIES = np.uint64(0xFFFF)  # bits that differ between rows that differ in the label only
_COPIED = 0.05  # proportion of copies from which on distinct rows are sampled
_EVEN = 0.9  # effective proportion of distinct rows (Kish) from which on their frequencies are even
_MISSED = 0.1  # relative error of the extrapolated number of rows that is accepted,
_DEVIATIONS = 4.0  # or so many standard deviations
HASH_DIGITS = 7  # of the hash of a key, hexadecimal: a number that is positive in 32 bits


def draw_rows(rows: Codes, max_rows: int, seed: int = 0) -> Codes:
    """The places of ``max_rows`` rows drawn by their numbers, in order; all if there are no more."""
    if len(rows) <= max_rows:
        return np.arange(len(rows))
    return np.sort(np.argpartition(hash_row_numbers(rows, seed), max_rows)[:max_rows])


def assign_folds(y: Codes, folds: int, row_hashes: NDArray) -> Codes:
    """The fold of each row: rows of each class are assigned in turn, in the order of their hashes.

    >>> assign_folds(np.array([0, 0, 0, 0, 1, 1]), 2, np.array([3, 1, 2, 4, 9, 8])).tolist()
    [0, 0, 1, 1, 1, 0]
    """
    fold = np.empty(len(y), np.intp)
    fold[np.lexsort([row_hashes, y])] = np.arange(len(y)) % folds
    return fold


class RowSampler:
    """A random sample of at most ``max_rows`` rows of arrays that come one after another.

    >>> some, cut = RowSampler(3), RowSampler(3)
    >>> some.add(np.arange(8.0))
    >>> for part in np.split(np.arange(8.0), [1, 5]):
    ...     cut.add(part)
    >>> some.rows.tolist(), cut.rows.tolist(), some.n
    ([2.0, 4.0, 6.0], [2.0, 4.0, 6.0], 8)
    """

    def __init__(self, max_rows: int):
        self.max_rows, self.n = max_rows, 0
        self._rows, self._numbers, self._held = list[NDArray](), list[Codes](), 0

    def add(self, rows: NDArray) -> None:
        """Add the next rows."""
        self._rows.append(rows)
        self._numbers.append(np.arange(self.n, self.n + len(rows)))
        self.n, self._held = self.n + len(rows), self._held + len(rows)
        if self._held > 2 * self.max_rows:
            self._draw()

    @property
    def rows(self) -> NDArray:
        """The rows drawn, in order; an empty array where none were added."""
        if not self._rows:
            return np.empty((0, 0))
        self._draw()
        return self._rows[0]

    def _draw(self) -> None:
        rows, numbers = np.concatenate(self._rows), np.concatenate(self._numbers)
        some = draw_rows(numbers, self.max_rows)
        self._rows, self._numbers, self._held = [rows[some]], [numbers[some]], len(some)


def assign_folds_by_key(column: Any, folds: int, seed: int = 0, name: str | None = None) -> Codes:
    """The fold of each row by a key column of whole numbers or text; rows without a key share a fold.

    The first hexadecimal digits of MD5 modulo the number of folds: every database can compute the same
    (:func:`candide.engines.sql.source.fold_sql_by_key`), from text and from numbers in decimal digits.

    >>> assign_folds_by_key([17, 18, 17, None], 10).tolist(), assign_folds_by_key(["17", "18", "17", ""], 10).tolist()
    ([2, 7, 2, 2], [2, 7, 2, 2])
    """
    labels = Labels.from_values(column)
    fold = [_hash_to_fold(text, folds, seed) for text in (*(_key_text(value, name) for value in labels.values), "")]
    return np.array(fold)[labels.encode(column)]


def _hash_to_fold(text: str, folds: int, seed: int) -> int:
    digits = md5(f"{seed}:{text}".encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return int(digits[:HASH_DIGITS], 16) % folds


def _key_text(value: Any, name: str | None) -> str:
    """A value as it is hashed; whole numbers are floats in memory where some are missing."""
    if type(value) is float and value.is_integer() and abs(value) < 1 << 53:
        value = int(value)
    if type(value) not in (int, str):
        raise invalid_key_error(name, value)
    return str(value)


def invalid_key_error(name: str | None, value: object) -> InputError:
    """The error for a column that cannot determine folds."""
    what = f"expected a whole number or text, from which every engine computes the same fold, got {value!r}"
    return InputError(what, column=name, value=value, remedy="pass another column as fold_by (--fold-by)")


class SampledRows(NamedTuple):
    """Rows of a sample, by their places."""

    row: Codes  # in ascending order
    frequency: Floats | None  # the weight of all equal rows; None where rows were drawn one by one
    n_rows: int  # that they stand for
    share: float  # proportion of the distinct rows, or of the rows, that was drawn


def share_below(bound: Any) -> float:
    """The proportion of hashes up to a bound."""
    return (int(bound) + 1) / (1 << 64)


def draw_table_rows(
    table: Table,
    y: Codes,
    labels: Labels,
    weight: Floats | None,
    most: int,
    seed: int = 0,
    *,
    fold: Codes | None = None,
    whole: bool = True,
) -> SampledRows:
    """Draw at most ``most`` rows of a table in memory; ``whole``: it is not itself a sample; frequencies are exact."""
    columns = {name: _column(table, name) for name in table.names}
    hashes = hash_rows(columns, len(y))
    identity = identities(hashes, hash_column(labels.array)[y], fold)
    ordered = np.sort(identity)
    if (ordered[1:] != ordered[:-1]).all():
        return _smallest(orders(hashes, identity, seed), most)
    by_weight = () if weight is None else (weight,)
    rank = np.lexsort((*by_weight, identity))  # equal rows one after another
    starts = np.flatnonzero(np.concatenate([[True], np.diff(identity[rank]) != 0]))
    count = np.diff(np.append(starts, len(y)))
    if whole:
        first, frequency = rank[starts], count if weight is None else np.add.reduceat(weight[rank], starts)
        order = orders(hashes[first], identity[first], seed)
        some = _smallest(order, most).row if len(first) > most else np.arange(len(first))
        bound = order[some].max() if len(some) < len(first) else np.uint64(2**64 - 1)

        def distinct() -> DistinctRows:
            at = first[some]
            taken = [column.take(at) if hasattr(column, "take") else column[at] for column in columns.values()]
            return DistinctRows.from_columns(taken, y[at], frequency[some].astype(float), share=share_below(bound))

        chosen = choose_distinct(order[some], count[some], distinct, share_below(bound), len(y), most)
        if chosen is not None:
            some, place = some[chosen[0]], np.argsort(first[some[chosen[0]]])
            some = some[place]
            return SampledRows(first[some], frequency[some].astype(float), int(count[some].sum()), chosen[1])
    occurrence = np.empty(len(y), np.uint64)
    occurrence[rank] = np.arange(len(y)) - np.repeat(starts, count)
    with np.errstate(over="ignore"):
        return _smallest(orders(hashes + mix(occurrence), identity, seed), most)


def identities(hashes: Hashes, labels: Hashes, fold: Codes | None = None) -> Hashes:
    """(row,) a number of its columns and label, and of its fold."""
    with np.errstate(over="ignore"):
        out = hashes + mix(labels, 1)
        return mix(out if fold is None else out + mix(fold.astype(np.uint64), 2))


def orders(hashes: Hashes, identity: Hashes, seed: int) -> Hashes:
    """(row,) a random number by its columns alone, so that names of labels do not matter, but for ties."""
    return (mix(hashes, seed) & ~_TIES) | (identity & _TIES)


def choose_distinct(
    order: Hashes, count: Codes, distinct: Callable[[], DistinctRows], share: float, n_rows: int, most: int
) -> tuple[Codes, float] | None:
    """Which distinct rows of a sample to learn from, and the proportion of all that they are; None: draw row by row.

    The sample has those with the smallest hashes (``order``), each of them ``count`` times among ``n_rows``.
    """
    n, everything = count.astype(float), share == 1.0
    bound = n_rows * max(_MISSED, _DEVIATIONS / np.sqrt(len(n)))
    is_typical = everything or bool(abs(n.sum() / share - n_rows) <= bound)
    if is_typical and (count == 1).all():
        return _first_of(order, n, share, most)
    rows = distinct()
    draws = rows.draws[rows.group]
    entries = np.minimum(np.ceil(draws), np.minimum(n, BIN_FOLDS))
    copied = rows.frequency[rows.weight_per_draw > 1.0].sum() >= _COPIED * rows.frequency.sum()
    if copied or (everything and entries.sum() <= most):
        return _first_of(order, entries, share, most)
    is_even = n.sum() ** 2 >= _EVEN * len(n) * (n**2).sum()
    return _first_of(order, entries, share, most) if is_even and is_typical else None


def _first_of(order: Hashes, entries: Floats, share: float, most: int) -> tuple[Codes, float]:
    rank = np.argsort(order, kind="stable")
    n = max(1, int(np.searchsorted(np.cumsum(entries[rank]), most, side="right")))
    return rank[:n], share if n == len(order) else share_below(order[rank[n - 1]])


def _smallest(order: Hashes, most: int) -> SampledRows:
    if len(order) <= most:
        return SampledRows(np.arange(len(order)), None, len(order), 1.0)
    rows = np.sort(np.argpartition(order, most)[:most])
    return SampledRows(rows, None, most, most / len(order))


def _column(table: Table, name: Any) -> Any:
    own = table.source[name] if isinstance(table.source, dict) else None
    return own if isinstance(own, Documents) else table.column(name)
