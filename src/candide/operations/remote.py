"""Predicting through a server: a source is read here, scored there, and written here, a few thousand rows at a time.

The server says which columns its model wants and how they are read, so that a table becomes the same rows as for a
model at hand, and the scored table is the same. Rows go out as Arrow streams, some at once, and come back in order.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from candide.data.notes import Note, issue_warnings
from candide.data.temporal import in_time
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.batches import cast_column, choose_arrow_type, iterate_columns, split_batches
from candide.engines.reading import ReadOptions
from candide.engines.scoring import prepare_to_score
from candide.errors import InputError, SourceError
from candide.kernels import threads
from candide.model.input_columns import unseen_note
from candide.operations.connection import Connection, RequestTooLargeError, ServerResponse
from candide.operations.predict import MAX_PROBABILITIES, check_distinct, check_kept_columns, write_scored
from candide.store import outputs
from candide.store.input_schema import InputSchema
from candide.store.models import make_read_options
from candide.store.scored_files import is_scored_file

ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"
_MAX_REQUEST_ROWS = (
    1 << 15
)  # rows of a request: far fewer than a server takes, enough that asking costs nothing beside them
_MAX_REQUEST_BYTES = 1 << 22  # and bytes of it


def predict_remotely(
    server: str,
    data: Any,
    *,
    token: str | None = None,
    out: str | os.PathLike | None = None,
    keep: str | Sequence[str] = (),
    force: bool = False,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Any:
    """Score a source by the model of a server, at an address such as ``http://127.0.0.1:8000``.

    As :func:`candide.operations.predict` does with a model at hand: into a file (the number of rows comes back), or
    into an Arrow table. A file is written whole or not at all, whatever becomes of the server.
    """
    outputs.check_destination(out, data, ours=is_scored_file, force=force)
    strange = _UnseenColumns()
    with Connection(server, token) as there:
        wanted = InputSchema.from_dict(there.get_json("/columns"))
        with open_source(data, make_read_options(wanted, reading)) as source, watch(source, "scoring"):
            prepare_to_score(source, wanted.plan, wanted)
            scored = _score_table_remotely(source, there, wanted, check_kept_columns(source, keep), strange)
            found = write_scored(source, *scored, out)
    issue_warnings(strange.notes())
    return found


def _score_table_remotely(
    source: Source, there: Connection, wanted: InputSchema, keep: Sequence[str], strange: "_UnseenColumns"
) -> tuple[Any, Iterator[Any]]:
    """The schema and the batches of the scored table."""
    import pyarrow as pa

    plan, written = wanted.plan, source.original_columns(keep)
    scan = source.engine.score(source, plan, [name for name, _ in written], codes=False)
    names = [str(part.columns[j]) for part, j in iterate_columns(plan)]
    sent = [(i, name) for i, name in enumerate(names) if name in source.columns]
    kinds = [choose_arrow_type(scan.schema.field(f"k{i}").type, kind) for i, (_, kind) in enumerate(written)]
    asking = partial(_post_batch, there, sent, strange, wanted.temporal)
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in scan.schema], schema=scan.schema)
    answers = asking(empty).schema
    check_distinct([*keep, *answers.names])
    schema = pa.schema([*zip(keep, kinds, strict=True), *answers])

    def scored(numbered: tuple[int, Any]) -> Any:
        first, batch = numbered
        answered = list(_score_in_parts(asking, batch, first))
        if any(part.schema != answers for part in answered):
            remedy = "score the table again"
            raise SourceError("its model has other classes than when this began", source=there.name, remedy=remedy)
        kept = [cast_column(batch.column(f"k{i}"), kind) for i, kind in enumerate(kinds)]
        columns = [pa.concat_arrays([part.column(i) for part in answered]) for i in range(len(answers))]
        return pa.RecordBatch.from_arrays([*kept, *columns], schema=schema)

    pieced = split_batches(scan.batches, len(answers) - 2, MAX_PROBABILITIES)  # as a model at hand would write them
    return schema, threads.map_ahead(scored, _number_batches(pieced))


def _number_batches(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Batches, each with the number of its first row."""
    first = 0
    for batch in batches:
        yield first, batch
        first += batch.num_rows


