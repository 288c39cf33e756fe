"""Columns of PostgreSQL: in what types they are read. Whatever has no type of its own in Arrow comes as text.

>>> how = {"type": "numeric", "typmod": str((10 << 16 | 2) + 4)}
>>> make_column("price", **how).sql, make_column("price", **how).kind, make_column("price", **how).original_type
('CAST("price" AS double precision)', 'DOUBLE', Decimal128Type(decimal128(10, 2)))
>>> make_column("mood", "unnamed<oid:16385>").sql
'CAST("mood" AS text)'
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from candide.data.text_formats import parse_plain_numbers
from candide.engines.sql.text import quote_identifier, quote_tuple

_SHARED_TYPE_NAMES = {  # type -> the word for it that engines share
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "REAL", "float8": "DOUBLE", "bool": "BOOLEAN",
    "text": "VARCHAR", "time": "TIME", "bytea": "BLOB",
}  # fmt: skip
_FINITE = "CASE WHEN isfinite({0}) THEN {0} END"  # an infinity says that there is no date: no other engine has one
_CONVERTED_TYPES = {  # type -> how it is read, and what it is then
    "numeric": ("CAST({} AS double precision)", "DOUBLE"),
    "money": ("CAST(CAST({} AS numeric) AS double precision)", "DOUBLE"),
    "interval": ("date_part('epoch', {}) / 86400", "DOUBLE"),  # in days
    "date": (_FINITE, "DATE"),
    "timestamp": (_FINITE, "TIMESTAMP"),
    "timestamptz": (_FINITE, "TIMESTAMP WITH TIME ZONE"),
    "oid": ("CAST({} AS bigint)", "BIGINT"),
    "json": ("({} #>> '{{}}')", "VARCHAR"),
    "jsonb": ("({} #>> '{{}}')", "VARCHAR"),
}
_NUMBERS = ("SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE")
_MAX_INTEGER_DIGITS = 18  # digits of a number that a 64-bit integer holds for certain


@dataclass(frozen=True)
class PostgresColumn:
    """How a column is read: as SQL, of which type, and where it is passed on as it is, by which SQL and Arrow type."""

    name: str
    sql: str
    kind: str
    original_sql: str | None = None  # None: as it is read
    original_type: Any = None
    is_duration: bool = False  # whether the days that it is read as are those of an interval

    @property
    def original_name(self) -> str:
        return self.name if self.original_sql is None else f"{self.name} as it is written"

    def without_missing(self, missing: Sequence[str]) -> "PostgresColumn":
        """The same without what was said to mean a missing value: numbers by what they are, text as it is written."""
        said = ""
        if self.kind in _NUMBERS:
            said = ", ".join(f"CAST('{number!r}' AS double precision)" for number in parse_plain_numbers(missing))
        elif self.kind == "VARCHAR" and missing:
            said = quote_tuple(missing)[1:-1]
        if not said:
            return self
        sql = f"CASE WHEN {self.sql} IN ({said}) THEN NULL ELSE {self.sql} END"
        return replace(self, sql=sql, original_sql=self.original_sql or self.sql)


def read_columns(schema: Any, missing: Sequence[str] = ()) -> Iterator[PostgresColumn]:
    """How each column of a schema of the driver is read."""
    for field in schema:
        known = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        found = make_column(field.name, known.get("POSTGRESQL:type", ""), known.get("POSTGRESQL:typmod", "-1"))
        yield found.without_missing(missing)


def make_column(name: str, type: str, typmod: str = "-1") -> PostgresColumn:
    """How a column of a type is read; one of arrays comes as they are, for whoever has a use for them to refuse."""
    x = quote_identifier(name)
    if type in _SHARED_TYPE_NAMES or type.startswith("_"):
        return PostgresColumn(name, x, _SHARED_TYPE_NAMES.get(type, f"{type[1:]}[]"))
    if type == "numeric" and int(typmod) > 4:
        return _make_decimal_column(name, *divmod(int(typmod) - 4, 1 << 16))
    if type in _CONVERTED_TYPES:
        sql, kind = _CONVERTED_TYPES[type]
        return PostgresColumn(
            name, sql.format(x), kind, x if type == "interval" else None, is_duration=type == "interval"
        )
    return PostgresColumn(name, f"CAST({x} AS text)", "VARCHAR")


def _make_decimal_column(name: str, digits: int, scale: int) -> PostgresColumn:
    """A number of so many digits, which is passed on as such."""
    import pyarrow as pa

    x = quote_identifier(name)
    if scale == 0 and digits <= _MAX_INTEGER_DIGITS:
        return PostgresColumn(name, f"CAST(NULLIF({x}, 'NaN') AS bigint)", "BIGINT")
    if scale > digits or digits > 38:  # also less than none, by which the number is rounded
        return PostgresColumn(name, f"CAST({x} AS double precision)", "DOUBLE")
    text = f"CAST(NULLIF({x}, 'NaN') AS text)"
    return PostgresColumn(name, f"CAST({x} AS double precision)", "DOUBLE", text, pa.decimal128(digits, scale))
