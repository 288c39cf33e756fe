"""Draw a sample from a source: rows from all over it, in one pass and little memory.

Two samples are drawn at once. One holds distinct rows with their frequencies, those with the smallest hashes of their
contents: a row whose hash is small enough at the end was small enough all the time, so all of its copies were counted,
in any order. The other holds rows chosen by their numbers; it is used where rows often repeat by chance, and where a
server draws rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Codes, Floats
from candide.data.equal_rows import DistinctRows, Hashes, hash_column, hash_row_numbers, hash_rows
from candide.data.labels import Labels, has_label, parse_levels
from candide.data.sample import Sample, choose_distinct, draw_rows, fraction_below, hash_identities, sampling_order
from candide.data.table import LIMITS, Table
from candide.engines.base import LabelledSource, PreparedSource
from candide.engines.batches import iterate_columns, parse_row_weights
from candide.engines.counting import select_parts
from candide.errors import InputError
from candide.model.plan import Plan

_OVERSAMPLING = 2  # a server draws so many times the rows: some may have no label
_REPEATED = 0.01  # proportion of equal rows above which a server's sample may lack copies
_ALL = np.uint64(2**64 - 1)
_ADDED = ["order", "identity", "count", "weight"]  # columns of distinct rows; equal rows have the same identity


def draw_sample(
    labelled: LabelledSource, prepared: PreparedSource, *, rows: int = LIMITS.rows, seed: int = 0
) -> Sample:
    return _draw(labelled, prepared, rows, seed).limit_rows(rows, seed)


def draw_class_sample(
    labelled: LabelledSource, prepared: PreparedSource, n_classes: int, *, rows: int = LIMITS.rows, seed: int = 0
) -> Sample:
    """Draw rows, and more of rare classes, so that these can be scored: at most half as many rows again."""
    rows = LIMITS.n_rows(rows, n_classes, len(prepared.plan.columns))
    least = min(LIMITS.wide_rows, rows // (2 * n_classes))
    return _draw(labelled, prepared, rows, seed, least).with_seen_labels()


def draw_text_sample(
    labelled: LabelledSource, prepared: PreparedSource, *, rows: int = LIMITS.documents, seed: int = 0
) -> Sample:
    """Draw as many rows as token weights are learned from; those of :func:`draw_sample` are among them."""
    return _draw(labelled, prepared, rows, seed).limit_text(prepared.plan.token_columns, rows, seed)


def learn_grids(labelled: LabelledSource, prepared: PreparedSource) -> PreparedSource:
    """Learn the edges of grids that have none yet from a sample; no row is read where there are none."""
    plan = prepared.plan
    needs_edges = [
        part.block_kind == "codes" and not all(e.is_read_as_text or e.n_levels for e in part.encodings)
        for part in plan.parts
    ]
    if not any(needs_edges):
        return prepared
    labelled.source.materialise()  # it is read twice
    open_plan = select_parts(plan, list(compress(plan.parts, needs_edges)))
    sample = draw_sample(labelled, replace(prepared, plan=open_plan))
    frequency = None if sample.n_pooled is None else sample.weight
    parts = zip(plan.parts, needs_edges, strict=True)
    learned = tuple(part.with_levels(sample.table, frequency) if is_open else part for part, is_open in parts)
    return replace(prepared, plan=Plan(plan.columns, learned))


def _draw(labelled: LabelledSource, prepared: PreparedSource, rows: int, seed: int, min_class_rows: int = 0) -> Sample:
    plan, source = prepared.plan, labelled.source
    drawn = draw_source_rows(labelled, plan, rows, seed, LIMITS.text_bytes, min_class_rows)
    table = drawn.table
    if not table.num_rows:
        raise InputError(f"no row of {source.name} has a label", column=labelled.target)
    place = {part.columns[j]: i for i, (part, j) in enumerate(iterate_columns(plan))}
    columns = {name: table.column(place[name]) for name in plan.columns}  # in the order of the source
    for name in set(columns) & set(prepared.text_level_columns):
        columns[name] = _parse_levels(columns[name])
    y = _parse_levels(table["k0"]) if source.is_untyped else table["k0"]
    labels, row = Labels.from_values(y), arrow_numbers(table["row"])
    fold = arrow_numbers(table["fold"]).astype(np.intp) if labelled.folds else None
    sample = Sample(Table.from_data(columns), row, labels.encode(y), labels, fold=fold)
    if drawn.frequency is not None:
        weight = drawn.frequency if labelled.weight or (drawn.frequency != 1.0).any() else None
        pooled = replace(sample, weight=weight, n_pooled=drawn.n_rows)
        return replace(pooled, fraction=drawn.fraction, distinct_fraction=drawn.fraction)
    weight = parse_row_weights(labelled.weight, table["k1"]) if labelled.weight else None
    is_whole = len(row) < rows and not plan.token_columns  # of long documents, fewer
    return replace(sample, weight=weight, fraction=1.0 if is_whole else min(1.0, len(row) / (int(row[-1]) + 1)))


def _parse_levels(column: Any) -> Any:
    """Text as the values it stands for, as far as these rows show."""
    labels = Labels.from_values(column)
    parsed = parse_levels(list(labels.values))
    values = np.empty(len(labels) + 1, object)
    values[:] = [*(parsed[value] for value in labels.values), None]
    return values[labels.encode(column)]


class DrawnRows(NamedTuple):
    """Rows of a source, in their order."""

    table: Any  # an Arrow table in the layout of batches, and the number of each row in the source, ``row``
    frequency: Floats | None = None  # (row,) the weight of all equal rows; None where rows were drawn one by one
    n_rows: int = 0  # that they stand for, where they are distinct
    fraction: float = 1.0  # of all distinct rows, where they are distinct


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
    """
    distinct = DistinctDrawing.from_plan(plan, max_rows, seed, max_text_bytes)
    sampler = SourceSampler(rows.weight, distinct, min_class_rows)
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
    return DrawnRows(part.number_rows(part.table.drop_columns(["identity"]), fraction))


