"""Journal: what a server has learned and forgotten, in one SQLite file that a crash cannot tear.

The file holds the counts as they were after some entry, and every entry since; a commit is on the disk before it
returns. An entry is the rows of one request under its key, learned or forgotten. A key is met once: whoever is not sure
that a request was heard sends it again. Rows that were learned stay in the file, so that they can be forgotten; rows
that were forgotten are wiped out of it, in the commit that keeps the counts without them.

>>> import tempfile
>>> journal = Journal(os.path.join(tempfile.mkdtemp(), "state.db"))
>>> journal.start(Snapshot(b"a model", b"of this file", 16.0, "one of its own"))
>>> journal.commit([Entry("k1", 1, 2, b"two rows", 17.0, seq=1), Entry("k2", 1, 1, b"a row", 18.0, seq=2)])
>>> [(entry.key, entry.rows) for entry in journal.entries_after(0)]
[('k1', b'two rows'), ('k2', b'a row')]
>>> gone, forgotten = journal.find("k1").with_remaining(None, 0), Entry("f1", -1, 2, None, 19.0, seq=3)
>>> journal.commit([forgotten], [gone], replace(journal.read_snapshot(), model=b"another", upto=3))
>>> (
...     journal.read_snapshot().model,
...     journal.last_seq(),
...     [(entry.key, entry.n, entry.rows) for entry in journal.live_entries()],
... )
(b'another', 3, [('k2', 1, b'a row')])
>>> journal.close()
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from warnings import warn

from candide import formatting
from candide.errors import BusyError, InputError
from candide.serve.journal_marker import JournalMarker

FORMAT = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS state (
    one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER, model BLOB, base BLOB, began REAL, id TEXT, half_life REAL,
    upto INTEGER, epoch INTEGER, crc INTEGER);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), seen REAL);
CREATE TABLE IF NOT EXISTS entry (
    key TEXT NOT NULL UNIQUE, sign INTEGER NOT NULL, n INTEGER NOT NULL, rows BLOB, at REAL NOT NULL,
    gone INTEGER NOT NULL, mark INTEGER NOT NULL, seq INTEGER PRIMARY KEY, crc INTEGER NOT NULL);
"""
_MAGIC = b"SQLite format 3\0"
_LOCK_TIMEOUT = 5.0  # seconds for another process to let go of the file
RESTORE_REMEDY = "put a copy of the file in its place, or begin with a new one"


@dataclass(frozen=True)
class Entry:
    """Rows of one request: learned (sign 1) or forgotten (sign -1)."""

    key: str
    sign: int
    n: int  # rows that are left, where some were learned
    rows: bytes | None  # None where nothing is left, and where they were forgotten
    at: float  # seconds since 1970
    gone: int = 0  # rows of it that were forgotten since
    mark: int = 0  # of what was asked, once its rows are wiped: tells another request, and hardly what the rows were
    seq: int = 0

    @property
    def crc(self) -> int:
        return _crc(self.key, self.sign, self.n, self.at, self.gone, self.mark, self.seq, blob=self.rows)

    def with_remaining(self, rows: bytes | None, n: int) -> "Entry":
        """What is left of it: so many rows."""
        return replace(self, rows=rows, n=n, gone=self.gone + self.n - n)


@dataclass(frozen=True)
class Snapshot:
    """The counts after an entry, and what says how they began and fade."""

    model: bytes
    base: bytes  # what tells the model that it began with
    began: float
    id: str  # of the journal, which no other has
    half_life: float | None = None
    upto: int = 0  # the last entry that is in it
    epoch: int = 0  # the units of the counts, where they fade

    @property
    def crc(self) -> int:
        return _crc(FORMAT, self.base, self.began, self.id, self.half_life, self.upto, self.epoch, blob=self.model)


_ENTRY_COLUMNS = ", ".join(field.name for field in fields(Entry))
_SNAPSHOT_COLUMNS = ", ".join(field.name for field in fields(Snapshot))


