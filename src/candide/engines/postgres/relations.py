"""Relations: what is read of a database: a table or view by its name, or a query.

>>> split_name('sales.orders'), split_name('"My shop"."a.b"'), split_name("orders")
(('sales', 'orders'), ('My shop', 'a.b'), (None, 'orders'))
>>> is_query("SELECT * FROM orders"), is_query("orders")
(True, False)
"""

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from candide import formatting
from candide.engines.sql.text import quote_identifier, quote_text
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
    """The schema, where it is said, and the table that a name means; a part with a dot in it is quoted.

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
