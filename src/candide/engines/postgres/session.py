"""A session: one connection, and one transaction in it that only reads, and sees all rows as they were at its start.

Whatever is asked of a source is asked there, so that counts, samples and streams are of the same rows. Rows of a table
come in the order in which they are stored: scans begin at its first page, and no index is taken instead.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from candide.engines.addresses import is_address
from candide.engines.batches import Scan
from candide.engines.interrupts import run_interruptible
from candide.engines.postgres.postgres_errors import translate_errors
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
