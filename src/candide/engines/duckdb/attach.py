"""Attaching: a file, a folder, a frame, a database or a query becomes the view that a source reads.

>>> con, found = duckdb.connect(), Attached()
>>> attach(con, "SELECT 1 AS x", Reading(), "source", found)
>>> found.name, found.is_query, con.sql("SELECT x FROM source").fetchall()
('the query', True, [(1,)])
"""

import glob
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from candide import wording
from candide.engines.duckdb import encodings, folders, formats
from candide.engines.duckdb.csv_form import CsvForm, CsvHints, above, evened, form_of, renamed
from candide.engines.duckdb.duckdb_errors import explained
from candide.engines.duckdb.formats import chosen_table, ending_of, files_of
from candide.engines.duckdb.repeated_headers import without_repeats
from candide.engines.duckdb.spellings import kind_of_time
from candide.engines.reading import Reading
from candide.engines.sql.text import identifier, literal, literals
from candide.engines.stoppable import pieces_of
from candide.errors import InputError, InputTypeError, SourceError
from candide.files import temporary_file, temporary_folder
from candide.model.plan import naming
from candide.rows.arrow import table_in_plain_types
from candide.rows.kinds import LOOK
from candide.rows.objects import as_arrow
from candide.rows.records import are_records, check_column, columns_of
from candide.rows.remarks import Remark
from candide.rows.table import Table

_LENGTHS = {"s": "to_seconds({})", "ms": "to_milliseconds({})", "us": "to_microseconds({})",
            "ns": "to_microseconds({} // 1000)"}  # fmt: skip
_QUERY = re.compile(r"\s*(\(|--|/\*|select\b|with\b|from\b|values\b)", re.IGNORECASE)


@dataclass
class Attached:
    """What is known of data once it is attached, and what must live, or be removed, with the source."""

    name: str = "the data"  # in messages
    csv: CsvForm | None = None
    relation: Any = None  # a DuckDB relation answers on its own connection
    is_query: bool = False  # whose rows may come in another order each time
    documents: tuple[str, ...] = ()
    text_files: tuple[str, ...] = ()  # whose rows are lines, or nearly
    encoding: str | None = None  # of text that was not UTF-8
    remarks: list[Remark] = field(default_factory=list)
    schema: Any = None  # of the Arrow types that the data have by themselves
    held: list[Any] = field(default_factory=list)


def attach(con: Any, data: Any, reading: Reading, view: str, found: Attached) -> None:
    """Have a view on a connection that reads the data; what is found out of them is noted."""
    if isinstance(data, duckdb.DuckDBPyRelation):
        found.relation, found.name, found.is_query = data, "the relation", True
    elif isinstance(data, str) and _QUERY.match(data) and not os.path.exists(data):
        found.name, found.is_query = "the query", True
        with explained(found.name):
            _create(con, view, f"({data.rstrip().rstrip(';')})")
    elif isinstance(data, str | os.PathLike):
        _attach_path(con, os.fspath(data), reading, view, found)
    else:
        _attach_frame(con, data, view, found)


def _create(con: Any, view: str, reader: str, instead: Mapping[str, str] = MappingProxyType({})) -> None:
    """A view, with expressions instead of some columns."""
    each = ", ".join(f"{what} AS {identifier(name)}" for name, what in instead.items())
    chosen = f"* REPLACE ({each})" if each else "*"
    con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {chosen} FROM {reader}")


