"""Samples: which rows are drawn and the fold of each, by hashes, and the rows that were drawn with their classes.

The choice depends on the seed only: not on threads, batches or the engine, and a smaller sample is part of a larger
one. A sample by contents has each distinct row with the frequency of all its copies, so that copies differ from
independent draws. Rows that repeat by chance are drawn one by one: a sample of distinct rows would miss a row that half
of the table has, or give it too much weight.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import md5
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_indices, is_arrow
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.equal_rows import (
    DistinctRows,
    Hashes,
    find_distinct_rows,
    hash_column,
    hash_row_numbers,
    hash_rows,
    mix,
)
from candide.data.labels import Labels
from candide.data.table import LIMITS, Name, Table
from candide.errors import InputError

BIN_FOLDS = 5  # among which the independent draws of equal rows are divided
HASH_DIGITS = 7  # of the hash of a key, hexadecimal: a number that is positive in 32 bits
_TIE_BITS = np.uint64(0xFFFF)  # bits that differ between rows that differ in the label only
_MIN_COPIED = 0.05  # proportion of copies at which distinct rows are sampled
_MIN_EVENNESS = 0.9  # effective proportion of distinct rows (Kish) at which their frequencies are even
_MAX_ERROR = 0.1  # relative error of the extrapolated number of rows that is accepted,
_DEVIATIONS = 4.0  # or this many standard deviations


def draw_rows(rows: Codes, max_rows: int, seed: int = 0) -> Codes:
    """The places of ``max_rows`` rows drawn by their numbers, in order; all if there are no more."""
    return _draw_smallest(hash_row_numbers(rows, seed), max_rows).row


class RowSampler:
    """A random sample of at most ``max_rows`` rows of arrays that are added one after another."""

    def __init__(self, max_rows: int):
        self.max_rows, self.n = max_rows, 0
        self._rows, self._numbers, self._held = list[NDArray](), list[Codes](), 0

    def add(self, rows: NDArray) -> None:
        self._rows.append(rows)
        self._numbers.append(np.arange(self.n, self.n + len(rows)))
        self.n, self._held = self.n + len(rows), self._held + len(rows)
        if self._held > 2 * self.max_rows:
            self._draw()

    @property
    def rows(self) -> NDArray:
        if not self._rows:
            return np.empty((0, 0))
        self._draw()
        return self._rows[0]

    def _draw(self) -> None:
        rows, numbers = np.concatenate(self._rows), np.concatenate(self._numbers)
        drawn = draw_rows(numbers, self.max_rows)
        self._rows, self._numbers, self._held = [rows[drawn]], [numbers[drawn]], len(drawn)


def assign_folds(y: Codes, folds: int, row_hashes: NDArray) -> Codes:
    """The fold of each row: rows of each class are assigned in turn, in the order of their hashes."""
    fold = np.empty(len(y), np.intp)
    fold[np.lexsort([row_hashes, y])] = np.arange(len(y)) % folds
    return fold


def assign_folds_by_key(column: Any, folds: int, seed: int = 0, name: str | None = None) -> Codes:
    """The fold of each row by a key column of whole numbers or text; rows without a key share a fold.

    The first hexadecimal digits of MD5 modulo the number of folds: every database can compute the same
    (:func:`candide.engines.sql.source.fold_sql_by_key`), from text and from numbers in decimal digits.
    """
    labels, texts = Labels.from_values(column), []
    for value in labels.values:
        is_whole = type(value) is float and value.is_integer() and abs(value) < 1 << 53  # so where some are missing
        if not is_whole and type(value) not in (int, str):
            raise invalid_key_error(name, value)
        texts.append(str(int(value) if is_whole else value))
    keys = (f"{seed}:{text}".encode("utf-8", "surrogatepass") for text in (*texts, ""))
    fold = [int(md5(key, usedforsecurity=False).hexdigest()[:HASH_DIGITS], 16) % folds for key in keys]
    return np.array(fold)[labels.encode(column)]


def invalid_key_error(name: str | None, value: object) -> InputError:
    what = f"expected a whole number or text, from which every engine computes the same fold, got {value!r}"
    return InputError(what, column=name, value=value, remedy="pass another column as fold_by (--fold-by)")


class _DrawnRows(NamedTuple):
    row: Codes  # ascending
    frequency: Floats | None  # the weight of all equal rows; None where rows were drawn one by one
    n_rows: int  # that they stand for
    fraction: float  # of the distinct rows, or of the rows, that was drawn


def fraction_below(bound: Any) -> float:
    """The proportion of hashes up to a bound."""
    return (int(bound) + 1) / (1 << 64)


def _draw_table_rows(sample: "Sample", most: int, seed: int) -> _DrawnRows:
    """Draw at most ``most`` rows; those of a whole table with exact frequencies, where its rows are copies."""
    table, y, weight = sample.table, sample.y, sample.weight
    columns = {name: table.documents_or_column(name) for name in table.names}
    hashes = hash_rows(columns, len(y))
    identity = hash_identities(hashes, hash_column(sample.labels.array)[y], sample.fold)
    ordered = np.sort(identity)
    if (ordered[1:] != ordered[:-1]).all():
        return _draw_smallest(sampling_order(hashes, identity, seed), most)
    rank = np.lexsort((identity,) if weight is None else (weight, identity))  # equal rows one after another
    starts = np.flatnonzero(np.concatenate([[True], np.diff(identity[rank]) != 0]))
    count = np.diff(np.append(starts, len(y)))
    if not sample.is_part:
        first = rank[starts]
        frequency = (count if weight is None else np.add.reduceat(weight[rank], starts)).astype(float)
        order = sampling_order(hashes[first], identity[first], seed)
        drawn = _draw_smallest(order, most).row
        fraction = fraction_below(order[drawn].max()) if len(drawn) < len(first) else 1.0

        def find_distinct() -> DistinctRows:
            at = first[drawn]
            taken = [column.take(at) if hasattr(column, "take") else column[at] for column in columns.values()]
            return DistinctRows.from_columns(taken, y[at], frequency[drawn], fraction=fraction)

        chosen = choose_distinct(order[drawn], count[drawn], find_distinct, fraction, len(y), most)
        if chosen is not None:
            rows = drawn[chosen[0]]
            rows = rows[np.argsort(first[rows])]
            return _DrawnRows(first[rows], frequency[rows], int(count[rows].sum()), chosen[1])
    occurrence = np.empty(len(y), np.uint64)
    occurrence[rank] = np.arange(len(y)) - np.repeat(starts, count)
    with np.errstate(over="ignore"):
        return _draw_smallest(sampling_order(hashes + mix(occurrence), identity, seed), most)


def _draw_smallest(order: Hashes, most: int) -> _DrawnRows:
    if len(order) <= most:
        return _DrawnRows(np.arange(len(order)), None, len(order), 1.0)
    return _DrawnRows(np.sort(np.argpartition(order, most)[:most]), None, most, most / len(order))


def hash_identities(hashes: Hashes, labels: Hashes, fold: Codes | None = None) -> Hashes:
    """(row,) a number of its columns and label, and of its fold."""
    with np.errstate(over="ignore"):
        out = hashes + mix(labels, 1)
        return mix(out if fold is None else out + mix(fold.astype(np.uint64), 2))


def sampling_order(hashes: Hashes, identity: Hashes, seed: int) -> Hashes:
    """(row,) a random number by its columns alone, so that names of labels matter only for ties."""
    return (mix(hashes, seed) & ~_TIE_BITS) | (identity & _TIE_BITS)


def choose_distinct(
    order: Hashes, count: Codes, find_distinct: Callable[[], DistinctRows], fraction: float, n_rows: int, most: int
) -> tuple[Codes, float] | None:
    """Which distinct rows of a sample to learn from, and the fraction of all that they are; None: draw row by row.

    The sample has the distinct rows with the smallest hashes (``order``), each ``count`` times among ``n_rows`` rows.
    """
    n, is_whole = count.astype(float), fraction == 1.0
    bound = n_rows * max(_MAX_ERROR, _DEVIATIONS / np.sqrt(len(n)))
    is_typical = is_whole or bool(abs(n.sum() / fraction - n_rows) <= bound)
    entries = n
    if not (is_typical and (count == 1).all()):
        rows = find_distinct()
        entries = np.minimum(np.ceil(rows.draws[rows.group]), np.minimum(n, BIN_FOLDS))
        is_copied = rows.frequency[rows.weight_per_draw > 1.0].sum() >= _MIN_COPIED * rows.frequency.sum()
        is_even = is_typical and n.sum() ** 2 >= _MIN_EVENNESS * len(n) * (n**2).sum()
        if not (is_copied or is_even or (is_whole and entries.sum() <= most)):
            return None
    rank = np.argsort(order, kind="stable")
    n_chosen = max(1, int(np.searchsorted(np.cumsum(entries[rank]), most, side="right")))
    return rank[:n_chosen], fraction if n_chosen == len(order) else fraction_below(order[rank[n_chosen - 1]])


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with their classes, as a table in memory: drawn once from a source, or all rows of a table."""

    table: Table
    row_number: Codes  # (row,) its number in the source
    y: Codes  # (row,) the code of its class
    labels: Labels  # of the classes in these rows
    weight: Floats | None = None  # (row,)
    fold: Codes | None = None  # (row,) where rows are divided into folds
    left_out_weight: Floats | None = None  # (row,) what leaving the row out takes from the counts; None: its weight
    bin_fold: Codes | None = None  # (row,) the fold whose rows do not choose the bins that the row is scored by
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where equal rows are pooled
    n_pooled: int | None = None  # how many rows were pooled
    fraction: float = 1.0  # of the rows of the source that were drawn
    distinct_fraction: float = 1.0  # of its distinct rows, where each was drawn with all its copies

    @classmethod
    def from_table(
        cls,
        table: Table,
        y: Codes,
        labels: Labels,
        weight: Floats | None = None,
        *,
        columns: Collection[Name] | None = None,
    ) -> "Sample":
        """The rows of a table, without those of weight 0, and some of its columns or all."""
        table = table if columns is None else _select_columns(table, columns)
        if weight is not None and weight.max(initial=0.0) > LIMITS.row_weight:
            value = float(weight.max())
            raise InputError(f"row weight too large: {value:g}", value=value, remedy="divide all weights by a constant")
        sample = cls(table, np.arange(len(y)), y, labels, weight)
        return sample if weight is None or weight.all() else sample.take(np.flatnonzero(weight))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def is_part(self) -> bool:
        """Whether the source has more rows than were drawn."""
        return self.fraction < 1.0

    @property
    def n_rows(self) -> int:
        """How many rows of the source these stand for."""
        return len(self) if self.n_pooled is None else self.n_pooled

    @property
    def frequency(self) -> Floats | None:
        """(row,) its weight as it was counted; None where each counts once."""
        return self.weight if self.weight is None or self.copies is None else self.weight * self.copies[self.y]

    @property
    def class_copies(self) -> Floats | None:
        """(class,) the mean weight of an independent draw; None where it is 1 in every class."""
        return None if self.copies is None or (self.copies == 1.0).all() else self.copies

    def pool_rows(self, seed: int = 0) -> "Sample":
        """The same rows with equal ones pooled, weighted by independent draws instead of copies.

        They are in a random order that depends on their contents and the seed only. Independent draws of equal rows
        are divided among the folds in which bins are chosen, copies are not.
        """
        return self.pool_distinct(self.distinct(seed))

    def distinct(self, seed: int = 0) -> DistinctRows:
        return find_distinct_rows(self.table, self.y, self.weight, seed, fraction=self.distinct_fraction)

    def pool_distinct(self, rows: DistinctRows) -> "Sample":
        copies = rows.weight_per_draw_by_class(len(self.labels))
        left_out = rows.frequency / rows.units  # one draw with its copies: no more than was counted
        place, fold, weight = rows.assign_folds(BIN_FOLDS)
        order = np.lexsort([fold, rows.order[place]])
        place, fold = place[order], fold[order]
        unit = copies[rows.y[place]]
        weight, left_out = weight[order] / unit, left_out[place] / unit
        pooled = replace(self.take(rows.first[place]), bin_fold=fold, copies=copies, n_pooled=self.n_rows)
        if (weight == 1.0).all() and (left_out == 1.0).all():
            return replace(pooled, weight=None, left_out_weight=None)
        return replace(pooled, weight=weight, left_out_weight=left_out)

    def with_labels(self, labels: Labels) -> "Sample":
        """The same rows coded by other labels, such as those of all rows, however they are written."""
        codes, copies = labels.match_codes(self.labels.array), None
        if self.copies is not None:
            copies = np.ones(len(labels))
            copies[codes] = self.copies
        return replace(self, y=codes[self.y], labels=labels, copies=copies)

    def with_seen_labels(self) -> "Sample":
        is_seen = np.bincount(self.y, minlength=len(self.labels)) > 0
        return self if is_seen.all() else self.with_labels(Labels(tuple(compress(self.labels.values, is_seen))))

    def take(self, rows: Codes) -> "Sample":
        per_row = ("weight", "fold", "left_out_weight", "bin_fold")
        fields: dict[str, Any] = {name: None if (a := getattr(self, name)) is None else a[rows] for name in per_row}
        fields["n_pooled"] = self.n_pooled and round(self.n_pooled * len(rows) / len(self))  # about
        fields |= {"table": _take_rows(self.table, rows), "row_number": self.row_number[rows], "y": self.y[rows]}
        return replace(self, **fields)

    def limit_rows(self, rows: int = LIMITS.rows, seed: int = 0, *, n_extra_terms: int | None = None) -> "Sample":
        """At most this many of the rows; fewer where classes, columns and extra terms are many."""
        limit = LIMITS.n_rows(rows, len(self.labels), len(self.table.names), n_extra_terms)
        if len(self) <= limit:
            return self
        drawn = _draw_table_rows(self, limit, seed)
        part = replace(self.take(drawn.row), fraction=self.fraction * drawn.fraction)
        if drawn.frequency is None:
            distinct_fraction = self.distinct_fraction * (1.0 if self.n_pooled is None else drawn.fraction)
            return replace(part, distinct_fraction=distinct_fraction)
        weight = None if (drawn.frequency == 1.0).all() else drawn.frequency
        return replace(part, weight=weight, n_pooled=drawn.n_rows, distinct_fraction=drawn.fraction)

    def limit_text(self, columns: Iterable[Name], rows: int = LIMITS.documents, seed: int = 0) -> "Sample":
        """As many rows as token weights are learned from: fewer, where the documents of these columns are long."""
        width = sum(self.table.documents(name).width for name in columns)
        limit = min(rows, max(1, LIMITS.text_bytes // max(1, width)))
        return self.limit_rows(limit, seed, n_extra_terms=LIMITS.token_groups)


def _select_columns(table: Table, columns: Collection[Name]) -> Table:
    if table.is_sparse or set(table.names) <= set(columns):
        return table
    source = table.rename_columns(table.names).source
    names = tuple(name for name in table.names if name in columns)
    return Table(names, table.n_rows, {name: source[name] for name in names})


def _take_rows(table: Table, rows: Codes) -> Table:
    if isinstance(table.source, np.ndarray):
        return Table.from_data(table.source[rows])
    columns = {name: table.source[name] for name in table.names}
    if any(isinstance(column, Documents) for column in columns.values()):  # then all are
        return Table(table.names, len(rows), {name: column.take(rows) for name, column in columns.items()})
    for name, column in columns.items():
        array = column if is_arrow(column) or isinstance(column, np.ndarray) else table.column(name)
        columns[name] = array.take(arrow_indices(rows)) if is_arrow(array) else array[rows]
    return Table.from_data(columns)
