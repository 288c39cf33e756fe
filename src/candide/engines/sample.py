"""A sample of a source: some of the rows that will be counted, drawn from all of them in one pass, in little memory.

>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> with open_source({"x": [i / 3 for i in range(1000)], "y": ["a", None] * 500}) as source:
...     some = sample(Rows(source, "y"), prepare(source, "y").plan, 3)
>>> some.column_names, some["f0"].to_pylist(), some["row"].to_pylist()
(['f0', 'k0', 'row'], [84.66666666666667, 122.0, 136.66666666666666], [254, 366, 410])
"""

from typing import Any

import numpy as np

from candide.engines.base import Rows, Source
from candide.engines.batch import places
from candide.engines.count import labelled, weights
from candide.model.plan import Plan
from candide.rows.arrow import arrow_indices, arrow_numbers
from candide.rows.lots import drawn, lots

_MORE = 2  # times as many rows as are wanted are drawn by whoever holds them: some may have no label


def sample(rows: Rows, plan: Plan, most: int, seed: int = 0, letters: int = 1 << 62) -> Any:
    """At most so many rows that have a label and a weight, in their order: an Arrow table in the layout of batches,
    and the number of each in the source, ``row``.

    Fewer, where their documents would have more than so many bytes of ``letters``. The same rows whatever the batches
    and threads, as long as the source gives its rows in the same order.
    """
    source, share = (rows.source, 1.0) if rows.folds else rows.source.thin(_MORE * most)
    found, n = _drawn_from(source, share, rows, plan, most, seed, letters)
    if share < 1 and n < most:  # too few of them have a label: all are looked at
        found, _ = _drawn_from(rows.source, 1.0, rows, plan, most, seed, letters)
    return found


def _drawn_from(
    source: Source, share: float, rows: Rows, plan: Plan, most: int, seed: int, letters: int
) -> tuple[Any, int]:
    """The sample, and how many rows of a source, which has a share of all, it was drawn from at least."""
    import pyarrow as pa

    keep = [rows.target, *([rows.weight] if rows.weight else [])]
    texts = [f"f{i}" for i, (part, _) in enumerate(places(plan)) if part.holds == "documents"]
    scan = source.engine.score(source, plan, keep, folds=rows.folds, codes=False)
    found = [pa.Table.from_batches([], scan.schema.append(pa.field("row", pa.int64())))]
    start, there, bound = 0, 0, np.uint64(2**64 - 1)
    for batch in scan.batches:
        numbers = (np.arange(start, start + batch.num_rows) / share).astype(np.int64)  # about, where they are a share
        start += batch.num_rows
        taken = np.flatnonzero((lots(numbers, seed) <= bound) & _there(rows, batch))
        there += len(taken)
        some = pa.Table.from_batches([batch.take(arrow_indices(taken))])
        found.append(some.append_column("row", arrow_indices(numbers[taken])))
        if sum(map(len, found)) > 2 * most or sum(one.nbytes for one in found) > 2 * letters:
            found = [_drawn(found, most, seed, texts, letters)]
            bound = lots(arrow_numbers(found[0]["row"]), seed).max()
    return _drawn(found, most, seed, texts, letters).unify_dictionaries().combine_chunks(), there


def _there(rows: Rows, batch: Any) -> Any:
    """Which rows have a label, and count."""
    there = arrow_numbers(labelled(batch.column("k0")))
    return there & (weights(rows.weight, batch.column("k1")) > 0) if rows.weight else there


def _drawn(found: list[Any], most: int, seed: int, texts: list[str], letters: int) -> Any:
    """The rows with the smallest lots, as many as have room: where more rows come, some of these go, and no other."""
    import pyarrow as pa

    some = pa.concat_tables(found)
    numbers = arrow_numbers(some["row"])
    if texts and len(numbers):
        size = np.sum([_sizes(some[name]) for name in texts], axis=0)
        room = np.searchsorted(np.cumsum(size[np.argsort(lots(numbers, seed))]), letters, side="right")
        most = min(most, max(1, int(room)))
    return some.take(arrow_indices(drawn(numbers, most, seed)))


def _sizes(column: Any) -> Any:
    """The bytes of each document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
    return arrow_numbers(pc.fill_null(pc.binary_length(text), 0)).astype(np.int64)
