"""Attaching: a file, a folder, a frame, a database or a query becomes the view that a source reads.

>>> con, found = duckdb.connect(), AttachedData()
>>> attach(con, "SELECT 1 AS x", ReadOptions(), "source", found)
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

from candide import formatting
from candide.data.arrow_columns import as_arrow, check_column, columns_from_records, is_record_list, to_plain_types
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.data.table import Table
from candide.engines.duckdb import encodings, formats
from candide.engines.duckdb.csv_detection import (
    detect_csv,
    lines_above_header,
    renamed_column_notes,
    unify_line_endings,
    without_repeats,
)
from candide.engines.duckdb.csv_options import CsvHints, CsvOptions
from candide.engines.duckdb.duckdb_errors import translate_errors
from candide.engines.duckdb.format_detection import time_type
from candide.engines.duckdb.formats import choose_table, file_suffix, list_files
from candide.engines.interrupts import read_pieces
from candide.engines.reading import ReadOptions
from candide.engines.sql.text import quote_identifier, quote_text, quote_texts
from candide.errors import InputError, InputTypeError, SourceError
from candide.files import temporary_file, temporary_folder
from candide.model.plan import add_column_to_errors

_DURATION_SQL = {"s": "to_seconds({})", "ms": "to_milliseconds({})", "us": "to_microseconds({})",
            "ns": "to_microseconds({} // 1000)"}  # fmt: skip
_QUERY = re.compile(r"\s*(\(|--|/\*|select\b|with\b|from\b|values\b)", re.IGNORECASE)


@dataclass
class AttachedData:
    """What is known of data once it is attached, and what must live, or be removed, with the source."""

    name: str = "the data"  # in messages
    csv: CsvOptions | None = None
    relation: Any = None  # a DuckDB relation answers on its own connection
    is_query: bool = False  # whose rows may come in another order each time
    documents: tuple[str, ...] = ()
    text_files: tuple[str, ...] = ()  # whose rows are lines, or nearly
    encoding: str | None = None  # of text that was not UTF-8
    notes: list[Note] = field(default_factory=list)
    schema: Any = None  # of the Arrow types that the data have by themselves
    resources: list[Any] = field(default_factory=list)


def attach(con: Any, data: Any, reading: ReadOptions, view: str, attached: AttachedData) -> None:
    """Have a view on a connection that reads the data; what is found out of them is noted."""
    if isinstance(data, duckdb.DuckDBPyRelation):
        attached.relation, attached.name, attached.is_query = data, "the relation", True
    elif isinstance(data, str) and _QUERY.match(data) and not os.path.exists(data):
        attached.name, attached.is_query = "the query", True
        with translate_errors(attached.name):
            _create_view(con, view, f"({data.rstrip().rstrip(';')})")
    elif isinstance(data, str | os.PathLike):
        _attach_path(con, os.fspath(data), reading, view, attached)
    else:
        _attach_frame(con, data, view, attached)


def _create_view(con: Any, view: str, reader: str, instead: Mapping[str, str] = MappingProxyType({})) -> None:
    """A view, with expressions instead of some columns."""
    each = ", ".join(f"{what} AS {quote_identifier(name)}" for name, what in instead.items())
    chosen = f"* REPLACE ({each})" if each else "*"
    con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {chosen} FROM {reader}")


def _attach_path(con: Any, path: str, reading: ReadOptions, view: str, found: AttachedData) -> None:
    found.name = path
    if path == "-":
        path, found.name = str(_spool_stdin(found)), "standard input"
    formats.refuse_address(path)
    path, table = formats.split_path_table(path)
    if os.path.isdir(path) and formats.has_document_folders(path):
        _attach_frame(con, formats.DocumentFolder(path, reading.encoding or "utf-8", reading.errors), view, found)
        found.documents = ("text",)
        return
    kind = _file_format(path)
    if table is not None and kind not in formats.MULTI_TABLE_FORMATS:
        remedy = f"pass {path} alone"
        raise SourceError(f"{path} holds one table only", source=found.name, value=table, remedy=remedy)
    table = table or reading.table
    with translate_errors(found.name):
        if kind == "csv":
            if not _has_bytes(path):
                raise InputError(f"{found.name} is empty")
            hints = CsvHints(reading.delimiter, reading.header, reading.na_values, reading.quote)
            files = _text_files(path, reading, found)
            if len(files) == 1 and not _has_bytes(files[0]):  # but for the mark of its encoding
                raise InputError(f"{found.name} is empty")
            found.csv = detect_csv(con, files, hints)
            found.notes += renamed_column_notes(found.csv)
            for part in found.csv.parts or (found.csv,):
                found.notes += _preamble_notes(lines_above_header(part)[:-1]) if part.skip else []
            found.csv = unify_line_endings(found.csv, lambda: str(make_temporary_file("csv", found)))
            found.csv, repeats = without_repeats(found.csv, found.name)
            found.notes += repeats
            _create_view(con, view, found.csv.select_sql({}))
        elif kind == "parquet":
            reader = f"read_parquet({quote_texts(list_files(path))}, union_by_name = true)"
            _create_view(con, view, reader)  # first, for it says what is wrong with a file
            found.schema = _parquet_schema(path)
            _create_view(con, view, reader, _durations(found.schema))
        elif kind == "json":
            form = "auto" if file_suffix(path) == "json" else "newline_delimited"
            reader = f"read_json_auto({quote_texts(_text_files(path, reading, found))}, format = '{form}')"
            _create_view(con, view, reader, _text_times(con, reader))
        elif kind == "duckdb":
            _attach_database(con, path, table, view, found)
        elif kind == "arrow":
            _attach_frame(con, _arrow_dataset(path), view, found)
        else:
            _attach_untyped(con, kind, path, table, reading, view, found)


def _preamble_notes(lines: list[bytes]) -> list[Note]:
    """A word on lines above the header, if anything is written in them."""
    texts = [line.decode("utf-8-sig", "replace").strip() for line in lines]
    texts = [text for text in texts if text.strip(",;\t ")]
    if not texts:
        return []
    one = len(texts) == 1
    text = f"{formatting.format_count(len(texts), 'line')} above the header {'is' if one else 'are'} left out: "
    return [Note("lines-above", text + formatting.format_list([text[:40] for text in texts], 3))]


def _file_format(path: str) -> str:
    if os.path.isdir(path):
        return formats.detect_folder_format(path)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise SourceError("no such file", source=path)
    return formats.detect_format(path)


def _attach_untyped(
    con: Any, kind: str, path: str, asked: str | None, reading: ReadOptions, view: str, found: AttachedData
) -> None:
    from candide.engines.duckdb import foreign_files

    if kind == "sheets":
        table = foreign_files.read_sheet(path, path, asked, reading.header)
    elif kind == "sqlite":
        table = foreign_files.read_sqlite(path, path, asked)
    else:
        [file] = _text_files(path, reading, found)
        table = foreign_files.read_arff(file, path)
    found.notes += table.notes
    found.csv = foreign_files.spool_table(table, str(make_temporary_file("csv", found)), reading.na_values)
    _create_view(con, view, found.csv.select_sql({}))


def _attach_database(con: Any, path: str, asked: str | None, view: str, found: AttachedData) -> None:
    con.execute(f"ATTACH {quote_text(path)} AS db (READ_ONLY)")
    tables = con.sql("SELECT table_name FROM duckdb_tables() WHERE database_name = 'db'").fetchall()
    views = con.sql("SELECT view_name FROM duckdb_views() WHERE database_name = 'db' AND NOT internal").fetchall()
    both = [row[0] for row in tables + views]
    name = choose_table(asked, both, path)
    found.is_query = (name,) in views
    _create_view(con, view, f"db.{quote_identifier(name)}")


def _attach_frame(con: Any, data: Any, view: str, found: AttachedData) -> None:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()  # a reader can be read once only
    elif is_record_list(data):
        data = columns_from_records(data)
    if isinstance(data, Mapping):
        _check_case(list(data))
        data = pa.table(
            {str(name): _arrow_column(name, column) for name, column in Table.from_data(data).source.items()}
        )
    elif isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    for name, kind in zip(getattr(data, "columns", ()), getattr(data, "dtypes", ()), strict=False):
        check_column(name, kind)
    _check_case(getattr(data, "column_names", None) or list(getattr(data, "columns", ())))
    found.resources.append(data)
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
        data = to_plain_types(pa.table(data))
        found.resources[-1] = data
        with translate_errors(found.name):
            con.register(view, data)


def _spool_stdin(found: AttachedData) -> Path:
    """Standard input can be read once; a temporary file can be read twice."""
    stream, head = read_pieces(sys.stdin.buffer), b""
    for piece in stream:
        head += piece
        if len(head) >= 4096:
            break
    start = head.lstrip()[:1]
    kind = "parquet" if head[:4] == b"PAR1" else "jsonl" if start == b"{" else "csv"
    path = make_temporary_file(kind, found)
    with open(path, "wb") as spool:
        spool.write(head)
        spool.writelines(stream)
    return path


def _text_files(path: str, reading: ReadOptions, found: AttachedData) -> tuple[str, ...]:
    """The files of a path, as they can be read in UTF-8."""
    read = encodings.convert_to_utf8(list_files(path), reading, found.name, lambda: _temporary_folder(found))
    found.encoding = read.encoding
    found.notes += read.notes
    found.text_files = read.files
    return read.files


def _temporary_folder(found: AttachedData) -> Path:
    """A folder that is removed with the source: the same one, asked again."""
    known = next((thing for thing in found.resources if isinstance(thing, Path) and thing.is_dir()), None)
    if known is None:
        found.resources.append(known := Path(temporary_folder()))
    return known


def make_temporary_file(kind: str, attached: AttachedData) -> Path:
    """A file that is removed with the source."""
    attached.resources.append(path := Path(temporary_file(f".{kind}")))
    return path


def _check_case(names: Sequence[object]) -> None:
    """Refuse names that SQL does not tell apart: one of the columns would silently get another name."""
    seen: dict[str, object] = {}
    for name in names:
        if str(name).lower() in seen:
            what = f"columns {seen[str(name).lower()]!r} and {name!r} differ in case only, or not at all"
            raise InputError(what, value=name, remedy="rename one of them")
        seen[str(name).lower()] = name


def _has_bytes(path: str) -> bool:
    return not os.path.isfile(path) or os.path.getsize(path) > 0


def _arrow_dataset(path: str) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(path, format="ipc", partitioning="hive")


def _parquet_schema(path: str) -> Any:
    import pyarrow.parquet as pq

    names = list_files(path)
    first = next(iter(sorted(glob.glob(names[0], recursive=True))), names[0])
    return pq.read_schema(first)


def _durations(schema: Any) -> dict[str, str]:
    """The durations of a Parquet file, which holds them as whole numbers of a unit that its Arrow schema tells."""
    import pyarrow as pa

    kinds = {field.name: field.type for field in schema if pa.types.is_duration(field.type)}
    return {name: _DURATION_SQL[kind.unit].format(quote_identifier(name)) for name, kind in kinds.items()}


def _text_times(con: Any, reader: str) -> dict[str, str]:
    """The dates and durations of JSON lines, which spell them: JSON has no type for them, and no reader knows all."""
    described = con.sql(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    names = [row[0] for row in described if row[1] == "VARCHAR"]
    if not names:
        return {}
    some = con.sql(
        f"SELECT {', '.join(map(quote_identifier, names))} FROM {reader} LIMIT {LIMITS.rows}"
    ).to_arrow_table()
    found = {name: time_type(column.drop_null()) for name, column in zip(names, some.columns, strict=True)}
    return {name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in found.items() if kind}


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
    with add_column_to_errors(name):  # type: ignore[arg-type]
        return as_arrow(column)
