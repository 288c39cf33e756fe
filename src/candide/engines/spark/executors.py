"""What runs on Spark executors: the array engine on the rows of one partition, in the Arrow batches from Spark.

Spark calls ``work_on_rows``, ``add_results``, ``score_rows`` and ``send_rows`` with the batches of each partition.
Results come back as bytes, and so do our own errors: they are not failures of the cluster, and are not tried again.

Without a key, rows are assigned to folds as they come, class by class. The rows of a class in turn make rounds, one row
for every fold, and which row of a round goes to which fold is drawn. The first round of a partition begins where the
one before it ends, so that the folds of a class differ by one row at most. That takes a pass over the labels before,
and rows that come in the same order again. With a key neither is needed.
"""

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from candide.data.equal_rows import hash_row_numbers
from candide.data.labels import Labels
from candide.data.sample import assign_folds_by_key
from candide.engines.base import BatchScorer, Folds, Source, Work, get_engine
from candide.engines.batches import read_batches
from candide.errors import CandideError
from candide.model.plan import Plan

ROW_NUMBER_BITS = 40  # bits of the number of a row in its partition
RESULT_SCHEMA = "part long, n long, data binary, error binary"
ClassRowCounts = Mapping[str, int]  # how many rows of each class
_MISSING_CLASS = ""  # no class has this representation


@dataclass(frozen=True)
class KeyFolds:
    column: str
    n: int
    seed: int

    def fold_function(self, part: int) -> Callable[[Any], Any]:
        """The function from the values of a partition in the column, batch by batch in order, to their folds."""
        return lambda keys: pa.array(assign_folds_by_key(keys, self.n, self.seed, self.column))


@dataclass(frozen=True)
class StratifiedFolds:
    """Rows assigned in turn, by how many of each class every partition holds.

    >>> parts = [pa.array(labels) for labels in (["a", "b", "a"], ["b"], ["a", "a", "a", "a"])]
    >>> assignment = StratifiedFolds("y", 3, 0, [count_classes(labels) for labels in parts])
    >>> folds = [assignment.fold_function(part)(labels).to_pylist() for part, labels in enumerate(parts)]
    >>> sorted([folds[0][0], folds[0][2], *folds[2]])
    [0, 0, 1, 1, 2, 2]
    """

    column: str
    n: int
    seed: int
    class_counts: Sequence[ClassRowCounts]  # of each partition

    def fold_function(self, part: int) -> Callable[[Any], Any]:
        n_before = Counter[str]()
        for counts in self.class_counts[:part]:
            n_before.update(counts)

        def folds(labels: Any) -> Any:
            classes = Labels.from_values(labels)
            codes = classes.encode(labels)
            fold = np.zeros(len(codes), np.int16)
            for code, name in enumerate([*map(repr, classes.values), _MISSING_CLASS]):
                rows = np.flatnonzero(codes == (code if code < len(classes) else -1))
                fold[rows] = _fold_of_places(n_before[name] + np.arange(len(rows)), self.n, self.seed, name)
                n_before[name] += len(rows)
            return pa.array(fold)

        return folds


def count_classes(labels: Any) -> ClassRowCounts:
    """How many rows each class has, by its representation."""
    classes = Labels.from_values(labels)
    codes = classes.encode(labels)
    n = np.bincount(codes[codes >= 0], minlength=len(classes))
    return {**dict(zip(map(repr, classes.values), n.tolist(), strict=True)), _MISSING_CLASS: int((codes < 0).sum())}


