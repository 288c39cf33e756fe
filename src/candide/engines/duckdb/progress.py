"""Pace: how many rows a query has read, for one who looks on.

DuckDB's own share of a query counts steps that take no time as much as the reading, so that it jumps from a few percent
to the end. Here a function that the query calls counts the rows as they pass.

>>> import duckdb
>>> con, met = duckdb.connect(), []
>>> register_tick(con, met.append)
>>> con.sql(f"SELECT sum(x) FROM range(5000) t(x) WHERE {ROW_TICK}").fetchall(), sum(met)
([(12497500,)], 5000)
>>> con.close()
"""

import glob
import os
from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from candide.engines.sql.dialect import call_function

_PIECE_BYTES = 1 << 20  # bytes from which the length of a line is known
_COMPRESSED_SUFFIXES = (".gz", ".zst")
ROW_TICK = call_function("candide_tick", exp.true())


def register_tick(con: Any, count: Callable[[int], Any]) -> None:
    """Have a function on a connection, true of every row, that tells how many rows it was called for."""

    def tick(rows: Any) -> Any:
        count(len(rows))
        return rows

    con.create_function("candide_tick", tick, ["BOOLEAN"], "BOOLEAN", type="arrow", side_effects=True)


def estimate_lines(files: Iterable[str]) -> int | None:
    """About how many lines there are in text files (paths, or a glob), by their beginning; None where they are packed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         _ = open(f"{folder}/{name}.csv", "w").write("1234567\\n" * 500)
    ...     estimate_lines([f"{folder}/*.csv"])
    1000
    """
    found = [path for name in files for path in (glob.glob(name, recursive=True) if glob.has_magic(name) else [name])]
    if not found or any(path.endswith(_COMPRESSED_SUFFIXES) for path in found):
        return None
    with open(found[0], "rb") as file:
        piece = file.read(_PIECE_BYTES)
    return round(sum(map(os.path.getsize, found)) * piece.count(b"\n") / max(1, len(piece))) or None
