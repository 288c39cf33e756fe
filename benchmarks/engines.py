"""Engines: rows counted where they are, against the bare queries that any other program would have to run there.

Ten numbers and ten columns of levels. The bare work is what says the same counts in the words of each engine: the
moments of the numbers by class, and the weight of every level by class. DuckDB reads the same rows from Parquet.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import candide as cd
from benchmarks import results
from benchmarks.measure import child, seconds
from candide.model.fitted import FittedModel

ROWS = 5_000_000
NUMBERS = [f"n{j}" for j in range(10)]
LEVELS = {f"c{j}": size for j, size in enumerate((2, 3, 4, 5, 8, 12, 20, 50, 200, 1000))}
_WORK = """
import time
from candide.fit_source import fit_model
fit_model({few!r}, "y", model={model!r})  # what is done once a process is not the cost of rows
start = time.perf_counter()
learned = fit_model({data!r}, "y", model={model!r})
assert learned.fitted.census.n_rows == {rows}
print("seconds", time.perf_counter() - start)
"""
Line = list[str]
Measured = tuple[Line, list[Line]]  # against the bare queries; seconds and memory of each model


def table(path: Path, rows: int) -> str:
    """A Parquet file of numbers, levels and a label of three classes."""
    import duckdb

    def chance(seed: int) -> str:
        return f"((hash(i + {seed}::BIGINT * 1000000007) % 1000003 + 0.5) / 1000003)"

    columns = [f"sqrt(-2 * ln({chance(j)})) * cos(6.283185 * {chance(j + 20)}) + y % 2 AS n{j}" for j in range(10)]
    columns += [f"'v' || floor({chance(40 + j)} ^ 2 * {size})::INT AS c{j}" for j, size in enumerate(LEVELS.values())]
    made = f"SELECT i, floor({chance(60)} * 3)::INT AS y FROM range({rows}) t(i)"
    duckdb.sql(f"COPY (SELECT 'k' || y AS y, {', '.join(columns)} FROM ({made})) TO '{path}' (FORMAT parquet)")
    return str(path)


def moments(mean: str = "avg") -> str:
    """The bare query for numbers."""
    each = [f"count({name}), {mean}({name}), var_pop({name})" for name in NUMBERS]
    return f"SELECT y, count(*), {', '.join(each)} FROM rows GROUP BY y"


def levels() -> str:
    """The bare query for levels."""
    names = ", ".join(LEVELS)
    sets = ", ".join(f"(y, {name})" for name in LEVELS)
    return f"SELECT y, GROUPING({names}), count(*), {names} FROM rows GROUP BY GROUPING SETS ({sets})"


def measured(engine: str, rows: int, bare: Callable[[], object], data: str, few: str, asked: str = "") -> Measured:
    """Naive Bayes against the bare work of an engine, in turns; then each model in a process of its own."""
    from candide.fit_source import fit_model

    ours, theirs = seconds(lambda: fit_model(data, "y", model="naive"), bare, repeat=3, budget=240)
    work = f"{engine}, {rows:,} rows"
    ratio = [work, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", asked]
    print(" | ".join(ratio), flush=True)
    models = []
    for model in ("naive", "bayes"):
        done = child(_WORK.format(data=data, few=few, model=model, rows=rows), timeout=3600)
        models.append([f"{work}, {model}", f"{done.said:.2f}", f"{done.megabytes:.0f}"])
        print(" | ".join(models[-1]), flush=True)
    return ratio, models


def _duckdb(path: str, few: str, rows: int) -> Measured:
    import duckdb

    def bare() -> None:
        with duckdb.connect() as con:
            con.execute(f"CREATE VIEW rows AS SELECT * FROM '{path}'")
            con.sql(moments("favg")).fetchall()
            con.sql(levels()).fetchall()

    return measured("DuckDB", rows, bare, path, few)


def _postgres(path: str, few: str, rows: int) -> Measured | None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from adbc_driver_postgresql import dbapi
    from tests.engines.postgres_server import programs, server

    if programs() is None:
        print("PostgreSQL is left out: no server is installed", flush=True)
        return None
    with server() as made:
        for name, file in (("rows", path), ("few", few)):
            with made.con.cursor() as cursor:
                reader = pq.ParquetFile(file)
                batches = reader.iter_batches(1 << 16)
                cursor.adbc_ingest(name, pa.RecordBatchReader.from_batches(reader.schema_arrow, batches), mode="create")
        made.run("VACUUM ANALYZE rows", "VACUUM ANALYZE few")

        def bare() -> None:
            with dbapi.connect(made.address()) as con, con.cursor() as cursor:
                for query in (moments(), levels()):
                    cursor.execute(query)
                    cursor.fetch_arrow_table()

        address = made.address()
        return measured("PostgreSQL", rows, bare, f"{address}::rows", f"{address}::few", "at most 1.3")


def _spark(path: str, few: str, rows: int) -> Measured | None:
    from tests.engines.spark_session import HAS_SPARK, session

    if not HAS_SPARK:
        print("Spark is left out: there is no pyspark, or no Java", flush=True)
        return None
    each = ", ".join(f"'{name}', {name}" for name in LEVELS)
    stacked = f"SELECT y, stack({len(LEVELS)}, {each}) AS (name, level) FROM rows"  # grouping sets copy rows there
    as_usual = {f"spark.{who}.extraJavaOptions": "-XX:+UseG1GC" for who in ("driver", "executor")}
    with session(**as_usual) as spark:
        spark.read.parquet(path).createOrReplaceTempView("rows")

        def bare() -> None:
            spark.sql(moments()).collect()
            spark.sql(f"SELECT y, name, level, count(*) FROM ({stacked}) GROUP BY y, name, level").collect()

        return measured("Spark", rows, bare, f"spark://local[2]::{path}", f"spark://local[2]::{few}", "at most 1.3")


def _cluster(rows: int) -> list[Line]:
    """What memory a driver takes for many times as many rows of five columns, which two workers make themselves."""
    from tests.engines.spark_session import HAS_SPARK, cluster

    if not HAS_SPARK:
        return []
    lines, folder = [], Path(tempfile.mkdtemp())
    columns = [f"sin(id * {j + 1}.7) + id % 3 AS n{j}" for j in range(3)]
    columns += [f"concat('v', id * {j + 7} % {size}) AS c{j}" for j, size in enumerate((12, 1000))]
    with cluster(folder, "2g") as (address, _):
        for n in (rows * 3 // 5, 10 * rows):
            made = f"{address}::SELECT {', '.join(columns)}, concat('k', id % 3) AS y FROM range(0, {{}}, 1, 16)"
            done = child(_WORK.format(data=made.format(n), few=made.format(1000), model="naive", rows=n), timeout=3600)
            work = f"Spark, two workers, {n:,} rows of 5 columns, naive; memory of the driver's Python"
            lines.append([work, f"{done.said:.2f}", f"{done.megabytes:.0f}"])
            print(" | ".join(lines[-1]), flush=True)
    return lines


def scored(path: str, few: str, rows: int) -> list[Line]:
    """A model as one SELECT in DuckDB against ``candide predict``, from one Parquet file into another."""
    import duckdb

    from candide.fit_source import fit_model

    out, lines = str(Path(path).with_name("scored.parquet")), []
    for model in ("naive", "bayes"):
        fitted = fit_model(few, "y", model=model).fitted
        query = cd.export_model(fitted, "sql", dialect="duckdb", table="rows")

        def select(query: str | bytes = query) -> None:
            with duckdb.connect() as con:
                con.execute(f"CREATE VIEW rows AS SELECT * FROM '{path}'")
                con.execute(f"COPY ({query}) TO '{out}' (FORMAT parquet)")

        def ours(fitted: FittedModel = fitted) -> None:
            cd.predict_table(fitted, path, out=out, force=True)

        theirs, candide = seconds(select, ours, repeat=3, budget=600)
        ratio = [
            f"DuckDB, {rows:,} rows, {model}",
            f"{theirs:.2f}",
            f"{candide:.2f}",
            f"{theirs / candide:.2f}",
            "at most 3",
        ]
        print(" | ".join(ratio), flush=True)
        lines.append(ratio)
    return lines


ENGINES = (_duckdb, _postgres, _spark)  # each measures the same rows


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    rows = ROWS // 50 if quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path, few = table(Path(folder) / "rows.parquet", rows), table(Path(folder) / "few.parquet", 1000)
        found = [one for engine in ENGINES if (one := engine(path, few, rows)) is not None]
        more = _cluster(rows)
        some = table(Path(folder) / "some.parquet", min(rows, 100_000))
        scores = scored(path, some, rows)
    against = results.table(["fit 20 columns", "candide", "bare queries", "ratio", "asked"], [one for one, _ in found])
    models = [*(line for _, lines in found for line in lines), *more]
    alone = results.table(["a process of its own", "seconds", "peak memory MB"], models)
    scoring = results.table(["score 20 columns", "one SELECT", "candide predict", "ratio", "asked"], scores)
    return f"{against}\n\n{alone}\n\n{scoring}"