def _fold_of_places(place: NDArray, n: int, seed: int, name: str) -> NDArray:
    if not len(place):
        return place
    salt = int.from_bytes(name.encode()[:6], "big")  # so that small classes do not all begin with the same fold
    each = hash_row_numbers(((place // n)[:, None] * n + np.arange(n) + (salt << 16)).ravel(), seed).reshape(-1, n)
    return (each < np.take_along_axis(each, (place % n)[:, None], axis=1)).sum(axis=1)


FoldAssignment = KeyFolds | StratifiedFolds


@dataclass(frozen=True)
class BatchLayout:
    """Which columns of a data frame come in a batch, in order, and the plan and columns to lay out."""

    columns: tuple[str, ...]
    plan: Plan
    keep: tuple[str, ...] = ()
    folds: Folds | None = None
    fold_assignment: FoldAssignment | None = None

    def lay_out(self, part: int, batches: Iterable[Any]) -> Iterator[Any]:
        source = Partition(self.columns, append_folds(batches, part, self.columns, self.fold_assignment))
        return read_batches(source, self.plan, self.keep, folds=self.folds).batches


class Partition(Source):
    """The rows of a partition, to be read once; a column of folds comes last."""

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
    if fold_assignment is None:
        return batches
    fold, by = fold_assignment.fold_function(part), columns.index(fold_assignment.column)
    return (batch.append_column("fold", fold(batch.column(by))) for batch in batches)


@dataclass(frozen=True)
class ClassCounting:
    def __call__(self, batches: Iterable[Any], first: int) -> dict[int, ClassRowCounts]:
        counts = Counter[str]()
        for batch in batches:
            counts.update(count_classes(batch.column("k0")))
        return {first >> ROW_NUMBER_BITS: counts}

    def combine(self, parts: Sequence[dict[int, ClassRowCounts]]) -> dict[int, ClassRowCounts]:
        return {part: counts for each in parts for part, counts in each.items()}


def work_on_rows(reads: BatchLayout, work: Work, batches: Iterable[Any]) -> Iterator[Any]:
    """The result of work on a partition, one row of :data:`RESULT_SCHEMA`; without data where it has no rows."""
    part, n = partition_number(), 0

    def count_rows() -> Iterator[Any]:
        nonlocal n
        for batch in batches:
            if batch.num_rows:
                n += batch.num_rows
                yield batch

    rows = count_rows()
    head = next(rows, None)
    if head is None:
        yield _result_row(part, 0)
        return
    try:
        result = work(reads.lay_out(part, chain([head], rows)), part << ROW_NUMBER_BITS)
        yield _result_row(part, n, data=pickle.dumps(result, protocol=5))
    except CandideError as error:
        yield _result_row(part, n, error=pickle.dumps(error))


def add_results(work: Work, group: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Add up the results of consecutive partitions, ``group`` at a time."""
    rows = sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["part"])
    for first in sorted({row["part"] // group for row in rows}):
        yield from _sum_rows(work, [row for row in rows if row["part"] // group == first])


def score_rows(reads: BatchLayout, scored: BatchScorer, batches: Iterable[Any]) -> Iterator[Any]:
    part, rows = partition_number(), (batch for batch in batches if batch.num_rows)
    if (head := next(rows, None)) is not None:
        yield from map(scored, reads.lay_out(part, chain([head], rows)))


def send_rows(columns: Sequence[str], assignment: FoldAssignment | None, batches: Iterable[Any]) -> Iterator[Any]:
    for batch in append_folds(batches, part := partition_number(), columns, assignment):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield _result_row(part, batch.num_rows, data=sink.getvalue().to_pybytes())


def partition_number() -> int:
    """The number of the partition that this process works on; it uses one thread, beside other processes."""
    from pyspark import TaskContext

    os.environ.setdefault("CANDIDE_THREADS", "1")
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _sum_rows(work: Work, rows: Sequence[dict[str, Any]]) -> Iterator[Any]:
    first = rows[0]["part"]
    for row in rows:
        if row["error"] is not None:
            yield _result_row(first, row["n"], error=row["error"])
            return
    parts = [pickle.loads(row["data"]) for row in rows if row["data"] is not None]
    if parts:
        yield _result_row(first, sum(row["n"] for row in rows), data=pickle.dumps(work.combine(parts), protocol=5))


def _result_row(part: int, n: int, data: bytes | None = None, error: bytes | None = None) -> Any:
    schema = pa.schema({"part": pa.int64(), "n": pa.int64(), "data": pa.binary(), "error": pa.binary()})
    return pa.RecordBatch.from_pydict({"part": [part], "n": [n], "data": [data], "error": [error]}, schema)
