"""What runs on executors: the array engine, on the rows of one partition, in the Arrow batches that Spark hands over.

What it makes comes back as bytes, and so does an error of ours: it is no failure of the cluster, and not tried again.

>>> import pyarrow as pa
>>> from candide.events import Gaussian
>>> from candide.model.plan import Part
>>> class Adding:
...     def __call__(self, batches, first):
...         return first, sum(batch.num_rows for batch in batches)
>>> reads = Reads(("x",), Plan(("x",), (Part(Gaussian(), ("x",)),)))
>>> [row] = worked(reads, Adding(), 2, iter([pa.RecordBatch.from_pydict({"c0": [1.0, 2.0, 3.0]})])).to_pylist()
>>> row["part"], row["n"], pickle.loads(row["data"]) == (2 << FIRST, 3)
(2, 3, True)
"""

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from candide.engines.base import Folds, Scored, Source, Work, engine
from candide.engines.batch import batches_of
from candide.engines.spark.folds import Dealing, Met, met_in
from candide.errors import CandideError
from candide.model.plan import Plan

FIRST = 40  # bits of the number of a row in its partition
PARTS = "part long, n long, data binary, error binary"
Mapped = Callable[[Iterator[Any]], Iterator[Any]]  # what Spark calls with the batches of each partition


@dataclass(frozen=True)
class Reads:
    """Which columns of a data frame come in a batch, in order, and which of them are wanted in which layout."""

    columns: tuple[str, ...]
    plan: Plan
    keep: tuple[str, ...] = ()
    folds: Folds | None = None
    dealing: Dealing | None = None

    def laid_out(self, part: int, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches of a partition in the layout of every engine."""
        source = Partition(self.columns, folded(batches, part, self.columns, self.dealing))
        return batches_of(source, self.plan, self.keep, folds=self.folds).batches


class Partition(Source):
    """The rows of a partition, to be read once; their folds come last, where they have any."""

    name = "a partition"

    def __init__(self, columns: Sequence[str], batches: Iterable[Any]):
        self.engine, self.columns, self._batches = engine("arrays"), dict.fromkeys(columns, ""), batches

    def head(self, n: int) -> Any:
        raise NotImplementedError  # it would be read again

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        at = {name: i for i, name in enumerate(self.columns)}
        chosen = [at[name] for name in columns] + ([-1] if folds else [])
        for batch in self._batches:
            yield batch.select([i % batch.num_columns for i in chosen])


def folded(batches: Iterable[Any], part: int, columns: Sequence[str], dealing: Dealing | None) -> Iterable[Any]:
    """Batches with the fold of each row at their end, where there are folds."""
    if dealing is None:
        return batches
    fold, by = dealing.of(part), columns.index(dealing.column)
    return (batch.append_column("fold", fold(batch.column(by))) for batch in batches)


@dataclass(frozen=True)
class Meeting:
    """The work of counting the rows of each class in each partition."""

    def __call__(self, batches: Iterable[Any], first: int) -> dict[int, Met]:
        met = Counter[str]()
        for batch in batches:
            met.update(met_in(batch.column("k0")))
        return {first >> FIRST: met}

    def add(self, parts: Sequence[dict[int, Met]]) -> dict[int, Met]:
        return {part: met for some in parts for part, met in some.items()}


def worked(reads: Reads, work: Work, part: int, batches: Iterable[Any]) -> Any:
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
        return _row(part, 0)
    try:
        made = work(reads.laid_out(part, _chained(head, rows)), part << FIRST)
        return _row(part, n, data=pickle.dumps(made, protocol=5))
    except CandideError as error:
        return _row(part, n, error=pickle.dumps(error))


def work_on(reads: Reads, work: Work) -> Mapped:
    """Work on each partition, one row of :data:`PARTS` from each."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield worked(reads, work, partition(), batches)

    return run


def add_up(work: Work, group: int) -> Mapped:
    """Work made of partitions that follow each other, so many at a time, added up."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        rows = sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["part"])
        for first in sorted({row["part"] // group for row in rows}):
            yield from _added(work, [row for row in rows if row["part"] // group == first])

    return run


def score_on(reads: Reads, scored: Scored) -> Mapped:
    """The batches of a scored table."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        part, rows = partition(), (batch for batch in batches if batch.num_rows)
        if (head := next(rows, None)) is not None:
            yield from map(scored, reads.laid_out(part, _chained(head, rows)))

    return run


def send(columns: Sequence[str], dealing: Dealing | None) -> Mapped:
    """The batches themselves, with the fold of each row."""
    import pyarrow as pa

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in folded(batches, part := partition(), columns, dealing):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield _row(part, batch.num_rows, data=sink.getvalue().to_pybytes())

    return run


def partition() -> int:
    """The number of the partition that this process works on, on one thread: others work beside it."""
    from pyspark import TaskContext

    os.environ.setdefault("CANDIDE_THREADS", "1")
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _chained(head: Any, rows: Iterator[Any]) -> Iterator[Any]:
    yield head
    yield from rows


def _added(work: Work, rows: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """The sum of some rows; an error is passed on."""
    first = rows[0]["part"]
    for row in rows:
        if row["error"] is not None:
            yield _row(first, row["n"], error=row["error"])
            return
    parts = [pickle.loads(row["data"]) for row in rows if row["data"] is not None]
    if parts:
        yield _row(first, sum(row["n"] for row in rows), data=pickle.dumps(work.add(parts), protocol=5))


def _row(part: int, n: int, data: bytes | None = None, error: bytes | None = None) -> Any:
    import pyarrow as pa

    kinds = [("part", pa.int64()), ("n", pa.int64()), ("data", pa.binary()), ("error", pa.binary())]
    columns = {"part": [part], "n": [n], "data": [data], "error": [error]}
    return pa.RecordBatch.from_pydict(columns, pa.schema(kinds))
