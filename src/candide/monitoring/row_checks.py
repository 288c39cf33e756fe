"""Looks at some rows for what spoils a table: ids, codes for "missing", copies, and columns that give the class away.

The rows are a sample, the first of a source or some spread over it; what is told of a column holds in all of them.

>>> import candide as cd
>>> rows = {"t": [float(i % 11) - 999 * (i % 11 == 0) for i in range(66)], "y": ["a", "b"] * 33}
>>> sample = RowSample.from_table(pa.table(rows), "y", cd.fit(rows, "y").counts_)
>>> [(one.code, one.column) for one in check_rows(sample)]
[('sentinel', 't')]
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from candide import formatting
from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.repeated_rows import find_distinct_rows
from candide.data.table import Name, Table
from candide.data.value_matching import match_codes
from candide.engines.duckdb.format_detection import date_examples
from candide.engines.duckdb.type_inference import is_string
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.plan import PlanPart

MIN_ROWS = 30  # rows before a look can tell anything
_NINES_PATTERN = re.compile(r"-?99+(\.9+)?")
_COPY_CORRELATION = 0.9999  # correlation of numbers that are copies of one another, in whatever unit
_MAX_PRODUCTS = 1 << 30  # multiplications to find copies among numbers
_MAX_CHANCE_NATS = 30.0  # nats: what comes by chance once in 10^13 times does not come by chance
_MAX_LEAK_COLUMNS = 200  # columns sorted in search of a leak: those that differ most by class
_NEARLY_ALL = 0.8  # of the values of an identifier are different, where some rows are repeated
LEAK_SHARE = 0.98  # of the errors of the class shares alone, that a leak takes away


@dataclass(frozen=True)
class RowSample:
    """Some rows that have a class: their columns, the code of the class, and as one block the columns of numbers."""

    columns: pa.Table
    y: Codes  # (rows,)
    n_classes: int
    names: tuple[Name, ...]  # of numbers
    numbers: Floats  # (rows, numbers)
    dates: frozenset[Name] = frozenset()  # those of the names that are dates
    is_part: bool = False  # whether there are more rows than these
    target: str | None = None  # the column of the classes

    @classmethod
    def from_table(
        cls, rows: pa.Table, target: str, counts: ModelCounts, dates: Collection[Name] = (), max_rows: int = 1 << 62
    ) -> Self:
        """At most so many of some rows, evenly spread over them, with the classes and columns of a census."""
        rows = rows.take(arrow_indices(np.arange(0, rows.num_rows, max(1, -(-rows.num_rows // max_rows)))))
        y, n = match_codes(counts.labels, rows.column(target)), len(counts.labels)
        if not (there := (y >= 0) & (y < n)).all():
            rows, y = rows.filter(pa.array(there)), y[there]
        y, n = (group := group_equal_labels(counts.labels))[y], int(group.max(initial=-1)) + 1
        holds = {name: part.block_kind for part in counts.plan.parts for name in part.columns}
        known = {str(name) for name in counts.plan.columns if holds[name] != "documents"}
        columns = rows.select([name for name in rows.column_names if name in known])  # in their own order
        numbers = {name for part in counts.plan.parts if _can_be_numbers(part) for name in part.columns}
        once = _without_copies(columns, y)
        columns, y = columns.take(arrow_indices(once)), y[once]
        read = _number_columns(Table.from_data(columns), [name for name in counts.plan.columns if name in numbers])
        block = np.column_stack(list(read.values())) if read else np.empty((len(y), 0))
        return cls(columns, y, n, tuple(read), block, frozenset(dates), len(once) < counts.n_rows, target)


def _without_copies(columns: pa.Table, y: Codes) -> Codes:
    """The rows, one of each whose copies are more than chance explains: a copy gives away the class of the other."""
    if columns.num_columns:
        with suppress(InputError):
            found = find_distinct_rows(Table.from_data(columns), y)
            is_first = np.zeros(len(y), bool)
            is_first[found.first] = True
            return np.flatnonzero(is_first | (found.weight_per_draw[found.group] <= 1.0))
    return np.arange(len(y))


def normalise_label(text: str) -> str:
    """A text without what only people who mistype it change: case, and spaces."""
    return " ".join(text.split()).casefold()


def group_equal_labels(labels: Labels) -> Codes:
    """The number of a group for each label: labels that differ in case or spaces only share one.

    >>> group_equal_labels(Labels((1, "No", "Yes", "no", "yes "))).tolist()
    [0, 1, 2, 1, 2]
    """
    group: dict[Any, int] = {}
    keys = ((normalise_label(value),) if isinstance(value, str) else value for value in labels.values)
    return np.array([group.setdefault(key, len(group)) for key in keys], np.intp)


def _can_be_numbers(part: PlanPart) -> bool:
    """Whether its columns are numbers, or whole numbers whose counts say what they are."""
    return part.event.max_levels is not None or not any(encoding.is_read_as_text for encoding in part.encodings)


def _number_columns(table: Table, names: Collection[Name]) -> dict[Name, Floats]:
    """Columns of numbers; a look has no error of its own, so those that only an engine can read are left out."""
    read = {}
    for name in names:
        with suppress(InputError):
            read[name] = np.asarray(table.numbers((str(name),)), float).ravel()
    return read


def check_rows(sample: RowSample) -> Iterator[Note]:
    """What is found in rows alone; nothing where they are too few to tell."""
    if len(sample.y) < MIN_ROWS:
        return
    yield from _find_leaks(sample)
    yield from _find_sentinels(sample)
    yield from _find_copies(sample)
    yield from _find_identifiers(sample)


def leak_note(name: Name, fraction: float, is_part: bool = False) -> Note:
    """The remark on a column that alone gives the class away in this share of the rows."""
    told = "all rows" if fraction == 1 else f"{formatting.format_percent(fraction)} of the rows"
    told += " looked at" if is_part else ""
    text = f"column {name!r} alone tells the class of {told}: it may be made from the class, or after it"
    return Note("leak", text, name, f"where it is not known before the class is, {drop_remedy(name)}")


def copy_note(name: Name, other: Name, relation: str = "") -> Note:
    """The remark on a column that says what another one says."""
    text = f"column {name!r} tells the same as {other!r}{relation}: naive Bayes counts it twice"
    return Note("copy", text, name, drop_remedy(name))


def sentinel_note(name: Name, value: str, fraction: float, is_part: bool = False) -> Note:
    """Return a note on a value, in this fraction of the rows, that may stand for a missing value."""
    rows = "rows looked at" if is_part else "rows"
    percent = formatting.format_percent(fraction)
    text = f"column {name!r}: {value}, in {percent} of the {rows}, may stand for a missing value"
    return Note("sentinel", text, name, f"if so, make it missing; --na {value} (na=[...]) does that in all columns")


def drop_remedy(name: Name) -> str:
    """What to do with a column that does harm."""
    return f"leave it out: --drop {str(name)!r} (drop=[...])"


def find_mixed_dates(head: pa.Table, target: str | None) -> Iterator[Note]:
    """Columns of text, whether or not they are used, that hold dates in several formats."""
    for name, column in zip(head.column_names, head.columns, strict=True):
        if name != target and is_string(head, name) and (examples := date_examples(column)):
            listed = formatting.format_list(examples, 4)
            text = f"column {name!r} holds dates in several formats, such as {listed}: it is text"
            yield Note("mixed-dates", text, name, "write all of them in one format, such as 2024-12-31")


# One column at a time


def _find_leaks(sample: RowSample) -> Iterator[Note]:
    """Numbers whose neighbours are of the same class in nearly all rows."""
    sizes = np.bincount(sample.y, minlength=sample.n_classes)
    others = len(sample.y) - int(sizes.max())
    if others < MIN_ROWS // 2:
        return
    for j in _rank_by_difference(sample):
        wrong = _count_mismatched_neighbours(sample.numbers[:, j], sample.y)
        if wrong <= (1 - LEAK_SHARE) * others:
            yield leak_note(sample.names[j], 1 - wrong / len(sample.y), sample.is_part)


def _rank_by_difference(sample: RowSample) -> list[int]:
    """The numbers whose means differ most by class for their spread; all, where these are few."""
    if len(sample.names) <= _MAX_LEAK_COLUMNS:
        return list(range(len(sample.names)))
    x = np.nan_to_num(_standardise(sample.numbers))
    member = np.eye(sample.n_classes)[sample.y]
    between = ((member.T @ x) ** 2 / np.maximum(member.sum(axis=0), 1)[:, None]).sum(axis=0)
    return np.argsort(-between, kind="stable")[:_MAX_LEAK_COLUMNS].tolist()


def _count_mismatched_neighbours(x: Floats, y: Codes) -> int:
    """In how many rows the nearest value, or most equal ones, are not of the same class; nor is a missing one."""
    there = np.isfinite(x)
    order = np.argsort(x[there], kind="stable")
    values, classes = x[there][order], y[there][order]
    if not len(values):
        return len(x)
    group = np.concatenate([[0], np.cumsum(np.diff(values) > 0)])
    size, known = np.bincount(group), np.zeros(len(values), bool)
    same = np.bincount(group * (int(y.max()) + 1) + classes, minlength=len(size) * (int(y.max()) + 1))
    same = same.reshape(len(size), -1)
    most = np.partition(same, -2, axis=1)[:, -2:] if same.shape[1] > 1 else np.pad(same, ((0, 0), (1, 0)))
    clear = (most[:, 1] - 1 > most[:, 0]) | ((most[:, 1] > 1) & (most[:, 0] == 0))  # without the row itself
    many = size[group] > 1
    known[many] = (clear[group] & (same[group, classes] == most[group, 1]))[many]
    gap = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    nearest = np.arange(len(values)) + np.where(gap[:-1] < gap[1:], -1, 1)
    known[~many] = (classes.take(nearest, mode="clip") == classes)[~many]
    return len(x) - int(known.sum())


def _find_sentinels(sample: RowSample) -> Iterator[Note]:
    """Numbers whose lowest or highest value is often met, far from all others, and such as stands for "missing"."""
    with np.errstate(invalid="ignore"):
        low, high = (np.nan_to_num(of, nan=1.0) for of in _extremes(sample.numbers))
    for j, name in enumerate(sample.names):
        for end in {float(low[j]), float(high[j])}:
            if name not in sample.dates and (end in (0.0, -1.0) or _NINES_PATTERN.fullmatch(f"{end:g}")):
                x = sample.numbers[:, j]
                n = int((x == end).sum())
                if n > 1 and _is_outlying(end, n, x[np.isfinite(x) & (x != end)]):
                    yield sentinel_note(name, f"{end:g}", n / len(x), sample.is_part)


def _is_outlying(end: float, n: int, rest: Floats) -> bool:
    if len(rest) < MIN_ROWS // 3:
        return False
    if end == -1:  # a code among what is never below zero
        return bool(rest.min() >= 0) and n >= max(5, 0.01 * len(rest))
    gap, spread = float(np.abs(rest - end).min()), float(rest.std())
    if end == 0:  # a value like others, unless it is not the usual one and there is nothing for a long way
        return n < len(rest) and len(np.unique(rest)) >= 10 and gap > spread and bool(rest.min() > 0)
    return gap > spread


def _find_identifiers(sample: RowSample) -> Iterator[Note]:
    """Whole numbers in any order that are all different, though as many drawn by chance would not be."""
    low, high = _extremes(sample.numbers)
    for j, name in enumerate(sample.names):
        x = sample.numbers[:, j]
        n, room = int(np.isfinite(x).sum()), float(high[j] - low[j]) + 1 if np.isfinite(low[j]) else np.inf
        if name in sample.dates or not n * n / 2 > _MAX_CHANCE_NATS * room:
            continue
        there = np.isfinite(x)
        x = x[there]
        if not (x == np.floor(x)).all() or (different := len(np.unique(x))) < _NEARLY_ALL * n:
            continue
        if different < n:  # rows that are there twice have the same identifier
            rows = np.column_stack([sample.numbers[there], sample.y[there]])
            rows = np.where(np.isnan(rows), np.inf, rows) + 0.0
            if len(np.unique(np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 8))))) > different:
                continue
        text = f"column {name!r} looks like an identifier: {different:,} whole numbers, one for each distinct row"
        yield Note("identifier", text, name, drop_remedy(name))


def _extremes(x: Floats) -> tuple[Floats, Floats]:
    finite = np.isfinite(x)
    low, high = np.where(finite, x, np.inf).min(axis=0), np.where(finite, x, -np.inf).max(axis=0)
    return low, np.maximum(high, low)


# Two columns at a time


def _find_copies(sample: RowSample) -> Iterator[Note]:
    told: set[str] = set()
    for i, j in _find_same_numbers(sample):
        told.add(str(sample.names[j]))
        equal = np.array_equal(sample.numbers[:, i], sample.numbers[:, j], equal_nan=True)
        yield copy_note(sample.names[j], sample.names[i], "" if equal else ", in another unit")
    seen: dict[bytes, str] = {}
    for name, column in zip(sample.columns.column_names, sample.columns.columns, strict=True):
        if name in told or (coded := _codes_by_place(column)) is None:
            continue
        first = seen.setdefault(coded, name)
        if first != name:
            yield copy_note(name, first, "" if sample.columns.column(first).equals(column) else ", in other words")


def _codes_by_place(column: Any) -> bytes | None:
    """The codes of a column's values in the order in which they come: equal where two columns are one, renamed.

    None where columns that have nothing to do with each other could well be equal.
    """
    if pa.types.is_nested(column.type):
        return None
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode()
    found = arrow_numbers(coded.indices, absent=-1)
    n = np.bincount(found + 1)
    share = n[n > 0] / len(found)
    surprise = -float((share * np.log(share)).sum()) * len(found)
    return None if len(share) > len(found) / 3 or surprise < _MAX_CHANCE_NATS else found.tobytes()


def _find_same_numbers(sample: RowSample) -> Iterator[tuple[int, int]]:
    """Pairs of numbers that are one but for their unit: each column with the first that it is a copy of."""
    n, p = sample.numbers.shape
    step = max(1, n // max(MIN_ROWS * 2, _MAX_PRODUCTS // max(p * p, 1)))
    few, whole = _standardise(sample.numbers[::step]), None
    z = np.nan_to_num(few) / np.sqrt(max(len(few), 1))
    for start in range(0, p, 512):
        alike = np.abs(z[:, start : start + 512].T @ z) > _COPY_CORRELATION
        for at, row in enumerate(alike):
            j = start + at
            for i in np.flatnonzero(row[:j])[:3].tolist():
                whole = _standardise(sample.numbers) if whole is None else whole
                a, b = whole[:, i], whole[:, j]
                both = np.isfinite(a)
                many = len(np.unique(sample.numbers[both, j])) > 2  # two values are alike in any unit
                if (
                    many
                    and (both == np.isfinite(b)).all()
                    and abs(float(a[both] @ b[both])) > _COPY_CORRELATION * both.sum()
                ):
                    yield i, j
                    break


def _standardise(x: Floats) -> Floats:
    """Columns of mean 0 and variance 1; NaN where a value is absent, or all are equal."""
    there = np.isfinite(x)
    n = np.maximum(there.sum(axis=0), 1)
    zero = np.where(there, x, 0.0)
    mean = zero.sum(axis=0) / n
    away = np.where(there, x - mean, 0.0)
    sd = np.sqrt((away**2).sum(axis=0) / n)
    some = sd > 1e-9 * np.maximum(np.abs(mean), 1e-300)
    return np.where(there & some, away / np.where(some, sd, 1.0), np.nan)