class DistinctPart(NamedTuple):
    """Distinct rows of some pieces of a source."""

    table: Any = None  # an Arrow table with their numbers, hashes, counts and weights; None where there was no batch
    bound: Any = _ALL  # the largest hash up to which all rows are there


@dataclass(frozen=True)
class DistinctDrawing:
    """Draw the distinct rows with the smallest hashes."""

    max_rows: int
    seed: int
    max_text_bytes: int
    names: Mapping[str, str]  # of the columns in batches, by those in the source
    texts: Sequence[str] = ()  # the columns of documents in batches

    @classmethod
    def from_plan(
        cls, plan: Plan, max_rows: int = 1, seed: int = 0, max_text_bytes: int = 1 << 62
    ) -> "DistinctDrawing":
        columns = [(f"f{i}", part, part.columns[j]) for i, (part, j) in enumerate(iterate_columns(plan))]
        texts = [field for field, part, _ in columns if part.block_kind == "documents"]
        return cls(max_rows, seed, max_text_bytes, {str(name): field for field, _, name in columns}, texts)

    def hashes(self, batch: Any) -> tuple[Hashes, Hashes]:
        """(row,) the hash of its columns, and a number that equal rows of a label and fold have in common."""
        hashes = hash_rows({name: batch.column(field) for name, field in self.names.items()}, batch.num_rows)
        fold = arrow_numbers(batch.column("fold")) if "fold" in batch.schema.names else None
        return hashes, hash_identities(hashes, hash_column(batch.column("k0")), fold)

    def add(
        self, part: DistinctPart, batch: Any, first: int, weight: Floats, hashes: Hashes, identity: Hashes
    ) -> DistinctPart:
        """A part with the weighted rows of another batch, which are numbered from ``first``."""
        order, bound = sampling_order(hashes, identity, self.seed), part.bound
        rows = np.flatnonzero((order <= bound) & (weight > 0))
        if len(rows) > 2 * self.max_rows:  # most of them would be dropped again
            ordered = np.sort(order[rows])
            least = ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0]))]
            if len(least) > self.max_rows:
                bound = least[self.max_rows]
                rows = rows[order[rows] <= bound]
        _, at, group = np.unique(identity[rows], return_index=True, return_inverse=True)
        distinct = rows[at]
        count = np.bincount(group, minlength=len(distinct)).astype(np.int64)
        sums = np.bincount(group, weight[rows], len(distinct)).astype(np.float64)
        table = pa.Table.from_batches([batch.take(arrow_indices(distinct))])
        table = table.append_column("row", arrow_indices(first + distinct))
        for name, column in zip(_ADDED, (order[distinct], identity[distinct], count, sums), strict=True):
            table = table.append_column(name, _arrow_array(column))
        table = table if part.table is None else pa.concat_tables([part.table, table])
        is_full = table.num_rows > 3 * self.max_rows or table.nbytes > 3 * self.max_text_bytes
        both = DistinctPart(table, bound)
        return self.merge([both]) if is_full and part.table is not None else both

    def merge(self, parts: Sequence[DistinctPart]) -> DistinctPart:
        tables, bound = [part.table for part in parts if part.table is not None], min(part.bound for part in parts)
        if not tables:
            return DistinctPart()
        whole = pa.concat_tables(tables)
        order, identity, count, weight, row = (arrow_numbers(whole[name]) for name in (*_ADDED, "row"))
        rank = np.lexsort([row, identity])
        starts = np.flatnonzero(np.concatenate([[True], np.diff(identity[rank]) != 0])) if len(rank) else rank
        at = rank[starts]
        count, weight = (np.add.reduceat(sizes[rank], starts) if len(rank) else sizes for sizes in (count, weight))
        is_below = order[at] <= bound
        below = at[is_below]
        limit = self.limit(whole, below, order[below])
        if len(below) > limit:
            bound = np.partition(order[below], limit - 1)[limit - 1]
            is_below = order[at] <= bound
        table = whole.take(arrow_indices(at[is_below]))
        for name, column in (("count", count), ("weight", weight)):
            table = table.set_column(table.column_names.index(name), name, _arrow_array(column[is_below]))
        return DistinctPart(table, bound)

    def limit(self, table: Any, rows: Codes, order: Hashes) -> int:
        """How many of the rows the limits allow, in this order."""
        if not self.texts or not len(rows):
            return self.max_rows
        size = np.zeros(table.num_rows, np.int64)  # in bytes
        for column in (table[name] for name in self.texts):
            text = column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
            size += arrow_numbers(pc.fill_null(pc.binary_length(text), 0))
        total = np.cumsum(size[rows[np.argsort(order)]])
        return min(self.max_rows, max(1, int(np.searchsorted(total, self.max_text_bytes, side="right"))))

    def choose(self, part: DistinctPart, n_rows: int) -> DrawnRows | None:
        """The distinct rows to learn from; None where rows must be drawn one by one."""
        table, fraction = part.table, fraction_below(part.bound)
        order, _, count, weight = (arrow_numbers(table[name]) for name in _ADDED)

        def distinct() -> DistinctRows:
            y = Labels.from_values(table["k0"]).encode(table["k0"])
            if "fold" in table.column_names:
                y = y + (int(y.max()) + 1) * arrow_numbers(table["fold"]).astype(np.intp)
            columns = [_numbers_or_arrow(table[field]) for field in self.names.values()]
            return DistinctRows.from_columns(columns, y, weight, fraction=fraction)

        chosen = choose_distinct(order, count, distinct, fraction, n_rows, self.max_rows)
        if chosen is None:
            return None
        at, fraction = chosen
        at = at[np.argsort(arrow_numbers(table["row"])[at])]
        rows = table.take(arrow_indices(at)).drop_columns(_ADDED)
        return DrawnRows(rows, weight[at], int(count[at].sum()), fraction)


