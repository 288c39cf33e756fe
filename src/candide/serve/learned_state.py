"""The counts that a journal adds up to, how they decay, and the clock of the journal."""

import hashlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ldexp
from warnings import warn

from candide import formatting
from candide.errors import InputError, SumTooLargeError
from candide.model.fitted import FittedModel
from candide.serve import learned_rows
from candide.serve.journal import RESTORE_REMEDY, Entry, Journal, Snapshot
from candide.store import dumps, loads, model_digest
from candide.store.models import resolve_target

Seconds = Callable[[], float]
_MIN_EXPONENT = -1000  # power of two: a weight that is negligible beside a row, and still a normal number
_ROWS_PER_BATCH = 10_000  # rows counted together when a journal is read


class Clock:
    """Seconds since 1970, continuing from the last time of a journal. It never runs backwards.

    While a server runs, a monotonic clock is used, so changing the system time has no effect. Between two runs the
    system time counts, unless it lies before the last time of the journal or so far after it (more than ``max_gap``)
    that everything would be forgotten: then no time is assumed to have passed.

    >>> def clock(calendar, last): return Clock(last, 100.0, lambda: calendar, lambda: 7.0)
    >>> clock(1050.0, 1000.0)(), clock(3.0, 1000.0)(), clock(9e9, 1000.0)(), clock(9e9, None)()
    (1050.0, 1000.0, 1000.0, 9000000000.0)
    """

    def __init__(
        self,
        last_time: float | None,
        max_gap: float | None,
        calendar: Seconds = time.time,
        monotonic: Seconds = time.monotonic,
    ):
        now = calendar()
        is_gap_too_long = last_time is not None and max_gap is not None and now - last_time > max_gap
        self.rejected_time = now if is_gap_too_long else None
        start = now if last_time is None else last_time if is_gap_too_long else max(now, last_time)
        self._monotonic, self._offset = monotonic, start - monotonic()

    def __call__(self) -> float:
        return self._offset + self._monotonic()


def format_time(at: float) -> str:
    """Format a time.

    >>> format_time(0.0), format_time(1e15)
    ('1970-01-01 00:00 UTC', '1000000000000000 seconds after 1970')
    """
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return f"{at:.0f} seconds after 1970"


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
        """Return the number of whole half-lives since the start."""
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
        """Return the model at a time."""
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
    """Return a hash of a model and its target column."""
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
    batch: list[Entry] = []
    left_out: list[Entry] = []
    size = n = 0

    def add_batch() -> LearnedState:
        if not batch:
            return state
        later, last = state.convert_epoch(batch[-1].at), batch[-1].seq
        counts, too_large = _add_entries(later, [entry for entry in batch if entry.rows is not None], target)
        left_out.extend(too_large)
        batch.clear()
        return replace(later, counts=counts, last_seq=last)

    for entry in entries:
        n += 1
        batch.append(entry)
        size += entry.n
        if size >= _ROWS_PER_BATCH:
            state, size = add_batch(), 0
    return add_batch(), n, left_out


def _add_entries(state: LearnedState, entries: list[Entry], target: str) -> tuple[FittedModel, list[Entry]]:
    """Return the counts with entries, and the entries whose values are too large."""
    rows = [(entry.rows, state.row_weight(entry.at)) for entry in entries if entry.rows is not None]
    try:
        return learned_rows.add_rows(state.counts, rows, target), []
    except SumTooLargeError:
        if len(entries) == 1:
            return state.counts, entries
    half = len(entries) // 2
    counts, first = _add_entries(state, entries[:half], target)
    counts, second = _add_entries(replace(state, counts=counts), entries[half:], target)
    return counts, first + second
