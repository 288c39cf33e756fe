"""What is learned: rows with their labels as they are kept, and how they are counted into a model, or out of it.

Rows are kept as they came, as JSON, without columns that the model does not know; what is counted is what is kept, so
that counting them again after a crash gives the same model.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from math import isinf
from typing import Any

import msgspec
import numpy as np

from candide.data import value_matching
from candide.data.labels import is_missing_label
from candide.data.table import Table
from candide.data.value_identity import format_plain_value
from candide.engines import arrays
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.input_columns import format_suggestion, similar_names
from candide.serve.formats import RequestRows, column_values

_PLAIN_TYPES = {str, int, float, bool, type(None)}
_TIME_TYPES = dt.date | dt.time | dt.timedelta
encode_columns, decode_columns = msgspec.json.encode, msgspec.json.Decoder(dict[str, list[Any]]).decode


def encode_rows(rows: RequestRows, fitted: FittedModel, target: str, new_classes: bool) -> bytes:
    """Rows with their labels, as the journal keeps them; an error if they cannot be learned."""
    names = [*map(str, fitted.counts.plan.columns), target]
    lacking = [name for name in names if name not in rows.columns]
    if lacking:
        what = f"the request has no column {lacking[0]!r}" + (", that of the labels" if lacking[0] == target else "")
        near = format_suggestion(similar_names(lacking, [name for name in rows.columns if name not in names]))
        remedy = near or "send it; null where it is missing"
        raise InputError(what, column=lacking[0], value=lacking, remedy=remedy)
    held = {name: [_check_value(value, name) for value in column_values(rows.columns[name])] for name in names}
    held[target] = _labels(held[target], fitted, target, new_classes)
    try:
        return encode_columns(held)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"a value cannot be kept: {error}", remedy="send numbers of at most 64 bits, and text"
        ) from None


def _check_value(value: Any, name: str) -> Any:
    if type(value) in _PLAIN_TYPES:
        if type(value) is float and isinf(value):  # JSON has none: it would be kept as missing
            what, remedy = "infinity is no value", "send null where it is missing, or leave the row out"
            raise InputError(what, column=name, value=str(value), remedy=remedy)
        return None if value != value else value
    if isinstance(value, _TIME_TYPES):
        return format_plain_value(value)
    raise InputError(
        f"{type(value).__name__} cannot be learned", column=name, remedy="send numbers, text, truths or dates"
    )


def _labels(labels: list[Any], fitted: FittedModel, target: str, new_classes: bool) -> list[Any]:
    """The labels as the model spells them."""
    for row, label in enumerate(labels):
        if is_missing_label(label):
            raise InputError("the label is missing", column=target, row=row, remedy="leave the row out, or label it")
        if not new_classes and value_matching.find_code(label, fitted.labels) is None:
            known = ", ".join(map(str, fitted.labels.values[:10]))
            remedy = f"one of {known}; others are learned with --allow-new-classes"
            raise InputError(f"the model knows no class {label!r}", column=target, row=row, value=label, remedy=remedy)
    return [
        plain if type(plain) in _PLAIN_TYPES else format_plain_value(plain)
        for plain in value_matching.match_values(labels, fitted.labels)
    ]


WeightedRows = tuple[bytes, float]  # kept rows, and what each of them weighs


def add_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> FittedModel:
    """A model into which kept rows are counted."""
    for census in _count_rows(fitted, weighted_rows, target):
        fitted = fitted.add_counts(census)
    return fitted


def remove_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> FittedModel:
    """A model without kept rows, which must have been counted in it with these weights."""
    for census in _count_rows(fitted, weighted_rows, target):
        fitted = fitted.subtract_counts(census)
    return fitted


def _count_rows(fitted: FittedModel, weighted_rows: Iterable[WeightedRows], target: str) -> Iterator[ModelCounts]:
    """Kept rows, counted as the model was: together where their columns are of the same kinds.

    So rows mean the same however requests fall into groups: text in a column makes text of all that is beside it. What
    is missing goes with either.
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
        weighed = None if all(weight == 1.0 for weight in group.weights) else np.array(group.weights)
        yield arrays.count_table(table, group.columns[target], weighed, plan=plan.with_levels(table)).limit_levels()


class _RowGroup:
    """Rows whose columns are of the same kinds, and their weights."""

    def __init__(self, columns: dict[str, list[Any]], weights: list[float]):
        self.columns, self.weights, self._kinds = columns, weights, list(map(_is_text, columns.values()))

    def add_if_compatible(self, columns: dict[str, list[Any]], weights: list[float]) -> bool:
        """Whether rows are of these kinds; then they are among these."""
        both = list(zip(self._kinds, map(_is_text, columns.values()), strict=True))
        if any(a is not None and b is not None and a is not b for a, b in both):
            return False
        self._kinds = [b if a is None else a for a, b in both]
        for name, column in columns.items():
            self.columns[name].extend(column)
        self.weights += weights
        return True


def _is_text(column: list[Any]) -> bool | None:
    """Whether a column holds text; None where it holds nothing."""
    kinds = set(map(type, column)) - {type(None)}
    return str in kinds if kinds else None


def count_row(fitted: FittedModel, row: bytes, target: str) -> ModelCounts:
    """What a row is counted as, however it is spelled."""
    [census] = _count_rows(fitted, [(row, 1.0)], target)
    return census.match_labels(fitted.counts)


def is_same_row(a: ModelCounts, b: ModelCounts) -> bool:
    """Whether two meanings are one."""
    if a.plan != b.plan or a.labels != b.labels:
        return False
    pairs = [(x.arrays(), y.arrays()) for x, y in zip(a.tallies, b.tallies, strict=True)]
    return all(x.keys() == y.keys() and all(np.array_equal(x[name], y[name]) for name in x) for x, y in pairs)
