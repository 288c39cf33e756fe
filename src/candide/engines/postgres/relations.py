"""Relations: what is read of a database: a table or view by its name, or a query.

>>> name_parts('sales.orders'), name_parts('"My shop"."a.b"'), name_parts("orders")
(('sales', 'orders'), ('My shop', 'a.b'), (None, 'orders'))
>>> is_query("SELECT * FROM orders"), is_query("orders")
(True, False)
"""

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from candide import wording
from candide.engines.sql.text import identifier, literal
from candide.errors import SourceError

if TYPE_CHECKING:
    from candide.engines.postgres.session import Session

_QUERY = re.compile(r"\s*(\(|--|/\*|(select|with|values|table)\b)", re.IGNORECASE)
_PART = r'"((?:[^"]|"")+)"|([^".]+)'
_NAME = re.compile(rf"(?:(?:{_PART})\.)?(?:{_PART})")
_BARE = re.compile(r"(?!(?:select|with|values|table)$)[a-z_][a-z0-9_]*")
_STORED = "rpm"  # kinds of relations whose rows come in the order in which they are stored: tables, whole or in parts
_KINDS = "('r', 'p', 'v', 'm', 'f')"
_CATALOG = """SELECT n.nspname::text, c.relname::text, c.relkind::text, c.oid::bigint
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN {} AND {} ORDER BY 1, 2"""
_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')"
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


def name_parts(name: str, fold: bool = False) -> tuple[str | None, str]:
    """The schema, where it is said, and the table that a name means; a part with a dot in it is quoted.

    Folded, what has no quotes is in small letters.

    >>> name_parts('Sales."Orders"', fold=True)
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


def written(schema: str, name: str) -> str:
    """A name as it may be asked for, in quotes where it needs them.

    >>> written("public", "orders"), written("My shop", "orders.2024")
    ('public.orders', '"My shop"."orders.2024"')
    """
    return ".".join(part if _BARE.fullmatch(part) else identifier(part) for part in (schema, name))


def relation(session: "Session", asked: str | None) -> Relation:
    """The relation of a name or a query; where nothing is asked for, the only table there is."""
    if asked is not None and is_query(asked):
        return Relation(f"({asked.rstrip().rstrip(';')}\n) AS asked")  # a comment may end it
    found = _named(session, asked) if asked is not None else _there(session)
    if len(found) != 1:
        there = [written(schema, name) for schema, name, *_ in _there(session)]
        holds = f"its tables are {wording.listing(there, 8)}" if there else "it holds no table that you may read"
        what = holds if asked is None else f"there is no table {asked!r}; {holds}"
        one = f"{session.name}::{there[0]}" if there else ""
        one = shlex.quote(one) if '"' in one else one  # as a shell takes it
        remedy = f"name one: {one} (or --table, table=)" if there else ""
        raise SourceError(what, where=session.name, value=asked, remedy=remedy)
    [(schema, name, kind, oid)] = found
    key = tuple(row[0] for row in session.rows(_KEY.format(oid)))
    return Relation(f"{identifier(schema)}.{identifier(name)}", kind in _STORED, key)


def _there(session: "Session") -> list[tuple]:
    return session.rows(_CATALOG.format(_KINDS, _OURS))


def _named(session: "Session", asked: str) -> list[tuple]:
    """The relation of this name, as it is written or else in small letters, where the server looks for it.

    A name in quotes is meant letter by letter.
    """
    ways = []
    for fold in (False, True):
        ways += [name_parts(asked, fold)]
        if '"' not in asked:
            ways += [(None, asked.lower() if fold else asked)]
    for schema, name in dict.fromkeys(ways):
        where = "pg_table_is_visible(c.oid)" if schema is None else f"n.nspname = {literal(schema)}"
        found = session.rows(_CATALOG.format(_KINDS, f"c.relname = {literal(name)} AND {where}"))
        if found:
            return found
    return []
