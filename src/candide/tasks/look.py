"""A look at a source: some of its rows, drawn from all of them, with their classes, as a table in memory.

>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["b", "a", None, "a"] * 250}) as source:
...     seen = look(Rows(source, "y"), prepare(source, "y"), rows=5)
>>> seen.table.column("x").round(1).tolist(), seen.labels.values, seen.y.tolist()
([48.0, 144.0, 158.7, 272.3, 317.3], ('a', 'b'), [1, 1, 1, 0, 1])
"""

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from candide.engines.base import Prepared, Rows
from candide.engines.batch import places
from candide.engines.count import weights
from candide.engines.sample import sample
from candide.errors import InputError
from candide.model.plan import Plan
from candide.model.training_rows import TrainingRows
from candide.rows import matching
from candide.rows.arrow import arrow_indices, arrow_numbers
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.rows.labels import Labels, is_arrow
from candide.rows.repeats import DistinctRows, distinct_rows
from candide.rows.row_sampling import BIN_FOLDS, draw_rows
from candide.rows.table import Table

ROWS = 20_000  # that weights are learned from, at most
DOCUMENTS = 100_000  # that weights of words are learned from, which are very many,
LETTERS = 1 << 25  # with so many bytes in all: about eight million words, which take 300 MB
LARGEST_WEIGHT = 1e200  # of a row: products of weights are numbers
RARE = 2_000  # rows of a class by which it can be judged
_SETS, _KINDS = 200, 24  # voices beside the columns, at most: sets of columns; kinds of words
_TERMS = 60_000_000  # of all voices in all classes, at most: fewer rows where these are many
_FEWEST = 2_000  # rows, unless even they would have more than so many terms:
_ROOM = 240_000_000  # about 1 GB


