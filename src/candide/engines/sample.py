"""A sample of a source: some of the rows that will be counted, drawn from all of them in one pass, in little memory.

>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["a", None] * 500}) as source:
...     some = sample(Rows(source, "y"), prepare(source, "y").plan, 3)
>>> some.column_names, some["f0"].to_pylist(), some["row"].to_pylist()
(['f0', 'k0', 'row'], [84.66666666666667, 122.0, 136.66666666666666], [254, 366, 410])
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from candide.engines.base import Rows
from candide.engines.batch import places
from candide.engines.count import labelled, weights
from candide.errors import InputError
from candide.model.plan import Plan
from candide.rows.arrow import arrow_indices, arrow_numbers
from candide.rows.labels import Labels
from candide.rows.lots import drawn, lots

_MORE = 2  # times as many rows as are wanted are drawn by whoever holds them: some may have no label
_SEARCHED = 4_000_000  # rows among which those of rare classes are looked for


def sample(rows: Rows, plan: Plan, most: int, seed: int = 0, letters: int = 1 << 62, least: int = 0) -> Any:
    """At most so many rows that have a label and a weight, in their order: an Arrow table in the layout of batches,
    and the number of each in the source, ``row``.

    Fewer, where their documents would have more than so many bytes of ``letters``. The same rows whatever the batches
    and threads, as long as the source gives its rows in the same order. There are more rows where a class has fewer
    than ``least`` among them: so many of it, or all of up to a few million rows.
    """
    texts = [f"f{i}" for i, (part, _) in enumerate(places(plan)) if part.holds == "documents"]
    drawing = Drawing(rows.weight, most, seed, letters, texts, least)
    wanted = _MORE * most if not least else max(_SEARCHED, _MORE * most)
    source, share = (rows.source, 1.0) if rows.folds else rows.source.thin(wanted)
    found = source.engine.gather(replace(rows, source=source), plan, drawing)
    if share < 1 and found.there < most:  # too few of them have a label: all are looked at
        found, share = rows.source.engine.gather(rows, plan, drawing), 1.0
    if found.table is None:
        raise InputError(f"{rows.source.name} has no rows")
    return found.numbered(share).unify_dictionaries().combine_chunks()


class Drawn(NamedTuple):
    """Some rows of pieces, and how many rows these have, by the number of their first."""

    table: Any  # an Arrow table; None of no batch
    there: int  # how many rows could be drawn, as far as they were looked at
    sizes: dict[int, int]

    def numbered(self, share: float) -> Any:
        """The table, with the numbers that its rows have without gaps; about, where pieces are a share of all rows."""
        first, sizes = np.array(list(self.sizes)), list(self.sizes.values())
        gapless = np.cumsum([0, *sizes[:-1]])
        row = arrow_numbers(self.table["row"])
        piece = np.searchsorted(first, row, side="right") - 1
        place = self.table.column_names.index("row")
        number = ((row - first[piece] + gapless[piece]) / share).astype(np.int64)
        return self.table.set_column(place, "row", arrow_indices(number))


@dataclass(frozen=True)
class Drawing:
    """Each row draws a lot by its number, and the smallest are taken."""

    weight: str | None
    most: int
    seed: int
    letters: int
    texts: list[str]  # the columns of documents
    least: int = 0  # rows of each class, where it has as many

    def __call__(self, batches: Iterable[Any], first: int) -> Drawn:
        import pyarrow as pa

        found, start, there, held, bound = list[Any](), first, 0, 0, np.uint64(2**64 - 1)
        for batch in batches:
            numbers = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            taken = np.flatnonzero((lots(numbers, self.seed) <= bound) & self._there(batch))
            there += len(taken)
            some = pa.Table.from_batches([batch.take(arrow_indices(taken))])
            found.append(some.append_column("row", arrow_indices(numbers[taken])))
            if sum(map(len, found)) > 2 * self.most + held or sum(one.nbytes for one in found) > 2 * self.letters:
                found = [self._drawn(found)]
                held = max(0, len(found[0]) - self.most)
                bound = bound if self.least else lots(arrow_numbers(found[0]["row"]), self.seed).max()
        return Drawn(self._drawn(found), there, {first: start - first})

    def add(self, parts: Sequence[Drawn]) -> Drawn:
        sizes = {first: n for part in parts for first, n in part.sizes.items()}
        found = self._drawn([part.table for part in parts if part.table is not None])
        return Drawn(found, sum(part.there for part in parts), sizes)

    def _there(self, batch: Any) -> Any:
        """Which rows have a label, and count."""
        there = arrow_numbers(labelled(batch.column("k0")))
        return there & (weights(self.weight, batch.column("k1")) > 0) if self.weight else there

    def _drawn(self, found: list[Any]) -> Any:
        """The smallest lots, as many as have room: where more rows come, some of these go, and no other."""
        import pyarrow as pa

        if not found:
            return None
        some, most = pa.concat_tables(found), self.most
        numbers = arrow_numbers(some["row"])
        if self.texts and len(numbers):
            size = np.sum([_sizes(some[name]) for name in self.texts], axis=0)
            room = np.searchsorted(np.cumsum(size[np.argsort(lots(numbers, self.seed))]), self.letters, side="right")
            most = min(most, max(1, int(room)))
        taken = drawn(numbers, most, self.seed)
        if self.least:
            taken = np.union1d(taken, self._of_each(numbers, some["k0"]))
        return some.take(arrow_indices(taken))

    def _of_each(self, numbers: Any, classes: Any) -> Any:
        """The places of the smallest lots of each class."""
        y = Labels.of(classes).encode(classes)
        order = np.lexsort([lots(numbers, self.seed), y])
        first = np.searchsorted(y[order], y[order])
        return order[np.arange(len(order)) - first < self.least]


def _sizes(column: Any) -> Any:
    """The bytes of each document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
    return arrow_numbers(pc.fill_null(pc.binary_length(text), 0)).astype(np.int64)
