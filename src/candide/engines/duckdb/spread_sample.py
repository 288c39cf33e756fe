"""Rows from all over a source, for columns whose first rows hold 0 and 1 alone: these may be numbers further down.

Files of columns, tables and frames are asked for such columns alone. Of a CSV some lines are read at even distances,
which takes no pass over it; a packed one, and one with line breaks within fields, cannot be read from its middle.

>>> import duckdb, pyarrow as pa
>>> con = duckdb.connect()
>>> _ = con.register("source", pa.table({"x": [0] * 90 + [7] * 10, "z": [0, 1] * 50}))
>>> {
...     name: sorted(set(column.to_pylist()))
...     for name, column in find_other_values(con.sql, "source", ["x", "z"], 50).items()
... }
{'x': [0, 7]}
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from candide.engines.duckdb.csv_options import CsvOptions
from candide.engines.duckdb.format_detection import all_match
from candide.engines.sql.text import quote_identifier

_N_POSITIONS = 32  # of a CSV, at which lines are read
_MIN_BYTES = 1 << 18  # bytes of a CSV that is worth it
_COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")


def find_binary_columns(head: Any) -> list[str]:
    """The columns of an Arrow table that hold 0 and 1 alone, as numbers or as text."""
    return [name for name, column in zip(head.column_names, head.columns, strict=True) if _is_binary(column)]


def _is_binary(column: Any) -> bool:
    kind, present = column.type, column.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return len(present) > 0 and all_match(present, r"^[01](\.0*)?$")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    return len(present) > 0 and bool(pc.all(pc.is_in(present, pa.array([0, 1], kind))).as_py())


def find_other_values(query: Callable[[str], Any], view: str, names: Sequence[str], n: int) -> dict[str, Any]:
    """A sample of so many values of each column that holds others than 0 and 1; such columns alone."""
    if not names:
        return {}
    each = ", ".join(f"coalesce(bool_or({quote_identifier(name)} NOT IN (0, 1)), false)" for name in names)
    has_others = query(f"SELECT {each} FROM {view}").fetchall()[0]
    out = {}
    for name in (name for name, has in zip(names, has_others, strict=True) if has):
        sample = f"SELECT {quote_identifier(name)} FROM {view} USING SAMPLE reservoir({n} ROWS) REPEATABLE (0)"
        out[name] = query(sample).to_arrow_table().column(0)
    return out


def sample_lines(form: CsvOptions, n: int) -> list[bytes]:
    """About so many lines of a CSV at even distances; none where lines cannot be told from its middle."""
    path = form.files[0]
    if (
        form.parts
        or len(form.files) > 1
        or path.lower().endswith(_COMPRESSED_SUFFIXES)
        or os.path.getsize(path) < _MIN_BYTES
    ):
        return []
    size, lines, quote = os.path.getsize(path), list[bytes](), form.quote.encode()
    with open(path, "rb") as file:
        for i in range(1, _N_POSITIONS):
            file.seek(size * i // _N_POSITIONS)
            file.readline()  # the rest of a line
            lines += [file.readline() for _ in range(n // _N_POSITIONS)]
    lines = [line for line in lines if line.endswith(b"\n") and line.strip()]
    return [] if quote and any(line.count(quote) % 2 for line in lines) else lines


def sample_other_texts(
    con: Any, form: CsvOptions, names: Sequence[str], n: int, path: Callable[[], str]
) -> dict[str, Any]:
    """The values of some columns of a CSV, as text, at even distances; {} where they cannot be had."""
    if not names or not (lines := sample_lines(form, n)):
        return {}
    where = path()
    with open(where, "wb") as file:
        file.writelines(lines)
    chosen = ", ".join(map(quote_identifier, names))
    with suppress(duckdb.Error):  # what is wrong with a line is said when all are read
        sample = replace(form, files=(where,), header=False, skip=0, line_ending="")
        table = con.sql(f"SELECT {chosen} FROM {sample.select_sql({})}").to_arrow_table()
        found = dict(zip(names, table.columns, strict=True))
        return {name: column for name, column in found.items() if not _is_binary(column)}
    return {}


def append_values(head: Any, others: Mapping[str, Any]) -> Any:
    """Rows with other values at the end of some columns, for types to be decided by."""
    for name, column in others.items():
        chunks = [*head.column(name).slice(0, head.num_rows - len(column)).chunks, *column.chunks]
        head = head.set_column(head.column_names.index(name), name, pa.chunked_array(chunks))
    return head
