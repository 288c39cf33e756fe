"""Rows in Arrow record batches of one layout, whichever engine reads them.

The columns of every part of the plan, in order, are ``f0``, ``f1``, ..., or ``code0``, ... where the engine has looked
up their levels; then come the columns to keep, ``k0``, ``k1``, ..., and the ``fold`` of each row if there are folds. A
column that the source lacks is missing in every row.

>>> from candide.engines.base import open_source
>>> from candide.model.plan import make_plan
>>> from candide.data.table import Table
>>> table = Table.from_data({"age": [30.0, 41.0, 8.0], "job": ["cook", "smith", None]})
>>> with open_source(table) as source:
...     [batch] = read_batches(source, make_plan(table), ["job"]).batches
>>> batch.schema.names
['f0', 'f1', 'k0']
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from candide.data.arrow_columns import arrow_numbers, is_absent
from candide.data.blocks import Block
from candide.data.table import Table
from candide.data.temporal import not_temporal
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.encoding import EncodedColumn
from candide.model.plan import Plan, PlanPart

if TYPE_CHECKING:
    from candide.engines.base import Folds, Source

BATCH_ROWS = 1 << 17  # rows in a batch
_MAX_BATCH_VALUES = 1 << 23  # values in a batch, where rows are wide
_MAX_BATCH_DOCUMENTS = 1 << 12  # and of rows with documents, which are long


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
    """Batches cut so that a number for each row and class takes little memory.

    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"x": [1.0, 2.0, 3.0]})
    >>> [piece.num_rows for piece in split_batches([batch, batch[:0]], n_classes=1000, max_values=2000)]
    [2, 1, 0]
    """
    rows = max(1, max_values // max(1, n_classes))
    return (batch.slice(start, rows) for batch in batches for start in range(0, max(1, batch.num_rows), rows))


def iterate_columns(plan: Plan) -> Iterator[tuple[PlanPart, int]]:
    """Every column of every part, in order."""
    return ((part, j) for part in plan.parts for j in range(len(part.columns)))


def is_read_as_text(part: PlanPart) -> bool:
    """Whether its columns are read as they are written: categories and documents."""
    return part.event.encoding.is_read_as_text


def number_columns(plan: Plan, text_formats: Collection[str] = ()) -> list[str]:
    """The columns that a plan reads as numbers, and those with a known text format."""
    columns = ((str(part.columns[j]), part.encodings[j].is_read_as_text) for part, j in iterate_columns(plan))
    return list(dict.fromkeys(name for name, is_text in columns if not is_text or name in text_formats))


def make_blocks(plan: Plan, batch: Any) -> list[Block]:
    """The rows of a batch as the model takes them, one block a part."""
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
    batches = map(laid_out, batches if span is None else _slice_rows(batches, *span))
    first = next(batches, None)
    if first is None:
        first = laid_out(pa.RecordBatch.from_pydict({n: source.head(0).column(n).combine_chunks() for n in present}))
    return Scan(first.schema, chain([first], batches))


def _slice_rows(batches: Any, start: int, n: int) -> Iterator[Any]:
    """``n`` rows from ``start`` on."""
    for batch in batches:
        part = batch.slice(min(start, batch.num_rows), n)
        start, n = max(0, start - batch.num_rows), n - part.num_rows
        if part.num_rows:
            yield part
        if not n:
            return


def choose_arrow_type(found_type: Any, own_type: Any) -> Any:
    """The type in which a column is passed on: its own, where what was read can be put into that again."""
    import pyarrow as pa

    if own_type is None or pa.types.is_null(own_type) or isinstance(own_type, pa.BaseExtensionType):
        return found_type
    try:
        return cast_column(pa.nulls(0, found_type), own_type).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return found_type


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
        for row, value in _present_values(source, str(name)):
            raise not_temporal(value, kind, text_formats.get(str(name), PLAIN_FORMAT), name, row)


def _present_values(source: "Source", name: str) -> Iterator[tuple[int, Any]]:
    """The values of a column that are not missing, with their rows."""
    start = 0
    for batch in source.batches([name], BATCH_ROWS):
        column = batch.column(0)
        if column.null_count < len(column):
            values = enumerate(column.to_pylist(), start)
            yield from ((row, value) for row, value in values if not is_absent(value) and value != "")
        start += len(column)
