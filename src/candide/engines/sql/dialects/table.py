"""The dialects by name, each imported when it is first asked for; none of them imports a driver.

>>> dialect("snowflake").name, list(DIALECTS)[:3]
('snowflake', ['bigquery', 'clickhouse', 'duckdb'])
"""

from typing import TYPE_CHECKING

from candide.errors import unknown
from candide.tables import Table

if TYPE_CHECKING:
    from candide.engines.sql.dialect import Dialect

DIALECTS: "Table[Dialect]" = Table(
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


def dialect(name: str) -> "Dialect":
    """A dialect by its name."""
    if name not in DIALECTS:
        raise unknown("dialect", name, DIALECTS)
    return DIALECTS[name]()
