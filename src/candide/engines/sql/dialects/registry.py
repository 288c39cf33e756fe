"""The SQL dialects by name, each imported when it is first used; none imports a database driver."""

from importlib import import_module
from typing import TYPE_CHECKING

from candide.errors import unknown_name_error

if TYPE_CHECKING:
    from candide.engines.sql.dialect import Dialect

DIALECTS = {  # module and class
    "bigquery": "offline.BigQueryDialect",
    "clickhouse": "offline.ClickHouseDialect",
    "duckdb": "duckdb.DuckDBDialect",
    "mysql": "offline.MySQLDialect",
    "postgres": "postgres.PostgresDialect",
    "snowflake": "offline.SnowflakeDialect",
    "spark": "spark.SparkDialect",
    "sqlite": "offline.SQLiteDialect",
    "trino": "offline.TrinoDialect",
    "tsql": "offline.TSQLDialect",
}


def get_dialect(name: str) -> "Dialect":
    if name not in DIALECTS:
        raise unknown_name_error("dialect", name, DIALECTS)
    module, title = DIALECTS[name].split(".")
    return getattr(import_module(f"candide.engines.sql.dialects.{module}"), title)()
