"""What runs on executors: the array engine, on the rows of one partition, in the Arrow batches that Spark hands over.

What it makes comes back as bytes, and so does an error of ours: it is no failure of the cluster, and not tried again.

>>> import pyarrow as pa
>>> from candide.events import Gaussian
>>> from candide.model.plan import PlanPart
>>> class Adding:
...     def __call__(self, batches, first):
...         return first, sum(batch.num_rows for batch in batches)
>>> reads = BatchLayout(("x",), Plan(("x",), (PlanPart(Gaussian(), ("x",)),)))
>>> [row] = run_work(reads, Adding(), 2, iter([pa.RecordBatch.from_pydict({"c0": [1.0, 2.0, 3.0]})])).to_pylist()
>>> row["part"], row["n"], pickle.loads(row["data"]) == (2 << ROW_NUMBER_BITS, 3)
(2, 3, True)
"""

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from candide.engines.base import BatchScorer, Folds, Source, Work, get_engine
from candide.engines.batches import read_batches
from candide.engines.spark.folds import ClassRowCounts, FoldAssignment, count_classes
from candide.errors import CandideError
from candide.model.plan import Plan

ROW_NUMBER_BITS = 40  # bits of the number of a row in its partition
RESULT_SCHEMA = "part long, n long, data binary, error binary"
BatchMapper = Callable[[Iterator[Any]], Iterator[Any]]  # what Spark calls with the batches of each partition


@dataclass(frozen=True)
class BatchLayout:
    """Which columns of a data frame come in a batch, in order, and which of them are wanted in which layout."""

    columns: tuple[str, ...]
    plan: Plan
    keep: tuple[str, ...] = ()
    folds: Folds | None = None
    fold_assignment: FoldAssignment | None = None

    def lay_out(self, part: int, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches of a partition in the layout of every engine."""
        source = Partition(self.columns, append_folds(batches, part, self.columns, self.fold_assignment))
        return read_batches(source, self.plan, self.keep, folds=self.folds).batches


class Partition(Source):
    """The rows of a partition, to be read once; their folds come last, where they have any."""

    name = "a partition"

    def __init__(self, columns: Sequence[str], batches: Iterable[Any]):
        self.engine, self.columns, self._batches = get_engine("arrays"), dict.fromkeys(columns, ""), batches

    def head(self, n: int) -> Any:
        raise NotImplementedError  # it would be read again

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        at = {name: i for i, name in enumerate(self.columns)}
        chosen = [at[name] for name in columns] + ([-1] if folds else [])
        for batch in self._batches:
            yield batch.select([i % batch.num_columns for i in chosen])


def append_folds(
    batches: Iterable[Any], part: int, columns: Sequence[str], fold_assignment: FoldAssignment | None
) -> Iterable[Any]:
    """Batches with the fold of each row at their end, where there are folds."""
    if fold_assignment is None:
        return batches
    fold, by = fold_assignment.fold_function(part), columns.index(fold_assignment.column)
    return (batch.append_column("fold", fold(batch.column(by))) for batch in batches)


@dataclass(frozen=True)
class ClassCounting:
    """The work of counting the rows of each class in each partition."""

    def __call__(self, batches: Iterable[Any], first: int) -> dict[int, ClassRowCounts]:
        counts = Counter[str]()
        for batch in batches:
            counts.update(count_classes(batch.column("k0")))
        return {first >> ROW_NUMBER_BITS: counts}

    def combine(self, parts: Sequence[dict[int, ClassRowCounts]]) -> dict[int, ClassRowCounts]:
        return {part: counts for some in parts for part, counts in some.items()}


def run_work(reads: BatchLayout, work: Work, part: int, batches: Iterable[Any]) -> Any:
    """What work makes of a partition, as a batch of one row; of a partition without rows nothing."""
    n = 0

    def counted() -> Iterator[Any]:
        nonlocal n
        for batch in batches:
            if batch.num_rows:
                n += batch.num_rows
                yield batch

    rows = counted()
    head = next(rows, None)
    if head is None:
        return _result_row(part, 0)
    try:
        made = work(reads.lay_out(part, _chain_batches(head, rows)), part << ROW_NUMBER_BITS)
        return _result_row(part, n, data=pickle.dumps(made, protocol=5))
    except CandideError as error:
        return _result_row(part, n, error=pickle.dumps(error))


def make_work_mapper(reads: BatchLayout, work: Work) -> BatchMapper:
    """Work on each partition, one row of :data:`PARTS` from each."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield run_work(reads, work, partition_number(), batches)

    return run


def make_sum_mapper(work: Work, group: int) -> BatchMapper:
    """Work made of partitions that follow each other, so many at a time, added up."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        rows = sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["part"])
        for first in sorted({row["part"] // group for row in rows}):
            yield from _sum_rows(work, [row for row in rows if row["part"] // group == first])

    return run


def make_score_mapper(reads: BatchLayout, scored: BatchScorer) -> BatchMapper:
    """The batches of a scored table."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        part, rows = partition_number(), (batch for batch in batches if batch.num_rows)
        if (head := next(rows, None)) is not None:
            yield from map(scored, reads.lay_out(part, _chain_batches(head, rows)))

    return run


def make_send_mapper(columns: Sequence[str], fold_assignment: FoldAssignment | None) -> BatchMapper:
    """The batches themselves, with the fold of each row."""
    import pyarrow as pa

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in append_folds(batches, part := partition_number(), columns, fold_assignment):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield _result_row(part, batch.num_rows, data=sink.getvalue().to_pybytes())

    return run


def partition_number() -> int:
    """The number of the partition that this process works on, on one thread: others work beside it."""
    from pyspark import TaskContext

    os.environ.setdefault("CANDIDE_THREADS", "1")
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _chain_batches(head: Any, rows: Iterator[Any]) -> Iterator[Any]:
    yield head
    yield from rows


def _sum_rows(work: Work, rows: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """The sum of some rows; an error is passed on."""
    first = rows[0]["part"]
    for row in rows:
        if row["error"] is not None:
            yield _result_row(first, row["n"], error=row["error"])
            return
    parts = [pickle.loads(row["data"]) for row in rows if row["data"] is not None]
    if parts:
        yield _result_row(first, sum(row["n"] for row in rows), data=pickle.dumps(work.combine(parts), protocol=5))


def _result_row(part: int, n: int, data: bytes | None = None, error: bytes | None = None) -> Any:
    import pyarrow as pa

    kinds = [("part", pa.int64()), ("n", pa.int64()), ("data", pa.binary()), ("error", pa.binary())]
    columns = {"part": [part], "n": [n], "data": [data], "error": [error]}
    return pa.RecordBatch.from_pydict(columns, pa.schema(kinds))
