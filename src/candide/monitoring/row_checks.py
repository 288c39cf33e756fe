"""Checks of a sample of rows: leaks, identifiers, sentinels for missing values, copied columns, mixed date formats."""

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
from candide.data.equal_rows import find_distinct_rows
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Name, Table
from candide.engines.duckdb.number_formats import date_examples, is_string
from candide.errors import InputError
from candide.model.counts import ModelCounts

MIN_ROWS = 30  # fewer rows are not checked
LEAK_FRACTION = 0.98  # of the errors of predicting the most frequent class, that a leak avoids
_NINES_PATTERN = re.compile(r"-?99+(\.9+)?")
_COPY_CORRELATION = 0.9999  # of two columns that differ only in their unit
_MAX_PRODUCTS = 1 << 30  # multiplications to find copied numbers
_MIN_SURPRISE = 30.0  # -log of the probability of a coincidence: once in 10^13
_MAX_LEAK_COLUMNS = 200  # numeric columns searched for leaks: those whose class means differ most
_MIN_DISTINCT = 0.8  # fraction of distinct values in an identifier, where some rows are repeated


@dataclass(frozen=True)
class RowSample:
    """Labelled rows: their columns, class codes, and the numeric columns as one block."""

    columns: pa.Table
    y: Codes  # (rows,)
    n_classes: int
    names: tuple[Name, ...]  # of the numeric columns
    numbers: Floats  # (rows, numeric columns)
    dates: frozenset[Name] = frozenset()
    is_part: bool = False  # whether the table has more rows

    @classmethod
    def from_table(
        cls, rows: pa.Table, target: str, counts: ModelCounts, dates: Collection[Name] = (), max_rows: int = 1 << 62
    ) -> Self:
        """At most ``max_rows``, evenly spread, with the classes and columns of the counts."""
        rows = rows.take(arrow_indices(np.arange(0, rows.num_rows, max(1, -(-rows.num_rows // max_rows)))))
        y = counts.labels.match_codes(rows.column(target))
        if not (has_class := (y >= 0) & (y < len(counts.labels))).all():
            rows, y = rows.filter(pa.array(has_class)), y[has_class]
        group = group_equal_labels(counts.labels)
        parts = counts.plan.parts
        names = {str(name) for part in parts if part.block_kind != "documents" for name in part.columns}
        columns = rows.select([name for name in rows.column_names if name in names])
        y = group[y]
        distinct = np.arange(len(y))
        if columns.num_columns:
            with suppress(InputError):  # without copies beyond chance: a copy has the class of the other
                equal = find_distinct_rows(Table.from_data(columns), y)
                is_first = np.zeros(len(y), bool)
                is_first[equal.first] = True
                distinct = np.flatnonzero(is_first | (equal.weight_per_draw[equal.group] <= 1.0))
        columns, y = columns.take(arrow_indices(distinct)), y[distinct]
        numeric = {
            name
            for part in parts
            if part.event.max_levels is not None or not any(encoding.is_read_as_text for encoding in part.encodings)
            for name in part.columns
        }
        table, read = Table.from_data(columns), dict[Name, Floats]()
        for name in counts.plan.columns:
            if name in numeric:
                with suppress(InputError):  # some columns only the engine can read
                    read[name] = np.asarray(table.numbers((str(name),)), float).ravel()
        block = np.column_stack(list(read.values())) if read else np.empty((len(y), 0))
        n_classes, is_part = int(group.max(initial=-1)) + 1, len(distinct) < counts.n_rows
        return cls(columns, y, n_classes, tuple(read), block, frozenset(dates), is_part)


def normalise_label(text: str) -> str:
    """Text without differences in case or spaces."""
    return " ".join(text.split()).casefold()


def group_equal_labels(labels: Labels) -> Codes:
    """A group number for each label: labels that differ only in case or spaces are in one group.

    >>> group_equal_labels(Labels((1, "No", "Yes", "no", "yes "))).tolist()
    [0, 1, 2, 1, 2]
    """
    group: dict[Any, int] = {}
    keys = ((normalise_label(value),) if isinstance(value, str) else value for value in labels.values)
    return np.array([group.setdefault(key, len(group)) for key in keys], np.intp)


def check_rows(sample: RowSample) -> Iterator[Note]:
    """Yield what is found in the rows; nothing if they are too few."""
    if len(sample.y) >= MIN_ROWS:
        yield from _find_leaks(sample)
        yield from _find_sentinels(sample)
        yield from _find_copies(sample)
        yield from _find_identifiers(sample)


def leak_note(name: Name, fraction: float, is_part: bool = False) -> Note:
    """A note on a column that alone predicts the class of this fraction of the rows."""
    rows = "all rows" if fraction == 1 else f"{formatting.format_percent(fraction)} of the rows"
    rows += " sampled" if is_part else ""
    text = f"column {name!r} alone predicts the class of {rows}: it may be derived from the class, or recorded after it"
    return Note("leak", text, name, f"if it is not known before the class is, {drop_remedy(name)}")


def sentinel_note(name: Name, value: str, fraction: float, is_part: bool = False) -> Note:
    """A note on a value, in this fraction of the rows, that may stand for a missing value."""
    rows = "rows sampled" if is_part else "rows"
    percent = formatting.format_percent(fraction)
    text = f"column {name!r}: {value}, in {percent} of the {rows}, may stand for a missing value"
    return Note("sentinel", text, name, f"if so, make it missing; --na {value} (na=[...]) does that in all columns")


def drop_remedy(name: Name) -> str:
    return f"leave it out: --drop {str(name)!r} (drop=[...])"


def find_mixed_dates(head: pa.Table, target: str | None) -> Iterator[Note]:
    """Text columns, used or not, with dates in several formats."""
    for name, column in zip(head.column_names, head.columns, strict=True):
        if name != target and is_string(head, name) and (examples := date_examples(column)):
            listed = formatting.format_list(examples, 4)
            text = f"column {name!r} holds dates in several formats, such as {listed}: it is text"
            yield Note("mixed-dates", text, name, "write all of them in one format, such as 2024-12-31")


def _find_leaks(sample: RowSample) -> Iterator[Note]:
    """Numbers whose neighbours are of the same class in nearly all rows."""
    others = len(sample.y) - int(np.bincount(sample.y, minlength=sample.n_classes).max())
    if others < MIN_ROWS // 2:
        return
    columns = list(range(len(sample.names)))
    if len(columns) > _MAX_LEAK_COLUMNS:  # those whose class means differ most for their spread
        x, member = np.nan_to_num(_standardise(sample.numbers)), np.eye(sample.n_classes)[sample.y]
        between = ((member.T @ x) ** 2 / np.maximum(member.sum(axis=0), 1)[:, None]).sum(axis=0)
        columns = np.argsort(-between, kind="stable")[:_MAX_LEAK_COLUMNS].tolist()
    for j in columns:
        wrong = _count_mismatched_neighbours(sample.numbers[:, j], sample.y)
        if wrong <= (1 - LEAK_FRACTION) * others:
            yield leak_note(sample.names[j], 1 - wrong / len(sample.y), sample.is_part)


def _count_mismatched_neighbours(x: Floats, y: Codes) -> int:
    """The rows of another class than the nearest value, or than most rows of an equal value; missing ones count too."""
    finite = np.isfinite(x)
    order = np.argsort(x[finite], kind="stable")
    values, classes = x[finite][order], y[finite][order]
    if not len(values):
        return len(x)
    group, n_classes = np.concatenate([[0], np.cumsum(np.diff(values) > 0)]), int(y.max()) + 1
    size, is_match = np.bincount(group), np.zeros(len(values), bool)
    same = np.bincount(group * n_classes + classes, minlength=len(size) * n_classes).reshape(len(size), -1)
    most = np.partition(same, -2, axis=1)[:, -2:] if n_classes > 1 else np.pad(same, ((0, 0), (1, 0)))
    clear = (most[:, 1] - 1 > most[:, 0]) | ((most[:, 1] > 1) & (most[:, 0] == 0))  # without the row itself
    tied = size[group] > 1
    is_match[tied] = (clear[group] & (same[group, classes] == most[group, 1]))[tied]
    gap = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    nearest = np.arange(len(values)) + np.where(gap[:-1] < gap[1:], -1, 1)
    is_match[~tied] = (classes.take(nearest, mode="clip") == classes)[~tied]
    return len(x) - int(is_match.sum())


def _find_sentinels(sample: RowSample) -> Iterator[Note]:
    """Numbers whose lowest or highest value is frequent, far from all others, and a usual code for "missing"."""
    with np.errstate(invalid="ignore"):
        low, high = (np.nan_to_num(ends, nan=1.0) for ends in _extremes(sample.numbers))
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
    if end == -1:  # a code in a column that is never negative
        return bool(rest.min() >= 0) and n >= max(5, 0.01 * len(rest))
    gap, spread = float(np.abs(rest - end).min()), float(rest.std())
    if end == 0:  # usually a value like others
        return n < len(rest) and len(np.unique(rest)) >= 10 and gap > spread and bool(rest.min() > 0)
    return gap > spread


def _find_identifiers(sample: RowSample) -> Iterator[Note]:
    """Whole numbers in any order that are all different, though random ones of that range would not be."""
    low, high = _extremes(sample.numbers)
    for j, name in enumerate(sample.names):
        finite = np.isfinite(sample.numbers[:, j])
        x, n = sample.numbers[finite, j], int(finite.sum())
        n_possible = float(high[j] - low[j]) + 1 if np.isfinite(low[j]) else np.inf
        if name in sample.dates or not n * n / 2 > _MIN_SURPRISE * n_possible:
            continue
        if not (x == np.floor(x)).all() or (n_distinct := len(np.unique(x))) < _MIN_DISTINCT * n:
            continue
        if n_distinct < n:  # repeated rows have the same identifier
            rows = np.column_stack([sample.numbers[finite], sample.y[finite]])
            rows = np.where(np.isnan(rows), np.inf, rows) + 0.0
            if len(np.unique(np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 8))))) > n_distinct:
                continue
        text = f"column {name!r} looks like an identifier: {n_distinct:,} whole numbers, one for each distinct row"
        yield Note("identifier", text, name, drop_remedy(name))


def _extremes(x: Floats) -> tuple[Floats, Floats]:
    finite = np.isfinite(x)
    low, high = np.where(finite, x, np.inf).min(axis=0), np.where(finite, x, -np.inf).max(axis=0)
    return low, np.maximum(high, low)


def _find_copies(sample: RowSample) -> Iterator[Note]:
    def note(name: Name, other: Name, relation: str) -> Note:
        text = f"column {name!r} holds the same information as {other!r}{relation}: naive Bayes counts it twice"
        return Note("copy", text, name, drop_remedy(name))

    copies: set[str] = set()
    for i, j in _find_same_numbers(sample):
        copies.add(str(sample.names[j]))
        equal = np.array_equal(sample.numbers[:, i], sample.numbers[:, j], equal_nan=True)
        yield note(sample.names[j], sample.names[i], "" if equal else ", in another unit")
    seen: dict[bytes, str] = {}
    for name, column in zip(sample.columns.column_names, sample.columns.columns, strict=True):
        if name in copies or pa.types.is_nested(column.type):
            continue
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        codes = arrow_numbers(plain.combine_chunks().dictionary_encode().indices, absent=-1)  # in order of appearance
        n = np.bincount(codes + 1)
        p = n[n > 0] / len(codes)
        surprise = -float((p * np.log(p)).sum()) * len(codes)
        if len(p) > len(codes) / 3 or surprise < _MIN_SURPRISE:  # may be equal by chance
            continue
        first = seen.setdefault(codes.tobytes(), name)
        if first != name:
            yield note(name, first, "" if sample.columns.column(first).equals(column) else ", in other words")


def _find_same_numbers(sample: RowSample) -> Iterator[tuple[int, int]]:
    """Pairs of columns that differ only in their unit: each copy with the first column that it copies."""
    n, p = sample.numbers.shape
    step = max(1, n // max(MIN_ROWS * 2, _MAX_PRODUCTS // max(p * p, 1)))
    thinned, whole = _standardise(sample.numbers[::step]), None
    z = np.nan_to_num(thinned) / np.sqrt(max(len(thinned), 1))
    for start in range(0, p, 512):
        is_similar = np.abs(z[:, start : start + 512].T @ z) > _COPY_CORRELATION
        for j, row in enumerate(is_similar, start):
            for i in np.flatnonzero(row[:j])[:3].tolist():
                whole = _standardise(sample.numbers) if whole is None else whole
                a, b = whole[:, i], whole[:, j]
                finite = np.isfinite(a)
                if len(np.unique(sample.numbers[finite, j])) <= 2:  # two values are equal in any unit
                    continue
                correlation = abs(float(a[finite] @ b[finite])) if (finite == np.isfinite(b)).all() else 0.0
                if correlation > _COPY_CORRELATION * finite.sum():
                    yield i, j
                    break


def _standardise(x: Floats) -> Floats:
    """Columns of mean 0 and variance 1; NaN where a value is missing, or all are equal."""
    finite = np.isfinite(x)
    n = np.maximum(finite.sum(axis=0), 1)
    mean = np.where(finite, x, 0.0).sum(axis=0) / n
    centred = np.where(finite, x - mean, 0.0)
    sd = np.sqrt((centred**2).sum(axis=0) / n)
    varies = sd > 1e-9 * np.maximum(np.abs(mean), 1e-300)
    return np.where(finite & varies, centred / np.where(varies, sd, 1.0), np.nan)
