"""Learned state: the counts that a journal adds up to, how they decay, and how a group of requests changes them."""

import hashlib
import sqlite3
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ldexp
from warnings import warn

from candide import formatting
from candide.errors import CandideError, InputError, NotCountedError, SumTooLargeError
from candide.model.fitted import FittedModel
from candide.serve.http import RequestProblem
from candide.serve.journal import RESTORE_REMEDY, Entry, Journal, Snapshot
from candide.serve.learned_rows import EntryMatch, RowSearch, add_countable_rows, add_rows, remove_rows
from candide.store import dumps, loads, model_digest
from candide.store.file import resolve_target

_MIN_EXPONENT = -1000  # power of two: a weight that is negligible beside a row, and still a normal number
_ROWS_PER_BATCH = 10_000  # rows counted together when a journal is read


@dataclass(frozen=True)
class ExponentialDecay:
    """Counts halve after each half-life, exactly; without a half-life they do not decay.

    Counts are kept in units that double with each half-life: a row learned q half-lives after the start adds
    2^q / 2^epoch. The next epoch divides all counts by 2, which rounds nothing, so that forgetting a row always
    subtracts exactly the weight that it added.

    >>> decay = ExponentialDecay(10.0, start_time=100.0)
    >>> decay.epoch_at(125.0), decay.row_weight(120.0, 2), decay.row_weight(125.0, 2) / decay.row_weight(120.0, 2)
    (2, 1.0, 1.4142135623730951)
    >>> decay.unit_weight(120.0, 2), decay.unit_weight(130.0, 2)
    (1.0, 0.5)
    """

    half_life: float | None  # seconds
    start_time: float

    def epoch_at(self, time: float) -> int:
        return int(self._half_lives(time))

    def row_weight(self, at: float, epoch: int) -> float:
        """Return the weight of a row learned at a time, in units of an epoch."""
        lives = self._half_lives(at)
        return ldexp(2.0 ** (lives % 1.0), max(int(lives) - epoch, _MIN_EXPONENT))

    def unit_weight(self, at: float, epoch: int) -> float:
        """Return the weight of a unit of an epoch at a time."""
        return 2.0 ** max(epoch - self._half_lives(at), _MIN_EXPONENT)

    def _half_lives(self, at: float) -> float:
        return 0.0 if self.half_life is None else max(at - self.start_time, 0.0) / self.half_life


@dataclass(frozen=True)
class LearnedState:
    """Counts in units of an epoch, the last entry included, and how they decay."""

    counts: FittedModel
    epoch: int
    last_seq: int
    decay: ExponentialDecay
    journal_id: str

    def model_at(self, now: float) -> FittedModel:
        if self.decay.half_life is None:
            return self.counts
        return self.counts.scale(self.decay.unit_weight(now, self.epoch))

    def convert_epoch(self, now: float) -> "LearnedState":
        """Return the same counts in the units of a time, if that is of a later epoch."""
        epoch = max(self.decay.epoch_at(now), self.epoch)
        if epoch == self.epoch:
            return self
        return replace(self, counts=self.counts.scale(ldexp(1.0, max(self.epoch - epoch, _MIN_EXPONENT))), epoch=epoch)

    def row_weight(self, at: float) -> float:
        """Return the weight of a row learned at a time, in these units."""
        return self.decay.row_weight(at, self.epoch)

    def without_base(self, base: FittedModel) -> "LearnedState":
        """Return what was learned on top of the model that the journal started with."""
        base_counts = base.counts.scale(self.row_weight(self.decay.start_time)).match_labels(self.counts.counts)
        return replace(self, counts=self.counts.with_counts(self.counts.counts - base_counts))

    def to_snapshot(self, base: bytes) -> Snapshot:
        """Return the snapshot for the journal; ``base`` is the fingerprint of the model it started with."""
        start, half_life = self.decay.start_time, self.decay.half_life
        return Snapshot(dumps(self.counts), base, start, self.journal_id, half_life, self.last_seq, self.epoch)


def model_fingerprint(base: FittedModel, target: str) -> bytes:
    return hashlib.sha256(model_digest(base) + target.encode("utf-8", "surrogatepass")).digest()


def start_journal(journal: Journal, base: FittedModel, target: str, half_life: float | None, now: float) -> None:
    """Start a new journal with a model, or check that an existing one started with this model."""
    fingerprint = model_fingerprint(base, target)
    if journal.is_new:
        journal.start(Snapshot(dumps(base), fingerprint, now, uuid.uuid4().hex, half_life))
        return
    snapshot = journal.read_snapshot()
    if snapshot.base != fingerprint:
        remedy = "name the model it started with, or another file; candide export-state writes what it has learned"
        raise InputError(f"{journal.path} continues another model", value=journal.path, remedy=remedy)
    if snapshot.half_life != half_life:
        current = "no half-life" if snapshot.half_life is None else f"a half-life of {snapshot.half_life:g} seconds"
        remedy = "pass the same half-life; or start a new file with the model that candide export-state writes"
        raise InputError(f"{journal.path} has {current}", value=half_life, remedy=remedy)


