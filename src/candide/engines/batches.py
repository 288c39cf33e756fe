"""Rows in Arrow record batches of one layout, whichever engine reads them.

The columns of every part of the plan, in order, are ``f0``, ``f1``, ..., or ``code0``, ... where the engine has looked
up their levels; then come the columns to keep, ``k0``, ``k1``, ..., and the ``fold`` of each row if there are folds. A
column that the source lacks is missing in every row.

A database that gives them works on another thread: DuckDB checks for signals while it works, but does not always return
from one, so the thread that waits for it interrupts it.
"""

import os
import select
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from candide.data.arrow_columns import arrow_numbers, is_absent
from candide.data.blocks import Block, Floats
from candide.data.table import EncodedColumn, Table
from candide.data.text_columns import temporal_error
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.errors import InputError
from candide.model.plan import Plan, PlanPart

if TYPE_CHECKING:
    from candide.engines.base import Folds, Source

T = TypeVar("T")
BATCH_ROWS = 1 << 17  # rows in a batch
_MAX_BATCH_VALUES = 1 << 23  # values in a batch, where rows are wide
_MAX_BATCH_DOCUMENTS = 1 << 12  # and of rows with documents, which are long
_INTERRUPT_SECONDS = 0.01  # seconds between two interrupts
_SIGNAL_CHECK_SECONDS = 0.1  # a signal that came to another thread is seen only when this one wakes


@dataclass(frozen=True)
class Scan:
    """The schema of batches, and the batches, to be read once."""

    schema: Any
    batches: Iterator[Any]


