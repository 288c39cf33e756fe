"""Sources of DuckDB: files, frames, queries and relations, opened as one view that can be read repeatedly.

A path, a glob or a folder (CSV, TSV, Parquet, JSON lines, Arrow, Feather; compressed or not), ``-`` for standard input,
a DuckDB or SQLite file, a workbook, ARFF, an SQL query, a data frame, an Arrow table, a DuckDB relation; a folder of
folders of documents (:mod:`candide.engines.duckdb.foreign_files`).

>>> import pyarrow as pa
>>> with DuckDBSource.open(pa.table({"age": [30, 41], "job": ["cook", None]})) as source:
...     source.columns, source.fetch_rows("SELECT count(*) FROM source")
({'age': 'BIGINT', 'job': 'VARCHAR'}, [(2,)])
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import duckdb
import pyarrow as pa
from sqlglot import exp

from candide.data.column_types import is_coded_number
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.data.text_formats import PLAIN_FORMAT, TextFormat, parse_plain_numbers
from candide.engines.base import Folds
from candide.engines.batches import Scan
from candide.engines.duckdb import progress, type_inference
from candide.engines.duckdb.attach import AttachedData, attach, make_temporary_file
from candide.engines.duckdb.csv_detection import named_rows
from candide.engines.duckdb.csv_options import castable_sql, is_not_header, replace_columns_sql, typed_table_sql
from candide.engines.duckdb.duckdb_errors import translate_errors
from candide.engines.duckdb.spread_sample import (
    append_values,
    find_binary_columns,
    find_other_values,
    sample_other_texts,
)
from candide.engines.interrupts import run_interruptible
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialect import Expr
from candide.engines.sql.dialects.duckdb import DuckDBDialect
from candide.engines.sql.source import FOLD, SqlSource, assign_folds
from candide.engines.sql.text import quote_identifier, quote_text
from candide.errors import InputError
from candide.files import remove_temporary

if TYPE_CHECKING:
    from candide.engines.duckdb.engine import DuckDB

T = TypeVar("T")
_EMPTY_MAPPING: Mapping[str, str] = MappingProxyType({})
_Formats = Mapping[str, TextFormat]
_NUMBER = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|DECIMAL")


class DuckDBSource(SqlSource):
    """An open source: the view ``source`` on a DuckDB connection."""

    dialect = DuckDBDialect()
    view = "source"
    takes_folds = True

    def __init__(self, con: Any, reading: ReadOptions, engine: "DuckDB | None" = None):
        self.con, self.reading = con, reading
        self.engine = engine  # type: ignore[assignment]
        self.attached = AttachedData()
        self.columns: dict[str, str] = {}
        self.types: dict[str, str] = {}  # of a CSV: inferred, with the formats of its numbers and dates
        self.text_formats: dict[str, TextFormat] = {}
        self.original_names: dict[str, str] = {}  # of other sources: second names of text that is read as numbers
        self.rows_read = 0
        self._as_opened: tuple[str, dict[str, str], dict[str, str], Any] | None = None  # before text was parsed
        self.spread_values: dict[str, Any] = {}
        self._folds: dict[Folds, str] = {}
        self._lock: Lock | None = None  # on the number of rows read, where progress is shown

    @classmethod
    def open(cls, data: Any, reading: ReadOptions | None = None, engine: "DuckDB | None" = None) -> Self:
        """Open anything that holds rows."""
        reading = reading or ReadOptions()
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
        source = cls(con, reading, engine)
        try:
            attach(con, data, reading, source.view, source.attached)
            source._adopt(source.attached)
            source._describe()
            source._mask_missing()
        except BaseException:
            source.close()
            raise
        return source

    def _adopt(self, attached: AttachedData) -> None:
        self.name, self.notes, self.encoding = attached.name, attached.notes, attached.encoding
        self.documents, self.is_untyped = attached.documents, attached.csv is not None
        self.categories = tuple(field.name for field in attached.schema or () if is_coded_number(field.type))

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.attached.relation = None
        self.con.close()
        for resource in self.attached.resources:
            if isinstance(resource, Path):
                remove_temporary(str(resource))
        self.attached.resources.clear()

    # Queries

    def fetch_rows(self, sql: str) -> list[tuple]:
        """Run a query over the view ``source`` and fetch its rows."""
        with translate_errors(self.name):
            return self._run_interruptible(lambda: self._query(sql).fetchall())

    def stream_rows(self, sql: str) -> Iterator[tuple]:
        for batch in self._scan(sql, 100_000).batches:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def arrow_batches(self, sql: str, size: int) -> Iterator[Any]:
        return self.scan(sql, size).batches

    def scan(self, sql: str, size: int) -> Scan:
        """Run a query for rows of the source; its schema, and its result in Arrow record batches."""
        scan = self._scan(sql, size)
        return Scan(scan.schema, self._count_batches(scan.batches))

    def _scan(self, sql: str, size: int) -> Scan:
        with translate_errors(self.name):
            reader = self._run_interruptible(lambda: self._query(sql).to_arrow_reader(size))
        return Scan(reader.schema, self._read(reader))

    def _read(self, reader: Any) -> Iterator[Any]:
        with translate_errors(self.name):
            while (batch := self._run_interruptible(lambda: next(reader, None))) is not None:
                yield batch

    def _count_batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.rows_read += batch.num_rows
            yield batch

    def fetch_arrow(self, sql: str) -> Any:
        """Run a query and fetch its result as one Arrow table."""
        with translate_errors(self.name):
            return self._run_interruptible(lambda: self._query(sql).to_arrow_table())

    def head(self, n: int) -> Any:
        chosen = ", ".join(map(quote_identifier, self.columns)) if self.original_names else "*"
        return self.fetch_arrow(f"SELECT {chosen} FROM {self.view} LIMIT {n}")

    # Progress

    def start_progress(self) -> None:
        super().start_progress()
        self.n_rows = self._estimate_rows()
        if self._lock is None and self.attached.relation is None:
            self._lock = Lock()
            progress.register_tick(self.con, self._tick)

    def _tick(self, rows: int) -> None:
        assert self._lock is not None
        with self._lock:  # queries run on threads
            self.rows_read += rows

    @property
    def tick(self) -> Expr | None:
        return None if self._lock is None else progress.ROW_TICK.copy()

    def _estimate_rows(self) -> int | None:
        if self.attached.text_files:
            return progress.estimate_lines(self.attached.text_files)
        if self.attached.is_query or self.attached.documents:
            return None
        return self.fetch_rows(f"SELECT count(*) FROM {self.view}")[0][0]

    def materialise(self) -> None:
        """Write the rows of a query to a temporary file, once."""
        if not self.attached.is_query:
            return
        path = make_temporary_file("parquet", self.attached)
        with translate_errors(self.name):  # without another temporary file, which an interrupt would leave behind
            rows = self._query(f"SELECT * FROM {self.view}")
            self._run_interruptible(lambda: rows.write_parquet(str(path), use_tmp_file=False))
        self.attached.relation, self.attached.is_query, self._as_opened = None, False, None
        self._create_view(f"read_parquet({quote_text(str(path))})")
        self._describe()

    def with_folds(self, folds: Folds) -> Expr:
        """The rows joined by position with a table of their folds, which is made once, from the labels alone."""
        if folds.key_column is not None:
            return super().with_folds(folds)
        self.materialise()
        if folds not in self._folds:
            self._folds[folds] = f"folds{len(self._folds)}"
            query = assign_folds(self, folds).sql(self.dialect.name)
            with translate_errors(self.name):
                if folds.rows is not None:
                    self.con.register("folds_of_rows", pa.table({FOLD: folds.rows.fold}))
                    query = "SELECT * FROM folds_of_rows"
                self.con.execute(f"CREATE TEMP TABLE {self._folds[folds]} AS {query}")
        folds_join = exp.Join(this=exp.to_table(self._folds[folds]), method="POSITIONAL")
        return exp.Select(expressions=[exp.Star()], joins=[folds_join]).from_(self.view).subquery("folded")

    # Types of text columns: every column of a CSV is text until they are inferred

    def read_head(
        self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()
    ) -> tuple[Any, list[Note]]:
        self.spread_values = {}
        if self.types:  # inferred before
            self.types, self.text_formats = {}, {}
            self._set_types(dict.fromkeys(self.columns, "VARCHAR"), {})
        if self._as_opened is not None:
            self.view, self.columns, self.original_names, self.attached.relation = self._as_opened
            self._as_opened, self.text_formats = None, {}
        head = self.head(n)
        if not head.num_rows:
            return head, []
        if self.attached.csv is None:
            if repeats := named_rows(head):
                self._select_from(f"(SELECT * FROM {self.view} WHERE {is_not_header(self.columns)})")
                head = self.head(n)
            if head.num_rows == n and not self.attached.is_query:
                binary = [name for name in find_binary_columns(head) if name != target]
                names = [name for name in binary if _NUMBER.match(self.columns[name])]
                with translate_errors(self.name):
                    query = lambda: find_other_values(self._query, self.view, names, n)  # noqa: E731
                    self.spread_values = self._run_interruptible(query)
            head, notes = self._infer_text_types(head, target, as_text, as_numbers)
            return head, [*repeats, *notes]
        csv = self.attached.csv
        texts = {*as_text, *(csv.categories - set(as_numbers))}
        binary = find_binary_columns(head) if head.num_rows == n else []
        names = [name for name in binary if name not in {target, *texts}]
        others = sample_other_texts(self.con, csv, names, n, lambda: str(make_temporary_file("csv", self.attached)))
        values = append_values(head, others)
        read = type_inference.infer_types(self.con, values, target, texts, as_numbers, self.reading, csv.text_columns)
        self._set_types(read.types, read.text_formats)
        cast = lambda table, types: self._cast_columns(table, types, read.text_formats)  # noqa: E731
        self.spread_values = {n: cast(pa.table({n: c}), {n: read.types[n]})[n] for n, c in others.items()}
        return cast(head, read.types), read.notes

    def _infer_text_types(
        self, head: Any, target: str, as_text: Sequence[str], as_numbers: Sequence[str]
    ) -> tuple[Any, list[Note]]:
        """Read text columns of a typed source that hold numbers or dates as such, by the rules for files."""
        excluded = {target, *as_text, *self.documents}
        names = [n for n, kind in self.columns.items() if kind == "VARCHAR" and n not in excluded]
        names = [name for name in names if type_inference.is_string(head, name)]
        texts = head.select(names)
        read = type_inference.infer_types(self.con, texts, None, (), as_numbers, self.reading, names, typed=True)
        read.types = {name: kind for name, kind in read.types.items() if kind != "VARCHAR"}
        if read.types:
            self._as_opened = self.view, dict(self.columns), dict(self.original_names), self.attached.relation
            self._reread_numbers(read)
            self.text_formats |= read.text_formats
            parsed = self._cast_columns(texts, read.types, read.text_formats)
            for name in read.types:
                head = head.set_column(head.column_names.index(name), name, parsed.column(name))
        return head, read.notes

    def read_numbers(
        self, names: Sequence[str], text_formats: _Formats | None = None, temporal: Mapping[Any, str] = _EMPTY_MAPPING
    ) -> list[Note]:
        """In the format of the first rows, where they come as text."""
        names = [name for name in names if self.columns.get(name) == "VARCHAR"]
        if not names:
            return []
        columns = ", ".join(map(quote_identifier, names))
        head = self.fetch_arrow(f"SELECT {columns} FROM {self.view} LIMIT {LIMITS.head_rows(len(names))}")
        read = type_inference.infer_number_types(self.con, head, text_formats or {}, self.reading, temporal)
        if self.attached.csv is None:
            self._reread_numbers(read)
        else:
            self._set_types(read.types, read.text_formats)
        return read.notes

    def _reread_numbers(self, read: type_inference.InferredTypes) -> None:
        """Read text columns of a typed source as numbers; the text stays under a second name."""
        table = typed_table_sql(self.view, read.types, read.text_formats, self._original_names(read.types))
        self._select_from(replace_columns_sql(table, self._missing_sql(read.types)))
        self.columns |= read.types

    def _mask_missing(self) -> None:
        """Replace missing-value markers of a typed source; those of a CSV are replaced as it is read."""
        if self.attached.csv is None and (absent := self._missing_sql(self.columns)):
            names = self._original_names(absent).items()
            copies = [f"{quote_identifier(name)} AS {quote_identifier(other)}" for name, other in names]
            self._select_from(replace_columns_sql(self.view, absent, copies))

    def _missing_sql(self, types: Mapping[str, str]) -> dict[str, str]:
        """SQL for columns without missing-value markers: numbers by value, text as it is written."""
        na = self.reading.na_values
        numbers = ", ".join(f"CAST({number!r} AS DOUBLE)" for number in parse_plain_numbers(na))
        texts = "" if self.is_untyped else ", ".join(map(quote_text, na))
        out = {}
        for name, kind in types.items():
            column, is_number = quote_identifier(name), bool(_NUMBER.match(kind))
            if markers := numbers if is_number else texts if kind.startswith(("VARCHAR", "ENUM")) else "":
                value = f"CAST({column} AS {'DOUBLE' if is_number else 'VARCHAR'})"
                out[name] = f"CASE WHEN {value} IN ({markers}) THEN NULL ELSE {column} END"
        return out

    def _original_names(self, names: Iterable[str]) -> dict[str, str]:
        """Second names for columns that are about to be parsed, under which they stay as they are."""
        new = {name: f"{name} as it is written" for name in names if name not in self.original_names}
        self.original_names |= new
        return new

    def _select_from(self, table: str) -> None:
        sql = f"SELECT * FROM {table}"
        with translate_errors(self.name):
            if self.attached.relation is not None:
                self.attached.relation = self._query(sql)
            else:
                self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view}_read AS {sql}")
                self.view = f"{self.view}_read"

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Of a CSV as text, under second names."""
        if self.attached.csv is None:
            schema = self.attached.schema
            types = {} if schema is None else {field.name: field.type for field in schema}
            return [(self.original_names.get(name, name), types.get(name)) for name in names]
        originals = {name: f"{name} as it is written" for name in names}
        self._set_types({}, {}, originals)
        return [(other, None) for other in originals.values()]

    def _set_types(
        self, types: Mapping[str, str], text_formats: _Formats, originals: Mapping[str, str] = _EMPTY_MAPPING
    ) -> None:
        assert self.attached.csv is not None
        self.types |= types
        self.text_formats |= text_formats
        with translate_errors(self.name):
            table = self.attached.csv.select_sql(self.types, self.text_formats, originals)
            self._create_view(replace_columns_sql(table, self._missing_sql(self.types)))
        self.columns |= types

    def _cast_columns(self, head: Any, types: Mapping[str, str], text_formats: _Formats) -> Any:
        """Text columns, cast to SQL types; what does not fit is missing."""
        self.con.register("head", head)
        castable = {name: castable_sql(name, text_formats.get(name, PLAIN_FORMAT)) for name in types}
        reads = ", ".join(
            f"TRY_CAST({castable[name]} AS {kind}) AS {quote_identifier(name)}" for name, kind in types.items()
        )
        table = replace_columns_sql(f"(SELECT {reads} FROM head)", self._missing_sql(types))
        return self.con.sql(f"SELECT * FROM {table}").to_arrow_table()

    # The view

    def _query(self, sql: str) -> Any:
        relation = self.attached.relation
        return self.con.sql(sql) if relation is None else relation.query(self.view, sql)

    def _run_interruptible(self, call: Callable[[], T]) -> T:
        """The result of a query; a relation has its own connection, which older versions do not show."""
        relation = self.attached.relation
        con = self.con if relation is None else getattr(relation, "_con", None)
        return call() if con is None else run_interruptible(con, call)

    def _describe(self) -> None:
        if self.attached.csv is not None:
            self.columns = dict.fromkeys(self.attached.csv.names, "VARCHAR")
        elif self.attached.relation is not None:
            relation = self.attached.relation.query(
                self.view, f"SELECT * FROM {self.view}"
            )  # duplicate names become distinct
            self.columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
        else:
            self.columns = {row[0]: row[1] for row in self.fetch_rows(f"DESCRIBE {self.view}")}
        self.columns = {n: kind for n, kind in self.columns.items() if n not in self.original_names.values()}
        if not self.columns:
            raise InputError(f"{self.name} has no columns")

    def _create_view(self, reader: str) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {reader}")
