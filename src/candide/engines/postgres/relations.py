"""Relations: what is read of a database: a table or view by its name, or a query.

>>> split_name('sales.orders'), split_name('"My shop"."a.b"'), split_name("orders")
(('sales', 'orders'), ('My shop', 'a.b'), (None, 'orders'))
>>> is_query("SELECT * FROM orders"), is_query("orders")
(True, False)
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from candide import formatting
from candide.data.text_formats import parse_plain_numbers
from candide.engines.sql.text import quote_identifier, quote_text, quote_tuple
from candide.errors import SourceError

if TYPE_CHECKING:
    from candide.engines.postgres.session import Session

_QUERY = re.compile(r"\s*(\(|--|/\*|(select|with|values|table)\b)", re.IGNORECASE)
_PART = r'"((?:[^"]|"")+)"|([^".]+)'
_NAME = re.compile(rf"(?:(?:{_PART})\.)?(?:{_PART})")
_UNQUOTED_NAME = re.compile(r"(?!(?:select|with|values|table)$)[a-z_][a-z0-9_]*")
_STORED_KINDS = (
    "rpm"  # kinds of relations whose rows come in the order in which they are stored: tables, whole or in parts
)
_KINDS = "('r', 'p', 'v', 'm', 'f')"
_CATALOG = """SELECT n.nspname::text, c.relname::text, c.relkind::text, c.oid::bigint
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN {} AND {} ORDER BY 1, 2"""
_USER_TABLES = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')"
_KEY = """SELECT a.attname::text FROM pg_catalog.pg_index i, unnest(i.indkey) WITH ORDINALITY k(at, place),
pg_catalog.pg_attribute a
WHERE i.indrelid = {} AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.at ORDER BY k.place"""


@dataclass(frozen=True)
class Relation:
    """What stands after FROM; the columns of its primary key, and whether it is a table, which is read in order."""

    sql: str
    is_table: bool = False
    key: tuple[str, ...] = ()


def is_query(text: str) -> bool:
    """Whether a text is a query, and not a name."""
    return bool(_QUERY.match(text))


def split_name(name: str, fold: bool = False) -> tuple[str | None, str]:
    """The schema, if given, and the table of a name; a part with a dot in it is quoted.

    Folded, what has no quotes is in small letters.

    >>> split_name('Sales."Orders"', fold=True)
    ('sales', 'Orders')
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None, name
    one, other, quoted, plain = found.groups()
    if fold:
        other, plain = other and other.lower(), plain and plain.lower()
    schema = one.replace('""', '"') if one else other
    return schema, quoted.replace('""', '"') if quoted else plain


def quote_name(schema: str, name: str) -> str:
    """A name as it may be asked for, in quotes where it needs them.

    >>> quote_name("public", "orders"), quote_name("My shop", "orders.2024")
    ('public.orders', '"My shop"."orders.2024"')
    """
    return ".".join(part if _UNQUOTED_NAME.fullmatch(part) else quote_identifier(part) for part in (schema, name))


def find_relation(session: "Session", requested: str | None) -> Relation:
    """The relation of a name or a query; where nothing is asked for, the only table there is."""
    if requested is not None and is_query(requested):
        return Relation(f"({requested.rstrip().rstrip(';')}\n) AS asked")  # a comment may end it
    found = _find_by_name(session, requested) if requested is not None else _list_relations(session)
    if len(found) != 1:
        there = [quote_name(schema, name) for schema, name, *_ in _list_relations(session)]
        holds = f"its tables are {formatting.format_list(there, 8)}" if there else "it holds no table that you may read"
        what = holds if requested is None else f"there is no table {requested!r}; {holds}"
        one = f"{session.name}::{there[0]}" if there else ""
        one = shlex.quote(one) if '"' in one else one  # as a shell takes it
        remedy = f"name one: {one} (or --table, table=)" if there else ""
        raise SourceError(what, source=session.name, value=requested, remedy=remedy)
    [(schema, name, kind, oid)] = found
    key = tuple(row[0] for row in session.fetch_rows(_KEY.format(oid)))
    return Relation(f"{quote_identifier(schema)}.{quote_identifier(name)}", kind in _STORED_KINDS, key)


def _list_relations(session: "Session") -> list[tuple]:
    return session.fetch_rows(_CATALOG.format(_KINDS, _USER_TABLES))


def _find_by_name(session: "Session", asked: str) -> list[tuple]:
    """The relation of this name, as it is written or else in small letters, where the server looks for it.

    A name in quotes is meant letter by letter.
    """
    ways = []
    for fold in (False, True):
        ways += [split_name(asked, fold)]
        if '"' not in asked:
            ways += [(None, asked.lower() if fold else asked)]
    for schema, name in dict.fromkeys(ways):
        where = "pg_table_is_visible(c.oid)" if schema is None else f"n.nspname = {quote_text(schema)}"
        found = session.fetch_rows(_CATALOG.format(_KINDS, f"c.relname = {quote_text(name)} AND {where}"))
        if found:
            return found
    return []


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
        """The same without missing-value markers: numbers by value, text as it is written."""
        markers = ""
        if self.kind in _NUMBERS:
            markers = ", ".join(f"CAST('{number!r}' AS double precision)" for number in parse_plain_numbers(missing))
        elif self.kind == "VARCHAR" and missing:
            markers = quote_tuple(missing)[1:-1]
        if not markers:
            return self
        sql = f"CASE WHEN {self.sql} IN ({markers}) THEN NULL ELSE {self.sql} END"
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