def _attach_path(con: Any, path: str, reading: Reading, view: str, found: Attached) -> None:
    found.name = path
    if path == "-":
        path, found.name = str(_spool(found)), "standard input"
    formats.refuse(path)
    path, table = formats.parted(path)
    if os.path.isdir(path) and folders.holds_documents(path):
        _attach_frame(con, folders.Files(path, reading.encoding or "utf-8", reading.errors), view, found)
        found.documents = ("text",)
        return
    kind = _format(path)
    if table is not None and kind not in formats.TABLES:
        remedy = f"pass {path} alone"
        raise SourceError(f"{path} holds one table only", where=found.name, value=table, remedy=remedy)
    table = table or reading.table
    with explained(found.name):
        if kind == "csv":
            if not _bytes_in(path):
                raise InputError(f"{found.name} is empty")
            hints = CsvHints(reading.delimiter, reading.header, reading.missing, reading.quote)
            files = _text_files(path, reading, found)
            if len(files) == 1 and not _bytes_in(files[0]):  # but for the mark of its encoding
                raise InputError(f"{found.name} is empty")
            found.csv = form_of(con, files, hints)
            found.remarks += renamed(found.csv)
            for part in found.csv.parts or (found.csv,):
                found.remarks += _told_above(above(part)[:-1]) if part.skip else []
            found.csv = evened(found.csv, lambda: str(temporary("csv", found)))
            found.csv, repeats = without_repeats(found.csv, found.name)
            found.remarks += repeats
            _create(con, view, found.csv.reader({}))
        elif kind == "parquet":
            reader = f"read_parquet({literals(files_of(path))}, union_by_name = true)"
            _create(con, view, reader)  # first, for it says what is wrong with a file
            found.schema = _parquet_schema(path)
            _create(con, view, reader, _durations(found.schema))
        elif kind == "json":
            form = "auto" if ending_of(path) == "json" else "newline_delimited"
            reader = f"read_json_auto({literals(_text_files(path, reading, found))}, format = '{form}')"
            _create(con, view, reader, _spelled_times(con, reader))
        elif kind == "duckdb":
            _attach_database(con, path, table, view, found)
        elif kind == "arrow":
            _attach_frame(con, _arrow_dataset(path), view, found)
        else:
            _attach_untyped(con, kind, path, table, reading, view, found)


def _told_above(lines: list[bytes]) -> list[Remark]:
    """A word on lines above the header, if anything is written in them."""
    texts = [line.decode("utf-8-sig", "replace").strip() for line in lines]
    texts = [text for text in texts if text.strip(",;\t ")]
    if not texts:
        return []
    one = len(texts) == 1
    told = f"{wording.plural(len(texts), 'line')} above the header {'is' if one else 'are'} left out: "
    return [Remark("lines-above", told + wording.listing([text[:40] for text in texts], 3))]


def _format(path: str) -> str:
    if os.path.isdir(path):
        return formats.format_of_folder(path)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise SourceError("no such file", where=path)
    return formats.format_of(path)


def _attach_untyped(
    con: Any, kind: str, path: str, asked: str | None, reading: Reading, view: str, found: Attached
) -> None:
    from candide.engines.duckdb import untyped

    if kind == "sheets":
        table = untyped.sheets(path, path, asked, reading.header)
    elif kind == "sqlite":
        table = untyped.sqlite(path, path, asked)
    else:
        [file] = _text_files(path, reading, found)
        table = untyped.arff(file, path)
    found.remarks += table.remarks
    found.csv = untyped.spooled(table, str(temporary("csv", found)), reading.missing)
    _create(con, view, found.csv.reader({}))


def _attach_database(con: Any, path: str, asked: str | None, view: str, found: Attached) -> None:
    con.execute(f"ATTACH {literal(path)} AS db (READ_ONLY)")
    tables = con.sql("SELECT table_name FROM duckdb_tables() WHERE database_name = 'db'").fetchall()
    views = con.sql("SELECT view_name FROM duckdb_views() WHERE database_name = 'db' AND NOT internal").fetchall()
    both = [row[0] for row in tables + views]
    name = chosen_table(asked, both, path)
    found.is_query = (name,) in views
    _create(con, view, f"db.{identifier(name)}")


def _attach_frame(con: Any, data: Any, view: str, found: Attached) -> None:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()  # a reader can be read once only
    elif are_records(data):
        data = columns_of(data)
    if isinstance(data, Mapping):
        _check_case(list(data))
        data = pa.table({str(name): _arrow_column(name, column) for name, column in Table.of(data).source.items()})
    elif isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    for name, kind in zip(getattr(data, "columns", ()), getattr(data, "dtypes", ()), strict=False):
        check_column(name, kind)
    _check_case(getattr(data, "column_names", None) or list(getattr(data, "columns", ())))
    found.held.append(data)
    found.schema = _arrow_schema(data)
    try:
        con.register(view, data)
        con.sql(f"SELECT * FROM {view} LIMIT 0").fetchall()  # only now does it say which types it does not know
    except (duckdb.Error, RuntimeError, TypeError):
        if not hasattr(data, "__arrow_c_stream__"):
            raise InputTypeError(
                f"cannot read rows from {type(data).__name__}",
                remedy="pass a file name, a query, a data frame, an Arrow table, a mapping of columns "
                "a list of dictionaries or a DuckDB relation",
            ) from None
        data = table_in_plain_types(pa.table(data))
        found.held[-1] = data
        with explained(found.name):
            con.register(view, data)