class Journal:
    """An open journal: of one process, and one thread at a time."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self._marker = JournalMarker(self.path)
        answered = self._check_file()
        self._db = _connect(self.path)
        try:
            self.is_new = self._is_new(answered)
        except BaseException:
            self._db.close()
            raise

    def _check_file(self) -> int:
        """Refuse a file that SQLite would take for a new one, or for none of its own, and throw its log away.

        How many entries of it were answered for, as far as that is known.
        """
        try:
            with open(self.path, "rb") as file:
                start = file.read(len(_MAGIC))
        except OSError:
            return 0  # it is not there; or SQLite says what is the matter
        if start and start != _MAGIC:
            remedy = f"name another file, or {RESTORE_REMEDY}; nothing was changed"
            raise InputError(f"{self.path} is no journal of a server", value=self.path, remedy=remedy)
        answered = self._marker.read()
        if not start and answered:
            raise self._empty_journal_error(answered)
        return answered

    def _is_new(self, answered: int) -> bool:
        """Whether it has not begun yet; an error where it has, and does not say how, or another release began it."""
        found = self._db.execute("SELECT format FROM state").fetchone()
        if found is not None and found[0] != FORMAT:
            what = f"{self.path} has format {found[0]}, and this release reads {FORMAT}"
            raise InputError(what, value=found[0], remedy="use the release that wrote it")
        if found is None and (entries := max(answered, self._db.execute("SELECT count(*) FROM entry").fetchone()[0])):
            raise self._empty_journal_error(entries)
        return found is None

    def _empty_journal_error(self, entries: int) -> InputError:
        remedy = f"{RESTORE_REMEDY}; where nothing in it is needed, remove it and {self._marker.path}"
        lost = formatting.format_count(entries, "acknowledged entry", "acknowledged entries")
        what = f"{self.path} is damaged: it has no model, but {lost}"
        return InputError(what, value=self.path, remedy=remedy)

    def start(self, snapshot: Snapshot) -> None:
        """Start with a model, before any entry."""
        marks = ", ".join("?" * len(fields(Snapshot)))
        with _Transaction(self._db):
            values = (*astuple(snapshot), FORMAT, snapshot.crc)
            self._db.execute(
                f"INSERT INTO state ({_SNAPSHOT_COLUMNS}, one, format, crc) VALUES ({marks}, 1, ?, ?)", values
            )
            self.record_time(snapshot.began)
        self.truncate_log()
        self.is_new = False
        self._marker.write(0)

    def read_snapshot(self) -> Snapshot:
        """The counts as they were kept last."""
        *found, crc = self._db.execute(f"SELECT {_SNAPSHOT_COLUMNS}, crc FROM state").fetchone()
        kept = Snapshot(*found)
        if not isinstance(kept.model, bytes) or kept.crc != crc:
            what = f"{self.path} is damaged: its model is not as it was written"
            raise InputError(what, value=self.path, remedy=RESTORE_REMEDY)
        return kept

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """The entries after one, in order; those that are not as they were written are passed by."""
        return (entry for entry, whole in self._checked_entries_after(seq) if whole)

    def _checked_entries_after(self, seq: int) -> Iterator[tuple[Entry, bool]]:
        for *found, crc in self._db.execute(
            f"SELECT {_ENTRY_COLUMNS}, crc FROM entry WHERE seq > ? ORDER BY seq", (seq,)
        ):
            entry = Entry(*found)
            yield entry, entry.crc == crc

    def repair(self, snapshot: Snapshot) -> None:
        """Keep the counts of what could be read, and let go of entries since the last ones that could not."""
        damaged = [(entry.seq,) for entry, whole in self._checked_entries_after(self.read_snapshot().upto) if not whole]
        with _Transaction(self._db):
            self._db.executemany("DELETE FROM entry WHERE seq = ?", damaged)
            self._write_snapshot(snapshot)
        self._marker.write(snapshot.upto)

    def live_entries(self) -> Iterator[Entry]:
        """What was learned and is not forgotten, the latest first."""
        for *found, crc in self._db.execute(
            f"SELECT {_ENTRY_COLUMNS}, crc FROM entry WHERE sign = 1 AND rows IS NOT NULL ORDER BY seq DESC"
        ):
            yield self._check_entry(found, crc)

    def count_live_rows(self) -> int:
        """How many rows were learned and are not forgotten."""
        of = "SELECT coalesce(sum(n), 0) FROM entry WHERE sign = 1 AND rows IS NOT NULL"
        return self._db.execute(of).fetchone()[0]

    def entries_before(self, at: float, after: int, limit: int) -> list[Entry]:
        """Some of what was learned before a time and after an entry, and is not forgotten; damaged ones are told of."""
        out: list[Entry] = []
        of = f"SELECT {_ENTRY_COLUMNS}, crc FROM entry WHERE seq > ? AND sign = 1 AND rows IS NOT NULL ORDER BY seq"
        for *found, crc in self._db.execute(of, (after,)):
            entry = Entry(*found)
            if entry.crc != crc:
                warn(f"{self.path} is damaged: entry {entry.seq} cannot be forgotten; {RESTORE_REMEDY}", stacklevel=2)
            elif entry.at >= at or len(out) >= limit:  # times are in order
                break
            else:
                out.append(entry)
        return out

    def find(self, key: str) -> Entry | None:
        """The entry of a key."""
        found = self._db.execute(f"SELECT {_ENTRY_COLUMNS}, crc FROM entry WHERE key = ?", (key,)).fetchone()
        return None if found is None else self._check_entry(found[:-1], found[-1])

    def _check_entry(self, found: Sequence, crc: int) -> Entry:
        entry = Entry(*found)
        if entry.crc != crc:
            what = f"{self.path} is damaged: entry {entry.seq} is not as it was written"
            raise InputError(what, value=entry.seq, remedy=RESTORE_REMEDY)
        return entry

    def last_seq(self) -> int:
        """The number of the last entry."""
        return self._db.execute("SELECT max(upto, coalesce((SELECT max(seq) FROM entry), 0)) FROM state").fetchone()[0]

    def last_answered_seq(self) -> int:
        """The number of the last entry that was answered for, as far as that is known."""
        return self._marker.read()

    def latest_time(self) -> float:
        """The latest time that the journal knows of."""
        return self._db.execute(
            "SELECT max(coalesce(max(seen), 0.0), coalesce((SELECT at FROM entry ORDER BY seq DESC LIMIT 1), 0.0))"
            " FROM clock"
        ).fetchone()[0]

    def commit(self, entries: Sequence[Entry], changed: Sequence[Entry] = (), snapshot: Snapshot | None = None) -> None:
        """Write entries, and what is left of others, and counts to keep; all or none, on the disk when it returns."""
        with _Transaction(self._db):
            self._db.executemany(
                f"INSERT INTO entry ({_ENTRY_COLUMNS}, crc) VALUES ({', '.join('?' * (len(fields(Entry)) + 1))})",
                [(*astuple(entry), entry.crc) for entry in entries],
            )
            self._db.executemany(
                "UPDATE entry SET rows = ?, n = ?, gone = ?, crc = ? WHERE seq = ?",
                [(e.rows, e.n, e.gone, e.crc, e.seq) for e in changed],
            )
            if snapshot is not None:
                self._write_snapshot(snapshot)
        if entries:
            self._marker.write(entries[-1].seq)

    def _write_snapshot(self, kept: Snapshot) -> None:
        values = (kept.model, kept.upto, kept.epoch, kept.crc)
        self._db.execute("UPDATE state SET model = ?, upto = ?, epoch = ?, crc = ?", values)

    def record_time(self, at: float) -> None:
        """Take note of the time, from which the next run goes on."""
        self._db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", (at,))

    def truncate_log(self) -> None:
        """Let the log go, so that nothing of what was forgotten is in it."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()
        self._marker.close(remove=not os.path.exists(f"{self.path}-wal"))


