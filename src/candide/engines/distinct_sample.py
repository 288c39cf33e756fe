"""A sample of the distinct rows of a source, with how often each comes: by a hash of what they hold, in one pass.

The rows with the smallest hashes are held. A row whose hash is small enough at the end was small enough all the time:
all of its copies were counted, in whatever order they came.
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
    frequency: Floats | None = None  # (row,) the weight of all rows equal to it; None where rows were drawn one by one
    n_rows: int = 0  # that they stand for, where they are distinct
    share: float = 1.0  # of all distinct rows, where they are distinct


class DistinctPart(NamedTuple):
    """Distinct rows of some pieces of a source."""

    table: Any = None  # an Arrow table with their numbers, hashes, counts and weights; None of no batch
    bound: Any = _ALL  # the largest hash up to which all rows are there


@dataclass(frozen=True)
class DistinctDrawing:
    """The distinct rows with the smallest hashes are taken."""

    most: int
    seed: int
    letters: int  # bytes of documents, at most
    names: Mapping[str, str]  # of the columns in batches, by those in the source
    texts: Sequence[str] = ()  # the columns of documents in batches

    @classmethod
    def of(cls, plan: Plan, most: int = 1, seed: int = 0, letters: int = 1 << 62) -> "DistinctDrawing":
        """For the columns of a plan."""
        each = [(f"f{i}", part, part.columns[j]) for i, (part, j) in enumerate(iterate_columns(plan))]
        texts = [own for own, part, _ in each if part.block_kind == "documents"]
        return cls(most, seed, letters, {str(name): own for own, _, name in each}, texts)

    def hashes(self, batch: Any) -> tuple[Hashes, Hashes]:
        """(row,) the hash of its columns, and a number that equal rows of a label and fold share."""
        hashes = hash_rows({name: batch.column(own) for name, own in self.names.items()}, batch.num_rows)
        fold = arrow_numbers(batch.column("fold")) if "fold" in batch.schema.names else None
        return hashes, identities(hashes, hash_column(batch.column("k0")), fold)

    def add(
        self, part: DistinctPart, batch: Any, first: int, weight: Floats, hashes: Hashes, identity: Hashes
    ) -> DistinctPart:
        """With the rows of another batch that have a weight; they are numbered from ``first``."""
        import pyarrow as pa

        order, bound = orders(hashes, identity, self.seed), part.bound
        some = np.flatnonzero((order <= bound) & (weight > 0))
        if len(some) > 2 * self.most:  # most of which would go again
            ordered = np.sort(order[some])
            least = ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0]))]
            if len(least) > self.most:
                bound = least[self.most]
                some = some[order[some] <= bound]
        _, at, group = np.unique(identity[some], return_index=True, return_inverse=True)
        own = some[at]
        table = pa.Table.from_batches([batch.take(arrow_indices(own))])
        added = {
            "row": arrow_indices(first + own),
            _ORDER: array(order[own]),
            IDENTITY: array(identity[own]),
            _COUNT: array(np.bincount(group, minlength=len(own)).astype(np.int64)),
            _WEIGHT: array(np.bincount(group, weight[some], len(own)).astype(np.float64)),
        }
        for name, column in added.items():
            table = table.append_column(name, column)
        if part.table is None:
            return DistinctPart(table, bound)
        both = DistinctPart(pa.concat_tables([part.table, table]), bound)
        is_full = both.table.num_rows > 3 * self.most or both.table.nbytes > 3 * self.letters
        return self.merge([both]) if is_full else both

    def merge(self, parts: Sequence[DistinctPart]) -> DistinctPart:
        """The distinct rows of parts together, no more than there is room for."""
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
        count, weight = (np.add.reduceat(one[rank], starts) if len(rank) else one for one in (count, weight))
        kept = order[at] <= bound
        room = self._room(whole, at[kept], order[at[kept]])
        if int(kept.sum()) > room:
            bound = np.partition(order[at[kept]], room - 1)[room - 1]
            kept = order[at] <= bound
        table = whole.take(arrow_indices(at[kept]))
        for name, column in ((_COUNT, count), (_WEIGHT, weight)):
            table = table.set_column(table.column_names.index(name), name, array(column[kept]))
        return DistinctPart(table, bound)

    def _room(self, table: Any, rows: Any, order: Hashes) -> int:
        """How many of some rows there is room for."""
        if not self.texts or not len(rows):
            return self.most
        rank = rows[np.argsort(order)]
        size = np.sum([text_sizes(table[name]) for name in self.texts], axis=0)[rank]
        return min(self.most, max(1, int(np.searchsorted(np.cumsum(size), self.letters, side="right"))))

    def choose(self, part: DistinctPart, n_rows: int) -> DrawnRows | None:
        """The distinct rows to learn from; None where rows must be drawn one by one."""
        some, share = part.table, share_below(part.bound)
        order, count, weight = (arrow_numbers(some[name]) for name in (_ORDER, _COUNT, _WEIGHT))

        def distinct() -> DistinctRows:
            y = Labels.from_values(some["k0"]).encode(some["k0"])
            if "fold" in some.column_names:
                y = y + (int(y.max()) + 1) * arrow_numbers(some["fold"]).astype(np.intp)
            return DistinctRows.from_columns(
                [_column(some[own]) for own in self.names.values()], y, weight, share=share
            )

        found = choose_distinct(order, count, distinct, share, n_rows, self.most)
        if found is None:
            return None
        at = found[0][np.argsort(arrow_numbers(some["row"])[found[0]])]
        table = some.take(arrow_indices(at)).drop_columns([_ORDER, IDENTITY, _COUNT, _WEIGHT])
        return DrawnRows(table, weight[at], int(count[at].sum()), found[1])


def text_sizes(column: Any) -> Any:
    """The bytes of each document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
    return arrow_numbers(pc.fill_null(pc.binary_length(text), 0)).astype(np.int64)


def array(numbers: Any) -> Any:
    """Numbers as an Arrow array, by their buffer: pyarrow's own way imports pandas."""
    import pyarrow as pa

    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])


def _column(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return arrow_numbers(column)
    return column
