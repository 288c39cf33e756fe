"""The array engine behind the protocol: rows in memory as a source. All is counted from its batches.

>>> source = Arrays().open(Table.of({"x": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}))
>>> source.columns, [batch.num_rows for batch in source.batches(["x"], 2)]
({'x': 'float64', 'y': 'object'}, [2, 1])
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from candide.engines.base import Engine, Folds, Source
from candide.engines.reading import Reading
from candide.rows.labels import is_arrow
from candide.rows.table import Table


class Arrays(Engine):
    """Whatever :class:`Table` reads: arrays, frames, mappings of columns."""

    name = "arrays"
    counts: frozenset[str] = frozenset()

    def open(self, data: Any, reading: Reading | None = None) -> "TableSource":
        return TableSource(Table.of(data), self)


class TableSource(Source):
    """A table in memory; columns without names are known by their positions."""

    def __init__(self, table: Table, engine: Engine):
        self.name, self.engine, self.table = "the table", engine, table
        self.columns = {str(name): _kind(table.head(name, 1)) for name in table.names}
        self._names = {str(name): name for name in table.names}

    def head(self, n: int) -> Any:
        import pyarrow as pa

        return pa.table({name: _arrow(self.table.head(original, n)) for name, original in self._names.items()})

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        import pyarrow as pa

        fold = [] if folds is None else [fold_of(np.arange(self.table.n_rows), folds)]
        held = [*(self.table.column(self._names[name]) for name in columns), *fold]
        names = [*columns, *(["fold"] if fold else [])]
        for start in range(0, self.table.n_rows, size):
            some = [_arrow(column[start : start + size]) for column in held]
            self.rows_read += len(some[0]) if some else 0
            yield pa.RecordBatch.from_arrays(some, names)


def fold_of(row: np.ndarray, folds: Folds) -> np.ndarray:
    """The fold of each row by its number: every run of so many rows holds each fold once, in a random rotation."""
    run = row // folds.n
    turns = np.random.default_rng(folds.seed).integers(0, folds.n, int(run.max(initial=0)) + 1)
    return (row + turns[run]) % folds.n


def _kind(column: Any) -> str:
    return str(column.type if is_arrow(column) else column.dtype)


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    if not is_arrow(column):
        return pa.array(column, from_pandas=True)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
