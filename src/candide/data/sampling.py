"""Lots: which of very many rows are looked at, and which fold each is in.

Each row draws a lot by its number, and the smallest are taken.

So the choice depends on nothing but the seed and the order of the rows: not on threads, batches or who reads them.

>>> draw_rows(np.arange(8), 3).tolist(), draw_rows(np.arange(8), 9).tolist() == list(range(8))
([2, 4, 6], True)
>>> set(draw_rows(np.arange(8), 3)) < set(draw_rows(np.arange(8), 5))  # fewer rows are some of the more
True
"""

from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes
from candide.data.labels import Labels
from candide.errors import InputError

HASH_DIGITS = 7  # of the hash of a key, hexadecimal: a number that is positive in 32 bits
_STEP, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def hash_row_numbers(rows: Codes, seed: int = 0) -> NDArray[np.uint64]:
    """A number for each row's number that looks drawn at random: what SplitMix64 makes of them."""
    with np.errstate(over="ignore"):  # whole numbers modulo 2^64
        x = rows.astype(np.uint64) + np.uint64(1) + np.uint64(seed % (1 << 32)) * _STEP
        x *= _STEP
        x = (x ^ (x >> np.uint64(30))) * _FIRST
        x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def draw_rows(rows: Codes, max_rows: int, seed: int = 0) -> Codes:
    """The places of the ``most`` rows that are drawn by their numbers, in order; of all where they are no more."""
    if len(rows) <= max_rows:
        return np.arange(len(rows))
    return np.sort(np.argpartition(hash_row_numbers(rows, seed), max_rows)[:max_rows])


def assign_folds(y: Codes, folds: int, row_hashes: NDArray) -> Codes:
    """The fold of each row: those of each class are dealt out in turn, in the order of the lot that each has drawn.

    >>> assign_folds(np.array([0, 0, 0, 0, 1, 1]), 2, np.array([3, 1, 2, 4, 9, 8])).tolist()
    [0, 0, 1, 1, 1, 0]
    """
    fold = np.empty(len(y), np.intp)
    fold[np.lexsort([row_hashes, y])] = np.arange(len(y)) % folds
    return fold


class RowSampler:
    """Rows of arrays that come one after another: at most so many of them, by lot.

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
        """The next rows."""
        self._rows.append(rows)
        self._numbers.append(np.arange(self.n, self.n + len(rows)))
        self.n, self._held = self.n + len(rows), self._held + len(rows)
        if self._held > 2 * self.max_rows:
            self._draw()

    @property
    def rows(self) -> NDArray:
        """Those that are drawn, in order; none of no shape where nothing came."""
        if not self._rows:
            return np.empty((0, 0))
        self._draw()
        return self._rows[0]

    def _draw(self) -> None:
        rows, numbers = np.concatenate(self._rows), np.concatenate(self._numbers)
        some = draw_rows(numbers, self.max_rows)
        self._rows, self._numbers, self._held = [rows[some]], [numbers[some]], len(some)


def assign_folds_by_key(column: Any, folds: int, seed: int = 0, name: str | None = None) -> Codes:
    """The fold of each row by the value that it has in a column of whole numbers or text; rows without one share one.

    What the first hexadecimal digits of MD5 leave when divided by the number of folds: every database can say the same
    (:func:`candide.engines.sql.source.fold_sql_by_key`), of text and of numbers in decimal digits.

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
    """The error for a column that cannot say folds."""
    what = f"{value!r} is neither a whole number nor text, and cannot say the fold of a row in the same way everywhere"
    return InputError(what, column=name, value=value, remedy="pass another column as fold_by (--fold-by)")
