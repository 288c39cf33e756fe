"""What is read of a PostgreSQL database: a table or view by its name, or a query; and how its columns are read."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from candide import formatting
from candide.data.text_formats import parse_plain_numbers
from candide.engines.sql.dialect import quote_identifier, quote_text, quote_tuple
from candide.errors import SourceError

if TYPE_CHECKING:
    from candide.engines.postgres.session import Session

_QUERY = re.compile(r"\s*(\(|--|/\*|(select|with|values|table)\b)", re.IGNORECASE)
_PART = r'"((?:[^"]|"")+)"|([^".]+)'
_NAME = re.compile(rf"(?:(?:{_PART})\.)?(?:{_PART})")
_UNQUOTED_NAME = re.compile(r"(?!(?:select|with|values|table)$)[a-z_][a-z0-9_]*")
_STORED_KINDS = "rpm"  # relations whose rows come in the order in which they are stored
_CATALOG = """SELECT n.nspname::text, c.relname::text, c.relkind::text, c.oid::bigint
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {} ORDER BY 1, 2"""
_USER_TABLES = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')"
_KEY = """SELECT a.attname::text FROM pg_catalog.pg_index i, unnest(i.indkey) WITH ORDINALITY k(at, place),
pg_catalog.pg_attribute a
WHERE i.indrelid = {} AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.at ORDER BY k.place"""


@dataclass(frozen=True)
class Relation:
    """What stands after FROM; whether it is a table, which is read in order; and the columns of its primary key."""

    sql: str
    is_table: bool = False
    key: tuple[str, ...] = ()


def split_name(name: str, fold: bool = False) -> tuple[str | None, str]:
    """The schema, if given, and the table of a name; parts with a dot are quoted, other parts may be folded.

    >>> split_name('Sales."Orders"', fold=True), split_name('"My shop"."a.b"'), split_name("orders")
    (('sales', 'Orders'), ('My shop', 'a.b'), (None, 'orders'))
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None, name
    parts = []
    for quoted, plain in (match.group(1, 2), match.group(3, 4)):
        parts.append(quoted.replace('""', '"') if quoted else plain.lower() if plain and fold else plain)
    return parts[0], parts[1]


def quote_name(schema: str, name: str) -> str:
    """A name with quotes where it needs them.

    >>> quote_name("public", "orders"), quote_name("My shop", "orders.2024")
    ('public.orders', '"My shop"."orders.2024"')
    """
    return ".".join(part if _UNQUOTED_NAME.fullmatch(part) else quote_identifier(part) for part in (schema, name))


def find_relation(session: "Session", requested: str | None) -> Relation:
    """The relation of a name or a query; by default the only table of the database."""
    if requested is not None and _QUERY.match(requested):
        return Relation(f"({requested.rstrip().rstrip(';')}\n) AS asked")  # a comment may end it
    relations = _list_relations(session) if requested is None else _find_by_name(session, requested)
    if len(relations) != 1:
        names = [quote_name(schema, name) for schema, name, *_ in _list_relations(session)]
        what, remedy = "it holds no table that you may read", ""
        if names:
            what, example = f"its tables are {formatting.format_list(names, 8)}", f"{session.name}::{names[0]}"
            example = shlex.quote(example) if '"' in example else example
            remedy = f"name one: {example} (or --table, table=)"
        what = what if requested is None else f"there is no table {requested!r}; {what}"
        raise SourceError(what, source=session.name, value=requested, remedy=remedy)
    [(schema, name, kind, oid)] = relations
    key = tuple(row[0] for row in session.fetch_rows(_KEY.format(oid)))
    return Relation(f"{quote_identifier(schema)}.{quote_identifier(name)}", kind in _STORED_KINDS, key)


def _list_relations(session: "Session") -> list[tuple]:
    return session.fetch_rows(_CATALOG.format(_USER_TABLES))


def _find_by_name(session: "Session", requested: str) -> list[tuple]:
    """The visible relation of a name, as it is written or else in lower case; quoted parts keep their case."""
    candidates = []
    for fold in (False, True):
        candidates.append(split_name(requested, fold))
        if '"' not in requested:
            candidates.append((None, requested.lower() if fold else requested))
    for schema, name in dict.fromkeys(candidates):
        where = "pg_table_is_visible(c.oid)" if schema is None else f"n.nspname = {quote_text(schema)}"
        relations = session.fetch_rows(_CATALOG.format(f"c.relname = {quote_text(name)} AND {where}"))
        if relations:
            return relations
    return []


_SHARED_TYPE_NAMES = {  # type -> its name in all engines
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "REAL", "float8": "DOUBLE", "bool": "BOOLEAN",
    "text": "VARCHAR", "time": "TIME", "bytea": "BLOB",
}  # fmt: skip
_FINITE = "CASE WHEN isfinite({0}) THEN {0} END"  # infinity means no date: no other engine has it
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
    for field in schema:
        metadata = field.metadata or {}
        kind, typmod = metadata.get(b"POSTGRESQL:type", b""), metadata.get(b"POSTGRESQL:typmod", b"-1")
        yield make_column(field.name, kind.decode(), typmod.decode()).without_missing(missing)


def make_column(name: str, type: str, typmod: str = "-1") -> PostgresColumn:
    """How a column of a type is read; arrays come as they are, and are rejected where they are used."""
    x = quote_identifier(name)
    if type in _SHARED_TYPE_NAMES or type.startswith("_"):
        return PostgresColumn(name, x, _SHARED_TYPE_NAMES.get(type, f"{type[1:]}[]"))
    if type == "numeric" and int(typmod) > 4:
        return _make_decimal_column(name, *divmod(int(typmod) - 4, 1 << 16))
    if type in _CONVERTED_TYPES:
        sql, kind = _CONVERTED_TYPES[type]
        is_duration = type == "interval"
        return PostgresColumn(name, sql.format(x), kind, x if is_duration else None, is_duration=is_duration)
    return PostgresColumn(name, f"CAST({x} AS text)", "VARCHAR")


def _make_decimal_column(name: str, digits: int, scale: int) -> PostgresColumn:
    x = quote_identifier(name)
    if scale == 0 and digits <= _MAX_INTEGER_DIGITS:
        return PostgresColumn(name, f"CAST(NULLIF({x}, 'NaN') AS bigint)", "BIGINT")
    if scale > digits or digits > 38:  # also a negative scale
        return PostgresColumn(name, f"CAST({x} AS double precision)", "DOUBLE")
    text = f"CAST(NULLIF({x}, 'NaN') AS text)"
    return PostgresColumn(name, f"CAST({x} AS double precision)", "DOUBLE", text, pa.decimal128(digits, scale))
