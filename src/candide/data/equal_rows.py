"""Equal rows: hashes of their contents, and the distinct rows of a table with frequencies and independent draws.

Whole numbers, floats and text of a plain number have the same hash if they are equal. The hashes of columns are added,
each multiplied by a number made from its name, so the order of columns does not matter.

Rows of small discrete tables are equal by chance: they are drawn independently, and each is one more observation. Rows
of an oversampled table, of a bootstrap sample or of a join that fans out are copies: two of them have no more
information than one. Both are only frequencies, as row weights are. What chance does not explain are copies, and make
one draw (:mod:`candide.data.independent_draws`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_indices, arrow_numbers, as_arrow, is_arrow, is_nested
from candide.data.blocks import Codes, Floats, check_finite
from candide.data.documents import Documents
from candide.data.independent_draws import CodedColumn, estimate_draws
from candide.data.notes import Note
from candide.data.table import Table, is_temporal, to_numbers
from candide.errors import InputError

Hashes = NDArray[np.uint64]

_FIRST, _SECOND, _BASE = (np.uint64(odd) for odd in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93))
_MISSING = np.uint64(0x9E3779B97F4A7C15)
_ROWS = 1 << 14  # hashed at a time, so that they stay in the cache
_BYTES = 1 << 22  # of text hashed at a time
_EXACT = 1 << 53  # whole numbers below are exact as floats
_PLAIN = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"  # text of a number

_HEAVY_RATIO = 3.0  # times the mean of the draws
_MAX_UNITS = 1 << 22  # draws that are assigned to folds one by one
_MIN_NOTED_PROPORTION = 0.05  # of rows that are copies
_ROUNDING = 1e-9  # relative error of a number of draws


def hash_rows(columns: Mapping[Any, Any], n_rows: int) -> Hashes:
    """(row,) one number of all columns, the same for equal rows."""
    total = np.zeros(n_rows, np.uint64)
    with np.errstate(over="ignore"):
        for name, column in columns.items():
            salt = np.uint64(int.from_bytes(blake2b(str(name).encode("utf-8", "replace"), digest_size=8).digest()) | 1)
            values = hash_column(column)
            values *= salt
            total += values
    return mix(total)


def mix(numbers: Hashes, seed: int = 0) -> Hashes:
    """Scatter numbers over 64 bits, depending on the seed."""
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(seed % (1 << 32) + 1) * _MISSING
        x ^= x >> np.uint64(30)
        x *= _FIRST
        x ^= x >> np.uint64(27)
        x *= _SECOND
        x ^= x >> np.uint64(31)
        return x


def hash_row_numbers(rows: NDArray, seed: int = 0) -> Hashes:
    """A random number for each row number, by SplitMix64."""
    with np.errstate(over="ignore"):  # whole numbers modulo 2^64
        return mix((rows.astype(np.uint64) + np.uint64(seed % (1 << 32)) * _MISSING) * _MISSING)


def hash_column(column: Any) -> Hashes:
    """(row,) a number for each value, the same for equal ones."""
    if isinstance(column, Documents):
        return np.array([_hash_object(column.text(row, "surrogateescape")) for row in range(len(column))], np.uint64)
    if hasattr(column, "codes"):  # encoded by an engine
        return _hash_numbers(column.codes)
    if not is_arrow(column):
        if column.dtype.kind in "fiubmM":
            return _hash_numbers(column if column.dtype.kind in "fiub" else to_numbers(column))
        try:
            column = as_arrow(column)
        except Exception:  # objects that Arrow has no type for
            return np.array([_hash_object(value) for value in column.tolist()], np.uint64)
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING)
    if is_temporal(column):
        return _hash_numbers(to_numbers(column))
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not column.null_count):
        return _hash_numbers(arrow_numbers(column))
    if is_nested(kind):  # which Arrow does not encode
        return np.array([_hash_object(value) for value in column.to_pylist()], np.uint64)
    if not pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    values = column.dictionary
    try:
        values = values.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = pa.array([repr(value) for value in values.to_pylist()], pa.large_string())
    hashes = np.append(_hash_text(values), _MISSING)
    codes = column.indices.fill_null(len(values)) if column.indices.null_count else column.indices
    return hashes[arrow_numbers(codes)]


def _hash_object(value: Any) -> int:
    text = value if isinstance(value, str) else "" if value is None else repr(value)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _hash_numbers(values: NDArray) -> Hashes:
    out = np.empty(len(values), np.uint64)
    wide = values.dtype.kind in "iu" and values.dtype.itemsize > 4 and len(values)
    wide = wide and (int(values.max()) >= _EXACT or int(values.min()) <= -_EXACT)
    with np.errstate(over="ignore"):
        for start in range(0, len(values), _ROWS):
            chunk = values[start : start + _ROWS]
            if wide:
                x = chunk.astype(np.uint64)
            else:
                numbers = chunk.astype(np.float64) + 0.0  # one zero
                x = numbers.view(np.uint64)
                x[np.isnan(numbers)] = _MISSING
            x ^= x >> np.uint64(32)
            x *= _FIRST
            x ^= x >> np.uint64(29)
            out[start : start + _ROWS] = x
    return out


def _hash_text(values: Any) -> Hashes:
    """Plain numbers as numbers, other text by a polynomial of its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = len(values)
    if not n:
        return np.empty(0, np.uint64)
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int64)[values.offset : values.offset + n + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    out = np.empty(n, np.uint64)
    size = np.diff(starts)
    stops = np.searchsorted(starts, np.arange(starts[0] + _BYTES, starts[-1] + _BYTES, _BYTES), side="right") - 1
    edge = 0
    for stop in [*stops.tolist(), n]:
        stop = min(n, max(stop, edge + 1))
        if stop > edge:
            out[edge:stop] = _polynomials(letters, starts[edge : stop + 1], size[edge:stop])
            edge = stop
    first = letters[np.minimum(starts[:-1], max(0, len(letters) - 1))] if len(letters) else np.zeros(n, np.uint8)
    perhaps = np.flatnonzero((size > 0) & (size < 40) & (((first >= 48) & (first <= 57)) | (first == 45)))
    if len(perhaps):
        numeric = perhaps[arrow_numbers(pc.match_substring_regex(values.take(arrow_indices(perhaps)), _PLAIN))]
        out[numeric] = _hash_numbers(arrow_numbers(values.take(arrow_indices(numeric)).cast(pa.float64())))
    if values.null_count:
        out[arrow_numbers(values.is_null())] = _MISSING
    return out


def _polynomials(letters: NDArray, starts: NDArray, size: NDArray) -> Hashes:
    out = np.zeros(len(size), np.uint64)
    filled = np.flatnonzero(size)
    with np.errstate(over="ignore"):
        if len(filled):
            powers = np.cumprod(np.full(int(size.max()), _BASE), dtype=np.uint64)
            first = starts[:-1][filled] - starts[0]
            place = np.arange(int(starts[-1] - starts[0])) - np.repeat(first, size[filled])
            terms = (letters[starts[0] : starts[-1]].astype(np.uint64) + np.uint64(1)) * powers[place]
            out[filled] = np.add.reduceat(terms, first)
        return mix(out + size.astype(np.uint64))


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows without their repetitions, in the order in which they first appear."""

    first: Codes  # (distinct row,) a row that it stands for
    group: Codes  # (row,) the distinct row that it is
    y: Codes  # (distinct row,) its class
    frequency: Floats  # (distinct row,) the weight of all rows equal to it
    draws: Floats  # (distinct row,) the independent draws that they stand for
    order: Codes  # (distinct row,) its place in a random order that depends on contents and the seed only
    class_start: Codes  # (class,) a random number of each class, likewise

    @classmethod
    def from_columns(
        cls, columns: Sequence[Any], y: Codes, weight: Floats | None = None, seed: int = 0, *, fraction: float = 1.0
    ) -> "DistinctRows":
        """The distinct rows of columns and a class; a ``fraction`` of all distinct rows, if these are a sample."""
        coded = [c if isinstance(c, CodedColumn) else CodedColumn.from_column(c) for c in columns]
        coded = [column for column in coded if len(column.code) and column.code.max() > column.code.min()]
        identity = hash_row_numbers(_sum_hashes([*(column.code for column in coded), y], len(y)))
        _, first, group = np.unique(identity, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))  # in the order of appearance
        first, group = np.sort(first), place[group]
        frequency = np.bincount(group, weight, len(first)).astype(np.float64)
        coded, classes = [replace(column, code=column.code[first]) for column in coded], y[first]
        codes = [column.code for column in coded]
        hashes = _hash_contents(codes, len(first), seed)
        order = np.empty(len(first), np.intp)
        order[np.lexsort([identity[first], hashes])] = np.arange(len(first))
        start = np.full(int(y.max(initial=-1)) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(start, classes, hashes)
        pattern = np.unique(_sum_hashes(codes, len(first)), return_inverse=True)[1]
        draws = estimate_draws(coded, pattern, classes, frequency, fraction)
        return cls(first, group, classes, frequency, draws, order, start.astype(np.intp))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def weight_per_draw(self) -> Floats:
        """(distinct row,) the weight of one independent draw."""
        return self.frequency / np.where(self.draws > 0, self.draws, 1.0)

    @property
    def proportion_copied(self) -> float:
        """The proportion of the weight of rows that are copies of each other."""
        return float(self.frequency[self.weight_per_draw > 1.0].sum()) / max(1e-300, float(self.frequency.sum()))

    @property
    def units(self) -> Floats:
        """(distinct row,) the parts that it can be divided into: whole independent draws."""
        return np.maximum(np.floor(self.draws * (1.0 + _ROUNDING)), 1.0)

    def weight_per_draw_by_class(self, n_classes: int) -> Floats:
        """(class,) the mean weight of a draw (Kish), at least 1: weights below 1 are fewer rows.

        The weight of a draw is bounded by a multiple of the mean, so that a few heavy rows do not make all others next
        to nothing.
        """
        n, draws = (np.bincount(self.y, values, n_classes) for values in (self.frequency, self.draws))
        usual = np.where(draws > 0, n / np.where(draws > 0, draws, 1.0), 1.0)
        bounded = np.minimum(self.weight_per_draw, _HEAVY_RATIO * usual[self.y])
        mean = np.bincount(self.y, self.frequency * bounded, n_classes) / np.where(n > 0, n, 1.0)
        return np.maximum(mean, 1.0)

    def assign_folds(self, n: int) -> tuple[Codes, Codes, Floats]:
        """The distinct row, the fold and the weight of entries that divide the rows into ``n`` folds, class by class.

        Copies stay together; independent draws of equal rows are assigned to folds one by one.
        """
        units = self.units
        part = self._divide_evenly(n) if units.sum() > _MAX_UNITS else self._divide_at_random(n)
        row, fold = np.nonzero(part)
        return row, fold, (self.frequency / units)[row] * part[row, fold]

    def _divide_at_random(self, n: int) -> Floats:
        """(distinct row, fold) its draws in each fold: those of a class are assigned in turn, in random order.

        If the draws of equal rows were divided evenly, folds would not differ by chance, and held-out scores would be
        too good.
        """
        units = self.units.astype(np.intp)
        row = np.repeat(np.arange(len(self)), units)
        number = np.arange(len(row)) - (np.cumsum(units) - units)[row]
        place = hash_row_numbers((self.order[row] << 23) + number) / 2.0**64 * len(self)
        place = np.where(number == 0, self.order[row], place)
        by_class = np.lexsort([place, self.y[row]])
        y = self.y[row][by_class]
        first = np.searchsorted(y, np.arange(len(self.class_start)))
        fold = np.empty(len(row), np.intp)
        fold[by_class] = (np.arange(len(row)) - first[y] + self.class_start[y] % n) % n
        return np.bincount(row * n + fold, minlength=len(self) * n).reshape(-1, n).astype(np.float64)

    def _divide_evenly(self, n: int) -> Floats:
        """(distinct row, fold) its draws in each fold, divided evenly: with so many, chance makes no difference."""
        by_class, units = np.lexsort([self.order, self.y]), self.units
        before = np.cumsum(units[by_class]) - units[by_class]
        first = np.searchsorted(self.y[by_class], np.arange(len(self.class_start)))
        before -= before[np.minimum(first, len(before) - 1)][self.y[by_class]] if len(before) else 0
        start = np.empty(len(self), np.intp)
        start[by_class] = (before % n).astype(np.intp) + self.class_start[self.y[by_class]] % n
        turn = (np.arange(n) - start[:, None]) % n
        return np.floor(units / n)[:, None] + ((units % n)[:, None] > turn)


def find_distinct_rows(
    table: Table, y: Codes, weight: Floats | None = None, seed: int = 0, *, fraction: float = 1.0
) -> DistinctRows:
    """The distinct rows of a table and the codes of their classes, as :meth:`DistinctRows.from_columns`."""
    coded = []
    for name in table.names:
        column = table.documents_or_column(name)
        try:
            if isinstance(column, np.ndarray) and column.dtype.kind == "f":
                check_finite(column)  # while the number of its row is known
            coded.append(CodedColumn.from_column(column))
        except InputError as error:
            error.column = name
            raise
    return DistinctRows.from_columns(coded, y, weight, seed, fraction=fraction)


def repeated_row_notes(rows: DistinctRows) -> list[Note]:
    """A note if rows of a table are copied: equal ones that chance does not explain."""
    if rows.proportion_copied < _MIN_NOTED_PROPORTION:
        return []
    text = f"{rows.proportion_copied:.1%} of the rows equal another row more often than chance explains"
    remedy = "remove the copies if they are a mistake; naive Bayes counts every copy, "
    return [Note("repeated-rows", text, remedy=f"{remedy}the default model learns from each row once")]


def _sum_hashes(codes: Sequence[Codes], n_rows: int, seeds: Sequence[int] | None = None) -> Hashes:
    """(row,) a number that is the same for rows of equal codes."""
    total = np.zeros(n_rows, np.uint64)
    with np.errstate(over="ignore"):
        for code, seed in zip(codes, range(len(codes)) if seeds is None else seeds, strict=True):
            total += hash_row_numbers(code, seed)
    return total


def _hash_contents(codes: Sequence[Codes], n_rows: int, seed: int) -> Hashes:
    """A random number for each distinct row, by what it holds.

    The order of rows and columns, the direction in which numbers ascend and their units do not matter: a column is
    identified by how many rows have each of its values.
    """
    ranks_of_rows, seeds = [], []
    for code in codes:
        size = np.bincount(code)
        values = np.flatnonzero(size[1:]) + 1  # the first is that of missing values
        sizes, ranks = size[values], 1 + np.arange(len(values))
        if sizes[::-1].tolist() < sizes.tolist():  # where both tails are as long
            ranks = ranks[::-1]
        elif sizes.max(initial=0) > 1 and (sizes[::-1] == sizes).all():  # it has no direction
            ranks = np.minimum(ranks, ranks[::-1])
        rank = np.zeros(len(size), np.intp)
        rank[values] = ranks
        with np.errstate(over="ignore"):
            seeds.append(int((hash_row_numbers(rank) * size.astype(np.uint64)).sum() % np.uint64(1 << 31)))
        ranks_of_rows.append(rank[code])
    return hash_row_numbers(hash_row_numbers(_sum_hashes(ranks_of_rows, n_rows, seeds)), seed)
