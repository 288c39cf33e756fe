"""An engine in one file: SQLite of the standard library. It says moments, sums and levels; the rest are batches."""

import sqlite3
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import pyarrow as pa

from candide.engines.reading import ReadOptions
from candide.engines.sql.dialect import quote_identifier
from candide.engines.sql.dialects.offline import SQLiteDialect
from candide.engines.sql.source import SqlEngine, SqlSource


class SQLite(SqlEngine):
    name = "sqlite"

    def open(self, data: Any, reading: ReadOptions | None = None) -> "SQLiteSource":
        """A path; which table of several ``reading`` says."""
        return SQLiteSource(data, (reading or ReadOptions()).table, self)


class SQLiteSource(SqlSource):
    dialect = SQLiteDialect()
    needs_middle = True

    def __init__(self, path: Any, table: str | None, engine: SQLite):
        self.name, self.engine, self.con = str(path), engine, sqlite3.connect(path)
        self.con.create_function("md5", 1, lambda text: md5(text.encode()).hexdigest(), deterministic=True)
        [*_, (last,)] = self.con.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self.view = table or last
        self.columns = {row[1]: row[2] for row in self.con.execute(f"PRAGMA table_info({quote_identifier(self.view)})")}

    def fetch_rows(self, query: str) -> list[tuple]:
        return self.con.execute(query).fetchall()

    def head(self, n: int) -> pa.Table:
        return pa.Table.from_batches(
            self.arrow_batches(f"SELECT * FROM {quote_identifier(self.view)} LIMIT {n}", max(n, 1))
        )

    def arrow_batches(self, query: str, size: int) -> Iterator[pa.RecordBatch]:
        found = self.con.execute(query)
        names = [column[0] for column in found.description]
        while some := found.fetchmany(size):
            self.rows_read += len(some)
            columns = zip(names, zip(*some, strict=True), strict=True)
            arrays = [pa.array(column, self._type(name)) for name, column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names)

    def _type(self, name: str) -> pa.DataType | None:
        """A batch of nulls has the type of its column."""
        return {"REAL": pa.float64(), "INTEGER": pa.int64(), "TEXT": pa.string()}.get(self.columns.get(name, ""))

    def close(self) -> None:
        self.con.close()
