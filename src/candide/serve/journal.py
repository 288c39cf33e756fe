"""Journal: what a server has learned and forgotten, in one SQLite file that survives a crash.

The file holds a snapshot of the counts after some entry, and every entry since; a commit is on disk before it returns.
An entry holds the rows of one request under its key. A key is used once, so a client that is unsure whether a request
arrived sends it again. Learned rows stay in the file so that they can be forgotten; forgotten rows are wiped in the
commit that writes the counts without them.
"""

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any
from warnings import warn

from candide import formatting
from candide.errors import BusyError, InputError

FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS state (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1), format INTEGER, model BLOB, base BLOB, start_time REAL,
    id TEXT, half_life REAL, last_seq INTEGER, epoch INTEGER, crc INTEGER);
CREATE TABLE IF NOT EXISTS clock (singleton INTEGER PRIMARY KEY CHECK (singleton = 1), time REAL);
CREATE TABLE IF NOT EXISTS entry (
    key TEXT NOT NULL UNIQUE, sign INTEGER NOT NULL, n INTEGER NOT NULL, rows BLOB, at REAL NOT NULL,
    n_removed INTEGER NOT NULL, checksum INTEGER NOT NULL, seq INTEGER PRIMARY KEY, crc INTEGER NOT NULL);
"""
_MAGIC = b"SQLite format 3\0"
_LOCK_TIMEOUT = 5.0  # seconds to wait for another process to release the file
RESTORE_REMEDY = "restore the file from a copy, or start a new one"
Seconds = Callable[[], float]


@dataclass(frozen=True)
class Entry:
    """The rows of one request: learned (sign 1) or forgotten (sign -1)."""

    key: str
    sign: int
    n: int  # of learned rows, those that remain
    rows: bytes | None  # None if none remains, and for forgotten rows
    at: float  # seconds since 1970
    n_removed: int = 0  # rows of this entry forgotten since
    checksum: int = 0  # of the request: recognises it when its rows are wiped, and hardly reveals them
    seq: int = 0

    @property
    def crc(self) -> int:
        return _crc(self.key, self.sign, self.n, self.at, self.n_removed, self.checksum, self.seq, blob=self.rows)

    def with_remaining(self, rows: bytes | None, n: int) -> "Entry":
        """Return the entry with only ``n`` of its rows left."""
        return replace(self, rows=rows, n=n, n_removed=self.n_removed + self.n - n)


@dataclass(frozen=True)
class Snapshot:
    """The counts after an entry, the model they started from, and their half-life."""

    model: bytes
    base: bytes  # fingerprint of the model that the journal started with
    start_time: float
    id: str  # of the journal, unique
    half_life: float | None = None
    last_seq: int = 0  # the last entry included
    epoch: int = 0  # the unit of decaying counts

    @property
    def crc(self) -> int:
        known = (self.base, self.start_time, self.id, self.half_life, self.last_seq, self.epoch)
        return _crc(FORMAT, *known, blob=self.model)


def _crc(*values: object, blob: object) -> int:
    """Return a checksum of values and bytes; -1, which is never written, if the blob is neither bytes nor None."""
    if not isinstance(blob, bytes | None):
        return -1
    return zlib.crc32(blob or b"", zlib.crc32(repr(values).encode("utf-8", "surrogatepass")))


_ENTRY_COLUMNS = ", ".join(field.name for field in fields(Entry))
_SNAPSHOT_COLUMNS = ", ".join(field.name for field in fields(Snapshot))
_IS_LIVE = "sign = 1 AND rows IS NOT NULL"


class Journal:
    """An open journal: of one process, and one thread at a time."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self._marker = JournalMarker(self.path)
        n_answered = self._check_file()
        self._db = _connect(self.path)
        try:
            self.is_new = self._is_new(n_answered)
        except BaseException:
            self._db.close()
            raise

    def _check_file(self) -> int:
        """Reject a file that SQLite would take for a new one; return the number of answered entries, if known."""
        try:
            with open(self.path, "rb") as file:
                start = file.read(len(_MAGIC))
        except OSError:
            return 0  # there is no file, or SQLite reports the error
        if start and start != _MAGIC:
            remedy = f"name another file, or {RESTORE_REMEDY}; nothing was changed"
            raise InputError(f"{self.path} is not a journal of a server", value=self.path, remedy=remedy)
        n_answered = self._marker.read()
        if not start and n_answered:
            raise self._empty_journal_error(n_answered)
        return n_answered

    def _is_new(self, n_answered: int) -> bool:
        state = self._db.execute("SELECT format FROM state").fetchone()
        if state is not None and state[0] != FORMAT:
            what = f"{self.path} has format {state[0]}, and this release reads {FORMAT}"
            raise InputError(what, value=state[0], remedy="use the release that wrote it")
        if state is None and (n := max(n_answered, self._read_value("SELECT count(*) FROM entry"))):
            raise self._empty_journal_error(n)
        return state is None

    def _empty_journal_error(self, n_entries: int) -> InputError:
        lost = formatting.format_count(n_entries, "acknowledged entry", "acknowledged entries")
        what = f"{self.path} is damaged: it has no model, but {lost}"
        remedy = f"{RESTORE_REMEDY}; if nothing in it is needed, remove it and {self._marker.path}"
        return InputError(what, value=self.path, remedy=remedy)

    def _read_value(self, query: str) -> Any:
        return self._db.execute(query).fetchone()[0]

    def start(self, snapshot: Snapshot) -> None:
        places = ", ".join("?" * len(fields(Snapshot)))
        insert = f"INSERT INTO state ({_SNAPSHOT_COLUMNS}, singleton, format, crc) VALUES ({places}, 1, ?, ?)"
        with self._transaction():
            self._db.execute(insert, (*astuple(snapshot), FORMAT, snapshot.crc))
            self.record_time(snapshot.start_time)
        self.truncate_log()
        self.is_new = False
        self._marker.write(0)

    def read_snapshot(self) -> Snapshot:
        *values, crc = self._db.execute(f"SELECT {_SNAPSHOT_COLUMNS}, crc FROM state").fetchone()
        snapshot = Snapshot(*values)
        if not isinstance(snapshot.model, bytes) or snapshot.crc != crc:
            what = f"{self.path} is damaged: the checksum of its model is wrong"
            raise InputError(what, value=self.path, remedy=RESTORE_REMEDY)
        return snapshot

    def _select(self, condition: str, *values: object) -> Iterator[tuple[Entry, bool]]:
        """Return entries, and whether the checksum of each is right."""
        for *columns, crc in self._db.execute(f"SELECT {_ENTRY_COLUMNS}, crc FROM entry WHERE {condition}", values):
            entry = Entry(*columns)
            yield entry, entry.crc == crc

    def _select_whole(self, condition: str, *values: object) -> Iterator[Entry]:
        for entry, is_whole in self._select(condition, *values):
            if not is_whole:
                what = f"{self.path} is damaged: the checksum of entry {entry.seq} is wrong"
                raise InputError(what, value=entry.seq, remedy=RESTORE_REMEDY)
            yield entry

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Return the entries after one, in order, without damaged ones."""
        return (entry for entry, is_whole in self._select("seq > ? ORDER BY seq", seq) if is_whole)

    def live_entries(self) -> Iterator[Entry]:
        """Return what was learned and not forgotten, the latest first."""
        return self._select_whole(f"{_IS_LIVE} ORDER BY seq DESC")

    def find(self, key: str) -> Entry | None:
        return next(self._select_whole("key = ?", key), None)

    def entries_before(self, at: float, after: int, limit: int) -> list[Entry]:
        """Return live entries learned before a time and after entry ``after``; warn of damaged ones."""
        entries: list[Entry] = []
        for entry, is_whole in self._select(f"seq > ? AND {_IS_LIVE} ORDER BY seq", after):
            if not is_whole:
                warn(f"{self.path} is damaged: entry {entry.seq} cannot be forgotten; {RESTORE_REMEDY}", stacklevel=2)
            elif entry.at >= at or len(entries) >= limit:  # times are in order
                break
            else:
                entries.append(entry)
        return entries

    def count_live_rows(self) -> int:
        return self._read_value(f"SELECT coalesce(sum(n), 0) FROM entry WHERE {_IS_LIVE}")

    def last_seq(self) -> int:
        return self._read_value("SELECT max(last_seq, coalesce((SELECT max(seq) FROM entry), 0)) FROM state")

    def last_answered_seq(self) -> int:
        """Return the number of the last entry that was answered, as far as that is known."""
        return self._marker.read()

    def latest_time(self) -> float:
        last_entry = "SELECT at FROM entry ORDER BY seq DESC LIMIT 1"
        return self._read_value(f"SELECT max(coalesce(max(time), 0.0), coalesce(({last_entry}), 0.0)) FROM clock")

    def commit(self, entries: Sequence[Entry], changed: Sequence[Entry] = (), snapshot: Snapshot | None = None) -> None:
        """Write entries, what remains of changed ones, and a snapshot: all or none, on disk when it returns."""
        places = ", ".join("?" * (len(fields(Entry)) + 1))
        insert = f"INSERT INTO entry ({_ENTRY_COLUMNS}, crc) VALUES ({places})"
        update = "UPDATE entry SET rows = ?, n = ?, n_removed = ?, crc = ? WHERE seq = ?"
        with self._transaction():
            self._db.executemany(insert, [(*astuple(entry), entry.crc) for entry in entries])
            self._db.executemany(update, [(e.rows, e.n, e.n_removed, e.crc, e.seq) for e in changed])
            if snapshot is not None:
                self._write_snapshot(snapshot)
        if entries:
            self._marker.write(entries[-1].seq)

    def repair(self, snapshot: Snapshot) -> None:
        """Write the counts of the readable entries, and delete the damaged ones since the last snapshot."""
        entries = self._select("seq > ? ORDER BY seq", self.read_snapshot().last_seq)
        damaged = [(entry.seq,) for entry, is_whole in entries if not is_whole]
        with self._transaction():
            self._db.executemany("DELETE FROM entry WHERE seq = ?", damaged)
            self._write_snapshot(snapshot)
        self._marker.write(snapshot.last_seq)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        values = (snapshot.model, snapshot.last_seq, snapshot.epoch, snapshot.crc)
        self._db.execute("UPDATE state SET model = ?, last_seq = ?, epoch = ?, crc = ?", values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, also if the disk is full."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def record_time(self, at: float) -> None:
        """Write the time, from which the next run continues."""
        self._db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", (at,))

    def truncate_log(self) -> None:
        """Empty the write-ahead log, so that no forgotten row is in it."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()
        self._marker.close(remove=not os.path.exists(f"{self.path}-wal"))


