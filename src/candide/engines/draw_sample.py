"""A sample of a source: some of the rows that will be counted, drawn from all of them in one pass, in little memory.

Two samples are drawn at once. One has distinct rows, chosen by what they hold (:mod:`candide.engines.distinct_sample`):
the order of the rows does not matter, and all copies of a row are counted. The other has rows chosen by their numbers;
it is for rows that often repeat by chance, and for rows that a server draws.

>>> from candide.engines.base import open_source
>>> from candide.engines.planning import prepare_source
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["a", None] * 500}) as source:
...     some = draw_source_rows(LabelledSource(source, "y"), prepare_source(source, "y").plan, 3)
>>> some.table.column_names, some.table["row"].to_pylist()
(['f0', 'k0', 'row'], [144, 432, 952])
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.sampling import draw_rows, hash_row_numbers
from candide.data.targets import has_label
from candide.engines.base import LabelledSource
from candide.engines.counting import parse_row_weights
from candide.engines.distinct_sample import IDENTITY, DistinctDrawing, DistinctPart, DrawnRows, array, text_sizes
from candide.errors import InputError
from candide.model.plan import Plan

_OVERSAMPLING = 2  # times as many rows as are wanted are drawn by whoever holds them: some may have no label
_MAX_ROWS_SEARCHED = 4_000_000  # rows among which those of rare classes are looked for
_REPEATED = 0.01  # share of rows equal to another, from which on a server that draws rows does not show all copies


def draw_source_rows(
    rows: LabelledSource,
    plan: Plan,
    max_rows: int,
    seed: int = 0,
    max_text_bytes: int = 1 << 62,
    min_class_rows: int = 0,
) -> DrawnRows:
    """At most so many rows that have a label and a weight, in their order.

    Fewer, where their documents would have more than so many bytes of ``letters``. The same rows whatever the batches
    and threads, as long as the source gives its rows in the same order; where few rows are equal, or many are copies,
    in any order. There are more rows where a class has fewer than ``least`` among them: so many of it, or all of up to
    a few million rows.
    """
    drawing = SourceSampler(
        rows.weight,
        max_rows,
        seed,
        max_text_bytes,
        DistinctDrawing.of(plan, max_rows, seed, max_text_bytes),
        min_class_rows,
    )
    wanted = _OVERSAMPLING * max_rows if not min_class_rows else max(_MAX_ROWS_SEARCHED, _OVERSAMPLING * max_rows)
    source, share = (rows.source, 1.0) if rows.folds else rows.source.draw_subset(wanted)
    found = source.engine.gather(replace(rows, source=source), plan, drawing)
    if share < 1 and (found.n_available < max_rows or (not min_class_rows and found.has_repeats())):
        # Too few of them have a label, or there may be further copies: all are looked at.
        found, share = rows.source.engine.gather(rows, plan, drawing), 1.0
    if found.table is None:
        raise InputError(f"{rows.source.name} has no rows")
    if share == 1.0 and not min_class_rows and found.n_rows > found.table.num_rows:
        chosen = drawing.distinct.choose(found.distinct, found.n_rows)
        if chosen is not None:
            return chosen._replace(table=found.number_rows(chosen.table, share))
    return DrawnRows(found.number_rows(found.table.drop_columns([IDENTITY]), share))


class SamplePart(NamedTuple):
    """Some rows of pieces, and how many rows these have, by the number of their first."""

    table: Any  # an Arrow table; None of no batch
    n_available: int  # how many rows could be drawn, as far as they were looked at
    sizes: dict[int, int]
    n_rows: int  # that have a label and a weight
    distinct: DistinctPart

    def has_repeats(self) -> bool:
        """Whether some of the rows drawn by their numbers are equal."""
        if self.table is None:
            return False
        return len(np.unique(arrow_numbers(self.table[IDENTITY]))) < (1.0 - _REPEATED) * self.table.num_rows

    def number_rows(self, table: Any, fraction: float) -> Any:
        """Some rows, with the numbers that they have without gaps; about, where pieces are a share of all rows."""
        first, sizes = np.array(list(self.sizes)), list(self.sizes.values())
        gapless = np.cumsum([0, *sizes[:-1]])
        row = arrow_numbers(table["row"])
        piece = np.searchsorted(first, row, side="right") - 1
        place = table.column_names.index("row")
        number = ((row - first[piece] + gapless[piece]) / fraction).astype(np.int64)
        return table.set_column(place, "row", arrow_indices(number)).unify_dictionaries().combine_chunks()


@dataclass(frozen=True)
class SourceSampler:
    """Each row draws a lot by its number, and the smallest are taken."""

    weight: str | None
    max_rows: int
    seed: int
    max_text_bytes: int
    distinct: DistinctDrawing
    min_class_rows: int = 0  # rows of each class, where it has as many

    def __call__(self, batches: Iterable[Any], first: int) -> SamplePart:
        import pyarrow as pa

        found, start, there, held, bound = list[Any](), first, 0, 0, np.uint64(2**64 - 1)
        n_rows, distinct = 0, DistinctPart()
        for batch in batches:
            weight, (hashes, identity) = self._weights(batch), self.distinct.hashes(batch)
            if not self.min_class_rows:
                distinct = self.distinct.add(distinct, batch, start, weight, hashes, identity)
            numbers = np.arange(start, start + batch.num_rows)
            start, n_rows = start + batch.num_rows, n_rows + int((weight > 0).sum())
            taken = np.flatnonzero((hash_row_numbers(numbers, self.seed) <= bound) & (weight > 0))
            there += len(taken)
            if len(taken) > 2 * self.max_rows and not self.min_class_rows:  # most of which would go again
                taken = taken[draw_rows(numbers[taken], self.max_rows, self.seed)]
            some = pa.Table.from_batches([batch.take(arrow_indices(taken))])
            some = some.append_column("row", arrow_indices(numbers[taken]))
            found.append(some.append_column(IDENTITY, array(identity[taken])))
            if (
                sum(map(len, found)) > 2 * self.max_rows + held
                or sum(one.nbytes for one in found) > 2 * self.max_text_bytes
            ):
                found = [self._smallest_keys(found)]
                held = max(0, len(found[0]) - self.max_rows)
                bound = (
                    bound if self.min_class_rows else hash_row_numbers(arrow_numbers(found[0]["row"]), self.seed).max()
                )
        return SamplePart(
            self._smallest_keys(found), there, {first: start - first}, n_rows, self.distinct.merge([distinct])
        )

    def combine(self, parts: Sequence[SamplePart]) -> SamplePart:
        sizes = {first: n for part in parts for first, n in part.sizes.items()}
        found = self._smallest_keys([part.table for part in parts if part.table is not None])
        there, n_rows = sum(part.n_available for part in parts), sum(part.n_rows for part in parts)
        return SamplePart(found, there, sizes, n_rows, self.distinct.merge([part.distinct for part in parts]))

    def _weights(self, batch: Any) -> Floats:
        """(row,) its weight, 0 without a label."""
        there = arrow_numbers(has_label(batch.column("k0"))).astype(np.float64)
        return there * parse_row_weights(self.weight, batch.column("k1")) if self.weight else there

    def _smallest_keys(self, found: list[Any]) -> Any:
        """The smallest lots, as many as have room: where more rows come, some of these go, and no other."""
        import pyarrow as pa

        if not found:
            return None
        some, most = pa.concat_tables(found), self.max_rows
        numbers = arrow_numbers(some["row"])
        if self.distinct.texts and len(numbers):
            size = np.sum([text_sizes(some[name]) for name in self.distinct.texts], axis=0)
            room = np.searchsorted(
                np.cumsum(size[np.argsort(hash_row_numbers(numbers, self.seed))]), self.max_text_bytes, side="right"
            )
            most = min(most, max(1, int(room)))
        taken = draw_rows(numbers, most, self.seed)
        if self.min_class_rows:
            taken = np.union1d(taken, self._smallest_of_each_class(numbers, some["k0"]))
        return some.take(arrow_indices(taken))

    def _smallest_of_each_class(self, numbers: Any, classes: Any) -> Any:
        """The places of the smallest lots of each class."""
        y = Labels.from_values(classes).encode(classes)
        order = np.lexsort([hash_row_numbers(numbers, self.seed), y])
        first = np.searchsorted(y[order], y[order])
        return order[np.arange(len(order)) - first < self.min_class_rows]
