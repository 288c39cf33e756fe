"""Score a source into a table or a file, in a stream: batches in, batches out, never the whole table.

A scored table has the input columns to keep, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.
A column of the model that the source lacks is missing in every row; other columns of the source are ignored.
"""

import csv
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from candide.data.notes import Note, issue_warnings
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.batches import cast_column, choose_arrow_type, make_blocks, run_interruptible, split_batches
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score, score_batch
from candide.errors import InputError, unknown_name_error
from candide.files import check_output, replace_file
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues
from candide.model.policy import PolicyLike
from candide.model.posterior_draws import check_level, draw_models, probability_intervals

_MAX_PROBABILITIES = 1 << 25  # probabilities in a batch of the scored table
_MAX_LINE_LENGTH = 1 << 24  # characters of a line of a scored file
_MAX_ROWS_CHECKED = 1000  # of a file that is to be replaced
_SUM_TOLERANCE = 1e-6  # by how much the probabilities of a row may miss 1


def predict_table(
    fitted: FittedModel,
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    keep: str | Sequence[str] = (),
    force: bool = False,
    policy: PolicyLike = None,
    intervals: float | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Any:
    """Score a source into a file, and return the number of rows; without ``out``, return an Arrow table.

    ``keep`` names input columns to pass through unchanged; ``"all"`` keeps all. ``policy`` replaces that of the model;
    the prediction is missing where it abstains. ``intervals`` is a level such as 0.95 for credible intervals.
    """
    check_output(out, data, is_own_file=is_scored_file, force=force)
    fitted = fitted.with_policy(policy)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, fitted.plan, fitted)
        names = [keep] if isinstance(keep, str) else list(keep)
        names = list(source.columns) if names == ["all"] else names
        for name in names:
            if name not in source.columns:
                raise unknown_name_error("column to keep", name, source.columns)
        unseen_values, interval_models = UnseenValues(fitted.plan), _IntervalModels.from_model(fitted, intervals)
        make_scorer = partial(TableScorer.from_model, fitted, names, interval_models=interval_models)
        scored: Any = source.engine.scored_table(source, fitted.plan, names, make_scorer) if out is None else None
        if scored is None:
            columns = source.original_columns(names)
            scan = source.engine.score(source, fitted.plan, [name for name, _ in columns])
            kinds = [choose_arrow_type(scan.schema.field(f"k{i}").type, kind) for i, (_, kind) in enumerate(columns)]
            scorer = make_scorer(kinds)
            pieces = split_batches(scan.batches, len(fitted.labels), _MAX_PROBABILITIES)
            batches = threads.map_ahead(partial(scorer, unseen_values=unseen_values), pieces)
            scored = _collect_scored(source, scorer.schema, batches, out)
    issue_warnings(unseen_values.notes())
    return scored


def _collect_scored(source: Source, schema: Any, batches: Iterator[Any], out: str | os.PathLike | None) -> Any:
    """The scored table as a file, with the number of rows returned, or in Arrow."""
    if out is None:
        return pa.Table.from_batches(batches, schema)
    if source.encoding is not None:
        text = f"{out} is written in UTF-8; {source.name} is in {source.encoding}"
        issue_warnings([Note("written-utf-8", text)], stacklevel=3)
    suffix = Path(out).suffix
    if suffix not in _WRITERS:
        raise unknown_name_error("ending of the output", suffix, _WRITERS)
    with replace_file(Path(out)) as temporary:  # whole, or not at all
        return _WRITERS[suffix](schema, batches, Path(temporary))


@dataclass(frozen=True, eq=False)
class _IntervalModels:
    """Models drawn from the posterior, and the level of the credible intervals."""

    models: list[Any]
    level: float

    @classmethod
    def from_model(cls, fitted: FittedModel, level: float | None) -> "_IntervalModels | None":
        if level is None:
            return None
        check_level(level)
        return cls(draw_models(fitted), level)

    def interval_columns(self, fitted: FittedModel, batch: Any) -> list[Any]:
        blocks = (make_blocks(fitted.plan, b) for b in split_batches([batch], len(fitted.labels) * len(self.models)))
        ends = np.concatenate([probability_intervals(fitted.model, self.models, block, self.level) for block in blocks])
        return [ends[:, c, side] for c in range(len(fitted.labels)) for side in (0, 1)]


