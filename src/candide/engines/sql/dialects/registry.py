"""The dialects by name; each is imported when it is first needed, and none imports a driver.

>>> get_dialect("snowflake").name, list(DIALECTS)[:3]
('snowflake', ['bigquery', 'clickhouse', 'duckdb'])
"""

from typing import TYPE_CHECKING

from candide.errors import unknown_name_error
from candide.registry import Registry

if TYPE_CHECKING:
    from candide.engines.sql.dialect import Dialect


DIALECTS: "Registry[Dialect]" = Registry(
    "candide.engines.sql.dialects",
    {
        "bigquery": "BigQueryDialect",
        "clickhouse": "ClickHouseDialect",
        "duckdb": "DuckDBDialect",
        "mysql": "MySQLDialect",
        "postgres": "PostgresDialect",
        "snowflake": "SnowflakeDialect",
        "spark": "SparkDialect",
        "sqlite": "SQLiteDialect",
        "trino": "TrinoDialect",
        "tsql": "TSQLDialect",
    },
)


def get_dialect(name: str) -> "Dialect":
    """A dialect by its name."""
    if name not in DIALECTS:
        raise unknown_name_error("dialect", name, DIALECTS)
    return DIALECTS[name]()
