"""Attach data to a connection: a file, folder, frame, database or query becomes the view that a source reads."""

import glob
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from candide.data.arrow_columns import (
    as_arrow,
    check_column,
    columns_from_records,
    is_record_list,
    to_plain_frame,
    to_plain_types,
)
from candide.data.notes import Note
from candide.data.table import LIMITS, Table
from candide.engines.batches import read_pieces
from candide.engines.duckdb import formats
from candide.engines.duckdb.character_encodings import COMPRESSED_SUFFIXES, convert_to_utf8, matching_files
from candide.engines.duckdb.csv_files import CsvOptions, open_csv
from candide.engines.duckdb.formats import file_suffix, list_files, replace_columns_sql, translate_errors
from candide.engines.duckdb.number_formats import time_type
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialect import quote_identifier, quote_text, quote_texts
from candide.errors import InputError, InputTypeError, SourceError
from candide.files import temporary_file
from candide.model.plan import add_column_to_errors

_DURATION_SQL = {
    "s": "to_seconds({})",
    "ms": "to_milliseconds({})",
    "us": "to_microseconds({})",
    "ns": "to_microseconds({} // 1000)",
}
_PIECE_BYTES = 1 << 20  # bytes from which the length of a line is known
_QUERY = re.compile(r"\s*(\(|--|/\*|select\b|with\b|from\b|values\b)", re.IGNORECASE)


def connect(reading: ReadOptions) -> Any:
    con = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    with suppress(duckdb.InvalidInputException):  # a notebook without ipywidgets has no progress bar
        con.execute("SET enable_progress_bar = false")  # the command line has its own
    con.execute("SET enable_external_file_cache = false")  # memory must not grow with the file
    # The statistics of Parquet files ignore NaN, and by them isnan() would be optimised to false.
    con.execute("SET disabled_optimizers = 'statistics_propagation'")
    if reading.memory_limit:
        try:
            con.execute(f"SET memory_limit = {quote_text(str(reading.memory_limit))}")
        except duckdb.Error:
            what, remedy = f"memory_limit is {reading.memory_limit!r}", "pass a size, such as 2GB"
            raise InputError(what, value=reading.memory_limit, remedy=remedy) from None
    if reading.threads:
        con.execute(f"SET threads = {int(reading.threads)}")
    return con