def replay_journal(journal: Journal, target: str | None) -> LearnedState:
    """Return the state that a journal adds up to. Lost or damaged entries at its end are left out, with a warning."""
    try:
        snapshot = journal.read_snapshot()
        counts = loads(snapshot.model)
        assert isinstance(counts, FittedModel)
        decay = ExponentialDecay(snapshot.half_life, snapshot.start_time)
        start = LearnedState(counts, snapshot.epoch, snapshot.last_seq, decay, snapshot.id)
        state, n, left_out = _replay(start, journal.entries_after(snapshot.last_seq), resolve_target(counts, target))
        n_lost = max(journal.last_seq(), journal.last_answered_seq()) - snapshot.last_seq - n
        if n_lost > 0:
            state = replace(state, last_seq=journal.last_seq())
            journal.repair(state.to_snapshot(snapshot.base))
        if left_out:
            wiped = [entry.with_remaining(None, 0) for entry in left_out]
            journal.commit([], wiped, state.to_snapshot(snapshot.base))
    except sqlite3.DatabaseError as error:
        raise InputError(f"{journal.path} is damaged: {error}", value=journal.path, remedy=RESTORE_REMEDY) from None
    if n_lost > 0:
        lost = formatting.format_count(n_lost, "entry", "entries")
        what = f"{journal.path}: {lost} at its end could not be read and were removed"
        warn(f"{what}; requests that are sent again with their keys count once", stacklevel=2)
    for entry in left_out:
        what = f"{formatting.format_count(entry.n)} under the key {entry.key!r} are too large to count and were removed"
        warn(f"{journal.path}: {what}", stacklevel=2)
    return state


def _replay(state: LearnedState, entries: Iterable[Entry], target: str) -> tuple[LearnedState, int, list[Entry]]:
    """Return the state after entries, their number, and those too large to count.

    Forgotten rows have already been removed from the snapshot, or from the entries.
    """
    left_out: list[Entry] = []
    batch: list[Entry] = []
    n = size = 0
    for entry in chain(entries, [None]):  # None: the end
        if entry is not None:
            n, size = n + 1, size + entry.n
            batch.append(entry)
        if batch and (entry is None or size >= _ROWS_PER_BATCH):
            later = state.convert_epoch(batch[-1].at)
            live = [(e, (e.rows, later.row_weight(e.at))) for e in batch if e.rows is not None]
            counts, too_large = add_countable_rows(later.counts, [rows for _, rows in live], target, SumTooLargeError)
            state = replace(later, counts=counts, last_seq=batch[-1].seq)
            left_out += [live[i][0] for i in too_large]
            batch, size = [], 0
    return state, n, left_out


@dataclass(frozen=True)
class RequestOutcome:
    """The outcome of a request: its key, the number of rows learned or forgotten, and whether it is a repeat."""

    key: str
    rows: int
    is_repeat: bool = False


@dataclass
class PendingRequest:
    """A request in the queue: to learn rows, to forget them, or to forget what was learned under a key."""

    key: str
    sign: int
    n_rows: int = 0
    rows: bytes = b""
    learned_key: str | None = None
    checksum: int = field(init=False)
    future: "Future[RequestOutcome]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        # 16 bits: enough to detect a mistake, and too few to guess the rows from.
        content = self.rows if self.learned_key is None else b"of " + self.learned_key.encode()
        self.checksum = zlib.crc32(content) & 0xFFFF

    def repeats(self, entry: Entry) -> bool:
        """Whether this is the request that was sent under its key before, as far as the entry shows."""
        if entry.rows is not None and not entry.n_removed:
            return self.sign == entry.sign and self.rows == entry.rows
        return (self.sign, self.checksum) == (entry.sign, entry.checksum)


