"""The array engine behind the protocol: rows in memory as a source. All is counted from its batches.

>>> source = Arrays().open(Table.from_data({"x": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}))
>>> source.columns, [batch.num_rows for batch in source.batches(["x"], 2)]
({'x': 'float64', 'y': 'object'}, [2, 1])
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels, is_arrow
from candide.data.python_columns import as_arrow
from candide.data.sampling import assign_folds_by_key
from candide.data.table import Table
from candide.engines.base import Engine, Folds, Source
from candide.engines.reading import ReadOptions


class Arrays(Engine):
    """Whatever :class:`Table` reads: arrays, frames, mappings of columns."""

    name = "arrays"
    tally_kinds: frozenset[str] = frozenset()

    def open(self, data: Any, reading: ReadOptions | None = None) -> "TableSource":
        return TableSource(Table.from_data(data), self)


class TableSource(Source):
    """A table in memory; columns without names are known by their positions."""

    takes_folds = True

    def __init__(self, table: Table, engine: Engine):
        self.name, self.engine, self.table = "the table", engine, table
        self.n_rows = table.n_rows
        self.columns = {str(name): _column_type(table.head(name, 1)) for name in table.names}
        self._names = {str(name): name for name in table.names}

    def head(self, n: int) -> Any:
        import pyarrow as pa

        return pa.table({name: as_arrow(self.table.head(original, n)) for name, original in self._names.items()})

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        import pyarrow as pa

        fold = [] if folds is None else [self._assign_folds(folds)]
        held = [*(self.table.column(self._names[name]) for name in columns), *fold]
        names = [*columns, *(["fold"] if fold else [])]
        for start in range(0, self.table.n_rows, size):
            some = [as_arrow(column[start : start + size]) for column in held]
            self.rows_read += len(some[0]) if some else 0
            yield pa.RecordBatch.from_arrays(some, names)

    def _assign_folds(self, folds: Folds) -> NDArray:
        """The fold of each row: by its key, or shuffled, put in order of class, and dealt out in turn."""
        if folds.rows is not None:
            return folds.rows.fold
        if folds.key_column is not None:
            return assign_folds_by_key(
                self.table.column(self._names[folds.key_column]), folds.n, folds.seed, folds.key_column
            )
        n = self.table.n_rows
        keys = [np.random.default_rng(folds.seed).permutation(n)]
        if folds.label_column is not None:
            column = self.table.column(self._names[folds.label_column])
            keys.append(Labels.from_values(column).encode(column))
        fold = np.empty(n, np.min_scalar_type(folds.n))
        fold[np.lexsort(keys)] = np.arange(n) % folds.n
        return fold


def _column_type(column: Any) -> str:
    return str(column.type if is_arrow(column) else column.dtype)
