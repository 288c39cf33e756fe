"""Writing Arrow batches to a file in a stream, through DuckDB's writers."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from candide.engines.sqltext import literal
from candide.errors import InputError


def copy(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path, options: str) -> int:
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