def _connect(path: str) -> sqlite3.Connection:
    """A file of SQLite that has the tables, for this process alone."""
    db = None
    try:
        if os.path.exists(path) and os.path.getsize(path):
            _check_header(path)
        db = sqlite3.connect(path, _LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
        _check_tables(db, path, "")
        db.text_factory = lambda raw: raw.decode(errors="replace")  # what is damaged has another checksum
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        db.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
        db.execute("SELECT format FROM state")
    except sqlite3.DatabaseError as error:
        if db is not None:
            db.close()
        raise _open_error(path, error) from None
    return db


def _check_header(path: str) -> None:
    """Refuse a file of another program by reading alone: to open it otherwise would carry its log into it."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", _LOCK_TIMEOUT, uri=True)) as db:
        try:
            _check_tables(db, path, "; nothing was changed")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise


def _check_tables(db: sqlite3.Connection, path: str, unchanged: str) -> None:
    """Refuse a file that holds what no journal does."""
    marks = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    found = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
    if any(marks) or not found <= {"state", "clock", "entry"} or (found and "entry" not in found):
        db.close()
        holds = repr(min(found)) if found else "the mark of another program"
        what = f"{path} is no journal of a server: it holds {holds}"
        raise InputError(what, value=path, remedy=f"name another file{unchanged}")


def _open_error(path: str, error: sqlite3.DatabaseError) -> BusyError | InputError:
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in str(error):
            return BusyError(f"{path} is in use by another process", value=path, remedy="stop that server first")
        return InputError(f"{path}: {error}", value=path, remedy="name a file that can be written")
    return InputError(f"{path} is no journal of a server, or is damaged: {error}", value=path, remedy=RESTORE_REMEDY)


class _Transaction:
    """All or nothing, also where the disk is full."""

    def __init__(self, db: sqlite3.Connection):
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
                return
            except sqlite3.Error:
                self._roll_back()
                raise
        self._roll_back()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _crc(*values: object, blob: object) -> int:
    """A checksum of values and bytes; of what is neither bytes nor None, none that was written."""
    if not isinstance(blob, bytes | None):
        return -1
    return zlib.crc32(blob or b"", zlib.crc32(repr(values).encode("utf-8", "surrogatepass")))
