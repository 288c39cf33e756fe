"""A session: one connection, and one transaction in it that only reads, and sees all rows as they were at its start.

Whatever is asked of a source is asked there, so that counts, samples and streams are of the same rows. Rows of a table
come in the order in which they are stored: scans begin at its first page, and no index is taken instead.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from candide.engines.addresses import is_address
from candide.engines.batches import Scan
from candide.engines.interrupts import run_interruptible
from candide.errors import InputError, MissingLibraryError, SourceError

T = TypeVar("T")
_BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL standard_conforming_strings = on",  # a backslash in a text is one
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL extra_float_digits = 3",
)
_INDEX_SETTINGS = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")


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
    message = next((what for key, what in getattr(error, "details", ()) if b"PRIMARY" in _bytes(key)), None)
    message = _main_message(text) if message is None else _bytes(message).decode(errors="replace")
    if state == "42501":
        return SourceError(message, source=name, remedy="ask its owner to GRANT SELECT on it, and USAGE on its schema")
    if state.startswith(("57P", "08")) or _LOST_CONNECTION.search(text):
        return SourceError("the connection was lost before all rows were read", source=name, remedy=_RETRY_REMEDY)
    if state == "40001":
        return SourceError(message, source=name, remedy=_RETRY_REMEDY)
    if state == "57014":
        remedy = "raise statement_timeout: PGOPTIONS='-c statement_timeout=0'"
        return SourceError(message, source=name, remedy=remedy)
    for words, what, remedy in _CONNECTION_ERRORS:
        if re.search(words, text):
            return SourceError(what or message, source=name, remedy=remedy)
    return SourceError(message, source=name)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _main_message(text: str) -> str:
    """What matters of a text of several lines."""
    found = _SERVER.search(text)
    return found[1].strip() if found else text.strip().splitlines()[0].partition("] ")[2] or text.strip()


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
        for setting in _INDEX_SETTINGS:
            self.execute(f"SET LOCAL {setting} = off")

    def execute(self, sql: str) -> None:
        """Run a statement that gives no rows."""
        self._with_cursor(lambda cursor: cursor.execute(sql))

    def fetch_rows(self, sql: str) -> list[tuple]:
        """Run a query and fetch its rows."""
        self._set_parallel(True)

        def ask(cursor: Any) -> Any:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

        columns = [column.to_pylist() for column in self._with_cursor(ask).columns]
        return list(zip(*columns, strict=True))

    def schema(self, sql: str) -> Any:
        """The Arrow schema of what a query would give."""
        return self._with_cursor(lambda cursor: cursor.adbc_execute_schema(sql))

    def scan(self, sql: str, size: int) -> Scan:
        """Run a query; its schema, and its result in Arrow record batches of at most so many rows, as they come.

        Workers would send their rows as they find them.
        """
        self._set_parallel(False)

        def ask(cursor: Any) -> Any:
            cursor.execute(sql)
            return cursor.fetch_record_batch()

        reader = self._with_cursor(ask)
        return Scan(reader.schema, self._read(reader, size))

    def _read(self, reader: Any, size: int) -> Iterator[Any]:
        cursor = self._cursor
        while (batch := self._guarded(lambda: next(reader, None))) is not None:
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)
        if self._cursor is cursor:
            self._end_transaction()

    def _set_parallel(self, many: bool) -> None:
        if many is not self._parallel:
            self.execute(f"SET LOCAL max_parallel_workers_per_gather TO {'DEFAULT' if many else '0'}")
            self._parallel = many

    def _with_cursor(self, ask: Callable[[Any], T]) -> T:
        """What a new cursor gives; one at a time, for a stream has the connection for itself."""
        if self._failed is not None:  # the server answers nothing in this transaction any more
            raise self._failed
        self._end_transaction()
        self._cursor = self.con.cursor()
        return self._guarded(lambda: ask(self._cursor))

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            with translate_errors(self.name):
                return run_interruptible(self, call)
        except SourceError as error:
            self._failed = error
            raise

    def interrupt(self) -> None:
        """Have the server stop what it does."""
        self.con.adbc_cancel()

    def _end_transaction(self) -> None:
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            cursor.close()

    def close(self) -> None:
        """End the transaction, and what is still streaming, and let go of the connection."""
        if self._cursor is not None and self._failed is None:
            self.con.adbc_cancel()  # the rest of a stream would else be read to its end
        for thing in (self._cursor, self.con):
            try:
                if thing is not None:
                    thing.close()
            except Exception:  # of a connection that is lost already
                continue
        self._cursor = None


def _connect(address: str, name: str) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        remedy = "pip install 'candide[postgres]'"
        raise MissingLibraryError(
            f"{name}: to read from PostgreSQL adbc-driver-postgresql is needed", remedy=remedy
        ) from None
    if not is_address(address):  # the driver would say what it took for what, and show parts of a password
        what = "not an address of PostgreSQL"
        remedy = "write postgresql://USER@HOST:PORT/DATABASE, with %40, %2F, %25 for @, / and % in a name or password"
        raise SourceError(what, source=name, remedy=remedy)
    with translate_errors(name):
        return dbapi.connect(address)
