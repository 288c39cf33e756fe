"""Sample the distinct rows of a source with their frequencies, by a hash of their contents, in one pass.

The rows with the smallest hashes are held. A row whose hash is small enough at the end was small enough all the time,
so all of its copies were counted, in any order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from candide.data.arrow_columns import arrow_indices, arrow_numbers
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.repeated_rows import DistinctRows
from candide.data.row_hash import Hashes, hash_column, hash_rows
from candide.data.sampling import choose_distinct, identities, orders, share_below
from candide.engines.batches import iterate_columns
from candide.model.plan import Plan

IDENTITY = "identity"  # the column of a number that equal rows share
_ORDER, _COUNT, _WEIGHT = "order", "count", "weight"
_ALL = np.uint64(2**64 - 1)


class DrawnRows(NamedTuple):
    """Rows of a source, in their order."""

    table: Any  # an Arrow table in the layout of batches, and the number of each row in the source, ``row``
    frequency: Floats | None = None  # (row,) the weight of all equal rows; None where rows were drawn one by one
    n_rows: int = 0  # that they stand for, where they are distinct
    share: float = 1.0  # of all distinct rows, where they are distinct


class DistinctPart(NamedTuple):
    """Distinct rows of some pieces of a source."""

    table: Any = None  # an Arrow table with their numbers, hashes, counts and weights; None where there was no batch
    bound: Any = _ALL  # the largest hash up to which all rows are there


@dataclass(frozen=True)
class DistinctDrawing:
    """The distinct rows with the smallest hashes are taken."""

    max_rows: int
    seed: int
    max_text_bytes: int
    names: Mapping[str, str]  # of the columns in batches, by those in the source
    texts: Sequence[str] = ()  # the columns of documents in batches

    @classmethod
    def from_plan(
        cls, plan: Plan, max_rows: int = 1, seed: int = 0, max_text_bytes: int = 1 << 62
    ) -> "DistinctDrawing":
        """For the columns of a plan."""
        columns = [(f"f{i}", part, part.columns[j]) for i, (part, j) in enumerate(iterate_columns(plan))]
        texts = [field for field, part, _ in columns if part.block_kind == "documents"]
        return cls(max_rows, seed, max_text_bytes, {str(name): field for field, _, name in columns}, texts)

    def hashes(self, batch: Any) -> tuple[Hashes, Hashes]:
        """(row,) the hash of its columns, and a number that equal rows of a label and fold share."""
        hashes = hash_rows({name: batch.column(field) for name, field in self.names.items()}, batch.num_rows)
        fold = arrow_numbers(batch.column("fold")) if "fold" in batch.schema.names else None
        return hashes, identities(hashes, hash_column(batch.column("k0")), fold)

    def add(
        self, part: DistinctPart, batch: Any, first: int, weight: Floats, hashes: Hashes, identity: Hashes
    ) -> DistinctPart:
        """A part with the weighted rows of another batch, which are numbered from ``first``."""
        import pyarrow as pa

        order, bound = orders(hashes, identity, self.seed), part.bound
        rows = np.flatnonzero((order <= bound) & (weight > 0))
        if len(rows) > 2 * self.max_rows:  # most of them would be dropped again
            ordered = np.sort(order[rows])
            least = ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0]))]
            if len(least) > self.max_rows:
                bound = least[self.max_rows]
                rows = rows[order[rows] <= bound]
        _, at, group = np.unique(identity[rows], return_index=True, return_inverse=True)
        distinct = rows[at]
        table = pa.Table.from_batches([batch.take(arrow_indices(distinct))])
        added = {
            "row": arrow_indices(first + distinct),
            _ORDER: array(order[distinct]),
            IDENTITY: array(identity[distinct]),
            _COUNT: array(np.bincount(group, minlength=len(distinct)).astype(np.int64)),
            _WEIGHT: array(np.bincount(group, weight[rows], len(distinct)).astype(np.float64)),
        }
        for name, column in added.items():
            table = table.append_column(name, column)
        if part.table is None:
            return DistinctPart(table, bound)
        both = DistinctPart(pa.concat_tables([part.table, table]), bound)
        is_full = both.table.num_rows > 3 * self.max_rows or both.table.nbytes > 3 * self.max_text_bytes
        return self.merge([both]) if is_full else both

    def merge(self, parts: Sequence[DistinctPart]) -> DistinctPart:
        """The distinct rows of parts together, no more than the limits allow."""
        import pyarrow as pa

        tables, bound = [part.table for part in parts if part.table is not None], min(part.bound for part in parts)
        if not tables:
            return DistinctPart()
        whole = pa.concat_tables(tables)
        names = (_ORDER, IDENTITY, _COUNT, _WEIGHT, "row")
        order, identity, count, weight, row = (arrow_numbers(whole[name]) for name in names)
        rank = np.lexsort([row, identity])
        starts = np.flatnonzero(np.concatenate([[True], np.diff(identity[rank]) != 0])) if len(rank) else rank
        at = rank[starts]
        count, weight = (np.add.reduceat(sizes[rank], starts) if len(rank) else sizes for sizes in (count, weight))
        is_below = order[at] <= bound
        limit = self._limit(whole, at[is_below], order[at[is_below]])
        if int(is_below.sum()) > limit:
            bound = np.partition(order[at[is_below]], limit - 1)[limit - 1]
            is_below = order[at] <= bound
        table = whole.take(arrow_indices(at[is_below]))
        for name, column in ((_COUNT, count), (_WEIGHT, weight)):
            table = table.set_column(table.column_names.index(name), name, array(column[is_below]))
        return DistinctPart(table, bound)

    def _limit(self, table: Any, rows: Any, order: Hashes) -> int:
        """How many of the rows the limits allow."""
        if not self.texts or not len(rows):
            return self.max_rows
        rank = rows[np.argsort(order)]
        size = np.sum([text_sizes(table[name]) for name in self.texts], axis=0)[rank]
        return min(self.max_rows, max(1, int(np.searchsorted(np.cumsum(size), self.max_text_bytes, side="right"))))

    def choose(self, part: DistinctPart, n_rows: int) -> DrawnRows | None:
        """The distinct rows to learn from; None where rows must be drawn one by one."""
        table, share = part.table, share_below(part.bound)
        order, count, weight = (arrow_numbers(table[name]) for name in (_ORDER, _COUNT, _WEIGHT))

        def distinct() -> DistinctRows:
            y = Labels.from_values(table["k0"]).encode(table["k0"])
            if "fold" in table.column_names:
                y = y + (int(y.max()) + 1) * arrow_numbers(table["fold"]).astype(np.intp)
            columns = [_column(table[field]) for field in self.names.values()]
            return DistinctRows.from_columns(columns, y, weight, share=share)

        chosen = choose_distinct(order, count, distinct, share, n_rows, self.max_rows)
        if chosen is None:
            return None
        at = chosen[0][np.argsort(arrow_numbers(table["row"])[chosen[0]])]
        drawn = table.take(arrow_indices(at)).drop_columns([_ORDER, IDENTITY, _COUNT, _WEIGHT])
        return DrawnRows(drawn, weight[at], int(count[at].sum()), chosen[1])


def text_sizes(column: Any) -> Any:
    """The bytes of each document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
    return arrow_numbers(pc.fill_null(pc.binary_length(text), 0)).astype(np.int64)


def array(numbers: Any) -> Any:
    """Numbers as an Arrow array, by their buffer: pyarrow's own conversion imports pandas."""
    import pyarrow as pa

    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])


def _column(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return arrow_numbers(column)
    return column