@dataclass(frozen=True, eq=False)
class Look:
    """Some rows: the columns of a plan, as they are counted, and the class of each."""

    table: Table
    row: Codes  # (row,) its number in the source
    y: Codes  # (row,) the code of its class
    labels: Labels  # that are met in these rows
    weight: Floats | None = None  # (row,)
    fold: Codes | None = None  # (row,) where rows are divided
    left_out: Floats | None = None  # (row,) what leaving the row out takes from the counts; None: its weight
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
    def of(cls, table: Table, y: Codes, labels: Labels, weight: Floats | None = None) -> "Look":
        """The rows of a table, but for those that weigh nothing."""
        if weight is not None and weight.max(initial=0.0) > LARGEST_WEIGHT:
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

        >>> rows = Look.of(Table.of([[0.1], [0.7]]), np.array([0, 1]), Labels(("a", "b"))).pooled()
        >>> rows.copies.tolist(), rows.class_copies
        ([1.0, 1.0], None)
        """
        return None if self.copies is None or (self.copies == 1.0).all() else self.copies

    def pooled(self, seed: int = 0) -> "Look":
        """The same rows with equal ones pooled, weighted by independent draws instead of copies.

        They come in a random order that only their contents and the seed decide. Independent draws of equal rows are
        divided among the folds in which bins are chosen, copies are not.
        """
        return self.pool(self.distinct(seed))

    def distinct(self, seed: int = 0) -> DistinctRows:
        """The distinct ones of these rows."""
        return distinct_rows(self.table, self.y, self.weight, seed, share=self.share)

    def pool(self, rows: DistinctRows) -> "Look":
        """The same rows pooled, where the distinct ones are known."""
        copies = rows.copies_by_class(len(self.labels))
        left_out = rows.frequency / rows.units  # one draw with its copies: no more than was counted
        at, fold, weight = rows.folds(BIN_FOLDS)
        order = np.lexsort([fold, rows.order[at]])
        at, fold, one = at[order], fold[order], copies[rows.y[at[order]]]
        weight, left_out = weight[order] / one, left_out[at] / one
        plain = bool((weight == 1.0).all() and (left_out == 1.0).all())
        pair = (None, None) if plain else (weight, left_out)
        some = replace(self.take(rows.first[at]), weight=pair[0], left_out=pair[1])
        return replace(some, bin_fold=fold, copies=copies, n_pooled=self.n_rows)

    def training_rows(self, plan: Plan) -> TrainingRows:
        """The rows as blocks of a plan, to learn weights from."""
        return TrainingRows(plan.blocks(self.table), self.y, self.weight, self.left_out, self.bin_fold)

    def among(self, labels: Labels) -> "Look":
        """The same rows with their codes in other labels, such as those of all rows, however they are written."""
        to, copies = matching.codes(labels, self.labels.array), None
        if self.copies is not None:
            copies = np.ones(len(labels))
            copies[to] = self.copies
        return replace(self, y=to[self.y], labels=labels, copies=copies)

    def take(self, rows: Codes) -> "Look":
        """Some of the rows, by their places."""
        named = ("weight", "fold", "left_out", "bin_fold")
        own: dict[str, Any] = {name: None if (a := getattr(self, name)) is None else a[rows] for name in named}
        own["n_pooled"] = self.n_pooled and round(self.n_pooled * len(rows) / len(self))  # about
        return replace(self, table=taken(self.table, rows), row=self.row[rows], y=self.y[rows], **own)

    def met(self) -> "Look":
        """The same rows, with the labels that are met in them and no others."""
        there = np.bincount(self.y, minlength=len(self.labels)) > 0
        return self if there.all() else self.among(Labels(tuple(compress(self.labels.values, there))))

    def bounded(self, rows: int = ROWS, seed: int = 0, *, beside: int = _SETS) -> "Look":
        """As many of the rows as weights are learned from; ``beside`` the columns there may be so many voices."""
        limit, is_whole = most(rows, len(self.labels), len(self.table.names), beside), not self.is_part
        if len(self) <= limit:
            return self
        found = draw_rows(self.table, self.y, self.labels, self.weight, limit, seed, fold=self.fold, whole=is_whole)
        some, is_distinct = self.take(found.row), self.n_pooled is not None or found.frequency is not None
        some = replace(some, fraction=self.fraction * found.share, share=found.share if is_distinct else 1.0)
        if found.frequency is None:
            return replace(some, share=self.share * some.share)
        weight = None if (found.frequency == 1.0).all() else found.frequency
        return replace(some, weight=weight, n_pooled=found.n_rows)

    def for_words(self, plan: Plan, rows: int = DOCUMENTS, seed: int = 0) -> "Look":
        """As many of the rows as weights of words are learned from: fewer, where their documents are long."""
        width = sum(self.table.documents(part.columns[0]).width for part in plan.parts if part.event.hears_words)
        return self.bounded(min(rows, max(1, LETTERS // max(1, width))), seed, beside=_KINDS)


def look(rows_of: Rows, prepared: Prepared, *, rows: int = ROWS, seed: int = 0) -> Look:
    """Draw rows from a source that was prepared, of those that have a label and a weight: one pass."""
    return _look(rows_of, prepared, rows, seed).bounded(rows, seed)


def look_at_each_class(rows_of: Rows, prepared: Prepared, n_classes: int, *, rows: int = ROWS, seed: int = 0) -> Look:
    """The rows of a look, and more of rare classes, so that these can be judged: at most half as many rows again."""
    rows = most(rows, n_classes, len(prepared.plan.columns))
    return _look(rows_of, prepared, rows, seed, min(RARE, rows // (2 * n_classes))).met()


def look_for_words(rows_of: Rows, prepared: Prepared, *, rows: int = DOCUMENTS, seed: int = 0) -> Look:
    """As many rows as weights of words are learned from: those of a look are some of them."""
    return _look(rows_of, prepared, rows, seed).for_words(prepared.plan, rows, seed)


def has_words(plan: Plan) -> bool:
    """Whether words have weights."""
    return any(part.event.hears_words for part in plan.parts)


def _look(rows_of: Rows, prepared: Prepared, rows: int, seed: int, least: int = 0) -> Look:
    plan, source = prepared.plan, rows_of.source
    drawn = sample(rows_of, plan, rows, seed, LETTERS, least)
    found = drawn.table
    if not found.num_rows:
        raise InputError(f"no row of {source.name} has a label", column=rows_of.target)
    at = {part.columns[j]: i for i, (part, j) in enumerate(places(plan))}
    columns = {name: found.column(at[name]) for name in plan.columns}  # as in the source, for voices are named by them
    for name in set(columns) & set(prepared.spelled):
        columns[name] = _read(columns[name])
    y = _read(found["k0"]) if source.untyped else found["k0"]
    labels = Labels.of(y)
    weight = weights(rows_of.weight, found["k1"]) if rows_of.weight else None
    fold = arrow_numbers(found["fold"]).astype(np.intp) if rows_of.folds else None
    row = arrow_numbers(found["row"])
    if drawn.frequency is not None:
        often = drawn.frequency if rows_of.weight or (drawn.frequency != 1.0).any() else None
        seen = Look(Table.of(columns), row, labels.encode(y), labels, often, fold, n_pooled=drawn.n_rows)
        return replace(seen, fraction=drawn.share, share=drawn.share)
    is_whole = len(row) < rows and not has_words(plan)  # of long documents, fewer
    fraction = 1.0 if is_whole else min(1.0, len(row) / (int(row[-1]) + 1))
    return Look(Table.of(columns), row, labels.encode(y), labels, weight, fold, fraction=fraction)


def with_grids(rows_of: Rows, prepared: Prepared) -> Prepared:
    """The same with edges for the grids that have none yet, by a look at some rows; nothing is read where none asks."""
    plan = prepared.plan
    opened = [
        part.holds == "codes" and not all(e.as_written or e.n_levels for e in part.encodings) for part in plan.parts
    ]
    if not any(opened):
        return prepared
    rows_of.source.materialise()  # it is read twice
    parts = tuple(compress(plan.parts, opened))
    used = {name for part in parts for name in part.columns}
    asked = Plan(tuple(name for name in plan.columns if name in used), parts)
    seen = look(rows_of, replace(prepared, plan=asked))
    often = None if seen.n_pooled is None else seen.weight
    each = zip(plan.parts, opened, strict=True)
    parts = tuple(part.with_levels(seen.table, often) if one else part for part, one in each)
    return replace(prepared, plan=Plan(plan.columns, parts))


def most(rows: int, n_classes: int, n_columns: int, beside: int = _SETS) -> int:
    """How many rows weights are learned from, at most: fewer than ``rows`` where classes and columns are many."""
    a_row = max(1, n_classes * (n_columns + beside))
    return min(rows, max(_TERMS // a_row, min(_FEWEST, _ROOM // a_row), 1))


def taken(table: Table, rows: Codes) -> Table:
    """The table of some of the rows."""
    if isinstance(table.source, np.ndarray):
        return Table.of(table.source[rows])
    own = {name: table.source[name] for name in table.names}
    if any(isinstance(column, Documents) for column in own.values()):  # which are all that such a table has
        return Table(table.names, len(rows), {name: column.take(rows) for name, column in own.items()})
    columns = {name: c if is_arrow(c) or isinstance(c, np.ndarray) else table.column(name) for name, c in own.items()}
    return Table.of({name: c.take(arrow_indices(rows)) if is_arrow(c) else c[rows] for name, c in columns.items()})


def _read(column: Any) -> Any:
    """Text as what it stands for, as far as these rows tell."""
    known = Labels.of(column)
    meant = matching.read_levels(list(known.values))
    values = np.empty(len(known) + 1, object)
    values[:] = [*(meant[value] for value in known.values), None]
    return values[known.encode(column)]
