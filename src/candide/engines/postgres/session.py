"""A PostgreSQL session: one connection, and one read-only transaction that sees all rows as they were at its start.

Counts, samples and streams of a source use it, so that they have the same rows. Rows of a table come in the order in
which they are stored: scans begin at its first page, and no index is used instead.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pyarrow as pa

from candide.engines.batches import Scan, run_interruptible
from candide.engines.reading import is_address
from candide.errors import InputError, MissingLibraryError, SourceError

T = TypeVar("T")
_BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL standard_conforming_strings = on",  # no backslash escapes
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL extra_float_digits = 3",
)
_SERVER = re.compile(r"(?:FATAL|ERROR):\s*(.*)")
_PASSWORD_REMEDY = "put the password into PGPASSWORD, or into the file ~/.pgpass"
_RETRY_REMEDY = "try again; nothing was written"
_CONNECTION_ERRORS = (  # message of the driver, what it means, and what to do
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
    from adbc_driver_manager import Error

    try:
        yield
    except (Error, OSError, pa.ArrowException) as error:
        raise _make_error(name, error) from None  # whose text holds the whole query


def _make_error(name: str, error: Any) -> SourceError:
    """By the server's error code, or by the message of a driver that could not reach the server."""
    text, state = str(error), getattr(error, "sqlstate", None) or ""
    message, remedy = _main_message(error), ""
    if state == "42501":
        remedy = "ask its owner to GRANT SELECT on it, and USAGE on its schema"
    elif state.startswith(("57P", "08")) or _LOST_CONNECTION.search(text):
        message, remedy = "the connection was lost before all rows were read", _RETRY_REMEDY
    elif state == "40001":
        remedy = _RETRY_REMEDY
    elif state == "57014":
        remedy = "raise statement_timeout: PGOPTIONS='-c statement_timeout=0'"
    else:
        for pattern, what, advice in _CONNECTION_ERRORS:
            if re.search(pattern, text):
                return SourceError(what or message, source=name, remedy=advice)
    return SourceError(message, source=name, remedy=remedy)


def _main_message(error: Any) -> str:
    """The primary message of the server, or the first line of the driver's text."""
    for key, message in getattr(error, "details", ()):
        if b"PRIMARY" in (key.encode() if isinstance(key, str) else key):
            return message if isinstance(message, str) else message.decode(errors="replace")
    text = str(error)
    match = _SERVER.search(text)
    return match[1].strip() if match else text.strip().splitlines()[0].partition("] ")[2] or text.strip()


class Session:
    """A connection to a server; ``name`` stands for it in messages."""

    def __init__(self, address: str, name: str):
        self.name = name
        self._cursor: Any = None
        self._parallel = True
        self._failed: InputError | None = None
        self.con = _connect(address, name)
        try:
            for setting in _BEGIN:
                self.execute(setting)
        except BaseException:
            self.close()
            raise

    def read_in_stored_order(self) -> None:
        """Have rows of tables come in the order in which they are stored."""
        for setting in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
            self.execute(f"SET LOCAL {setting} = off")

    def execute(self, sql: str) -> None:
        self._with_cursor(lambda cursor: cursor.execute(sql))

    def fetch_rows(self, sql: str) -> list[tuple]:
        self._set_parallel(True)
        table = self._with_cursor(lambda cursor: _execute(cursor, sql).fetch_arrow_table())
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def schema(self, sql: str) -> Any:
        return self._with_cursor(lambda cursor: cursor.adbc_execute_schema(sql))

    def scan(self, sql: str, size: int) -> Scan:
        """The result of a query as a stream of Arrow record batches of at most ``size`` rows.

        Without parallel workers, which would send rows in any order.
        """
        self._set_parallel(False)
        reader = self._with_cursor(lambda cursor: _execute(cursor, sql).fetch_record_batch())
        return Scan(reader.schema, self._read(reader, size))

    def _read(self, reader: Any, size: int) -> Iterator[Any]:
        cursor = self._cursor
        while (batch := self._guarded(lambda: next(reader, None))) is not None:
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)
        if self._cursor is cursor:
            self._close_cursor()

    def _set_parallel(self, many: bool) -> None:
        if many is not self._parallel:
            self.execute(f"SET LOCAL max_parallel_workers_per_gather TO {'DEFAULT' if many else '0'}")
            self._parallel = many

    def _with_cursor(self, run: Callable[[Any], T]) -> T:
        """The result of a new cursor; there is one at a time, because a stream occupies the connection."""
        if self._failed is not None:  # the transaction is aborted
            raise self._failed
        self._close_cursor()
        self._cursor = self.con.cursor()
        return self._guarded(lambda: run(self._cursor))

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            with translate_errors(self.name):
                return run_interruptible(self, call)
        except SourceError as error:
            self._failed = error
            raise

    def interrupt(self) -> None:
        self.con.adbc_cancel()

    def _close_cursor(self) -> None:
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            cursor.close()

    def close(self) -> None:
        """Cancel a running stream, end the transaction and close the connection."""
        if self._cursor is not None and self._failed is None:
            self.con.adbc_cancel()  # else the rest of a stream is read to its end
        for resource in (self._cursor, self.con):
            with suppress(Exception):  # the connection may be lost already
                if resource is not None:
                    resource.close()
        self._cursor = None


def _execute(cursor: Any, sql: str) -> Any:
    cursor.execute(sql)
    return cursor


def _connect(address: str, name: str) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        what, remedy = "to read from PostgreSQL adbc-driver-postgresql is needed", "pip install 'candide[postgres]'"
        raise MissingLibraryError(f"{name}: {what}", remedy=remedy) from None
    if not is_address(address):  # the driver's message would show parts of a password
        what = "not an address of PostgreSQL"
        remedy = "write postgresql://USER@HOST:PORT/DATABASE, with %40, %2F, %25 for @, / and % in a name or password"
        raise SourceError(what, source=name, remedy=remedy)
    with translate_errors(name):
        return dbapi.connect(address)
