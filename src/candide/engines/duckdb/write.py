"""Writing Arrow batches to a file in a stream, through DuckDB's writers."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from candide.engines.sql.text import literal
from candide.errors import InputError, unknown
from candide.files import replacing


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
    with replacing(path) as temporary:
        return _copy(schema, batches, Path(temporary), _COPY[path.suffix])
