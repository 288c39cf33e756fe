"""PostgreSQL's errors: what the server says of bad input, in one line with the remedy, and never a password."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candide.errors import SourceError

_SERVER = re.compile(r"(?:FATAL|ERROR):\s*(.*)")
_PASSWORD_REMEDY = "put the password into PGPASSWORD, or into the file ~/.pgpass"
_RETRY_REMEDY = "try again; nothing was written"
_CONNECTION_ERRORS = (  # what the driver says of a connection, what it means, and what to do
    (r"password authentication failed|no password supplied", "", _PASSWORD_REMEDY),
    (r"role .* does not exist|Peer authentication|Ident authentication|no pg_hba", "", "name a user: USER@HOST"),
    (r"database .* does not exist", "", "name a database after the host: HOST/DATABASE"),
    (r"could not translate host name", "there is no such host", "see that its name is right"),
    (r"Connection refused|No such file|timeout expired|Network is unreachable|No route", "no server answers there",
     "see that it runs, and that host and port are right"),
    (r"definition of service", "", "see ~/.pg_service.conf, or PGSERVICEFILE"),
)  # fmt: skip
_LOST_CONNECTION = re.compile(
    r"server closed the connection|connection to server was lost|terminating connection|no connection"
)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Turn the driver's errors into ours: its own, and those of a stream that ends too early."""
    import pyarrow as pa
    from adbc_driver_manager import Error

    try:
        yield
    except (Error, OSError, pa.ArrowException) as error:
        raise _make_error(name, error) from None  # whose text holds the whole query


def _make_error(name: str, error: Any) -> SourceError:
    """By the server's code of the error, or by the words of a driver that could not ask it."""
    text, state = str(error), getattr(error, "sqlstate", None) or ""
    said = next((what for key, what in getattr(error, "details", ()) if b"PRIMARY" in _bytes(key)), None)
    said = _main_message(text) if said is None else _bytes(said).decode(errors="replace")
    if state == "42501":
        return SourceError(said, source=name, remedy="ask its owner to GRANT SELECT on it, and USAGE on its schema")
    if state.startswith(("57P", "08")) or _LOST_CONNECTION.search(text):
        return SourceError("the connection was lost before all rows were read", source=name, remedy=_RETRY_REMEDY)
    if state == "40001":
        return SourceError(said, source=name, remedy=_RETRY_REMEDY)
    if state == "57014":
        remedy = "raise statement_timeout: PGOPTIONS='-c statement_timeout=0'"
        return SourceError(said, source=name, remedy=remedy)
    for words, what, remedy in _CONNECTION_ERRORS:
        if re.search(words, text):
            return SourceError(what or said, source=name, remedy=remedy)
    return SourceError(said, source=name)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _main_message(text: str) -> str:
    """What matters of a text of several lines."""
    found = _SERVER.search(text)
    return found[1].strip() if found else text.strip().splitlines()[0].partition("] ")[2] or text.strip()
