"""A look at a source: some of its rows, drawn from all of them, with their classes, as a table in memory.

>>> from candide.engines.base import open_source
>>> from candide.engines.planning import prepare_source
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["b", "a", None, "a"] * 250}) as source:
...     seen = draw_sample(LabelledSource(source, "y"), prepare_source(source, "y"), rows=5)
>>> seen.table.column("x").round(1).tolist(), seen.labels.values, seen.y.tolist()
([48.0, 144.0, 158.7, 272.3, 317.3], ('a', 'b'), [1, 1, 1, 0, 1])
"""

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from candide.data import value_matching
from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels, is_arrow
from candide.data.repeated_rows import DistinctRows, find_distinct_rows
from candide.data.row_sampling import BIN_FOLDS, draw_rows
from candide.data.table import Table
from candide.engines.base import LabelledSource, PreparedSource
from candide.engines.batches import iterate_columns
from candide.engines.counting import parse_row_weights
from candide.engines.draw_sample import draw_source_rows
from candide.errors import InputError
from candide.model.plan import Plan
from candide.model.training_rows import TrainingRows

MAX_ROWS = 20_000  # that weights are learned from, at most
MAX_DOCUMENTS = 100_000  # that weights of words are learned from, which are very many,
MAX_TEXT_BYTES = 1 << 25  # with so many bytes in all: about eight million words, which take 300 MB
MAX_ROW_WEIGHT = 1e200  # of a row: products of weights are numbers
MIN_CLASS_ROWS = 2_000  # rows of a class by which it can be judged
_MAX_EXTRA_TERMS, _MAX_TOKEN_GROUPS = 200, 24  # voices beside the columns, at most: sets of columns; kinds of words
_MAX_CONTRIBUTIONS = 60_000_000  # of all voices in all classes, at most: fewer rows where these are many
_MIN_ROWS = 2_000  # rows, unless even they would have more than so many terms:
_MAX_MEMORY_CONTRIBUTIONS = 240_000_000  # about 1 GB


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows: the columns of a plan, as they are counted, and the class of each."""

    table: Table
    row_number: Codes  # (row,) its number in the source
    y: Codes  # (row,) the code of its class
    labels: Labels  # that are met in these rows
    weight: Floats | None = None  # (row,)
    fold: Codes | None = None  # (row,) where rows are divided
    left_out_weight: Floats | None = None  # (row,) what leaving the row out takes from the counts; None: its weight
    bin_fold: Codes | None = None  # (row,) the fold whose rows do not choose the bins that the row is scored by
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where equal rows are pooled
    n_pooled: int | None = None  # how many rows were pooled
    fraction: float = 1.0  # of the rows of the source that were drawn
    share: float = 1.0  # of the distinct rows of the source, where each was drawn with all its copies

    @property
    def is_part(self) -> bool:
        """Whether the source has more rows than were drawn."""
        return self.fraction < 1.0

    @classmethod
    def from_table(cls, table: Table, y: Codes, labels: Labels, weight: Floats | None = None) -> "Sample":
        """The rows of a table, but for those that weigh nothing."""
        if weight is not None and weight.max(initial=0.0) > MAX_ROW_WEIGHT:
            value = float(weight.max())
            raise InputError(
                f"row weights too large, such as {value:g}", value=value, remedy="divide all by a constant"
            )
        seen = cls(table, np.arange(len(y)), y, labels, weight)
        return seen if weight is None or weight.all() else seen.take(np.flatnonzero(weight))

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

        They come in a random order that only their contents and the seed decide. Independent draws of equal rows are
        divided among the folds in which bins are chosen, copies are not.
        """
        return self.pool_distinct(self.distinct(seed))

    def distinct(self, seed: int = 0) -> DistinctRows:
        """The distinct ones of these rows."""
        return find_distinct_rows(self.table, self.y, self.weight, seed, share=self.share)

    def pool_distinct(self, rows: DistinctRows) -> "Sample":
        """The same rows pooled, where the distinct ones are known."""
        copies = rows.weight_per_draw_by_class(len(self.labels))
        left_out = rows.frequency / rows.units  # one draw with its copies: no more than was counted
        at, fold, weight = rows.assign_folds(BIN_FOLDS)
        order = np.lexsort([fold, rows.order[at]])
        at, fold, one = at[order], fold[order], copies[rows.y[at[order]]]
        weight, left_out = weight[order] / one, left_out[at] / one
        plain = bool((weight == 1.0).all() and (left_out == 1.0).all())
        pair = (None, None) if plain else (weight, left_out)
        some = replace(self.take(rows.first[at]), weight=pair[0], left_out_weight=pair[1])
        return replace(some, bin_fold=fold, copies=copies, n_pooled=self.n_rows)

    def training_rows(self, plan: Plan) -> TrainingRows:
        """The rows as blocks of a plan, to learn weights from."""
        return TrainingRows(plan.blocks(self.table), self.y, self.weight, self.left_out_weight, self.bin_fold)

    def with_labels(self, labels: Labels) -> "Sample":
        """The same rows with their codes in other labels, such as those of all rows, however they are written."""
        to, copies = value_matching.match_codes(labels, self.labels.array), None
        if self.copies is not None:
            copies = np.ones(len(labels))
            copies[to] = self.copies
        return replace(self, y=to[self.y], labels=labels, copies=copies)

    def take(self, rows: Codes) -> "Sample":
        """Some of the rows, by their places."""
        named = ("weight", "fold", "left_out_weight", "bin_fold")
        own: dict[str, Any] = {name: None if (a := getattr(self, name)) is None else a[rows] for name in named}
        own["n_pooled"] = self.n_pooled and round(self.n_pooled * len(rows) / len(self))  # about
        return replace(self, table=take_rows(self.table, rows), row_number=self.row_number[rows], y=self.y[rows], **own)

    def with_seen_labels(self) -> "Sample":
        """The same rows, with the labels that are met in them and no others."""
        there = np.bincount(self.y, minlength=len(self.labels)) > 0
        return self if there.all() else self.with_labels(Labels(tuple(compress(self.labels.values, there))))

    def limit_rows(self, rows: int = MAX_ROWS, seed: int = 0, *, n_extra_terms: int = _MAX_EXTRA_TERMS) -> "Sample":
        """As many of the rows as weights are learned from; ``beside`` the columns there may be so many voices."""
        limit, is_whole = (
            max_sample_rows(rows, len(self.labels), len(self.table.names), n_extra_terms),
            not self.is_part,
        )
        if len(self) <= limit:
            return self
        found = draw_rows(self.table, self.y, self.labels, self.weight, limit, seed, fold=self.fold, whole=is_whole)
        some, is_distinct = self.take(found.row), self.n_pooled is not None or found.frequency is not None
        some = replace(some, fraction=self.fraction * found.share, share=found.share if is_distinct else 1.0)
        if found.frequency is None:
            return replace(some, share=self.share * some.share)
        weight = None if (found.frequency == 1.0).all() else found.frequency
        return replace(some, weight=weight, n_pooled=found.n_rows)

    def limit_text(self, plan: Plan, rows: int = MAX_DOCUMENTS, seed: int = 0) -> "Sample":
        """As many of the rows as weights of words are learned from: fewer, where their documents are long."""
        width = sum(self.table.documents(part.columns[0]).width for part in plan.parts if part.event.weights_tokens)
        return self.limit_rows(
            min(rows, max(1, MAX_TEXT_BYTES // max(1, width))), seed, n_extra_terms=_MAX_TOKEN_GROUPS
        )


def draw_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, *, rows: int = MAX_ROWS, seed: int = 0
) -> Sample:
    """Draw rows from a source that was prepared, of those that have a label and a weight: one pass."""
    return _draw(labelled_source, prepared, rows, seed).limit_rows(rows, seed)


def draw_class_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, n_classes: int, *, rows: int = MAX_ROWS, seed: int = 0
) -> Sample:
    """The rows of a look, and more of rare classes, so that these can be judged: at most half as many rows again."""
    rows = max_sample_rows(rows, n_classes, len(prepared.plan.columns))
    return _draw(labelled_source, prepared, rows, seed, min(MIN_CLASS_ROWS, rows // (2 * n_classes))).with_seen_labels()


def draw_text_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, *, rows: int = MAX_DOCUMENTS, seed: int = 0
) -> Sample:
    """As many rows as weights of words are learned from: those of a look are some of them."""
    return _draw(labelled_source, prepared, rows, seed).limit_text(prepared.plan, rows, seed)


def has_token_weights(plan: Plan) -> bool:
    """Whether words have weights."""
    return any(part.event.weights_tokens for part in plan.parts)


def _draw(rows_of: LabelledSource, prepared: PreparedSource, rows: int, seed: int, least: int = 0) -> Sample:
    plan, source = prepared.plan, rows_of.source
    drawn = draw_source_rows(rows_of, plan, rows, seed, MAX_TEXT_BYTES, least)
    found = drawn.table
    if not found.num_rows:
        raise InputError(f"no row of {source.name} has a label", column=rows_of.target)
    at = {part.columns[j]: i for i, (part, j) in enumerate(iterate_columns(plan))}
    columns = {name: found.column(at[name]) for name in plan.columns}  # as in the source, for voices are named by them
    for name in set(columns) & set(prepared.text_level_columns):
        columns[name] = _parse_levels(columns[name])
    y = _parse_levels(found["k0"]) if source.is_untyped else found["k0"]
    labels = Labels.from_values(y)
    weight = parse_row_weights(rows_of.weight, found["k1"]) if rows_of.weight else None
    fold = arrow_numbers(found["fold"]).astype(np.intp) if rows_of.folds else None
    row = arrow_numbers(found["row"])
    if drawn.frequency is not None:
        often = drawn.frequency if rows_of.weight or (drawn.frequency != 1.0).any() else None
        seen = Sample(Table.from_data(columns), row, labels.encode(y), labels, often, fold, n_pooled=drawn.n_rows)
        return replace(seen, fraction=drawn.share, share=drawn.share)
    is_whole = len(row) < rows and not has_token_weights(plan)  # of long documents, fewer
    fraction = 1.0 if is_whole else min(1.0, len(row) / (int(row[-1]) + 1))
    return Sample(Table.from_data(columns), row, labels.encode(y), labels, weight, fold, fraction=fraction)


def learn_grids(labelled_source: LabelledSource, prepared: PreparedSource) -> PreparedSource:
    """The same with edges for the grids that have none yet, by a look at some rows; nothing is read where none asks."""
    plan = prepared.plan
    opened = [
        part.block_kind == "codes" and not all(e.is_read_as_text or e.n_levels for e in part.encodings)
        for part in plan.parts
    ]
    if not any(opened):
        return prepared
    labelled_source.source.materialise()  # it is read twice
    parts = tuple(compress(plan.parts, opened))
    used = {name for part in parts for name in part.columns}
    asked = Plan(tuple(name for name in plan.columns if name in used), parts)
    seen = draw_sample(labelled_source, replace(prepared, plan=asked))
    often = None if seen.n_pooled is None else seen.weight
    each = zip(plan.parts, opened, strict=True)
    parts = tuple(part.with_levels(seen.table, often) if one else part for part, one in each)
    return replace(prepared, plan=Plan(plan.columns, parts))


def max_sample_rows(rows: int, n_classes: int, n_columns: int, n_extra_terms: int = _MAX_EXTRA_TERMS) -> int:
    """How many rows weights are learned from, at most: fewer than ``rows`` where classes and columns are many."""
    a_row = max(1, n_classes * (n_columns + n_extra_terms))
    return min(rows, max(_MAX_CONTRIBUTIONS // a_row, min(_MIN_ROWS, _MAX_MEMORY_CONTRIBUTIONS // a_row), 1))


def take_rows(table: Table, rows: Codes) -> Table:
    """The table of some of the rows."""
    if isinstance(table.source, np.ndarray):
        return Table.from_data(table.source[rows])
    own = {name: table.source[name] for name in table.names}
    if any(isinstance(column, Documents) for column in own.values()):  # which are all that such a table has
        return Table(table.names, len(rows), {name: column.take(rows) for name, column in own.items()})
    columns = {name: c if is_arrow(c) or isinstance(c, np.ndarray) else table.column(name) for name, c in own.items()}
    return Table.from_data(
        {name: c.take(arrow_indices(rows)) if is_arrow(c) else c[rows] for name, c in columns.items()}
    )


def _parse_levels(column: Any) -> Any:
    """Text as what it stands for, as far as these rows tell."""
    known = Labels.from_values(column)
    meant = value_matching.parse_levels(list(known.values))
    values = np.empty(len(known) + 1, object)
    values[:] = [*(meant[value] for value in known.values), None]
    return values[known.encode(column)]
