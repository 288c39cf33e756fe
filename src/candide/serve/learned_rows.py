"""Learned rows: how labelled rows are stored in the journal, counted into a model or out of it, and found again.

Rows are stored as they came, as JSON columns, without columns that the model does not read. What is counted is what is
stored, so that counting again after a crash gives the same model.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import isfinite, isinf
from typing import Any

import msgspec
import numpy as np

from candide.data.labels import is_missing_label
from candide.data.table import Table
from candide.data.text_formats import format_plain_value
from candide.engines import arrays
from candide.errors import CandideError, InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.input_columns import format_suggestion, similar_names
from candide.serve.formats import RequestRows, column_values
from candide.serve.journal import Entry

Columns = dict[str, list[Any]]
WeightedRows = tuple[bytes, float]  # stored rows, and the weight of each
_PLAIN_TYPES = {str, int, float, bool, type(None)}
encode_columns, decode_columns = msgspec.json.encode, msgspec.json.Decoder(Columns).decode


def encode_rows(rows: RequestRows, fitted: FittedModel, target: str, allow_new_classes: bool) -> bytes:
    """Return labelled rows as the journal stores them; raise an error if they cannot be learned."""
    names = [*map(str, fitted.counts.plan.columns), target]
    absent = [name for name in names if name not in rows.columns]
    if absent:
        what = f"the request has no column {absent[0]!r}" + (", the target" if absent[0] == target else "")
        similar = similar_names(absent, [name for name in rows.columns if name not in names])
        remedy = format_suggestion(similar) or "send it, with null for missing values"
        raise InputError(what, column=absent[0], value=absent, remedy=remedy)
    columns = {name: [_check_value(value, name) for value in column_values(rows.columns[name])] for name in names}
    columns[target] = _match_labels(columns[target], fitted, target, allow_new_classes)
    try:
        return encode_columns(columns)
    except (OverflowError, TypeError, ValueError) as error:
        remedy = "send numbers of at most 64 bits, and text"
        raise InputError(f"a value cannot be stored: {error}", remedy=remedy) from None


def _check_value(value: Any, name: str) -> Any:
    if type(value) in _PLAIN_TYPES:
        if type(value) is float and isinf(value):  # JSON would store it as missing
            remedy = "send null if it is missing, or leave the row out"
            raise InputError("infinity is not a valid value", column=name, value=str(value), remedy=remedy)
        return None if value != value else value
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return format_plain_value(value)
    remedy = "send numbers, text, booleans or dates"
    raise InputError(f"values of type {type(value).__name__} cannot be learned", column=name, remedy=remedy)


def _match_labels(labels: list[Any], fitted: FittedModel, target: str, allow_new_classes: bool) -> list[Any]:
    for row, label in enumerate(labels):
        if is_missing_label(label):
            raise InputError("the label is missing", column=target, row=row, remedy="leave the row out, or label it")
        if not allow_new_classes and fitted.labels.find_code(label) is None:
            classes = ", ".join(map(str, fitted.labels.values[:10]))
            remedy = f"one of {classes}; others are learned with --allow-new-classes"
            raise InputError(f"unknown class {label!r}", column=target, row=row, value=label, remedy=remedy)
    matched = fitted.labels.match_values(labels)
    return [label if type(label) in _PLAIN_TYPES else format_plain_value(label) for label in matched]


def add_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> FittedModel:
    return reduce(FittedModel.add_counts, _count_rows(fitted, weighted_rows, target), fitted)


def add_countable_rows(
    fitted: FittedModel, weighted_rows: Sequence[WeightedRows], target: str, caught: type[CandideError] = CandideError
) -> tuple[FittedModel, dict[int, CandideError]]:
    """Count rows together, or if that fails, one half and then the other; return also the errors by position."""
    try:
        return add_rows(fitted, weighted_rows, target), {}
    except caught as error:
        if len(weighted_rows) == 1:
            return fitted, {0: error}
    half = len(weighted_rows) // 2
    fitted, errors = add_countable_rows(fitted, weighted_rows[:half], target, caught)
    fitted, later_errors = add_countable_rows(fitted, weighted_rows[half:], target, caught)
    return fitted, errors | {half + i: error for i, error in later_errors.items()}


def remove_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> FittedModel:
    """Count stored rows out of a model; they must have been counted in with these weights."""
    return reduce(FittedModel.subtract_counts, _count_rows(fitted, weighted_rows, target), fitted)


def _count_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> Iterator[ModelCounts]:
    """Count stored rows by the plan of a model, rows whose columns have the same types together.

    Otherwise the meaning of a row would depend on the group it falls into: text in a column makes its other values
    text. Missing values go with either type.
    """
    groups: list[_RowGroup] = []
    for rows, weight in weighted_rows:
        columns = decode_columns(rows)
        weights = [weight] * len(columns[target])
        if not any(group.add_if_compatible(columns, weights) for group in groups):
            groups.append(_RowGroup(columns, weights))
    plan = fitted.counts.plan
    for group in groups:
        table = fitted.parse_table(Table.from_data({name: group.columns[str(name)] for name in plan.columns}))
        row_weights = None if set(group.weights) == {1.0} else np.array(group.weights)
        yield arrays.count_table(table, group.columns[target], row_weights, plan=plan.with_levels(table)).limit_levels()


class _RowGroup:
    """Rows whose columns have the same types, and their weights."""

    def __init__(self, columns: Columns, weights: list[float]):
        self.columns, self.weights, self._types = columns, weights, list(map(_is_text, columns.values()))

    def add_if_compatible(self, columns: Columns, weights: list[float]) -> bool:
        """Add rows if their columns have the types of this group; return whether they do."""
        pairs = list(zip(self._types, map(_is_text, columns.values()), strict=True))
        if any(a is not None and b is not None and a is not b for a, b in pairs):
            return False
        self._types = [b if a is None else a for a, b in pairs]
        for name, column in columns.items():
            self.columns[name].extend(column)
        self.weights += weights
        return True


def _is_text(column: list[Any]) -> bool | None:
    """Return whether a column holds text; None if all its values are missing."""
    types = set(map(type, column)) - {type(None)}
    return str in types if types else None


@dataclass(frozen=True)
class EntryMatch:
    """Rows of an entry to be forgotten, and what remains of the entry."""

    matched_rows: bytes
    remaining_entry: Entry


class RowSearch:
    """A search for the entries in which rows were learned.

    Two rows are the same if they are counted as the same, however they are written: ``1``, ``1.0`` and, in a numeric
    column, ``"1"``. A row that was learned twice is found once for each time that it is searched, the latest first.
    """

    def __init__(self, rows: bytes, fitted: FittedModel, target: str):
        self._columns, self._fitted, self._target = decode_columns(rows), fitted, target
        self._pending: dict[tuple, dict[tuple, list[int]]] = {}  # by comparable row, the positions of each exact row
        self._row_counts: dict[tuple, ModelCounts] = {}
        for i, row in enumerate(zip(*self._columns.values(), strict=True)):
            self._pending.setdefault(_comparable_row(row), {}).setdefault(_exact_row(row), []).append(i)

    def find_in(self, entries: Iterable[Entry]) -> Iterator[EntryMatch]:
        for entry in entries:
            if not self._pending:
                return
            columns = {} if entry.rows is None else decode_columns(entry.rows)
            matched = [i for i, row in enumerate(zip(*columns.values(), strict=True)) if self._take_match(row)]
            if matched:
                rest = sorted(set(range(entry.n)) - set(matched))
                remaining = entry.with_remaining(_encode_selected(columns, rest), len(rest))
                yield EntryMatch(_encode_selected(columns, matched) or b"", remaining)

    def _take_match(self, row: tuple) -> bool:
        key, exact = _comparable_row(row), _exact_row(row)
        candidates = self._pending.get(key)
        if candidates is None:
            return False
        if exact not in candidates:
            same = [row for row in candidates if _is_same_row(self._count_row(row), self._count_row(exact))]
            if not same:
                return False
            exact = same[0]
        candidates[exact].pop()
        if not candidates[exact]:
            del candidates[exact]
        if not candidates:
            del self._pending[key]
        return True

    def _count_row(self, exact: tuple) -> ModelCounts:
        """Count one row, once for each way it is written."""
        if exact not in self._row_counts:
            columns = {name: [value] for name, (_, value) in zip(self._columns, exact, strict=True)}
            self._row_counts[exact] = _count_row(self._fitted, encode_columns(columns), self._target)
        return self._row_counts[exact]

    def unmatched_rows(self) -> tuple[bytes | None, int]:
        rows = sorted(i for candidates in self._pending.values() for places in candidates.values() for i in places)
        return _encode_selected(self._columns, rows), len(rows)


def _count_row(fitted: FittedModel, row: bytes, target: str) -> ModelCounts:
    [counts] = _count_rows(fitted, [(row, 1.0)], target)
    return counts.match_labels(fitted.counts)


def _is_same_row(a: ModelCounts, b: ModelCounts) -> bool:
    if a.plan != b.plan or a.labels != b.labels:
        return False
    pairs = [(x.arrays(), y.arrays()) for x, y in zip(a.tallies, b.tallies, strict=True)]
    return all(x.keys() == y.keys() and all(np.array_equal(x[name], y[name]) for name in x) for x, y in pairs)


def _encode_selected(columns: Columns, rows: list[int]) -> bytes | None:
    """Return some of the rows as they are stored; None if there are none."""
    return encode_columns({name: [column[i] for i in rows] for name, column in columns.items()}) if rows else None


def _comparable_row(row: tuple) -> tuple:
    """Return a row by values that are equal wherever two texts may mean the same value: "1", 1, 1.0 and True."""
    return tuple(_parse_number(value) if isinstance(value, str) else value for value in row)


def _exact_row(row: tuple) -> tuple:
    return tuple((type(value), value) for value in row)


def _parse_number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text
