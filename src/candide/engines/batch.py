"""Batches: rows on their way to a model, in Arrow record batches of one layout, whichever engine reads them.

Of every part of the plan, in order, each column is ``f0``, ``f1``, ..., or ``code0``, ... where the engine has looked
up its levels; then come the columns to keep, ``k0``, ``k1``, ..., and the ``fold`` of each row if it is asked for. A
column that the source lacks is missing in every row.

>>> from candide.engines.base import open_source
>>> from candide.model.plan import make_plan
>>> from candide.rows.table import Table
>>> table = Table.of({"age": [30.0, 41.0, 8.0], "job": ["cook", "smith", None]})
>>> with open_source(table) as source:
...     [batch] = batches_of(source, make_plan(table), ["job"]).batches
>>> batch.schema.names
['f0', 'f1', 'k0']
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from candide.encode import Coded
from candide.model.plan import Part, Plan
from candide.rows.arrow import arrow_numbers
from candide.rows.blocks import Block
from candide.rows.table import Table

if TYPE_CHECKING:
    from candide.engines.base import Folds, Source

BATCH = 1 << 17  # rows in a batch
_VALUES = 1 << 23  # values in a batch, where rows are wide
_DOCUMENTS = 1 << 12  # and of rows with documents, which are long


@dataclass(frozen=True)
class Scan:
    """The schema of batches, and the batches, to be read once."""

    schema: Any
    batches: Iterator[Any]


def batch_size(plan: Plan) -> int:
    """How many rows of a plan's columns are read at a time."""
    if any(part.holds == "documents" for part in plan.parts):
        return _DOCUMENTS
    return min(BATCH, max(_VALUES // max(1, len(plan.columns)), 1 << 11))


def pieces(batches: Iterable[Any], n_classes: int, most: int = _VALUES) -> Iterator[Any]:
    """Batches cut so that a number for each row and class does not take much room.

    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"x": [1.0, 2.0, 3.0]})
    >>> [piece.num_rows for piece in pieces([batch, batch[:0]], n_classes=1000, most=2000)]
    [2, 1, 0]
    """
    rows = max(1, most // max(1, n_classes))
    return (batch.slice(start, rows) for batch in batches for start in range(0, max(1, batch.num_rows), rows))


def places(plan: Plan) -> Iterator[tuple[Part, int]]:
    """Every column of every part, in order."""
    return ((part, j) for part in plan.parts for j in range(len(part.columns)))


def is_text(part: Part) -> bool:
    """Whether its columns are read as they are written: categories and documents."""
    return part.event.encoding.as_written


def number_columns(plan: Plan, spelled: Collection[str] = ()) -> list[str]:
    """The columns that a plan reads as numbers, and those whose text is known to spell numbers (``spelled``)."""
    each = ((str(part.columns[j]), part.encodings[j].as_written) for part, j in places(plan))
    return list(dict.fromkeys(name for name, as_written in each if not as_written or name in spelled))


def blocks(plan: Plan, batch: Any) -> list[Block]:
    """The rows of a batch as the model takes them, one block a part."""
    columns = iter(zip(batch.schema.names, batch.columns, strict=True))

    def read() -> Any:
        name, column = next(columns)
        return Coded(arrow_numbers(column)) if name.startswith("code") else column

    return [part.block(Table.of({name: read() for name in part.columns})) for part in plan.parts]


def batches_of(
    source: "Source",
    plan: Plan,
    keep: Sequence[str] = (),
    *,
    folds: "Folds | None" = None,
    span: tuple[int, int] | None = None,
) -> Scan:
    """Rows of a source in this layout, from the batches that every source gives."""
    import pyarrow as pa

    there = [name for name in dict.fromkeys([*map(str, plan.columns), *keep]) if name in source.columns]
    wanted = [str(part.columns[j]) for part, j in places(plan)]
    text = [part.holds == "documents" for part, _ in places(plan)]

    def laid_out(batch: Any) -> Any:
        columns = dict(zip(there, batch.columns, strict=False))
        out = {}
        for i, name in enumerate(wanted):
            absent = pa.string() if text[i] else pa.float64()
            out[f"f{i}"] = columns[name] if name in columns else pa.nulls(batch.num_rows, absent)
        out |= {f"k{i}": columns[name] for i, name in enumerate(keep)}
        return pa.RecordBatch.from_pydict(out | ({"fold": batch.columns[-1]} if folds else {}))

    found = source.batches(there, batch_size(plan), folds)
    laid = map(laid_out, found if span is None else _span(found, *span))
    first = next(laid, None)
    if first is None:
        first = laid_out(pa.RecordBatch.from_pydict({n: source.head(0).column(n).combine_chunks() for n in there}))
    return Scan(first.schema, chain([first], laid))


def _span(batches: Any, start: int, n: int) -> Iterator[Any]:
    """``n`` rows from ``start`` on."""
    for batch in batches:
        part = batch.slice(min(start, batch.num_rows), n)
        start, n = max(0, start - batch.num_rows), n - part.num_rows
        if part.num_rows:
            yield part
        if not n:
            return


def arrow_type(found: Any, own: Any) -> Any:
    """The type in which a column is passed on: its own, where what was read can be put into that again."""
    import pyarrow as pa

    if own is None or pa.types.is_null(own) or isinstance(own, pa.BaseExtensionType):
        return found
    try:
        return as_type(pa.nulls(0, found), own).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return found


def as_type(column: Any, kind: Any) -> Any:
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
