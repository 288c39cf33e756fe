"""Draw a sample from a source: rows from all over it, in one pass and little memory.

Two samples are drawn at once. One has distinct rows, chosen by their contents (:mod:`candide.engines.distinct_sample`):
the order of the rows does not matter, and all copies of a row are counted. The other has rows chosen by their numbers;
it is used where rows often repeat by chance, and where a server draws rows.

>>> from candide.engines.base import open_source
>>> from candide.engines.planning import prepare_source
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["b", "a", None, "a"] * 250}) as source:
...     sample = draw_sample(LabelledSource(source, "y"), prepare_source(source, "y"), rows=5)
>>> sample.table.column("x").round(1).tolist(), sample.labels.values, sample.y.tolist()
([48.0, 144.0, 158.7, 272.3, 317.3], ('a', 'b'), [1, 1, 1, 0, 1])
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from candide.data import value_matching
from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels, has_label
from candide.data.limits import LIMITS
from candide.data.row_hash import hash_row_numbers
from candide.data.sample import Sample
from candide.data.sampling import draw_rows
from candide.data.table import Table
from candide.engines.base import LabelledSource, PreparedSource
from candide.engines.batches import iterate_columns
from candide.engines.counting import parse_row_weights
from candide.engines.distinct_sample import IDENTITY, DistinctDrawing, DistinctPart, DrawnRows, array, text_sizes
from candide.errors import InputError
from candide.model.plan import Plan

_OVERSAMPLING = 2  # a server draws so many times the rows: some may have no label
_REPEATED = 0.01  # proportion of equal rows from which on a server's sample may lack copies


def draw_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, *, rows: int = LIMITS.rows, seed: int = 0
) -> Sample:
    """Draw rows that have a label and a weight."""
    return _draw(labelled_source, prepared, rows, seed).limit_rows(rows, seed)


def draw_class_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, n_classes: int, *, rows: int = LIMITS.rows, seed: int = 0
) -> Sample:
    """Draw rows, and more of rare classes, so that these can be scored: at most half as many rows again."""
    rows = LIMITS.n_rows(rows, n_classes, len(prepared.plan.columns))
    least = min(LIMITS.wide_rows, rows // (2 * n_classes))
    return _draw(labelled_source, prepared, rows, seed, least).with_seen_labels()


def draw_text_sample(
    labelled_source: LabelledSource, prepared: PreparedSource, *, rows: int = LIMITS.documents, seed: int = 0
) -> Sample:
    """Draw as many rows as token weights are learned from; those of :func:`draw_sample` are among them."""
    return _draw(labelled_source, prepared, rows, seed).limit_text(prepared.plan.token_columns, rows, seed)


def learn_grids(labelled_source: LabelledSource, prepared: PreparedSource) -> PreparedSource:
    """Learn the edges of grids that have none yet from a sample; no row is read where there are none."""
    plan = prepared.plan
    needs_edges = [
        part.block_kind == "codes" and not all(e.is_read_as_text or e.n_levels for e in part.encodings)
        for part in plan.parts
    ]
    if not any(needs_edges):
        return prepared
    labelled_source.source.materialise()  # it is read twice
    parts = tuple(compress(plan.parts, needs_edges))
    used = {name for part in parts for name in part.columns}
    part_plan = Plan(tuple(name for name in plan.columns if name in used), parts)
    sample = draw_sample(labelled_source, replace(prepared, plan=part_plan))
    frequency = None if sample.n_pooled is None else sample.weight
    learned = tuple(
        part.with_levels(sample.table, frequency) if is_open else part
        for part, is_open in zip(plan.parts, needs_edges, strict=True)
    )
    return replace(prepared, plan=Plan(plan.columns, learned))


def _draw(labelled: LabelledSource, prepared: PreparedSource, rows: int, seed: int, min_class_rows: int = 0) -> Sample:
    plan, source = prepared.plan, labelled.source
    drawn = draw_source_rows(labelled, plan, rows, seed, LIMITS.text_bytes, min_class_rows)
    if not drawn.table.num_rows:
        raise InputError(f"no row of {source.name} has a label", column=labelled.target)
    place = {part.columns[j]: i for i, (part, j) in enumerate(iterate_columns(plan))}
    columns = {name: drawn.table.column(place[name]) for name in plan.columns}  # in the order of the source
    for name in set(columns) & set(prepared.text_level_columns):
        columns[name] = _parse_levels(columns[name])
    y = _parse_levels(drawn.table["k0"]) if source.is_untyped else drawn.table["k0"]
    labels = Labels.from_values(y)
    row = arrow_numbers(drawn.table["row"])
    fold = arrow_numbers(drawn.table["fold"]).astype(np.intp) if labelled.folds else None
    sample = Sample(Table.from_data(columns), row, labels.encode(y), labels, fold=fold)
    if drawn.frequency is not None:
        weight = drawn.frequency if labelled.weight or (drawn.frequency != 1.0).any() else None
        pooled = replace(sample, weight=weight, n_pooled=drawn.n_rows)
        return replace(pooled, fraction=drawn.share, distinct_fraction=drawn.share)
    weight = parse_row_weights(labelled.weight, drawn.table["k1"]) if labelled.weight else None
    is_whole = len(row) < rows and not plan.token_columns  # of long documents, fewer
    return replace(sample, weight=weight, fraction=1.0 if is_whole else min(1.0, len(row) / (int(row[-1]) + 1)))


def _parse_levels(column: Any) -> Any:
    """Text as the values it stands for, as far as these rows show."""
    labels = Labels.from_values(column)
    parsed = value_matching.parse_levels(list(labels.values))
    values = np.empty(len(labels) + 1, object)
    values[:] = [*(parsed[value] for value in labels.values), None]
    return values[labels.encode(column)]


def draw_source_rows(
    rows: LabelledSource,
    plan: Plan,
    max_rows: int,
    seed: int = 0,
    max_text_bytes: int = 1 << 62,
    min_class_rows: int = 0,
) -> DrawnRows:
    """At most ``max_rows`` rows that have a label and a weight, in their order.

    Fewer, where their documents would have more than ``max_text_bytes``; more, where a class has fewer than
    ``min_class_rows`` among them: so many of it, or all among the first few million rows. The same rows whatever the
    batches and threads, as long as the source gives its rows in the same order; where few rows are equal, or many are
    copies, in any order.

    >>> from candide.engines.base import open_source
    >>> from candide.engines.planning import prepare_source
    >>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["a", None] * 500}) as source:
    ...     drawn = draw_source_rows(LabelledSource(source, "y"), prepare_source(source, "y").plan, 3)
    >>> drawn.table.column_names, drawn.table["row"].to_pylist()
    (['f0', 'k0', 'row'], [144, 432, 952])
    """
    distinct = DistinctDrawing.from_plan(plan, max_rows, seed, max_text_bytes)
    sampler = SourceSampler(rows.weight, max_rows, seed, max_text_bytes, distinct, min_class_rows)
    n = max(_OVERSAMPLING * max_rows, LIMITS.searched_rows if min_class_rows else 0)
    source, fraction = (rows.source, 1.0) if rows.folds else rows.source.draw_subset(n)
    part = source.engine.gather(replace(rows, source=source), plan, sampler)
    if fraction < 1 and (part.n_available < max_rows or (not min_class_rows and part.has_repeats())):
        # Too few of them have a label, or further copies may exist: read all rows.
        part, fraction = rows.source.engine.gather(rows, plan, sampler), 1.0
    if part.table is None:
        raise InputError(f"{rows.source.name} has no rows")
    if fraction == 1.0 and not min_class_rows and part.n_rows > part.table.num_rows:
        chosen = distinct.choose(part.distinct, part.n_rows)
        if chosen is not None:
            return chosen._replace(table=part.number_rows(chosen.table, fraction))
    return DrawnRows(part.number_rows(part.table.drop_columns([IDENTITY]), fraction))


class SamplePart(NamedTuple):
    """Rows drawn from pieces of a source, and the number of rows of each piece by the number of its first row."""

    table: Any  # an Arrow table; None where there was no batch
    n_available: int  # how many rows could have been drawn
    sizes: dict[int, int]
    n_rows: int  # that have a label and a weight
    distinct: DistinctPart

    def has_repeats(self) -> bool:
        """Whether rows drawn by their numbers are equal."""
        if self.table is None:
            return False
        return len(np.unique(arrow_numbers(self.table[IDENTITY]))) < (1.0 - _REPEATED) * self.table.num_rows

    def number_rows(self, table: Any, fraction: float) -> Any:
        """Rows with numbers without gaps; approximate where the pieces are a fraction of all rows."""
        first, sizes = np.array(list(self.sizes)), list(self.sizes.values())
        gapless = np.cumsum([0, *sizes[:-1]])
        row = arrow_numbers(table["row"])
        piece = np.searchsorted(first, row, side="right") - 1
        place = table.column_names.index("row")
        number = ((row - first[piece] + gapless[piece]) / fraction).astype(np.int64)
        return table.set_column(place, "row", arrow_indices(number)).unify_dictionaries().combine_chunks()


@dataclass(frozen=True)
class SourceSampler:
    """Draw the rows whose numbers have the smallest hashes."""

    weight: str | None
    max_rows: int
    seed: int
    max_text_bytes: int
    distinct: DistinctDrawing
    min_class_rows: int = 0  # rows of each class, where it has as many

    def __call__(self, batches: Iterable[Any], first: int) -> SamplePart:
        import pyarrow as pa

        tables, start, n_available, n_extra, bound = list[Any](), first, 0, 0, np.uint64(2**64 - 1)
        n_rows, distinct = 0, DistinctPart()
        for batch in batches:
            weight, (hashes, identity) = self._weights(batch), self.distinct.hashes(batch)
            if not self.min_class_rows:
                distinct = self.distinct.add(distinct, batch, start, weight, hashes, identity)
            numbers = np.arange(start, start + batch.num_rows)
            start, n_rows = start + batch.num_rows, n_rows + int((weight > 0).sum())
            taken = np.flatnonzero((hash_row_numbers(numbers, self.seed) <= bound) & (weight > 0))
            n_available += len(taken)
            if len(taken) > 2 * self.max_rows and not self.min_class_rows:  # most of them would be dropped again
                taken = taken[draw_rows(numbers[taken], self.max_rows, self.seed)]
            table = pa.Table.from_batches([batch.take(arrow_indices(taken))])
            table = table.append_column("row", arrow_indices(numbers[taken]))
            tables.append(table.append_column(IDENTITY, array(identity[taken])))
            n_bytes = sum(table.nbytes for table in tables)
            if sum(map(len, tables)) > 2 * self.max_rows + n_extra or n_bytes > 2 * self.max_text_bytes:
                tables = [self._smallest_hashes(tables)]
                n_extra = max(0, len(tables[0]) - self.max_rows)
                if not self.min_class_rows:
                    bound = hash_row_numbers(arrow_numbers(tables[0]["row"]), self.seed).max()
        sizes, distinct = {first: start - first}, self.distinct.merge([distinct])
        return SamplePart(self._smallest_hashes(tables), n_available, sizes, n_rows, distinct)

    def combine(self, parts: Sequence[SamplePart]) -> SamplePart:
        sizes = {first: n for part in parts for first, n in part.sizes.items()}
        table = self._smallest_hashes([part.table for part in parts if part.table is not None])
        n_available, n_rows = sum(part.n_available for part in parts), sum(part.n_rows for part in parts)
        return SamplePart(table, n_available, sizes, n_rows, self.distinct.merge([part.distinct for part in parts]))

    def _weights(self, batch: Any) -> Floats:
        """(row,) its weight, 0 without a label."""
        is_labelled = arrow_numbers(has_label(batch.column("k0"))).astype(np.float64)
        return is_labelled * parse_row_weights(self.weight, batch.column("k1")) if self.weight else is_labelled

    def _smallest_hashes(self, tables: list[Any]) -> Any:
        """The rows with the smallest hashes, at most as many as the limits allow."""
        import pyarrow as pa

        if not tables:
            return None
        whole, limit = pa.concat_tables(tables), self.max_rows
        numbers = arrow_numbers(whole["row"])
        if self.distinct.texts and len(numbers):
            size = np.sum([text_sizes(whole[name]) for name in self.distinct.texts], axis=0)
            total = np.cumsum(size[np.argsort(hash_row_numbers(numbers, self.seed))])
            limit = min(limit, max(1, int(np.searchsorted(total, self.max_text_bytes, side="right"))))
        taken = draw_rows(numbers, limit, self.seed)
        if self.min_class_rows:
            taken = np.union1d(taken, self._smallest_of_each_class(numbers, whole["k0"]))
        return whole.take(arrow_indices(taken))

    def _smallest_of_each_class(self, numbers: Codes, classes: Any) -> Codes:
        """The places of the smallest hashes of each class."""
        y = Labels.from_values(classes).encode(classes)
        order = np.lexsort([hash_row_numbers(numbers, self.seed), y])
        first = np.searchsorted(y[order], y[order])
        return order[np.arange(len(order)) - first < self.min_class_rows]