def _spool(found: Attached) -> Path:
    """Standard input can be read once; a temporary file can be read twice."""
    stream, head = pieces_of(sys.stdin.buffer), b""
    for piece in stream:
        head += piece
        if len(head) >= 4096:
            break
    start = head.lstrip()[:1]
    kind = "parquet" if head[:4] == b"PAR1" else "jsonl" if start == b"{" else "csv"
    path = temporary(kind, found)
    with open(path, "wb") as spool:
        spool.write(head)
        spool.writelines(stream)
    return path


def _text_files(path: str, reading: Reading, found: Attached) -> tuple[str, ...]:
    """The files of a path, as they can be read in UTF-8."""
    read = encodings.in_utf8(files_of(path), reading, found.name, lambda: _folder(found))
    found.encoding = read.encoding
    found.remarks += read.remarks
    found.text_files = read.files
    return read.files


def _folder(found: Attached) -> Path:
    """A folder that is removed with the source: the same one, asked again."""
    known = next((thing for thing in found.held if isinstance(thing, Path) and thing.is_dir()), None)
    if known is None:
        found.held.append(known := Path(temporary_folder()))
    return known


def temporary(kind: str, found: Attached) -> Path:
    """A file that is removed with the source."""
    found.held.append(path := Path(temporary_file(f".{kind}")))
    return path


def _check_case(names: Sequence[object]) -> None:
    """Refuse names that SQL does not tell apart: one of the columns would silently get another name."""
    seen: dict[str, object] = {}
    for name in names:
        if str(name).lower() in seen:
            what = f"columns {seen[str(name).lower()]!r} and {name!r} differ in case only, or not at all"
            raise InputError(what, value=name, remedy="rename one of them")
        seen[str(name).lower()] = name


def _bytes_in(path: str) -> bool:
    return not os.path.isfile(path) or os.path.getsize(path) > 0


def _arrow_dataset(path: str) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(path, format="ipc", partitioning="hive")


def _parquet_schema(path: str) -> Any:
    import pyarrow.parquet as pq

    names = files_of(path)
    first = next(iter(sorted(glob.glob(names[0], recursive=True))), names[0])
    return pq.read_schema(first)


def _durations(schema: Any) -> dict[str, str]:
    """The durations of a Parquet file, which holds them as whole numbers of a unit that its Arrow schema tells."""
    import pyarrow as pa

    kinds = {field.name: field.type for field in schema if pa.types.is_duration(field.type)}
    return {name: _LENGTHS[kind.unit].format(identifier(name)) for name, kind in kinds.items()}


def _spelled_times(con: Any, reader: str) -> dict[str, str]:
    """The dates and durations of JSON lines, which spell them: JSON has no type for them, and no reader knows all."""
    described = con.sql(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    names = [row[0] for row in described if row[1] == "VARCHAR"]
    if not names:
        return {}
    some = con.sql(f"SELECT {', '.join(map(identifier, names))} FROM {reader} LIMIT {LOOK}").to_arrow_table()
    found = {name: kind_of_time(column.drop_null()) for name, column in zip(names, some.columns, strict=True)}
    return {name: f"CAST({identifier(name)} AS {kind})" for name, kind in found.items() if kind}


def _arrow_schema(data: Any) -> Any:
    """The Arrow types of a frame, as far as they are known without reading it."""
    import pyarrow as pa

    schema = getattr(data, "schema", None)
    if isinstance(schema, pa.Schema):
        return schema
    try:
        return pa.table(data[:0]).schema  # of pandas, polars
    except (TypeError, ValueError, KeyError, pa.ArrowException):
        return None


def _arrow_column(name: object, column: Any) -> Any:
    with naming(name):  # type: ignore[arg-type]
        return as_arrow(column)
