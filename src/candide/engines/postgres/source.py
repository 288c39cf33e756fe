"""PostgreSQL sources: a table, a view or a query, whose rows are seen as they were when it was opened.

Rows of a table come in the order in which they are stored, each time the same. Those of a view or a query are written
to a temporary file where they are needed in the same order twice.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import pyarrow as pa

from candide.data.arrow_columns import arrow_numbers
from candide.data.equal_rows import hash_row_numbers
from candide.data.labels import Labels
from candide.data.sample import assign_folds, assign_folds_by_key
from candide.engines.base import Folds, HeadAndNotes, LabelledSource
from candide.engines.batches import Scan, slice_rows, split_rows
from candide.engines.postgres.relations import PostgresColumn, find_relation, read_columns
from candide.engines.postgres.session import Session
from candide.engines.reading import ReadOptions, has_password_setting, is_address, redact_address, split_table
from candide.engines.sql.dialect import quote_identifier
from candide.engines.sql.dialects.postgres import PostgresDialect
from candide.engines.sql.source import SqlEngine, SqlSource
from candide.engines.table_formats import unread_text
from candide.errors import InputError, SourceError
from candide.files import remove_temporary, temporary_file
from candide.model.plan import Plan, PlanPart

_BATCH_ROWS = 1 << 16  # read at a time where rows are written to a file, or assigned to folds


class PostgresSource(SqlSource):
    """An open table, view or query: the common table expression ``source`` of every query."""

    dialect = PostgresDialect()
    view = "source"
    takes_folds = True

    def __init__(self, address: str, reading: ReadOptions, engine: "Postgres"):
        self.name, self.engine = redact_address(address), engine
        address, table = split_table(address)
        if table is not None and has_password_setting(address):
            what, remedy = "a table after a password in its settings", "pass the table by --table (table=)"
            raise SourceError(what, source=self.name, remedy=f"{remedy}, and the password in PGPASSWORD or ~/.pgpass")
        self._file: str | None = None  # with all rows, where they have been written to one
        self._row_folds: dict[Folds, Any] = {}
        self._is_waiting = False  # for the server
        self._fraction = 1.0  # of the rows that are read
        self._span: tuple[int, int] | None = None
        self._rows_counted = [0]  # shared with subsets of this source
        self._rows: int | None = None
        self.session = Session(address, redact_address(address) if is_address(address) else self.name)
        try:
            self.relation = find_relation(self.session, table or reading.table)
            if self.relation.is_table:
                self.session.read_in_stored_order()
            schema = self.session.schema(f"SELECT * FROM {self.relation.sql}")
            self._set_columns(list(read_columns(schema, reading.na_values)))
        except BaseException:
            self.close()
            raise

    def _set_columns(self, columns: list[PostgresColumn]) -> None:
        if not columns:
            raise InputError(f"{self.name} has no columns")
        self._reads: dict[str, PostgresColumn] = {}
        for column in columns:
            if column.name in self._reads:
                what = f"{self.name} has two columns {column.name!r}"
                raise InputError(what, value=column.name, remedy="rename one of them: AS")
            self._reads[column.name] = column
        self.columns = {column.name: column.kind for column in columns}

    def temporal_kind(self, name: str) -> str:
        return "time" if self._reads[name].is_duration else super().temporal_kind(name)

    def close(self) -> None:
        self.session.close()
        if self._file is not None:
            remove_temporary(self._file)

    def _query(self, sql: str) -> str:
        """A query with the columns as they are read; the server plans it as if it were written out."""
        columns = [(column.sql, column.name) for column in self._reads.values()]
        columns += [
            (column.original_sql, column.original_name) for column in self._reads.values() if column.original_sql
        ]
        chosen = ", ".join(f"{expression} AS {quote_identifier(name)}" for expression, name in columns)
        sample = f" TABLESAMPLE BERNOULLI ({100 * self._fraction!r}) REPEATABLE (0)" if self._fraction < 1 else ""
        return f"WITH {self.view} AS NOT MATERIALIZED (SELECT {chosen} FROM {self.relation.sql}{sample}) {sql}"

    def fetch_rows(self, sql: str) -> list[tuple]:
        self._is_waiting = True
        try:
            rows = self.session.fetch_rows(self._query(sql))
        finally:
            self._is_waiting = False
        self.rows_read += self.n_rows or 0
        return rows

    def progress(self) -> float:
        """Unknown while the server works on a query."""
        return -1.0 if self._is_waiting else super().progress()

    def stream_rows(self, sql: str) -> Iterator[tuple]:
        for batch in self.arrow_batches(sql, _BATCH_ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def arrow_batches(self, sql: str, size: int) -> Iterator[Any]:
        return self.session.scan(self._query(sql), size).batches

    def head(self, n: int) -> Any:
        scan = self.slice_rows(0, n)._scan(list(self.columns), max(n, 1))
        return pa.Table.from_batches(scan.batches, scan.schema)

    def read_head(self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()) -> HeadAndNotes:
        head, kept = self.head(n), {target, *as_text, *as_numbers}
        names = [name for name, kind in self.columns.items() if kind == "VARCHAR" and name not in kept]
        return head, unread_text(head, names, "double precision")

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        fold, start = None, 0
        if folds is not None and folds.key_column is not None and not self.is_local:  # the server assigns folds
            batches = super().batches(columns, size, folds)
        else:
            fold = None if folds is None else self._fold_of_rows(folds)
            batches = self._scan(columns, size).batches
        for batch in batches:
            self.rows_read += batch.num_rows
            if fold is not None:
                batch = batch.append_column("fold", fold.slice(start, batch.num_rows))
            start += batch.num_rows
            yield batch

    def _scan(self, columns: Sequence[str], size: int) -> Scan:
        if self._file is not None:
            return _read_file(self._file, columns, size, self._span)
        limit = "" if self._span is None else f" LIMIT {self._span[1]} OFFSET {self._span[0]}"
        chosen = ", ".join(map(quote_identifier, columns))
        return self.session.scan(self._query(f"SELECT {chosen} FROM {self.view}{limit}"), size)

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """A decimal number with its digits, an interval as such."""
        return [(self._reads[name].original_name, self._reads[name].original_type) for name in names]

    def slice_rows(self, start: int, n: int) -> Self:
        out = copy(self)
        out._span = (start, n)
        return out

    def with_span(self, span: tuple[int, int] | None) -> tuple[Self, None]:
        """The same source with the original columns too; the server sends only the rows of the span."""
        out = copy(self) if span is None else self.slice_rows(*span)
        out.columns = {**self.columns, **{column.original_name: column.kind for column in self._reads.values()}}
        return out, None

    def draw_subset(self, n: int) -> tuple[Self, float]:
        """A sample of a table, which the server draws and sends without other rows."""
        if not self.relation.is_table or n >= self.count_rows():
            return self, 1.0
        out = copy(self)
        out._fraction = n / self.count_rows()
        return out, out._fraction

    def count_rows(self) -> int:
        if self._rows is None:
            [(self._rows,)] = self.session.fetch_rows(f"SELECT count(*) FROM {self.relation.sql}")
        return self._rows

    @property
    def is_local(self) -> bool:
        return self._file is not None

    def materialise(self) -> None:
        """Write the rows of a view or a query to a temporary file, once."""
        if self.relation.is_table or self._file is not None:
            return
        self._file = temporary_file(".arrow")
        scan, self._rows = self.session.scan(self._query(f"SELECT * FROM {self.view}"), _BATCH_ROWS), 0
        with pa.ipc.new_file(self._file, scan.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
            for batch in scan.batches:
                self._rows += batch.num_rows
                out.write_batch(batch)

    def _fold_of_rows(self, folds: Folds) -> Any:
        """The fold of each row, in order: assigned by a hash of the primary key if there is one, so that it does not
        depend on where a row is stored, else by the row number.
        """
        if folds.rows is not None:
            return pa.array(folds.rows.fold)
        if folds not in self._row_folds:
            self.materialise()
            scan = self._scan_keys(folds)
            table = pa.Table.from_batches(scan.batches, scan.schema)
            column, n = table.column(0), table.num_rows
            if folds.key_column is not None:
                fold = assign_folds_by_key(column, folds.n, folds.seed, folds.key_column)
            else:
                y = np.zeros(n, np.intp) if folds.label_column is None else Labels.from_values(column).encode(column)
                numbers = arrow_numbers(table.column(1)) if table.num_columns > 1 else np.arange(n)
                fold = assign_folds(y, folds.n, hash_row_numbers(numbers, folds.seed))
            self._row_folds[folds] = pa.array(fold.astype(np.int16 if folds.n < 1 << 15 else np.int32))
        return self._row_folds[folds]

    def _scan_keys(self, folds: Folds) -> Scan:
        by = folds.key_column or folds.label_column or next(iter(self.columns))
        if not self.relation.key:
            return self._scan([by], _BATCH_ROWS)
        keys = ", chr(31), ".join(f"CAST({quote_identifier(name)} AS text)" for name in self.relation.key)
        hashed = f"('x' || left(md5(concat({keys})), 16))::bit(64)::bigint"
        return self.session.scan(self._query(f"SELECT {quote_identifier(by)}, {hashed} FROM {self.view}"), _BATCH_ROWS)

    @property
    def rows_read(self) -> int:
        return self._rows_counted[0]

    @rows_read.setter
    def rows_read(self, rows: int) -> None:
        self._rows_counted[0] = rows

    def start_progress(self) -> None:
        super().start_progress()
        self.n_rows = self.count_rows() if self.relation.is_table or self.is_local else None


def _read_file(path: str, columns: Sequence[str], size: int, span: tuple[int, int] | None) -> Scan:
    with pa.ipc.open_file(path) as file:
        schema = file.schema
    options = pa.ipc.IpcReadOptions(included_fields=sorted(schema.names.index(name) for name in columns))

    def batches() -> Iterator[Any]:
        with pa.ipc.open_file(path, options=options) as file:
            stored = (file.get_batch(i).select(list(columns)) for i in range(file.num_record_batches))
            yield from split_rows(slice_rows(stored, *(span or (0, 1 << 62))), size)

    return Scan(pa.schema([schema.field(name) for name in columns]), batches())


class Postgres(SqlEngine):
    name = "postgres"
    max_levels = 31  # GROUPING takes no more columns

    def open(self, data: Any, reading: ReadOptions | None = None) -> PostgresSource:
        return PostgresSource(data, reading or ReadOptions(), self)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """None where folds are assigned here or rows are in a file; numbers written as text are read here."""
        source = rows.source
        assert isinstance(source, PostgresSource)
        if source.is_local or (rows.folds and rows.folds.key_column is None):
            return []
        text = {name for name, kind in source.columns.items() if kind == "VARCHAR"}
        parts = super().countable_parts(plan, rows)
        return [p for p in parts if p.event.encoding.is_read_as_text or text.isdisjoint(map(str, p.columns))]