class RequestGroup:
    """Requests that are counted and written together: the counts, the entries to write, the outcome of each request.

    A request that cannot be counted fails alone, and the others go on without it.
    """

    def __init__(self, state: LearnedState, journal: Journal, base: FittedModel, target: str, at: float):
        self._counts, self._first_seq = state.convert_epoch(at), state.last_seq + 1
        self._journal, self._base, self._target, self._time = journal, base, target, at
        self.entries: list[Entry] = []
        self.outcomes: list[tuple[PendingRequest, RequestOutcome | Exception]] = []
        self._waiting: list[PendingRequest] = []
        self._seen_keys: set[str] = set()
        self.changed: dict[int, Entry] = {}  # what remains of earlier entries, by seq
        self.base_rows_removed = 0  # rows of the model that the journal started with

    @property
    def state(self) -> LearnedState:
        return replace(self._counts, last_seq=self._first_seq - 1 + len(self.entries))

    @property
    def has_removals(self) -> bool:
        """Whether rows were removed, so that a snapshot without them must be written."""
        return bool(self.changed) or any(entry.sign < 0 for entry in self.entries)

    def add(self, request: PendingRequest) -> None:
        if request.key in self._seen_keys:
            self.flush()  # to know whether the first request of that key was counted
        try:
            earlier = self._find(request.key)
            if earlier is not None:
                if not request.repeats(earlier):
                    what = f"the key {request.key!r} was used by another request"
                    raise RequestProblem(409, what, value=request.key, remedy="send this one with a key of its own")
                self.outcomes.append((request, RequestOutcome(request.key, 0, is_repeat=True)))
                return
            self._seen_keys.add(request.key)
            if request.sign > 0:
                self._waiting.append(request)
            else:
                self.flush()
                self._forget(request)
        except (CandideError, RequestProblem) as error:
            self.outcomes.append((request, error))

    def flush(self) -> None:
        """Count the requests that wait to be learned; one that cannot be counted fails alone."""
        waiting, self._waiting = self._waiting, []
        weight = self._counts.row_weight(self._time)
        rows = [(request.rows, weight) for request in waiting]
        counts, errors = add_countable_rows(self._counts.counts, rows, self._target)
        self._counts = replace(self._counts, counts=counts)
        for i, request in enumerate(waiting):
            if i in errors:
                self.outcomes.append((request, errors[i]))
            else:
                self._write(request, request.n_rows, request.rows)

    def _write(self, request: PendingRequest, n: int, rows: bytes | None = None) -> None:
        seq, checksum = self._first_seq + len(self.entries), request.checksum
        self.entries.append(Entry(request.key, request.sign, n, rows, self._time, checksum=checksum, seq=seq))
        self.outcomes.append((request, RequestOutcome(request.key, n)))

    def _forget(self, request: PendingRequest) -> None:
        if request.learned_key is None:
            search = RowSearch(request.rows, self._counts.counts, self._target)
            matches, n = list(search.find_in(self._live_entries())), request.n_rows
            self._remove(matches, *search.unmatched_rows())
        else:
            entry = self._find(request.learned_key)
            if entry is None or entry.sign < 0:
                what = f"nothing was learned under the key {request.learned_key!r}"
                raise RequestProblem(404, what, value=request.learned_key, remedy="name a key of learned rows")
            if entry.rows is None:
                self.outcomes.append((request, RequestOutcome(request.key, 0, is_repeat=True)))
                return
            n = entry.n
            self.expire([entry])
        self._write(request, n)

    def expire(self, entries: Iterable[Entry]) -> None:
        self._remove([EntryMatch(e.rows, e.with_remaining(None, 0)) for e in entries if e.rows is not None])

    def _remove(self, matches: Sequence[EntryMatch], base_rows: bytes | None = None, n_base_rows: int = 0) -> None:
        """Count rows of entries out, and rows of the model that the journal started with; all or none."""
        state = self._counts
        rows = [(match.matched_rows, state.row_weight(match.remaining_entry.at)) for match in matches]
        if base_rows is not None:
            remove_rows(self._base, [(base_rows, 1.0)], self._target)  # an error if they were never counted
            rows.append((base_rows, state.row_weight(state.decay.start_time)))
        try:
            # An error if the counts of the base model vanish in rounding beside rows so large: beside other large rows
            # that are still counted, that would not show yet.
            alone = [(match.matched_rows, 1.0) for match in matches]
            remove_rows(add_rows(self._base, alone, self._target), alone, self._target)
            counts = remove_rows(state.counts, rows, self._target)
        except NotCountedError:
            recounted = None if base_rows is not None else self._recount(matches)
            if recounted is None:
                raise
            counts = recounted
        self._counts, self.base_rows_removed = replace(state, counts=counts), self.base_rows_removed + n_base_rows
        for entry in (match.remaining_entry for match in matches):
            if entry.seq >= self._first_seq:
                self.entries[entry.seq - self._first_seq] = entry
            else:
                self.changed[entry.seq] = entry

    def _recount(self, matches: Sequence[EntryMatch]) -> FittedModel | None:
        """Count all that remains again: the removed rows may be so large that the rest was lost in rounding.

        Return None if rows of the base model were forgotten, which are stored nowhere.
        """
        state, remaining = self._counts, {match.remaining_entry.seq: match.remaining_entry for match in matches}
        live = list(self._live_entries())
        if self._base.counts.n_rows + sum(entry.n for entry in live) != state.counts.counts.n_rows:
            return None
        entries = [remaining.get(entry.seq, entry) for entry in reversed(live)]
        rows = [(entry.rows, state.row_weight(entry.at)) for entry in entries if entry.rows is not None]
        base = self._base.scale(state.row_weight(state.decay.start_time))
        return add_rows(state.counts.with_counts(base.counts), rows, self._target)

    def _live_entries(self) -> Iterator[Entry]:
        """Return what is learned and not forgotten, the latest first."""
        yield from reversed([entry for entry in self.entries if entry.rows is not None])
        yield from (self.changed.get(entry.seq, entry) for entry in self._journal.live_entries())

    def _find(self, key: str) -> Entry | None:
        entry = next((e for e in self.entries if e.key == key), None) if key in self._seen_keys else None
        entry = entry or self._journal.find(key)
        return None if entry is None else self.changed.get(entry.seq, entry)