def _connect(path: str) -> sqlite3.Connection:
    """Open a journal for this process alone, and create its tables."""
    db = None
    try:
        if os.path.exists(path) and os.path.getsize(path):
            _check_read_only(path)
        db = sqlite3.connect(path, _LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
        _check_tables(db, path, "")
        db.text_factory = lambda raw: raw.decode(errors="replace")  # damaged text has another checksum
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        db.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
        db.execute("SELECT format FROM state")
    except sqlite3.DatabaseError as error:
        if db is not None:
            db.close()
        if not isinstance(error, sqlite3.OperationalError):
            what = f"{path} is not a journal of a server, or is damaged: {error}"
            raise InputError(what, value=path, remedy=RESTORE_REMEDY) from None
        if "locked" in str(error):
            what = f"{path} is in use by another process"
            raise BusyError(what, value=path, remedy="stop that server first") from None
        raise InputError(f"{path}: {error}", value=path, remedy="name a file that can be written") from None
    return db


def _check_read_only(path: str) -> None:
    """Reject a file of another program without writing: opening it otherwise would merge its log into it."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", _LOCK_TIMEOUT, uri=True)) as db:
        try:
            _check_tables(db, path, "; nothing was changed")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise


def _check_tables(db: sqlite3.Connection, path: str, unchanged: str) -> None:
    ids = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
    if any(ids) or not tables <= {"state", "clock", "entry"} or (tables and "entry" not in tables):
        db.close()
        holds = repr(min(tables)) if tables else "the mark of another program"
        what = f"{path} is not a journal of a server: it holds {holds}"
        raise InputError(what, value=path, remedy=f"name another file{unchanged}")


class JournalMarker:
    """The number of the last answered entry, in a small file beside the journal; 0 if it is not known.

    SQLite drops a damaged end of its log without an error; the marker shows that entries are missing. It is written
    after each commit but not synced: it survives a killed process, and after a power cut it is too low at worst.
    """

    def __init__(self, journal: str):
        self.path = f"{journal}-last"
        self._file: int | None = None

    def read(self) -> int:
        with suppress(OSError, ValueError, IndexError), open(self.path, "rb") as file:
            number, crc = file.read(64).split()[:2]
            if int(crc) == zlib.crc32(number):
                return int(number)
        return 0

    def write(self, seq: int) -> None:
        number = b"%020d" % seq
        with suppress(OSError):  # it only helps to detect losses
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.pwrite(self._file, b"%s %010d\n" % (number, zlib.crc32(number)), 0)

    def close(self, remove: bool) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if remove:
            with suppress(OSError):
                os.remove(self.path)


class Clock:
    """Seconds since 1970, continuing from the last time of a journal. It never runs backwards.

    While a server runs, a monotonic clock is used, so changing the system time has no effect. Between two runs the
    system time counts, unless it lies before the last time of the journal or so far after it (more than ``gap``)
    that everything would be forgotten: then no time is assumed to have passed.

    >>> def clock(calendar, last): return Clock(last, 100.0, lambda: calendar, lambda: 7.0)
    >>> clock(1050.0, 1000.0)(), clock(3.0, 1000.0)(), clock(9e9, 1000.0)(), clock(9e9, None)()
    (1050.0, 1000.0, 1000.0, 9000000000.0)
    """

    def __init__(
        self, last: float | None, gap: float | None, calendar: Seconds = time.time, monotonic: Seconds = time.monotonic
    ):
        now = calendar()
        is_gap_too_long = last is not None and gap is not None and now - last > gap
        self.rejected_time = now if is_gap_too_long else None
        start = now if last is None else last if is_gap_too_long else max(now, last)
        self._monotonic, self._offset = monotonic, start - monotonic()

    def __call__(self) -> float:
        return self._offset + self._monotonic()
