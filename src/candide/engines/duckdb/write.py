"""Writing Arrow batches to a file in a stream, through DuckDB's writers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from candide.engines.sql.text import literal
from candide.errors import InputError, unknown


def _copy(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path, options: str) -> int:
    """Write all batches; the number of rows comes back. The error of a batch is raised as it is."""
    failed: list[BaseException] = []

    def kept() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            failed.append(error)
            raise

    reader = pa.RecordBatchReader.from_batches(schema, kept())
    con = duckdb.connect()
    try:
        con.register("scored", reader)
        return con.execute(f"COPY (SELECT * FROM scored) TO {literal(str(path))} ({options})").fetchall()[0][0]
    except duckdb.Error as error:
        if failed:
            raise failed[0] from None
        raise InputError(f"cannot write {path.name}: {str(error).strip().splitlines()[0]}") from error
    finally:
        con.close()


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside the wished one, given up for it at the end, or removed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_COPY = {
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def write(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write batches to a file by the ending of its name: whole, or not at all."""
    if path.suffix not in _COPY:
        raise unknown("ending of the output", path.suffix, _COPY)
    with _whole_file(path) as temporary:
        return _copy(schema, batches, temporary, _COPY[path.suffix])