@dataclass
class AttachedData:
    """The view of data on a connection, what is known of the data, and what lives as long as their source."""

    con: Any
    view: str
    name: str = "the data"  # in messages
    csv: CsvOptions | None = None
    relation: Any = None  # a DuckDB relation answers on its own connection
    is_query: bool = False  # whose rows may come in another order each time
    documents: tuple[str, ...] = ()
    text_files: tuple[str, ...] = ()  # whose rows are lines, or nearly
    encoding: str | None = None  # of text that was not UTF-8
    notes: list[Note] = field(default_factory=list)
    schema: Any = None  # the Arrow types of the data
    resources: list[Any] = field(default_factory=list)

    def attach(self, data: Any, reading: ReadOptions) -> None:
        if isinstance(data, duckdb.DuckDBPyRelation):
            self.relation, self.name, self.is_query = data, "the relation", True
        elif isinstance(data, str) and _QUERY.match(data) and not os.path.exists(data):
            self.name, self.is_query = "the query", True
            with translate_errors(self.name):
                self.create_view(f"({data.rstrip().rstrip(';')})")
        elif isinstance(data, str | os.PathLike):
            self._attach_path(os.fspath(data), reading)
        else:
            self._attach_frame(data)

    def create_view(self, reader: str) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {reader}")

    def temporary_file(self, kind: str) -> str:
        self.resources.append(path := Path(temporary_file(f".{kind}")))
        return str(path)

    @cached_property
    def _temporary_folder(self) -> Path:
        self.resources.append(folder := Path(temporary_file(is_folder=True)))
        return folder

    def _attach_path(self, path: str, reading: ReadOptions) -> None:
        self.name = path
        if path == "-":
            self.name = "standard input"
            path = self._spool_stdin()
        formats.refuse_address(path)
        path, table = formats.split_path_table(path)
        if os.path.isdir(path) and formats.has_document_folders(path):
            self._attach_frame(formats.DocumentFolder(path, reading.encoding or "utf-8", reading.errors))
            self.documents = ("text",)
            return
        if not os.path.isdir(path) and not glob.has_magic(path) and not os.path.exists(path):
            raise SourceError("no such file", source=path)
        try:
            kind = formats.detect_folder_format(path) if os.path.isdir(path) else formats.detect_format(path)
        except SourceError as error:
            if self.name == "standard input":  # the path is that of a temporary file
                error.source = self.name
                error.remedy = error.remedy and error.remedy.replace(os.path.basename(path), "FILE")
            raise
        if table is not None and kind not in formats.MULTI_TABLE_FORMATS:
            remedy = f"pass {path} alone"
            raise SourceError(f"{path} holds one table only", source=self.name, value=table, remedy=remedy)
        table = table or reading.table
        with translate_errors(self.name):
            if kind == "csv":
                self._check_not_empty(path)
                files = self._text_files(path, reading)
                if len(files) == 1:
                    self._check_not_empty(files[0])  # but for the mark of its encoding
                self._attach_csv(*open_csv(self.con, files, reading, self.name, lambda: self.temporary_file("csv")))
            elif kind == "parquet":
                reader = f"read_parquet({quote_texts(list_files(path))}, union_by_name = true)"
                self.create_view(reader)  # first, because it reports what is wrong with a file
                self.create_view(replace_columns_sql(reader, self._parquet_durations(path)))
            elif kind == "json":
                form = "auto" if file_suffix(path) == "json" else "newline_delimited"
                reader = f"read_json_auto({quote_texts(self._text_files(path, reading))}, format = '{form}')"
                self.create_view(replace_columns_sql(reader, self._text_times(reader)))
            elif kind == "duckdb":
                self.con.execute(f"ATTACH {quote_text(path)} AS db (READ_ONLY)")
                tables = self.con.sql("SELECT table_name FROM duckdb_tables() WHERE database_name = 'db'").fetchall()
                query = "SELECT view_name FROM duckdb_views() WHERE database_name = 'db' AND NOT internal"
                views = self.con.sql(query).fetchall()
                table = formats.choose_table(table, [name for (name,) in [*tables, *views]], path)
                self.is_query = (table,) in views
                self.create_view(f"db.{quote_identifier(table)}")
            elif kind == "arrow":
                import pyarrow.dataset as ds

                self._attach_frame(ds.dataset(path, format="ipc", partitioning="hive"))
            else:
                self._attach_untyped(kind, path, table, reading)

    def _attach_csv(self, options: CsvOptions, notes: list[Note]) -> None:
        self.csv = options
        self.notes += notes
        self.create_view(options.select_sql({}))

    def _check_not_empty(self, path: str) -> None:
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise InputError(f"{self.name} is empty")

    def _spool_stdin(self) -> str:
        """Standard input can be read once; a temporary file can be read twice."""
        stream, head = read_pieces(sys.stdin.buffer), b""
        for piece in stream:
            head += piece
            if len(head) >= 4096:
                break
        if head.startswith(b"\x1f\x8b"):
            remedy = "unpack it first: gunzip -c FILE | candide ..., or pass the name of the file"
            raise SourceError("packed by gzip", source=self.name, remedy=remedy)
        kind = "parquet" if head[:4] == b"PAR1" else "jsonl" if head.lstrip()[:1] == b"{" else "csv"
        path = self.temporary_file(kind)
        with open(path, "wb") as spool:
            spool.write(head)
            spool.writelines(stream)
        return path

    def _text_files(self, path: str, reading: ReadOptions) -> tuple[str, ...]:
        converted = convert_to_utf8(list_files(path), reading, self.name, lambda: self._temporary_folder)
        self.text_files, self.encoding = converted.files, converted.encoding
        self.notes += converted.notes
        return converted.files

    def _text_times(self, reader: str) -> dict[str, str]:
        """Casts of the dates and durations of JSON lines, which has no types for them."""
        described = self.con.sql(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        names = [row[0] for row in described if row[1] == "VARCHAR"]
        if not names:
            return {}
        quoted = ", ".join(map(quote_identifier, names))
        rows = self.con.sql(f"SELECT {quoted} FROM {reader} LIMIT {LIMITS.rows}").to_arrow_table()
        kinds = {name: time_type(column.drop_null()) for name, column in zip(names, rows.columns, strict=True)}
        return {name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in kinds.items() if kind}

    def _attach_untyped(self, kind: str, path: str, table: str | None, reading: ReadOptions) -> None:
        from candide.engines.duckdb import foreign_files

        if kind == "sheets":
            rows = foreign_files.read_sheet(path, table, reading.header)
        elif kind == "sqlite":
            rows = foreign_files.read_sqlite(path, table)
        else:
            [file] = self._text_files(path, reading)
            rows = foreign_files.read_arff(file, path)
        options = foreign_files.spool_table(rows, self.temporary_file("csv"), reading.na_values)
        self._attach_csv(options, rows.notes)

    def _parquet_durations(self, path: str) -> dict[str, str]:
        """The durations of a Parquet file, which are whole numbers of a unit in its Arrow schema."""
        import pyarrow.parquet as pq

        first = list_files(path)[0]
        self.schema = pq.read_schema(min(glob.glob(first, recursive=True), default=first))
        units = {field.name: field.type.unit for field in self.schema if pa.types.is_duration(field.type)}
        return {name: _DURATION_SQL[unit].format(quote_identifier(name)) for name, unit in units.items()}

    def _attach_frame(self, data: Any) -> None:
        if isinstance(data, pa.RecordBatchReader):
            data = data.read_all()  # a reader can be read once only
        elif is_record_list(data):
            data = columns_from_records(data)
        if isinstance(data, Mapping):
            _check_case(list(data))
            columns = {}
            for name, column in Table.from_data(data).source.items():
                with add_column_to_errors(name):
                    columns[str(name)] = as_arrow(column)
            data = pa.table(columns)
        elif isinstance(data, pa.RecordBatch):
            data = pa.table(data)
        for name, kind in zip(getattr(data, "columns", ()), getattr(data, "dtypes", ()), strict=False):
            check_column(name, kind)
        _check_case(getattr(data, "column_names", None) or list(getattr(data, "columns", ())))
        self.resources.append(data := to_plain_frame(data))
        schema = getattr(data, "schema", None)
        if isinstance(schema, pa.Schema):
            self.schema = schema
        else:
            with suppress(TypeError, ValueError, KeyError, pa.ArrowException):
                self.schema = pa.table(data[:0]).schema  # of pandas, polars: without reading it
        try:
            self.con.register(self.view, data)
            self.con.sql(f"SELECT * FROM {self.view} LIMIT 0").fetchall()  # raises an error on unknown types
        except (duckdb.Error, RuntimeError, TypeError):
            if not hasattr(data, "__arrow_c_stream__"):
                raise InputTypeError(
                    f"cannot read rows from {type(data).__name__}",
                    remedy="pass a file name, a query, a data frame, an Arrow table, a mapping of columns, "
                    "a list of dictionaries or a DuckDB relation",
                ) from None
            rows = pa.table(data)  # of pandas, with the index as its last column
            rows = rows.select(list(range(len(getattr(data, "columns", rows.columns)))))
            data = self.resources[-1] = to_plain_types(rows)
            with translate_errors(self.name):
                self.con.register(self.view, data)


def _check_case(names: Sequence[object]) -> None:
    """Refuse names that are equal to SQL: one of the columns would get another name without a note."""
    seen: dict[str, object] = {}
    for name in names:
        if str(name).lower() in seen:
            what = f"columns {seen[str(name).lower()]!r} and {name!r} differ in case only, or not at all"
            raise InputError(what, value=name, remedy="rename one of them")
        seen[str(name).lower()] = name


def estimate_lines(files: Iterable[str]) -> int | None:
    """About how many lines there are in text files (paths, or a glob), by their beginning; None if compressed."""
    paths = [path for name in files for path in matching_files(name)]
    if not paths or any(path.endswith(COMPRESSED_SUFFIXES) for path in paths):
        return None
    with open(paths[0], "rb") as file:
        piece = file.read(_PIECE_BYTES)
    return round(sum(map(os.path.getsize, paths)) * piece.count(b"\n") / max(1, len(piece))) or None
