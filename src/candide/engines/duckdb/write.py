"""Writing Arrow batches to a file in a stream, through the writers of DuckDB and of Arrow."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from candide.engines.interrupts import run_interruptible
from candide.engines.sql.text import quote_text
from candide.errors import InputError, unknown_name_error
from candide.files import replace_file


def _copy_batches(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path, options: str) -> int:
    """Write all batches; the number of rows comes back. The error of a batch, or of the disk, is raised as it is.

    After an error DuckDB is given no more rows and ends as usual: it neither comes to an end itself where its disk is
    full, nor lets go of what it reads where that fails.
    """
    failed: list[BaseException] = []

    def until_failed() -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                if failed:
                    return
                yield batch
        except Exception as error:
            failed.append(error)

    reader = pa.RecordBatchReader.from_batches(schema, until_failed())
    con = duckdb.connect()
    try:
        con.register("scored", reader)
        with _open_pipe(path, failed) as target:
            copy = f"COPY (SELECT * FROM scored) TO {quote_text(target)} ({options}, USE_TMP_FILE false)"
            n = run_interruptible(con, lambda: con.execute(copy).fetchall()[0][0])
    except duckdb.Error as error:
        failed.append(InputError(f"cannot write {path.name}: {str(error).strip().splitlines()[0]}"))
    finally:
        con.close()
    if failed:
        raise failed[0] from None
    return n


@contextmanager
def _open_pipe(path: Path, failed: list[BaseException]) -> Iterator[str]:
    """The name of a pipe whose bytes are written to a file; an error of the disk is kept, and the rest is dropped."""
    if os.name != "posix":
        yield str(path)
        return
    source, target = os.pipe()

    def drain() -> None:
        with open(source, "rb", buffering=0) as pipe, open(path, "wb", buffering=0) as out:
            while piece := pipe.read(1 << 20):
                try:
                    rest = memoryview(b"" if failed else piece)
                    while rest:
                        rest = rest[out.write(rest) :]
                except OSError as error:
                    failed.append(error)

    thread = threading.Thread(target=drain, name="candide-writer", daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{target}"
    finally:
        os.close(target)
        thread.join()


def _write_parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write all batches with the types they have, of which DuckDB knows fewer."""
    import pyarrow.parquet as pq

    # A dictionary of numbers costs more than it saves.
    words = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)]
    for field in schema:
        if pa.types.is_interval(field.type) or pa.types.is_union(field.type):
            what = f"a Parquet file cannot hold the type {field.type}"
            raise InputError(what, column=field.name, remedy="keep other columns, or write a .csv or .jsonl file")
    n = 0
    with pq.ParquetWriter(path, schema, use_dictionary=words) as out:
        for batch in batches:
            out.write_batch(batch)
            n += batch.num_rows
    return n


_WRITERS: dict[str, Callable[[pa.Schema, Iterator[pa.RecordBatch], Path], int]] = {
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    ".csv": partial(_copy_batches, options="FORMAT csv, HEADER"),
    ".tsv": partial(_copy_batches, options="FORMAT csv, HEADER, DELIMITER '\t'"),
    ".jsonl": partial(_copy_batches, options="FORMAT json"),
    ".ndjson": partial(_copy_batches, options="FORMAT json"),
}


def write_batches(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write batches to a file by the ending of its name: whole, or not at all."""
    if path.suffix not in _WRITERS:
        raise unknown_name_error("ending of the output", path.suffix, _WRITERS)
    with replace_file(path) as temporary:
        return _WRITERS[path.suffix](schema, batches, Path(temporary))
