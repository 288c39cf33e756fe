"""The array engine: counts rows that are in memory, with the kernels, on threads."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.arrow_columns import as_arrow
from candide.data.blocks import Block, Codes, Floats, find_first, not_finite_error
from candide.data.labels import Labels, is_arrow
from candide.data.notes import Note
from candide.data.sample import assign_folds_by_key
from candide.data.table import Table
from candide.engines.base import Engine, Folds, Source
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SumTooLargeError
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart
from candide.tally import TALLIES, Tally
from candide.tally.base import sum_class_weights


def count_table(
    table: Table, y: Any, weight: Floats | None = None, *, plan: Plan, labels: Labels | None = None
) -> ModelCounts:
    """The counts of a table; ``labels`` gives the classes where they are known."""
    labels = Labels.from_values(y) if labels is None else labels
    codes = labels.encode(y)
    if len(codes) != table.n_rows:
        what = f"{formatting.format_count(table.n_rows)} but {formatting.format_count(len(codes), 'label')}"
        raise InputError(what, remedy="pass one label a row")
    outside = np.flatnonzero((codes < 0) | (codes >= len(labels)))
    if len(outside):
        row = int(outside[0])
        if codes[row] < 0:
            raise InputError("the label is missing", row=row, remedy="drop the row or give it a label")
        label = Labels.from_values(y[row : row + 1]).values[0]
        raise InputError(f"the label {label!r} is not among the classes {list(labels.values)}", row=row, value=label)
    tallies = tuple(tally_block(part, part.block(table), codes, weight, len(labels)) for part in plan.parts)
    return ModelCounts(plan, labels, sum_class_weights(codes, weight, len(labels)), tallies, table.n_rows)


def tally_block(part: PlanPart, block: Block, y: Codes, weight: Floats | None, n_classes: int) -> Tally:
    """The tally of one block; a value that cannot be counted is an error that names its column and row."""
    spec = part.spec
    try:
        out = TALLIES[spec.kind].from_rows(block, y, weight, n_classes=n_classes, spec=spec)
    except InputError as error:
        if part.block_kind == "documents":
            error.column = part.columns[0]
        elif part.block_kind == "numbers" and (bad := find_first(block, part.encodings[0].invalid_mask)):
            error.row, error.column = bad[0], part.columns[bad[1]]
        raise
    if (cell := out.find_too_large()) is not None:
        if part.block_kind == "documents":
            raise SumTooLargeError(
                "the weights of the documents are too large", column=part.columns[0], remedy="divide the weights"
            )
        at = out.locate_cell(cell[1])[0] if block.shape[1] == len(part.columns) else None
        raise not_finite_error(part.columns, block, spec.tally_values, at)
    return out


def fraction_notes(table: Table, plan: Plan) -> list[Note]:
    """Notes on columns that are declared to be counts and hold fractions."""
    notes = []
    for part in plan.parts:
        whole = part.event.support is not None and part.event.support.is_integer
        block = part.block(table) if whole else np.empty((0, 0))
        if first := find_first(block, lambda x: np.isfinite(x) & (x != np.floor(x))):
            name, event = part.columns[first[1]], part.event.name
            text = f"column {name!r}: {first[2]:g} is not a whole number, and {event} is for counts"
            remedy = "for measurements name another event model, such as gaussian or exponential"
            notes.append(Note("count-fraction", text, name, remedy))
    return notes


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
        heads = {str(name): table.head(name, 1) for name in table.names}
        self.columns = {name: str(head.type if is_arrow(head) else head.dtype) for name, head in heads.items()}
        self._names = {str(name): name for name in table.names}

    def head(self, n: int) -> Any:
        import pyarrow as pa

        return pa.table({name: as_arrow(self.table.head(original, n)) for name, original in self._names.items()})

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        import pyarrow as pa

        fold = [] if folds is None else [self._assign_folds(folds)]
        arrays = [*(self.table.column(self._names[name]) for name in columns), *fold]
        names = [*columns, *(["fold"] if fold else [])]
        for start in range(0, self.table.n_rows, size):
            pieces = [as_arrow(array[start : start + size]) for array in arrays]
            self.rows_read += len(pieces[0]) if pieces else 0
            yield pa.RecordBatch.from_arrays(pieces, names)

    def _assign_folds(self, folds: Folds) -> NDArray:
        """The fold of each row: by its key, or in turn, class by class, in random order."""
        if folds.rows is not None:
            return folds.rows.fold
        if folds.key_column is not None:
            keys = self.table.column(self._names[folds.key_column])
            return assign_folds_by_key(keys, folds.n, folds.seed, folds.key_column)
        n = self.table.n_rows
        order = [np.random.default_rng(folds.seed).permutation(n)]
        if folds.label_column is not None:
            column = self.table.column(self._names[folds.label_column])
            order.append(Labels.from_values(column).encode(column))
        fold = np.empty(n, np.min_scalar_type(folds.n))
        fold[np.lexsort(order)] = np.arange(n) % folds.n
        return fold
