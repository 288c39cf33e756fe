"""Databases at work: a model as a query is put to them, and what it says is set beside ``predict_proba``."""

import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from candide.data.labels import is_absent
from candide.export.sql.query import write_select

CLOSE = 1e-9  # of probabilities


def arrow(data, columns):
    """Rows as a database has them: one type a column, NULL where a value is absent; in their order."""
    if isinstance(data, np.ndarray):
        data = dict(enumerate(data.T))
    held = {str(name): data[name] for name in columns}
    out = {name: one if isinstance(one, pa.ChunkedArray) else _column(np.asarray(one)) for name, one in held.items()}
    return pa.table({**out, "row #": pa.array(range(len(next(iter(out.values())))))})


def _column(values):
    if values.dtype.kind == "O":
        return pa.array([None if is_absent(value) else value for value in values.tolist()])
    return pa.array(values)


def by_duckdb(fitted, rows):
    query = write_select(fitted, dialect="duckdb", table="t", kept_columns=["row #"])
    with duckdb.connect() as con:
        con.register("t", rows)
        return con.execute(query).fetchall()


def by_sqlite(fitted, rows):
    query = write_select(fitted, dialect="sqlite", table="t", kept_columns=["row #"])
    con = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.column_names)
    con.execute(f"CREATE TABLE t ({names})")
    plain = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(plain))})", zip(*plain, strict=True))
    return con.execute(query).fetchall()


def _plain(value):
    return value if value is None or isinstance(value, str | int | float) else str(value)


def by_postgres(server):
    """What a server says: of rows that it is given first."""

    def score(fitted, rows):
        name = f"scored{next(server.numbers)}"
        server.make(rows, name)
        return server.run(write_select(fitted, dialect="postgres", table=name, kept_columns=["row #"]))

    return score


def by_spark(spark, folder):
    """What a session of Spark says: of rows in a file, for it would score those that it is given while it plans."""

    def score(fitted, rows):
        pq.write_table(rows, folder / "rows.parquet")
        spark.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("t")
        return [
            tuple(row)
            for row in spark.sql(write_select(fitted, dialect="spark", table="t", kept_columns=["row #"])).collect()
        ]

    return score


DATABASES = {"duckdb": by_duckdb, "sqlite": by_sqlite}


def check(said, model, data):
    """That the query said what the model says, row by row."""
    said = sorted(said)
    q = np.array([one[2:] for one in said], float)
    p, labels = model.predict_proba(data), model.predict(data)
    assert np.abs(p - q).max() <= CLOSE
    plain = (int, float, str, type(None))
    expected = [v if isinstance(v, plain) else str(v) for v in labels.tolist()]
    assert [one[1] for one in said] == expected
