"""A sample of rows with their classes, as a table in memory: drawn once from a source, or all rows of a table.

>>> rows = Sample.from_table(Table.from_data([[0.1], [0.7]]), np.array([0, 1]), Labels(("a", "b")))
>>> len(rows), rows.is_part, rows.labels.values
(2, False, ('a', 'b'))
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from candide.data import value_matching
from candide.data.arrow_columns import arrow_indices
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels, is_arrow
from candide.data.limits import LIMITS
from candide.data.repeated_rows import DistinctRows, find_distinct_rows
from candide.data.sampling import BIN_FOLDS, draw_table_rows
from candide.data.table import Name, Table
from candide.errors import InputError


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with their classes: the columns of a plan, as they are counted."""

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

    @property
    def is_part(self) -> bool:
        """Whether the source has more rows than were drawn."""
        return self.fraction < 1.0

    @classmethod
    def from_table(cls, table: Table, y: Codes, labels: Labels, weight: Floats | None = None) -> "Sample":
        """The rows of a table, without those of weight 0."""
        if weight is not None and weight.max(initial=0.0) > LIMITS.row_weight:
            value = float(weight.max())
            raise InputError(f"row weight too large: {value:g}", value=value, remedy="divide all weights by a constant")
        sample = cls(table, np.arange(len(y)), y, labels, weight)
        return sample if weight is None or weight.all() else sample.take(np.flatnonzero(weight))

    def __len__(self) -> int:
        return len(self.y)

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
        """(class,) the mean weight of an independent draw; None where it is 1 in every class.

        >>> rows = Sample.from_table(Table.from_data([[0.1], [0.7]]), np.array([0, 1]), Labels(("a", "b"))).pool_rows()
        >>> rows.copies.tolist(), rows.class_copies
        ([1.0, 1.0], None)
        """
        return None if self.copies is None or (self.copies == 1.0).all() else self.copies

    def pool_rows(self, seed: int = 0) -> "Sample":
        """The same rows with equal ones pooled, weighted by independent draws instead of copies.

        They come in a random order that depends on their contents and the seed only. Independent draws of equal rows
        are divided among the folds in which bins are chosen, copies are not.
        """
        return self.pool_distinct(self.distinct(seed))

    def distinct(self, seed: int = 0) -> DistinctRows:
        """The distinct rows."""
        return find_distinct_rows(self.table, self.y, self.weight, seed, share=self.distinct_fraction)

    def pool_distinct(self, rows: DistinctRows) -> "Sample":
        """The same rows pooled, given the distinct ones."""
        copies = rows.weight_per_draw_by_class(len(self.labels))
        left_out = rows.frequency / rows.units  # one draw with its copies: no more than was counted
        place, fold, weight = rows.assign_folds(BIN_FOLDS)
        order = np.lexsort([fold, rows.order[place]])
        place, fold = place[order], fold[order]
        unit = copies[rows.y[place]]
        weight, left_out = weight[order] / unit, left_out[place] / unit
        is_plain = bool((weight == 1.0).all() and (left_out == 1.0).all())
        pooled = replace(
            self.take(rows.first[place]),
            weight=None if is_plain else weight,
            left_out_weight=None if is_plain else left_out,
        )
        return replace(pooled, bin_fold=fold, copies=copies, n_pooled=self.n_rows)

    def with_labels(self, labels: Labels) -> "Sample":
        """The same rows coded by other labels, such as those of all rows, however they are written."""
        codes, copies = value_matching.match_codes(labels, self.labels.array), None
        if self.copies is not None:
            copies = np.ones(len(labels))
            copies[codes] = self.copies
        return replace(self, y=codes[self.y], labels=labels, copies=copies)

    def with_seen_labels(self) -> "Sample":
        """The same rows, with the labels that occur in them and no others."""
        is_seen = np.bincount(self.y, minlength=len(self.labels)) > 0
        return self if is_seen.all() else self.with_labels(Labels(tuple(compress(self.labels.values, is_seen))))

    def take(self, rows: Codes) -> "Sample":
        """Rows by their places."""
        per_row = ("weight", "fold", "left_out_weight", "bin_fold")
        fields: dict[str, Any] = {name: None if (a := getattr(self, name)) is None else a[rows] for name in per_row}
        fields["n_pooled"] = self.n_pooled and round(self.n_pooled * len(rows) / len(self))  # about
        table = take_rows(self.table, rows)
        return replace(self, table=table, row_number=self.row_number[rows], y=self.y[rows], **fields)

    def limit_rows(self, rows: int = LIMITS.rows, seed: int = 0, *, n_extra_terms: int | None = None) -> "Sample":
        """At most so many of the rows; fewer where classes, columns and extra terms are many."""
        limit = LIMITS.n_rows(rows, len(self.labels), len(self.table.names), n_extra_terms)
        if len(self) <= limit:
            return self
        drawn = draw_table_rows(
            self.table, self.y, self.labels, self.weight, limit, seed, fold=self.fold, whole=not self.is_part
        )
        is_distinct = self.n_pooled is not None or drawn.frequency is not None
        distinct_fraction = drawn.share if is_distinct else 1.0
        part = replace(self.take(drawn.row), fraction=self.fraction * drawn.share)
        if drawn.frequency is None:
            return replace(part, distinct_fraction=self.distinct_fraction * distinct_fraction)
        weight = None if (drawn.frequency == 1.0).all() else drawn.frequency
        return replace(part, weight=weight, n_pooled=drawn.n_rows, distinct_fraction=distinct_fraction)

    def limit_text(self, columns: Iterable[Name], rows: int = LIMITS.documents, seed: int = 0) -> "Sample":
        """As many rows as token weights are learned from: fewer, where the documents of these columns are long."""
        width = sum(self.table.documents(name).width for name in columns)
        limit = min(rows, max(1, LIMITS.text_bytes // max(1, width)))
        return self.limit_rows(limit, seed, n_extra_terms=LIMITS.token_groups)


def take_rows(table: Table, rows: Codes) -> Table:
    """Rows of a table by their places."""
    if isinstance(table.source, np.ndarray):
        return Table.from_data(table.source[rows])
    columns = {name: table.source[name] for name in table.names}
    if any(isinstance(column, Documents) for column in columns.values()):  # then all are
        return Table(table.names, len(rows), {name: column.take(rows) for name, column in columns.items()})
    for name, column in columns.items():
        array = column if is_arrow(column) or isinstance(column, np.ndarray) else table.column(name)
        columns[name] = array.take(arrow_indices(rows)) if is_arrow(array) else array[rows]
    return Table.from_data(columns)
