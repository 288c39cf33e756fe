"""Journal: what a server has learned and forgotten, in one SQLite file that a crash cannot tear.

The file holds a model as it was after some entry, and every entry since; a commit is on the disk before it returns.
An entry is the rows of one request under its key, learned or forgotten. A key is met once: whoever is not sure that a
request was heard sends it again. Rows that were learned stay in the file, so that they can be forgotten by their key;
rows that were forgotten are wiped out of it.

>>> import tempfile
>>> journal = Journal(os.path.join(tempfile.mkdtemp(), "state.db"))
>>> journal.begin(b"a model", b"of this file")
>>> _ = journal.commit([Entry("k1", 1, 2, b"two rows", 17.0), Entry("k2", 1, 1, b"a row", 18.0)])
>>> _ = journal.commit([Entry("f1", -1, 2, b"two rows", 19.0, of=journal.find("k1").seq)])
>>> [(entry.key, entry.rows, entry.wiped) for entry in journal.since(0)]
[('k1', None, True), ('k2', b'a row', False), ('f1', b'two rows', False)]
>>> journal.compact(b"another", 3)
>>> journal.model(), [entry.key for entry in journal.since(3)], journal.find("f1").rows
((b'another', 3), [], None)
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from candide.errors import BusyError, InputError

FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS state (
    one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER, base BLOB, upto INTEGER, model BLOB, crc INTEGER);
CREATE TABLE IF NOT EXISTS entry (
    seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, sign INTEGER NOT NULL, n INTEGER NOT NULL, rows BLOB,
    at REAL NOT NULL, of INTEGER, wiped INTEGER NOT NULL DEFAULT 0, crc INTEGER NOT NULL);
"""
_FIELDS = "key, sign, n, rows, at, of, wiped, seq"
_WAIT = 5.0  # seconds for another process to let go of the file


@dataclass(frozen=True)
class Entry:
    """Rows of one request: learned (sign 1) or forgotten (sign -1), all that came under another key where ``of`` is."""

    key: str
    sign: int
    n: int
    rows: bytes | None  # None where they are wiped
    at: float  # seconds since 1970
    of: int | None = None  # of what is forgotten by its key, the number of the entry
    wiped: bool = False  # whether its rows were forgotten since
    seq: int = 0

    @property
    def crc(self) -> int:
        return zlib.crc32(repr((self.key, self.sign, self.n, self.of)).encode() + (self.rows or b""))


class Journal:
    """An open journal: of one process, and one thread at a time."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        try:
            self._db = sqlite3.connect(self.path, _WAIT, isolation_level=None, check_same_thread=False)
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                what, remedy = f"{self.path} is in use by another process", "stop that server first"
                raise BusyError(what, value=self.path, remedy=remedy) from None
            raise InputError(f"{self.path}: {error}", value=self.path) from None
        except sqlite3.DatabaseError as error:
            remedy = "name another file; what this one holds was not changed"
            raise InputError(
                f"{self.path} is no journal of a server: {error}", value=self.path, remedy=remedy
            ) from None

    @property
    def base(self) -> bytes | None:
        """What tells the model that it began with; None before it begins."""
        found = self._db.execute("SELECT base, format FROM state").fetchone()
        if found is not None and found[1] != FORMAT:
            what = f"{self.path} has format {found[1]}, and this release reads {FORMAT}"
            raise InputError(what, value=found[1], remedy="use the release that wrote it")
        return None if found is None else found[0]

    def begin(self, model: bytes, base: bytes) -> None:
        """Start with a model, before any entry."""
        self._db.execute("INSERT INTO state VALUES (1, ?, ?, 0, ?, ?)", (FORMAT, base, model, zlib.crc32(model)))

    def model(self) -> tuple[bytes, int]:
        """The model as it was kept last, and the last entry that is in it."""
        model, upto, crc = self._db.execute("SELECT model, upto, crc FROM state").fetchone()
        if zlib.crc32(model) != crc:
            raise InputError(f"{self.path} is damaged: its model is not as it was written", value=self.path)
        return model, upto

    def since(self, seq: int) -> Iterator[Entry]:
        """The entries after one, in order, up to the first that is not as it was written."""
        found = self._db.execute(f"SELECT {_FIELDS}, crc FROM entry WHERE seq > ? ORDER BY seq", (seq,))
        for *fields, crc in found:
            entry = _entry(fields)
            if not entry.wiped and entry.rows is not None and entry.crc != crc:
                return
            yield entry

    def cut(self, seq: int) -> int:
        """Remove all entries after one, which cannot be read; how many these were."""
        return self._db.execute("DELETE FROM entry WHERE seq > ?", (seq,)).rowcount

    def last(self) -> int:
        """The number of the last entry."""
        return self._db.execute("SELECT coalesce(max(seq), (SELECT upto FROM state), 0) FROM entry").fetchone()[0]

    def latest(self) -> float:
        """The time of the last entry."""
        return self._db.execute("SELECT coalesce(max(at), 0.0) FROM entry WHERE seq = ?", (self.last(),)).fetchone()[0]

    def find(self, key: str) -> Entry | None:
        """The entry of a key."""
        found = self._db.execute(f"SELECT {_FIELDS} FROM entry WHERE key = ?", (key,)).fetchone()
        return None if found is None else _entry(found)

    def before(self, at: float, most: int) -> list[Entry]:
        """Some of what was learned before a time, and is not forgotten."""
        learned = f"SELECT {_FIELDS} FROM entry WHERE sign = 1 AND NOT wiped AND at < ? ORDER BY seq LIMIT ?"
        return [_entry(found) for found in self._db.execute(learned, (at, most))]

    def commit(self, entries: Sequence[Entry]) -> list[Entry]:
        """Write entries, all or none, and return when they are on the disk; what is forgotten by its key is wiped."""
        last = self.last()
        written = [replace(entry, seq=last + 1 + i) for i, entry in enumerate(entries)]
        with _Transaction(self._db):
            self._db.executemany(
                f"INSERT INTO entry ({_FIELDS}, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(e.key, e.sign, e.n, e.rows, e.at, e.of, e.wiped, e.seq, e.crc) for e in written],
            )
            forgotten = [(entry.of,) for entry in written if entry.of is not None]
            self._db.executemany("UPDATE entry SET rows = NULL, wiped = 1 WHERE seq = ?", forgotten)
        return written

    def compact(self, model: bytes, upto: int) -> None:
        """Keep the model as it is after an entry; of what was forgotten until then the rows are wiped."""
        with _Transaction(self._db):
            self._db.execute("UPDATE state SET model = ?, upto = ?, crc = ?", (model, upto, zlib.crc32(model)))
            self._db.execute("UPDATE entry SET rows = NULL, wiped = 1 WHERE sign < 0 AND seq <= ?", (upto,))
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()


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


def _entry(fields: Sequence) -> Entry:
    key, sign, n, rows, at, of, wiped, seq = fields
    return Entry(key, sign, n, rows, at, of, bool(wiped), seq)