def _score_in_parts(asking: Callable[[Any], Any], batch: Any, first: int) -> Iterator[Any]:
    """The answers to the rows of a batch, in as many requests as it takes; an error tells the row among all."""
    rows = max(1, min(_MAX_REQUEST_ROWS, batch.num_rows * _MAX_REQUEST_BYTES // max(1, batch.nbytes)))
    for at in range(0, max(1, batch.num_rows), rows):
        yield from _score_halves(asking, batch.slice(at, rows), first + at)


def _score_halves(asking: Callable[[Any], Any], batch: Any, first: int) -> Iterator[Any]:
    """The same, by halves where the server takes fewer rows."""
    try:
        yield asking(batch)
    except RequestTooLargeError:
        if not (half := batch.num_rows // 2):
            raise
        yield from _score_halves(asking, batch[:half], first)
        yield from _score_halves(asking, batch[half:], first + half)
    except InputError as error:
        if isinstance(error.row, int):
            error.row += first
        raise


def _typed(column: Any, kind: str | None) -> Any:
    """A column as it is sent: days of dates and of times in a type that says so."""
    import pyarrow as pa

    if kind is None or not pa.types.is_floating(column.type):
        return column
    return pa.array(in_time(column.to_numpy(zero_copy_only=False), kind))


def _post_batch(
    there: Connection, sent: list[tuple[int, str]], strange: "_UnseenColumns", temporal: Mapping[str, str], batch: Any
) -> Any:
    """The answer to the rows of a batch, as one of Arrow."""
    import pyarrow as pa

    columns = [_typed(batch.column(i), temporal.get(name)) for i, name in sent]
    rows = pa.RecordBatch.from_arrays(columns, names=[name for _, name in sent])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    answer = there.post("/predict", out.getvalue(), ARROW_MEDIA_TYPE)
    try:
        with pa.ipc.open_stream(pa.py_buffer(answer.body)) as stream:
            found = stream.read_all().combine_chunks()
        strange.observe(rows, answer)
    except (pa.ArrowException, OSError, ValueError):
        raise SourceError("the answer is cut short or damaged", source=there.name, remedy="try again") from None
    if found.num_rows != rows.num_rows:
        what = f"{found.num_rows:,} answers to {rows.num_rows:,} rows"
        raise SourceError(what, source=there.name, remedy="try again")
    return pa.RecordBatch.from_arrays([_as_one_array(column) for column in found.columns], schema=found.schema)


def _as_one_array(column: Any) -> Any:
    """A column of a table as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _UnseenColumns:
    """Columns of which no value is one that the model knows, by what is noted of each request."""

    def __init__(self) -> None:
        self._unseen: dict[str, None] = {}
        self._seen: set[str] = set()
        self._texts: dict[tuple[str, ...], str] = {}

    def observe(self, rows: Any, answer: ServerResponse) -> None:
        """Take note of the columns of a request that the server does not know, and of those that it does."""
        notes = [one for one in json.loads(answer.headers.get("candide-notes", "[]")) if one["code"] == "unseen"]
        here = [name for one in notes for name in one["columns"]]
        self._unseen |= dict.fromkeys(here)
        for one in notes:
            self._texts[tuple(one["columns"])] = one["text"]
        there = zip(rows.schema.names, rows.columns, strict=True)
        self._seen.update(name for name, column in there if name not in here and column.null_count < len(column))

    def notes(self) -> list[Note]:
        """One on all columns of which every value is strange, in the words of the server where it said just this."""
        names = tuple(name for name in self._unseen if name not in self._seen)
        if not names:
            return []
        said = self._texts.get(names)
        return [unseen_note(names) if said is None else Note("unseen", said, names[0], columns=names)]