def batch_size(plan: Plan) -> int:
    """How many rows of a plan's columns are read at a time."""
    if any(part.block_kind == "documents" for part in plan.parts):
        return _MAX_BATCH_DOCUMENTS
    return min(BATCH_ROWS, max(_MAX_BATCH_VALUES // max(1, len(plan.columns)), 1 << 11))


def split_batches(batches: Iterable[Any], n_classes: int, max_values: int = _MAX_BATCH_VALUES) -> Iterator[Any]:
    """Batches cut so that a number for each row and class takes little memory."""
    return split_rows(batches, max(1, max_values // max(1, n_classes)))


def split_rows(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Batches of at most ``size`` rows; an empty one is kept."""
    return (batch.slice(start, size) for batch in batches for start in range(0, max(1, batch.num_rows), size))


def iterate_columns(plan: Plan) -> Iterator[tuple[PlanPart, int]]:
    return ((part, j) for part in plan.parts for j in range(len(part.columns)))


def number_columns(plan: Plan, text_formats: Collection[str] = ()) -> list[str]:
    """The columns that a plan reads as numbers, and those with a known text format."""
    columns = ((str(part.columns[j]), part.encodings[j].is_read_as_text) for part, j in iterate_columns(plan))
    return list(dict.fromkeys(name for name, is_text in columns if not is_text or name in text_formats))


def make_blocks(plan: Plan, batch: Any) -> list[Block]:
    columns = iter(zip(batch.schema.names, batch.columns, strict=True))

    def read() -> Any:
        name, column = next(columns)
        return EncodedColumn(arrow_numbers(column)) if name.startswith("code") else column

    return [part.block(Table.from_data({name: read() for name in part.columns})) for part in plan.parts]


def read_batches(
    source: "Source",
    plan: Plan,
    keep: Sequence[str] = (),
    *,
    folds: "Folds | None" = None,
    span: tuple[int, int] | None = None,
) -> Scan:
    """Rows of a source in this layout, from the batches that every source gives."""
    import pyarrow as pa

    present = [name for name in dict.fromkeys([*map(str, plan.columns), *keep]) if name in source.columns]

    def laid_out(batch: Any) -> Any:
        columns = dict(zip(present, batch.columns, strict=False))
        out = {}
        for i, (part, j) in enumerate(iterate_columns(plan)):
            name, kind = str(part.columns[j]), pa.string() if part.block_kind == "documents" else pa.float64()
            out[f"f{i}"] = columns[name] if name in columns else pa.nulls(batch.num_rows, kind)
        out |= {f"k{i}": columns[name] for i, name in enumerate(keep)}
        return pa.RecordBatch.from_pydict(out | ({"fold": batch.columns[-1]} if folds else {}))

    batches = source.batches(present, batch_size(plan), folds)
    batches = map(laid_out, batches if span is None else slice_rows(batches, *span))
    first = next(batches, None)
    if first is None:
        first = laid_out(pa.RecordBatch.from_pydict({n: source.head(0).column(n).combine_chunks() for n in present}))
    return Scan(first.schema, chain([first], batches))


def slice_rows(batches: Any, start: int, n: int) -> Iterator[Any]:
    for batch in batches:
        part = batch.slice(min(start, batch.num_rows), n)
        start, n = max(0, start - batch.num_rows), n - part.num_rows
        if part.num_rows:
            yield part
        if not n:
            return


def choose_arrow_type(read_type: Any, original_type: Any) -> Any:
    """The type in which a column is passed on: the original one, where the type that was read can be cast to it."""
    import pyarrow as pa

    if original_type is None or pa.types.is_null(original_type) or isinstance(original_type, pa.BaseExtensionType):
        return read_type
    try:
        return cast_column(pa.nulls(0, read_type), original_type).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return read_type


def cast_column(column: Any, kind: Any) -> Any:
    """An Arrow array in another type; an interval becomes a duration, of which it was made."""
    import pyarrow as pa

    if column.type == kind:
        return column
    if pa.types.is_interval(column.type) and pa.types.is_duration(kind):
        raw = np.frombuffer(column.buffers()[1] or b"", [("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
        raw = raw[column.offset : column.offset + len(column)]
        us = pa.array(raw["days"] * np.int64(86_400_000_000) + raw["ns"] // 1000, mask=np.asarray(column.is_null()))
        return us.cast(pa.duration("us")).cast(kind)
    return column.cast(kind, safe=False)  # numbers come wider than they were


def check_temporal(source: "Source", temporal: Mapping[Any, str], text_formats: Mapping[str, TextFormat]) -> None:
    """Refuse a column of another type that holds a value, where the model has dates, or times and durations.

    A number in the place of a date would be read as days since 1970, so types are checked before any row is read.
    """
    for name, kind in temporal.items():
        if str(name) not in source.columns or source.temporal_kind(str(name)) == kind:
            continue
        start = 0
        for batch in source.batches([str(name)], BATCH_ROWS):
            column = batch.column(0)
            for row, value in enumerate(column.to_pylist() if column.null_count < len(column) else (), start):
                if not is_absent(value) and value != "":
                    raise temporal_error(value, kind, text_formats.get(str(name), PLAIN_FORMAT), name, row)
            start += len(column)


def parse_row_weights(name: str, column: Any) -> Floats:
    import pyarrow as pa

    try:
        w = arrow_numbers(column.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"weights must be numbers >= 0; {error}", column=name) from None
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        value = None if np.isnan(w[bad[0]]) else float(w[bad[0]])
        text = "a weight is missing, infinite or negative; weights must be numbers >= 0"
        raise InputError(text, column=name, value=value)
    return w


def run_interruptible(con: Any, call: Callable[[], T]) -> T:
    """The result of a call on a connection, which is interrupted where this thread is."""
    if threading.current_thread() is not threading.main_thread():  # signals come to the main thread
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    begun, stop, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            if not stop.is_set():
                results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="candide-query", daemon=True)
    try:
        thread.start()
        while not ended.wait(_SIGNAL_CHECK_SECONDS):
            pass
    except BaseException:
        stop.set()  # a signal may come before the thread has begun
        while begun.is_set() and not ended.wait(_INTERRUPT_SECONDS):  # a query may begin after the first interrupt
            con.interrupt()
        raise
    if errors:
        raise errors[0]
    return results[0]


def read_pieces(stream: Any, size: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a stream, as they come; while it waits a signal is seen."""
    try:
        waits = [stream.fileno()] if os.name == "posix" else []
    except (OSError, AttributeError):  # it is in memory
        waits = []
    while True:
        while waits and not select.select(waits, [], [], _SIGNAL_CHECK_SECONDS)[0]:
            pass
        if not (piece := stream.read1(size)):
            return
        yield piece