@dataclass(frozen=True, eq=False)
class TableScorer:
    """Turns a batch of rows into a batch of the scored table; engines send it to where the rows are."""

    fitted: FittedModel
    keep: Sequence[str]
    schema: Any  # of the scored table, in Arrow
    interval_models: _IntervalModels | None = None

    @classmethod
    def from_model(
        cls,
        fitted: FittedModel,
        keep: Sequence[str],
        types: Sequence[Any],
        interval_models: _IntervalModels | None = None,
    ) -> "TableScorer":
        """``types`` are the Arrow types of the columns to keep."""
        labels = fitted.labels
        ends = [] if interval_models is None else [f"p_{v}_{end}" for v in labels.values for end in ("low", "high")]
        names = [*keep, "prediction", *(f"p_{v}" for v in labels.values), *ends, "log_density"]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            what, remedy = f"the scored table would have two columns {twice!r}", "keep other columns, or rename it"
            raise InputError(what, value=twice, remedy=remedy)
        types = [*types, pa.array(labels.array.tolist()).type, *[pa.float64()] * (len(labels) + len(ends) + 1)]
        return cls(fitted, keep, pa.schema(list(zip(names, types, strict=True))), interval_models)

    def __call__(self, batch: Any, unseen_values: UnseenValues | None = None) -> Any:
        fitted, n, k = self.fitted, batch.num_rows, len(self.fitted.labels)
        unseen_values = UnseenValues(fitted.plan) if unseen_values is None else unseen_values
        rule, values = fitted.decision_rule, pa.array(fitted.labels.array.tolist())
        has_density = all(distribution.has_density for distribution in fitted.model.distributions)
        p, winner, density = np.empty((k, n)), np.empty(n, np.intp), np.empty(n)
        start = 0
        for piece in split_batches([batch], k):
            rows = slice(start, start := start + piece.num_rows)
            log_posterior, density[rows] = score_batch(fitted, piece, unseen_values)
            winner[rows] = log_posterior.argmax(axis=1) if rule is None else rule(log_posterior)
            np.exp(log_posterior.T, out=p[:, rows])
        flat = pa.array(p.ravel())  # slices of it are far quicker to make than arrays, and there may be 100,000 classes
        intervals = [] if self.interval_models is None else self.interval_models.interval_columns(fitted, batch)
        columns = [
            *(cast_column(batch.column(f"k{i}"), self.schema.field(i).type) for i in range(len(self.keep))),
            values.take(pa.array(winner, mask=winner < 0)),
            *(flat.slice(c * n, n) for c in range(k)),
            *map(pa.array, intervals),
            pa.array(density) if has_density else pa.nulls(n, pa.float64()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _copy_batches(schema: Any, batches: Iterator[Any], path: Path, options: str) -> int:
    """Write all batches, and return the number of rows. An error of a batch, or of the disk, is raised as it is.

    After an error DuckDB gets no more rows and ends as usual: by itself it would not end where the disk is full.
    """
    import duckdb

    from candide.engines.sql.dialect import quote_text

    errors: list[BaseException] = []

    def until_error() -> Iterator[Any]:
        try:
            yield from takewhile(lambda _: not errors, batches)
        except Exception as error:
            errors.append(error)

    con = duckdb.connect()
    try:
        con.register("scored", pa.RecordBatchReader.from_batches(schema, until_error()))
        with _open_pipe(path, errors) as target:
            copy = f"COPY (SELECT * FROM scored) TO {quote_text(target)} ({options}, USE_TMP_FILE false)"
            n = run_interruptible(con, lambda: con.execute(copy).fetchall()[0][0])
    except duckdb.Error as error:
        errors.append(InputError(f"cannot write {path.name}: {str(error).strip().splitlines()[0]}"))
    finally:
        con.close()
    if errors:
        raise errors[0] from None
    return n


@contextmanager
def _open_pipe(path: Path, errors: list[BaseException]) -> Iterator[str]:
    """The name of a pipe whose bytes are written to a file, until there is an error."""
    if os.name != "posix":
        yield str(path)
        return
    source, target = os.pipe()

    def drain() -> None:
        with open(source, "rb", buffering=0) as pipe, open(path, "wb", buffering=0) as out:
            while piece := pipe.read(1 << 20):
                try:
                    rest = memoryview(b"" if errors else piece)
                    while rest:
                        rest = rest[out.write(rest) :]
                except OSError as error:
                    errors.append(error)

    thread = threading.Thread(target=drain, name="candide-writer", daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{target}"
    finally:
        os.close(target)
        thread.join()


def _write_parquet(schema: Any, batches: Iterator[Any], path: Path) -> int:
    """Write all batches in their types, some of which DuckDB does not know."""
    import pyarrow.parquet as pq

    for field in schema:
        if pa.types.is_interval(field.type) or pa.types.is_union(field.type):
            what = f"a Parquet file cannot hold the type {field.type}"
            raise InputError(what, column=field.name, remedy="keep other columns, or write a .csv or .jsonl file")
    # A dictionary of numbers costs more than it saves.
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)]
    n = 0
    with pq.ParquetWriter(path, schema, use_dictionary=texts) as out:
        for batch in batches:
            out.write_batch(batch)
            n += batch.num_rows
    return n


_WRITERS: dict[str, Callable[[Any, Iterator[Any], Path], int]] = {
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    ".csv": partial(_copy_batches, options="FORMAT csv, HEADER"),
    ".tsv": partial(_copy_batches, options="FORMAT csv, HEADER, DELIMITER '\t'"),
    ".jsonl": partial(_copy_batches, options="FORMAT json"),
    ".ndjson": partial(_copy_batches, options="FORMAT json"),
}


def is_scored_file(path: str) -> bool:
    """Whether a file is a scored table, and so may be replaced by another.

    The names of the columns do not suffice: a table of the user may have the same. So the first rows must hold
    probabilities of the classes that add up to 1, and a prediction that is one of the classes.
    """
    try:
        with _open_table(path) as (names, rows):
            if names[-1] != "log_density":
                return False
            at = len(names) - 1 - names[::-1].index("prediction")  # the last: a column that is kept may have its name
            classes = names[at + 1 : -1]
            rows = islice(rows, _MAX_ROWS_CHECKED)
            return all(name.startswith("p_") for name in classes) and all(
                len(row) == len(names) and _is_scored_row(classes, row[at:]) for row in rows
            )
    except (OSError, ValueError, TypeError, IndexError, csv.Error):
        return False


def _is_scored_row(columns: list[str], row: Sequence[Any]) -> bool:
    prediction, *values, density = row
    p = dict(zip(columns, map(float, values), strict=True))
    ends = {f"{name}{end}" for name in p for end in ("_low", "_high")}  # of intervals
    classes = [name for name in p if name not in ends]
    float(density or "nan")  # a number, or missing
    if not all(-_SUM_TOLERANCE <= value <= 1 + _SUM_TOLERANCE for value in p.values()):
        return False
    if abs(sum(p[name] for name in classes) - 1) > _SUM_TOLERANCE:
        return False
    text = "" if prediction is None else str(prediction).casefold()  # formats write the same value in several ways
    labels = [name.removeprefix("p_").casefold() for name in classes]
    return not text or any(label.startswith(text) or text.startswith(label) for label in labels)


@contextmanager
def _open_table(path: str) -> Iterator[tuple[list[str], Iterable[Sequence[Any]]]]:
    ending = Path(path).suffix
    if ending in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as parquet:
            names = parquet.schema_arrow.names
            batch = next(parquet.iter_batches(_MAX_ROWS_CHECKED), None)
            yield names, [] if batch is None else zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        lines = iter(lambda: file.readline(_MAX_LINE_LENGTH), "")
        if ending in (".jsonl", ".ndjson"):
            records: Iterator[dict[str, Any]] = map(json.loads, lines)
            first = next(records, {})
            yield list(first), (tuple(record.values()) for record in (first, *islice(records, _MAX_ROWS_CHECKED)))
        else:
            table = csv.reader(lines, delimiter="\t" if ending == ".tsv" else ",")
            yield next(table, []), table