def _arrow_array(numbers: Any) -> Any:
    """Numbers as an Arrow array, by their buffer: the conversion of pyarrow imports pandas."""
    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])


def _numbers_or_arrow(column: Any) -> Any:
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    return arrow_numbers(column) if is_number else column


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
        return len(np.unique(arrow_numbers(self.table["identity"]))) < (1.0 - _REPEATED) * self.table.num_rows

    def number_rows(self, table: Any, fraction: float) -> Any:
        """Rows with numbers without gaps; approximate where the pieces are a fraction of all rows."""
        first, gapless = np.array(list(self.sizes)), np.cumsum([0, *list(self.sizes.values())[:-1]])
        row = arrow_numbers(table["row"])
        piece = np.searchsorted(first, row, side="right") - 1
        number = ((row - first[piece] + gapless[piece]) / fraction).astype(np.int64)
        numbered = table.set_column(table.column_names.index("row"), "row", arrow_indices(number))
        return numbered.unify_dictionaries().combine_chunks()


@dataclass(frozen=True)
class SourceSampler:
    """Draw the rows whose numbers have the smallest hashes, and distinct rows."""

    weight: str | None
    distinct: DistinctDrawing
    min_class_rows: int = 0  # rows of each class, where it has as many

    def __call__(self, batches: Iterable[Any], first: int) -> SamplePart:
        max_rows, seed, max_bytes = self.distinct.max_rows, self.distinct.seed, self.distinct.max_text_bytes
        tables, start, n_available, n_extra, bound = list[Any](), first, 0, 0, _ALL
        n_rows, distinct = 0, DistinctPart()
        for batch in batches:
            weight, (hashes, identity) = self._weights(batch), self.distinct.hashes(batch)
            if not self.min_class_rows:
                distinct = self.distinct.add(distinct, batch, start, weight, hashes, identity)
            numbers = np.arange(start, start + batch.num_rows)
            start, n_rows = start + batch.num_rows, n_rows + int((weight > 0).sum())
            taken = np.flatnonzero((hash_row_numbers(numbers, seed) <= bound) & (weight > 0))
            n_available += len(taken)
            if len(taken) > 2 * max_rows and not self.min_class_rows:  # most of them would be dropped again
                taken = taken[draw_rows(numbers[taken], max_rows, seed)]
            table = pa.Table.from_batches([batch.take(arrow_indices(taken))])
            table = table.append_column("row", arrow_indices(numbers[taken]))
            tables.append(table.append_column("identity", _arrow_array(identity[taken])))
            n_bytes = sum(table.nbytes for table in tables)
            if sum(map(len, tables)) > 2 * max_rows + n_extra or n_bytes > 2 * max_bytes:
                tables = [self._smallest_hashes(tables)]
                n_extra = max(0, len(tables[0]) - max_rows)
                if not self.min_class_rows:
                    bound = hash_row_numbers(arrow_numbers(tables[0]["row"]), seed).max()
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
        """The rows with the smallest hashes of all, and of each class, as many as the limits allow."""
        if not tables:
            return None
        whole = pa.concat_tables(tables)
        numbers = arrow_numbers(whole["row"])
        hashes = hash_row_numbers(numbers, self.distinct.seed)
        taken = draw_rows(numbers, self.distinct.limit(whole, np.arange(len(numbers)), hashes), self.distinct.seed)
        if self.min_class_rows:
            y = Labels.from_values(whole["k0"]).encode(whole["k0"])
            order = np.lexsort([hashes, y])
            place_in_class = np.arange(len(order)) - np.searchsorted(y[order], y[order])
            taken = np.union1d(taken, order[place_in_class < self.min_class_rows])
        return whole.take(arrow_indices(taken))
