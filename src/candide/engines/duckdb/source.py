"""Sources of DuckDB: whatever holds rows, opened as one view that may be read again and again.

A path, a glob or a folder (CSV, TSV, Parquet, JSON lines, Arrow, Feather; compressed or not), ``-`` for standard input,
a DuckDB or SQLite file, a workbook, ARFF, an SQL query, a data frame, an Arrow table, a DuckDB relation; a folder of
folders of documents (:mod:`candide.engines.duckdb.folders`).

>>> import pyarrow as pa
>>> with DuckDBSource.open(pa.table({"age": [30, 41], "job": ["cook", None]})) as source:
...     source.columns, source.rows("SELECT count(*) FROM source")
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

from candide.engines.base import Folds
from candide.engines.batch import Scan
from candide.engines.duckdb import infer, pace
from candide.engines.duckdb.attach import Attached, attach, temporary
from candide.engines.duckdb.csv_form import is_not_header, mended, read_text, replaced
from candide.engines.duckdb.duckdb_errors import explained
from candide.engines.duckdb.repeated_headers import named_rows
from candide.engines.duckdb.spread import binary_columns, other_texts, other_values, with_others
from candide.engines.reading import Reading
from candide.engines.sql.dialect import Expr
from candide.engines.sql.dialects.duckdb import DuckDBDialect
from candide.engines.sql.source import FOLD, SqlSource, deal
from candide.engines.sql.text import identifier, literal
from candide.engines.stoppable import stoppable
from candide.errors import InputError
from candide.files import remove
from candide.rows.kinds import is_coded_number, rows_of_look
from candide.rows.remarks import Remark
from candide.rows.spelling import PLAIN, Spelling, numbers_among

if TYPE_CHECKING:
    from candide.engines.duckdb.engine import DuckDB

T = TypeVar("T")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_Formats = Mapping[str, Spelling]
_NUMBER = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|DECIMAL")


class DuckDBSource(SqlSource):
    """An open source: the view ``source`` on a DuckDB connection."""

    dialect = DuckDBDialect()
    view = "source"
    takes_folds = True

    def __init__(self, con: Any, reading: Reading, engine: "DuckDB | None" = None):
        self.con, self.reading = con, reading
        self.engine = engine  # type: ignore[assignment]
        self.attached = Attached()
        self.columns: dict[str, str] = {}
        self.types: dict[str, str] = {}  # of a CSV, those found out, and how numbers are written there
        self.spelled: dict[str, Spelling] = {}
        self.written: dict[str, str] = {}  # of other sources, the names of text that is read as numbers
        self.rows_read = 0
        self._as_opened: tuple[str, dict[str, str], dict[str, str], Any] | None = None  # before text was read
        self.spread: dict[str, Any] = {}
        self._folds: dict[Folds, str] = {}
        self._lock: Lock | None = None  # on the rows that queries have read, where one looks on

    @classmethod
    def open(cls, data: Any, reading: Reading | None = None, engine: "DuckDB | None" = None) -> Self:
        """Open anything that holds rows."""
        reading = reading or Reading()
        con = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        with suppress(duckdb.InvalidInputException):  # a notebook without ipywidgets has none, and may not be told so
            con.execute("SET enable_progress_bar = false")  # that of the command line counts rows
        con.execute("SET enable_external_file_cache = false")  # memory must not grow with the file
        # The least and largest values that Parquet files note leave NaN out, and with them isnan() is taken for false.
        con.execute("SET disabled_optimizers = 'statistics_propagation'")
        if reading.memory_limit:
            try:
                con.execute(f"SET memory_limit = {literal(str(reading.memory_limit))}")
            except duckdb.Error:
                what, remedy = f"memory_limit is {reading.memory_limit!r}", "pass a size, such as 2GB"
                raise InputError(what, value=reading.memory_limit, remedy=remedy) from None
        if reading.threads:
            con.execute(f"SET threads = {int(reading.threads)}")
        source = cls(con, reading, engine)
        try:
            attach(con, data, reading, source.view, source.attached)
            source._describe()
            source._leave_out()
        except BaseException:
            source.close()
            raise
        return source

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.attached.name

    @property
    def documents(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.attached.documents

    @property
    def categories(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(field.name for field in self.attached.schema or () if is_coded_number(field.type))

    @property
    def remarks(self) -> list[Remark]:  # type: ignore[override]
        return self.attached.remarks

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self.attached.encoding

    @property
    def untyped(self) -> bool:  # type: ignore[override]
        return self.attached.csv is not None

    def close(self) -> None:
        """Close the connection and remove what was spooled."""
        self.attached.relation = None
        self.con.close()
        for thing in self.attached.held:
            if isinstance(thing, Path):
                remove(str(thing))
        self.attached.held.clear()

    # Queries

    def rows(self, sql: str) -> list[tuple]:
        """Run a query over the view ``source`` and fetch its rows."""
        with explained(self.name):
            return self._stoppable(lambda: self._query(sql).fetchall())

    def stream(self, sql: str) -> Iterator[tuple]:
        for batch in self._scan(sql, 100_000).batches:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def arrow_batches(self, sql: str, size: int) -> Iterator[Any]:
        return self.scan(sql, size).batches

    def scan(self, sql: str, size: int) -> Scan:
        """Run a query for rows of the source; its schema, and its result in Arrow record batches."""
        found = self._scan(sql, size)
        return Scan(found.schema, self._counted(found.batches))

    def _scan(self, sql: str, size: int) -> Scan:
        with explained(self.name):
            reader = self._stoppable(lambda: self._query(sql).to_arrow_reader(size))
        return Scan(reader.schema, self._read(reader))

    def _read(self, reader: Any) -> Iterator[Any]:
        with explained(self.name):
            while (batch := self._stoppable(lambda: next(reader, None))) is not None:
                yield batch

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.rows_read += batch.num_rows
            yield batch

    def arrow(self, sql: str) -> Any:
        """Run a query and fetch its result as one Arrow table."""
        with explained(self.name):
            return self._stoppable(lambda: self._query(sql).to_arrow_table())

    def head(self, n: int) -> Any:
        chosen = ", ".join(map(identifier, self.columns)) if self.written else "*"
        return self.arrow(f"SELECT {chosen} FROM {self.view} LIMIT {n}")

    # Looking on

    def look_on(self) -> None:
        super().look_on()
        self.n_rows = self._rows_there()
        if self._lock is None and self.attached.relation is None:
            self._lock = Lock()
            pace.ticking(self.con, self._tick)

    def _tick(self, rows: int) -> None:
        assert self._lock is not None
        with self._lock:  # queries run on threads
            self.rows_read += rows

    @property
    def tick(self) -> Expr | None:
        return None if self._lock is None else pace.TICK.copy()

    def _rows_there(self) -> int | None:
        found = self.attached
        if found.text_files:
            return pace.lines_in(found.text_files)
        if found.is_query or found.documents:
            return None
        return self.rows(f"SELECT count(*) FROM {self.view}")[0][0]

    def materialise(self) -> None:
        """Those of a query are written to a temporary file, once."""
        if not self.attached.is_query:
            return
        path = temporary("parquet", self.attached)
        with explained(self.name):  # by no other file, which a stop would leave there
            rows = self._query(f"SELECT * FROM {self.view}")
            self._stoppable(lambda: rows.write_parquet(str(path), use_tmp_file=False))
        self.attached.relation, self.attached.is_query, self._as_opened = None, False, None
        self._create_view(f"read_parquet({literal(str(path))})")
        self._describe()

    def dealt(self, folds: Folds) -> Expr:
        """The rows beside a table of their folds in the same order, which is made once, from the labels alone."""
        if folds.key is not None:
            return super().dealt(folds)
        self.materialise()
        if folds not in self._folds:
            self._folds[folds] = f"folds{len(self._folds)}"
            query = deal(self, folds).sql(self.dialect.name)
            with explained(self.name):
                if folds.rows is not None:
                    self.con.register("folds_of_rows", pa.table({FOLD: folds.rows.fold}))
                    query = "SELECT * FROM folds_of_rows"
                self.con.execute(f"CREATE TEMP TABLE {self._folds[folds]} AS {query}")
        beside = exp.Join(this=exp.to_table(self._folds[folds]), method="POSITIONAL")
        return exp.Select(expressions=[exp.Star()], joins=[beside]).from_(self.view).subquery("dealt")

    # The types of a CSV, of which every column comes as text until they are known

    def look(
        self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()
    ) -> tuple[Any, list[Remark]]:
        self.spread = {}
        if self.types:  # it was looked at before
            self.types, self.spelled = {}, {}
            self._typed(dict.fromkeys(self.columns, "VARCHAR"), {})
        if self._as_opened is not None:
            self.view, self.columns, self.written, self.attached.relation = self._as_opened
            self._as_opened, self.spelled = None, {}
        head = self.head(n)
        if not head.num_rows:
            return head, []
        if self.attached.csv is None:
            if repeats := named_rows(head):
                self._select_from(f"(SELECT * FROM {self.view} WHERE {is_not_header(self.columns)})")
                head = self.head(n)
            if head.num_rows == n and not self.attached.is_query:
                names = [name for name in binary_columns(head) if _NUMBER.match(self.columns[name]) and name != target]
                self.spread = self._others(names, n)
            head, notes = self._look_at_text(head, target, as_text, as_numbers)
            return head, [*repeats, *notes]
        known = self.attached.csv
        words = {*as_text, *(known.categories - set(as_numbers))}
        names = [name for name in binary_columns(head) if name not in {target, *words}] if head.num_rows == n else []
        others = other_texts(self.con, known, names, n, lambda: str(temporary("csv", self.attached)))
        read = infer.types_of(self.con, with_others(head, others), target, words, as_numbers, self.reading, known.texts)
        self._typed(read.types, read.spelled)
        self.spread = {
            n: self._read_as(pa.table({n: c}), {n: read.types[n]}, read.spelled)[n] for n, c in others.items()
        }
        return self._read_as(head, read.types, read.spelled), read.remarks

    def _others(self, names: Sequence[str], n: int) -> dict[str, Any]:
        with explained(self.name):
            return self._stoppable(lambda: other_values(self._query, self.view, names, n))

    def _look_at_text(
        self, head: Any, target: str, as_text: Sequence[str], as_numbers: Sequence[str]
    ) -> tuple[Any, list[Remark]]:
        """Have text columns of a source with types that spell numbers or dates read as such, by the rules for files."""
        kept = {target, *as_text, *self.documents}
        texts = [n for n, kind in self.columns.items() if kind == "VARCHAR" and n not in kept]
        texts = head.select(names := [n for n in texts if infer.is_string(head, n)])
        read = infer.types_of(self.con, texts, None, (), as_numbers, self.reading, names, typed=True)
        read.types = {name: kind for name, kind in read.types.items() if kind != "VARCHAR"}
        if read.types:
            self._as_opened = self.view, dict(self.columns), dict(self.written), self.attached.relation
            self._read_again(read)
            self.spelled |= read.spelled
            parsed = self._read_as(texts, read.types, read.spelled)
            for name in read.types:
                head = head.set_column(head.column_names.index(name), name, parsed.column(name))
        return head, read.remarks

    def read_numbers(
        self, names: Sequence[str], spelled: _Formats | None = None, temporal: Mapping[Any, str] = _NOTHING
    ) -> list[Remark]:
        """In the way in which they are written in the head, where they come as text."""
        names = [name for name in names if self.columns.get(name) == "VARCHAR"]
        if not names:
            return []
        columns = ", ".join(map(identifier, names))
        head = self.arrow(f"SELECT {columns} FROM {self.view} LIMIT {rows_of_look(len(names))}")
        read = infer.numbers_of(self.con, head, spelled or {}, self.reading, temporal)
        if self.attached.csv is None:
            self._read_again(read)
        else:
            self._typed(read.types, read.spelled)
        return read.remarks

    def _read_again(self, read: infer.Read) -> None:
        """Have text of a source with types read as numbers, and beside that as it is."""
        table = read_text(self.view, read.types, read.spelled, self._to_write(read.types))
        self._select_from(replaced(table, self._absent(read.types)))
        self.columns |= read.types

    def _leave_out(self) -> None:
        """Have what was said to mean a missing value be one in a source with types; a CSV is read without it."""
        if self.attached.csv is None and (absent := self._absent(self.columns)):
            copies = [f"{identifier(name)} AS {identifier(other)}" for name, other in self._to_write(absent).items()]
            self._select_from(replaced(self.view, absent, copies))

    def _absent(self, types: Mapping[str, str]) -> dict[str, str]:
        """SQL for columns without what means a missing value: numbers by what they are, text by how it is written."""
        numbers = ", ".join(f"CAST({number!r} AS DOUBLE)" for number in numbers_among(self.reading.missing))
        texts = "" if self.untyped or not self.reading.missing else ", ".join(map(literal, self.reading.missing))
        out = {}
        for name, kind in types.items():
            if said := numbers if _NUMBER.match(kind) else texts if kind.startswith(("VARCHAR", "ENUM")) else "":
                as_said = f"CAST({identifier(name)} AS {'DOUBLE' if said is numbers else 'VARCHAR'})"
                out[name] = f"CASE WHEN {as_said} IN ({said}) THEN NULL ELSE {identifier(name)} END"
        return out

    def _to_write(self, names: Iterable[str]) -> dict[str, str]:
        """New names for columns that are about to be read otherwise, under which they stay as they are."""
        self.written |= (new := {name: f"{name} as it is written" for name in names if name not in self.written})
        return new

    def _select_from(self, table: str) -> None:
        sql = f"SELECT * FROM {table}"
        with explained(self.name):
            if self.attached.relation is not None:
                self.attached.relation = self._query(sql)
            else:
                self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view}_read AS {sql}")
                self.view = f"{self.view}_read"

    def as_written(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Of a CSV as text, from columns beside those that are read as numbers."""
        schema = self.attached.schema
        if self.attached.csv is None:
            return [(self.written.get(name, name),
                     None if schema is None or name not in schema.names else schema.field(name).type)
                    for name in names]  # fmt: skip
        written = {name: f"{name} as it is written" for name in names}
        self._typed({}, {}, written)
        return [(other, None) for other in written.values()]

    def _typed(
        self, types: Mapping[str, str], spelled: Mapping[str, Spelling], written: Mapping[str, str] = _NOTHING
    ) -> None:
        assert self.attached.csv is not None
        self.types |= types
        self.spelled |= spelled
        with explained(self.name):
            table = self.attached.csv.reader(self.types, self.spelled, written)
            self._create_view(replaced(table, self._absent(self.types)))
        self.columns |= types

    def _read_as(self, head: Any, types: Mapping[str, str], spelled: Mapping[str, Spelling]) -> Any:
        """Columns of text, read with SQL types; what does not fit is missing."""
        self.con.register("head", head)
        reads = ", ".join(
            f"TRY_CAST({mended(name, spelled.get(name, PLAIN))} AS {kind}) AS {identifier(name)}"
            for name, kind in types.items()
        )
        table = replaced(f"(SELECT {reads} FROM head)", self._absent(types))
        return self.con.sql(f"SELECT * FROM {table}").to_arrow_table()

    # The view

    def _query(self, sql: str) -> Any:
        relation = self.attached.relation
        return self.con.sql(sql) if relation is None else relation.query(self.view, sql)

    def _stoppable(self, call: Callable[[], T]) -> T:
        """What a query gives; one of a relation is on the relation's connection, which older ones do not show."""
        relation = self.attached.relation
        con = self.con if relation is None else getattr(relation, "_con", None)
        return call() if con is None else stoppable(con, call)

    def _describe(self) -> None:
        if self.attached.csv is not None:
            self.columns = dict.fromkeys(self.attached.csv.names, "VARCHAR")
        elif self.attached.relation is not None:
            relation = self.attached.relation.query(self.view, f"SELECT * FROM {self.view}")  # names it twice no more
            self.columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
        else:
            self.columns = {row[0]: row[1] for row in self.rows(f"DESCRIBE {self.view}")}
        self.columns = {n: kind for n, kind in self.columns.items() if n not in self.written.values()}
        if not self.columns:
            raise InputError(f"{self.name} has no columns")

    def _create_view(self, reader: str) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {reader}")
