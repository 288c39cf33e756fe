"""Sources of PostgreSQL: a table, a view or a query of a server, all of whose rows are seen as they were at its start.

Rows of a table come in the order in which they are stored, each time the same. Those of a view or a query are written
to a temporary file where they are needed in the same order twice.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from candide.data.arrow_columns import arrow_numbers
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.row_hash import hash_row_numbers
from candide.data.sampling import assign_folds, assign_folds_by_key
from candide.engines.addresses import has_password_setting, is_address, redact_address, split_table
from candide.engines.base import CountResult, Engine, Folds, LabelledSource, PreparedSource
from candide.engines.batches import Scan
from candide.engines.postgres.relations import PostgresColumn, find_relation, read_columns
from candide.engines.postgres.session import Session
from candide.engines.reading import ReadOptions
from candide.engines.sql import count as sql
from candide.engines.sql.dialects.postgres import PostgresDialect
from candide.engines.sql.source import SqlSource
from candide.engines.sql.statistics import SQL_TALLY_KINDS
from candide.engines.sql.text import quote_identifier
from candide.engines.table_formats import unread_text
from candide.errors import InputError, SourceError
from candide.files import remove_temporary, temporary_file
from candide.model.plan import Plan, PlanPart

_BATCH_ROWS = 1 << 16  # rows that are read at a time where the table is written to a file, or its folds are dealt


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
        self._waits = False  # for the server
        self._fraction = 1.0  # of the rows that are read
        self._span: tuple[int, int] | None = None
        self._rows_counted = [0]  # rows, by this source and those that are some of it
        self._rows: int | None = None
        self.session = Session(address, redact_address(address) if is_address(address) else self.name)
        try:
            self.relation = find_relation(self.session, table or reading.table)
            if self.relation.is_table:
                self.session.read_in_stored_order()
            found = list(read_columns(self.session.schema(f"SELECT * FROM {self.relation.sql}"), reading.na_values))
            self._set_columns(found)
        except BaseException:
            self.close()
            raise

    def _set_columns(self, found: list[PostgresColumn]) -> None:
        names = [one.name for one in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.name} has two columns {twice!r}", value=twice, remedy="rename one of them: AS")
        if not names:
            raise InputError(f"{self.name} has no columns")
        self._reads = {one.name: one for one in found}
        self.columns = {one.name: one.kind for one in found}

    def temporal_kind(self, name: str) -> str:
        return "time" if self._reads[name].is_duration else super().temporal_kind(name)

    def close(self) -> None:
        self.session.close()
        if self._file is not None:
            remove_temporary(self._file)

    # Queries

    def _query(self, sql: str) -> str:
        """A query with the columns as they are read; the server plans it as if it were written out."""
        each = [f"{one.sql} AS {quote_identifier(one.name)}" for one in self._reads.values()]
        each += [
            f"{one.original_sql} AS {quote_identifier(one.original_name)}"
            for one in self._reads.values()
            if one.original_sql
        ]
        some = f" TABLESAMPLE BERNOULLI ({100 * self._fraction!r}) REPEATABLE (0)" if self._fraction < 1 else ""
        base = f"SELECT {', '.join(each)} FROM {self.relation.sql}{some}"
        return f"WITH {self.view} AS NOT MATERIALIZED ({base}) {sql}"

    def fetch_rows(self, sql: str) -> list[tuple]:
        self._waits = True
        try:
            found = self.session.fetch_rows(self._query(sql))
        finally:
            self._waits = False
        self.rows_read += self.n_rows or 0
        return found

    def progress(self) -> float:
        """The server does not say how far it is."""
        return -1.0 if self._waits else super().progress()

    def stream_rows(self, sql: str) -> Iterator[tuple]:
        for batch in self.arrow_batches(sql, _BATCH_ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def arrow_batches(self, sql: str, size: int) -> Iterator[Any]:
        return self.session.scan(self._query(sql), size).batches

    def head(self, n: int) -> Any:
        import pyarrow as pa

        found = self.slice_rows(0, n)._scan(list(self.columns), max(n, 1))
        return pa.Table.from_batches(found.batches, found.schema)

    def read_head(
        self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()
    ) -> tuple[Any, list[Note]]:
        head, kept = self.head(n), {target, *as_text, *as_numbers}
        names = [name for name, kind in self.columns.items() if kind == "VARCHAR" and name not in kept]
        return head, unread_text(head, names, "double precision")

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        fold, start = None, 0
        if folds is not None and (folds.key_column is None or self.is_local):
            fold, found = self._fold_of_rows(folds), self._scan(columns, size).batches
        elif folds is not None:  # the server says the fold by the key
            found = super().batches(columns, size, folds)
        else:
            found = self._scan(columns, size).batches
        for batch in found:
            self.rows_read += batch.num_rows
            if fold is not None:
                batch = batch.append_column("fold", fold.slice(start, batch.num_rows))
            start += batch.num_rows
            yield batch

    def _scan(self, columns: Sequence[str], size: int) -> Scan:
        if self._file is not None:
            return _read_file(self._file, columns, size, self._span)
        some = "" if self._span is None else f" LIMIT {self._span[1]} OFFSET {self._span[0]}"
        chosen = ", ".join(map(quote_identifier, columns))
        return self.session.scan(self._query(f"SELECT {chosen} FROM {self.view}{some}"), size)

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """A decimal number with its digits, an interval as such."""
        return [(self._reads[name].original_name, self._reads[name].original_type) for name in names]

    # Some of the rows

    def slice_rows(self, start: int, n: int) -> Self:
        """The same source, of which so many rows are read."""
        some = copy(self)
        some._span = (start, n)
        return some

    def with_span(self, span: tuple[int, int] | None) -> tuple[Self, None]:
        """With columns that are passed on beside those that are read; the server sends the rows of the span alone."""
        some = copy(self) if span is None else self.slice_rows(*span)
        some.columns = {**self.columns, **{one.original_name: one.kind for one in self._reads.values()}}
        return some, None

    def draw_subset(self, n: int) -> tuple[Self, float]:
        """The server draws the rows of a table page by page, and sends no others."""
        if not self.relation.is_table or n >= self.count_rows():
            return self, 1.0
        some = copy(self)
        some._fraction = n / self.count_rows()
        return some, some._fraction

    def count_rows(self) -> int:
        """How many there are."""
        if self._rows is None:
            [(self._rows,)] = self.session.fetch_rows(f"SELECT count(*) FROM {self.relation.sql}")
        return self._rows

    # Order

    @property
    def is_local(self) -> bool:
        """Whether the rows have been written to a file."""
        return self._file is not None

    def materialise(self) -> None:
        """Those of a view or a query are written to a temporary file, once."""
        if self.relation.is_table or self._file is not None:
            return
        import pyarrow as pa

        self._file = temporary_file(".arrow")
        found, self._rows = self.session.scan(self._query(f"SELECT * FROM {self.view}"), _BATCH_ROWS), 0
        with pa.ipc.new_file(self._file, found.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
            for batch in found.batches:
                self._rows += batch.num_rows
                out.write_batch(batch)

    def _fold_of_rows(self, folds: Folds) -> Any:
        """The fold of each row, in their order: dealt out by the primary key where there is one, so that it is the
        same wherever a row is stored, else by the number of the row.
        """
        import pyarrow as pa

        if folds.rows is not None:
            return pa.array(folds.rows.fold)
        if folds not in self._row_folds:
            self.materialise()
            found = self._scan_keys(folds)
            table = pa.Table.from_batches(found.batches, found.schema)
            column, n = table.column(0), table.num_rows
            if folds.key_column is not None:
                fold = assign_folds_by_key(column, folds.n, folds.seed, folds.key_column)
            else:
                y = np.zeros(n, np.intp) if folds.label_column is None else Labels.from_values(column).encode(column)
                lot = arrow_numbers(table.column(1)) if table.num_columns > 1 else np.arange(n)
                fold = assign_folds(y, folds.n, hash_row_numbers(lot, folds.seed))
            self._row_folds[folds] = pa.array(fold.astype(np.int16 if folds.n < 1 << 15 else np.int32))
        return self._row_folds[folds]

    def _scan_keys(self, folds: Folds) -> Scan:
        """The label of each row, and what its key draws."""
        by = folds.key_column or folds.label_column or next(iter(self.columns))
        if not self.relation.key:
            return self._scan([by], _BATCH_ROWS)
        keys = ", chr(31), ".join(f"CAST({quote_identifier(name)} AS text)" for name in self.relation.key)
        lot = f"('x' || left(md5(concat({keys})), 16))::bit(64)::bigint"
        return self.session.scan(self._query(f"SELECT {quote_identifier(by)}, {lot} FROM {self.view}"), _BATCH_ROWS)

    # Looking on

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
    """Columns of a file that was written, in batches."""
    import pyarrow as pa

    with pa.ipc.open_file(path) as file:
        schema = file.schema
    places = sorted(schema.names.index(name) for name in columns)

    def batches() -> Iterator[Any]:
        start, n = span or (0, 1 << 62)
        with pa.ipc.open_file(path, options=pa.ipc.IpcReadOptions(included_fields=places)) as file:
            for i in range(file.num_record_batches):
                batch = file.get_batch(i).select(list(columns))
                some = batch.slice(min(start, batch.num_rows), n)
                start, n = max(0, start - batch.num_rows), n - some.num_rows
                yield from (some.slice(at, size) for at in range(0, some.num_rows, size))
                if not n:
                    return

    return Scan(pa.schema([schema.field(name) for name in columns]), batches())


class Postgres(Engine):
    """Says moments, sums and levels itself."""

    name = "postgres"
    tally_kinds = SQL_TALLY_KINDS
    max_levels = 31  # GROUPING takes no more columns

    def open(self, data: Any, reading: ReadOptions | None = None) -> PostgresSource:
        return PostgresSource(data, reading or ReadOptions(), self)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """None where rows are dealt out here, or are in a file; numbers that text spells are read here."""
        source = rows.source
        assert isinstance(source, PostgresSource)
        if source.is_local or (rows.folds and rows.folds.key_column is None):
            return []
        text = {name for name, kind in source.columns.items() if kind == "VARCHAR"}
        parts = super().countable_parts(plan, rows)
        return [
            part for part in parts if part.event.encoding.is_read_as_text or text.isdisjoint(map(str, part.columns))
        ]

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        return sql.count_by_query(rows, prepared)
