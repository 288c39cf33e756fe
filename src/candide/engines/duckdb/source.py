"""The DuckDB engine, and its sources: files, frames, queries and relations, as one view that is read repeatedly."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from candide.data.column_types import is_coded_number
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import LIMITS
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.engines.base import Folds, HeadAndNotes, Source
from candide.engines.batches import Scan, batch_size, iterate_columns, run_interruptible
from candide.engines.duckdb import formats, type_inference
from candide.engines.duckdb.attach import AttachedData, connect, estimate_lines
from candide.engines.duckdb.csv_files import is_not_header, named_rows
from candide.engines.duckdb.number_formats import is_string
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialect import Expr, SourceColumn, call_function, quote_identifier, quote_text
from candide.engines.sql.dialects.duckdb import DuckDBDialect
from candide.engines.sql.source import FOLD, SqlEngine, SqlSource, assign_folds, fold_column, select_sql
from candide.errors import InputError
from candide.files import remove_temporary
from candide.model.plan import Plan, PlanPart

T = TypeVar("T")
_Formats = Mapping[str, TextFormat]
_MAX_LEVELS_PER_COLUMN = 1 << 8  # in a query: parsing a level costs as much as a lookup in a thousand rows
_MAX_LEVELS = 1 << 11  # of all columns
# The progress of DuckDB jumps from a few percent to the end, so a function that a query calls counts the rows.
_TICK = "candide_tick"


class DuckDBSource(SqlSource):
    """An open source: the view ``source`` on a DuckDB connection."""

    dialect = DuckDBDialect()
    view = "source"
    takes_folds = True

    def __init__(self, data: Any, reading: ReadOptions, engine: "DuckDB"):
        self.con, self.reading, self.engine = connect(reading), reading, engine
        self.attached = AttachedData(self.con, self.view)
        self.columns: dict[str, str] = {}
        self.types: dict[str, str] = {}  # of a CSV: inferred, with the formats of its numbers and dates
        self.text_formats: dict[str, TextFormat] = {}
        self.original_names: dict[str, str] = {}  # of other sources: second names of text that is read as numbers
        self.spread_values: dict[str, Any] = {}
        self._as_opened: tuple[str, dict[str, str], dict[str, str], Any] | None = None  # before text was parsed
        self._folds: dict[Folds, str] = {}
        self._lock: Lock | None = None  # on the number of rows read, where progress is shown
        attached = self.attached
        try:
            attached.attach(data, reading)
            self.name, self.notes, self.encoding = attached.name, attached.notes, attached.encoding
            self.documents, self.is_untyped = attached.documents, attached.csv is not None
            self.categories = tuple(field.name for field in attached.schema or () if is_coded_number(field.type))
            self._describe()
            if attached.csv is None and (absent := self._missing_sql(self.columns)):  # of a CSV, as it is read
                self._select_from(formats.replace_columns_sql(self.view, absent, self._original_names(absent)))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.attached.relation = None
        self.con.close()
        for resource in self.attached.resources:
            if isinstance(resource, Path):
                remove_temporary(str(resource))
        self.attached.resources.clear()

    def fetch_rows(self, sql: str) -> list[tuple]:
        return self._run(lambda: self._query(sql).fetchall())

    def fetch_arrow(self, sql: str) -> Any:
        return self._run(lambda: self._query(sql).to_arrow_table())

    def stream_rows(self, sql: str) -> Iterator[tuple]:
        for batch in self._scan(sql, 100_000).batches:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def arrow_batches(self, sql: str, size: int) -> Iterator[Any]:
        return self.scan(sql, size).batches

    def scan(self, sql: str, size: int) -> Scan:
        """Run a query for rows of the source; its schema, and its result in Arrow record batches."""
        scan = self._scan(sql, size)
        return Scan(scan.schema, map(self._count_batch, scan.batches))

    def _count_batch(self, batch: Any) -> Any:
        self.rows_read += batch.num_rows
        return batch

    def _scan(self, sql: str, size: int) -> Scan:
        reader = self._run(lambda: self._query(sql).to_arrow_reader(size))
        return Scan(reader.schema, iter(lambda: self._run(lambda: next(reader, None)), None))

    def head(self, n: int) -> Any:
        chosen = ", ".join(map(quote_identifier, self.columns)) if self.original_names else "*"
        return self.fetch_arrow(f"SELECT {chosen} FROM {self.view} LIMIT {n}")

    def _query(self, sql: str) -> Any:
        relation = self.attached.relation
        return self.con.sql(sql) if relation is None else relation.query(self.view, sql)

    def _run(self, call: Callable[[], T]) -> T:
        """The result of a query; a relation has its own connection, which older versions do not show."""
        relation = self.attached.relation
        con = self.con if relation is None else getattr(relation, "_con", None)
        with formats.translate_errors(self.name):
            return call() if con is None else run_interruptible(con, call)

    def start_progress(self) -> None:
        super().start_progress()
        if self.attached.text_files:
            self.n_rows = estimate_lines(self.attached.text_files)
        else:
            is_uncounted = self.attached.is_query or self.attached.documents
            self.n_rows = None if is_uncounted else self.fetch_rows(f"SELECT count(*) FROM {self.view}")[0][0]
        if self._lock is None and self.attached.relation is None:
            self._lock = lock = Lock()

            def tick(rows: Any) -> Any:
                with lock:  # queries run on threads
                    self.rows_read += len(rows)
                return rows

            self.con.create_function(_TICK, tick, ["BOOLEAN"], "BOOLEAN", type="arrow", side_effects=True)

    @property
    def tick(self) -> Expr | None:
        return None if self._lock is None else call_function(_TICK, exp.true())

    def materialise(self) -> None:
        """Write the rows of a query to a temporary file, once."""
        if not self.attached.is_query:
            return
        path = self.attached.temporary_file("parquet")
        rows = self._run(lambda: self._query(f"SELECT * FROM {self.view}"))
        self._run(lambda: rows.write_parquet(path, use_tmp_file=False))  # an interrupt would leave its file behind
        self.attached.relation, self.attached.is_query, self._as_opened = None, False, None
        self._create_view(f"read_parquet({quote_text(path)})")
        self._describe()

    def with_folds(self, folds: Folds) -> Expr:
        """The rows joined by position with a table of their folds, which is made once, from the labels alone."""
        if folds.key_column is not None:
            return super().with_folds(folds)
        self.materialise()
        if folds not in self._folds:
            self._folds[folds] = f"folds{len(self._folds)}"
            query = assign_folds(self, folds).sql(self.dialect.name)
            with formats.translate_errors(self.name):
                if folds.rows is not None:
                    self.con.register("folds_of_rows", pa.table({FOLD: folds.rows.fold}))
                    query = "SELECT * FROM folds_of_rows"
                self.con.execute(f"CREATE TEMP TABLE {self._folds[folds]} AS {query}")
        folds_join = exp.Join(this=exp.to_table(self._folds[folds]), method="POSITIONAL")
        return exp.Select(expressions=[exp.Star()], joins=[folds_join]).from_(self.view).subquery("folded")

    # Types of text columns: every column of a CSV is text until they are inferred

    def read_head(self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()) -> HeadAndNotes:
        self.spread_values, csv = {}, self.attached.csv
        if self.types:  # inferred before
            self.types, self.text_formats = {}, {}
            self._set_types(dict.fromkeys(self.columns, "VARCHAR"), {})
        if self._as_opened is not None:
            self.view, self.columns, self.original_names, self.attached.relation = self._as_opened
            self._as_opened, self.text_formats = None, {}
        head = self.head(n)
        if not head.num_rows:
            return head, []
        repeats = [] if csv else named_rows(head)
        if repeats:
            self._select_from(f"(SELECT * FROM {self.view} WHERE {is_not_header(self.columns)})")
            head = self.head(n)
        binary = type_inference.find_binary_columns(head) if head.num_rows == n else []
        if csv is None:
            names = [name for name in binary if name != target and formats.IS_NUMBER.match(self.columns[name])]
            if not self.attached.is_query:
                find = type_inference.find_other_values
                self.spread_values = self._run(lambda: find(self._query, self.view, names, n))
            head, notes = self._infer_text_types(head, {target, *as_text, *self.documents}, as_numbers)
            return head, [*repeats, *notes]
        texts = {*as_text, *(csv.categories - set(as_numbers))}
        names = [name for name in binary if name not in {target, *texts}]
        others = type_inference.sample_other_texts(self.con, csv, names, n, lambda: self.attached.temporary_file("csv"))
        values = type_inference.append_values(head, others)
        read = type_inference.infer_types(self.con, values, target, texts, as_numbers, self.reading, csv.text_columns)
        self._set_types(read.types, read.text_formats)
        for name, column in others.items():
            cast = self._cast_columns(pa.table({name: column}), {name: read.types[name]}, read.text_formats)
            self.spread_values[name] = cast[name]
        return self._cast_columns(head, read.types, read.text_formats), read.notes

    def _infer_text_types(self, head: Any, excluded: set[str], as_numbers: Sequence[str]) -> tuple[Any, list[Note]]:
        """Read text columns of a typed source that hold numbers or dates as such, by the rules for files."""
        names = [
            n for n, kind in self.columns.items() if kind == "VARCHAR" and n not in excluded and is_string(head, n)
        ]
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
        self, names: Sequence[str], text_formats: _Formats | None = None, temporal: Mapping[Any, str] = {}
    ) -> list[Note]:
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
        table = formats.typed_table_sql(self.view, read.types, read.text_formats, self._original_names(read.types))
        self._select_from(formats.replace_columns_sql(table, self._missing_sql(read.types)))
        self.columns |= read.types

    def _missing_sql(self, types: Mapping[str, str]) -> dict[str, str]:
        return formats.missing_sql(types, self.reading.na_values, not self.is_untyped)

    def _original_names(self, names: Iterable[str]) -> dict[str, str]:
        """Second names for columns that are about to be parsed, under which they stay as they are."""
        new = {name: f"{name} as it is written" for name in names if name not in self.original_names}
        self.original_names |= new
        return new

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        if self.attached.csv is None:
            types = {field.name: field.type for field in self.attached.schema or ()}
            return [(self.original_names.get(name, name), types.get(name)) for name in names]
        originals = {name: f"{name} as it is written" for name in names}
        self._set_types({}, {}, originals)
        return [(other, None) for other in originals.values()]

    def _set_types(self, types: Mapping[str, str], text_formats: _Formats, originals: Mapping[str, str] = {}) -> None:
        assert self.attached.csv is not None
        self.types |= types
        self.text_formats |= text_formats
        with formats.translate_errors(self.name):
            table = self.attached.csv.select_sql(self.types, self.text_formats, originals)
            self._create_view(formats.replace_columns_sql(table, self._missing_sql(self.types)))
        self.columns |= types

    def _cast_columns(self, head: Any, types: Mapping[str, str], text_formats: _Formats) -> Any:
        """Text columns, cast to SQL types; what does not fit is missing."""
        self.con.register("head", head)
        castable = {name: formats.castable_sql(name, text_formats.get(name, PLAIN_FORMAT)) for name in types}
        casts = (f"TRY_CAST({castable[name]} AS {kind}) AS {quote_identifier(name)}" for name, kind in types.items())
        table = formats.replace_columns_sql(f"(SELECT {', '.join(casts)} FROM head)", self._missing_sql(types))
        return self.con.sql(f"SELECT * FROM {table}").to_arrow_table()

    def _select_from(self, table: str) -> None:
        with formats.translate_errors(self.name):
            if self.attached.relation is not None:
                self.attached.relation = self._query(f"SELECT * FROM {table}")
            else:
                self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view}_read AS SELECT * FROM {table}")
                self.view = f"{self.view}_read"

    def _create_view(self, reader: str) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {reader}")

    def _describe(self) -> None:
        if self.attached.csv is not None:
            self.columns = dict.fromkeys(self.attached.csv.names, "VARCHAR")
        elif self.attached.relation is not None:
            relation = self._query(f"SELECT * FROM {self.view}")  # makes duplicate names distinct
            self.columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
        else:
            self.columns = {row[0]: row[1] for row in self.fetch_rows(f"DESCRIBE {self.view}")}
        self.columns = {n: kind for n, kind in self.columns.items() if n not in self.original_names.values()}
        if not self.columns:
            raise InputError(f"{self.name} has no columns")


class DuckDB(SqlEngine):
    name = "duckdb"

    def open(self, data: Any, reading: ReadOptions | None = None) -> DuckDBSource:
        return DuckDBSource(data, reading or ReadOptions(), self)

    def score(
        self,
        source: Source,
        plan: Plan,
        keep: Sequence[str] = (),
        *,
        folds: Folds | None = None,
        codes: bool = True,
        span: tuple[int, int] | None = None,
    ) -> Scan:
        assert isinstance(source, DuckDBSource)
        chosen, limit = [], _MAX_LEVELS if codes else 0
        for i, (part, j) in enumerate(iterate_columns(plan)):
            name = str(part.columns[j])
            kind = source.columns.get(name, "")
            is_level = part.block_kind == "codes" and part.encodings[j].is_read_as_text
            levels = part.levels[j] if is_level else Labels(())
            as_text = not codes and kind == "VARCHAR"
            value = exp.column(name, quoted=True) if as_text else _column_value(source, part, j)
            if kind.startswith(("VARCHAR", "ENUM")) and _can_inline_levels(levels, limit):
                limit -= len(levels)
                chosen.append(exp.alias_(source.dialect.level_code(value, levels), f"code{i}"))
            else:
                chosen.append(exp.alias_(value, f"f{i}"))
        chosen += [exp.alias_(exp.column(name, quoted=True), f"k{i}") for i, name in enumerate(keep)]
        query = select_sql(source, [*chosen, *fold_column(folds)], folds)
        rows = "" if span is None else f" LIMIT {span[1]} OFFSET {span[0]}"
        return source.scan(query + rows, batch_size(plan))


def _column_value(source: DuckDBSource, part: PlanPart, j: int) -> Expr:
    """A column as the model reads it; null where the source lacks it."""
    name, is_text = str(part.columns[j]), part.encodings[j].is_read_as_text
    kind = source.columns.get(name)
    if kind is None:
        return exp.cast(exp.Null(), "TEXT" if is_text else "DOUBLE")
    is_level = part.block_kind != "documents" and is_text
    column = SourceColumn(name, kind, source.dialect, is_level=is_level)
    if part.block_kind == "documents":
        return column.raw if kind.upper() in ("VARCHAR", "BLOB") else exp.cast(column.raw, "TEXT")
    return column.aggregate_value if is_level else column.value


def _can_inline_levels(levels: Labels, limit: int) -> bool:
    """Whether all levels are text, and few and plain enough for a query."""
    if not 0 < len(levels) <= min(limit, _MAX_LEVELS_PER_COLUMN):
        return False
    if not all(isinstance(level, str) and "\0" not in level for level in levels.values):
        return False
    try:
        "".join(levels.values).encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True
