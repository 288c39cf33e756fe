"""State: the counts that a journal comes to, and how they fade."""

import hashlib
import sqlite3
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from warnings import warn

from candide import formatting
from candide.errors import InputError, SumTooLargeError
from candide.model.fitted import FittedModel
from candide.serve import learned_rows
from candide.serve.half_life import ExponentialDecay
from candide.serve.journal import RESTORE_REMEDY, Entry, Journal, Snapshot
from candide.store import dumps, loads, model_digest
from candide.store.models import resolve_target

_ROWS_PER_BATCH = 10_000  # rows that are counted together when a journal is read


@dataclass(frozen=True)
class LearnedState:
    """Counts in units of an epoch, the last entry that is in them, and how they fade."""

    counts: FittedModel
    epoch: int
    last_seq: int
    decay: ExponentialDecay
    journal_id: str  # of the journal

    def model_at(self, now: float) -> FittedModel:
        """The model at a time."""
        return self.decay.decay_counts(self.counts, self.epoch, now)

    def convert_epoch(self, now: float) -> "LearnedState":
        """The same counts in the units of a time, if that is of a later epoch."""
        epoch = max(self.decay.epoch_at(now), self.epoch)
        return replace(self, counts=self.decay.convert_epoch(self.counts, self.epoch, epoch), epoch=epoch)

    def row_weight(self, at: float) -> float:
        """The weight of a row that was learned at a time, in these units."""
        return self.decay.row_weight(at, self.epoch)

    def without_base(self, base: FittedModel) -> "LearnedState":
        """What was learned since a model with which it began."""
        mine = base.counts.scale(self.row_weight(self.decay.start_time))
        return replace(self, counts=self.counts.with_counts(self.counts.counts - mine.match_labels(self.counts.counts)))

    def to_snapshot(self, base: bytes) -> Snapshot:
        """What a journal keeps of it, which says what it began with."""
        fading = self.decay
        return Snapshot(
            dumps(self.counts), base, fading.start_time, self.journal_id, fading.half_life, self.last_seq, self.epoch
        )


def model_fingerprint(base: FittedModel, target: str) -> bytes:
    """What tells a model, and the column of its labels, from another."""
    return hashlib.sha256(model_digest(base) + target.encode("utf-8", "surrogatepass")).digest()


def start_journal(journal: Journal, base: FittedModel, target: str, half_life: float | None, now: float) -> None:
    """Let a new journal begin with a model; of one that has begun, check that it did so with this."""
    this = model_fingerprint(base, target)
    if journal.is_new:
        journal.start(Snapshot(dumps(base), this, now, uuid.uuid4().hex, half_life))
        return
    kept = journal.read_snapshot()
    if kept.base != this:
        remedy = "name the model that it began with, or another file; candide export-state gives what it has learned"
        raise InputError(f"{journal.path} goes on from another model", value=journal.path, remedy=remedy)
    if kept.half_life != half_life:
        had = "no half-life" if kept.half_life is None else f"a half-life of {kept.half_life:g} seconds"
        remedy = "name the same half-life; or begin a new file with the model that candide export-state gives"
        raise InputError(f"{journal.path} has {had}", value=half_life, remedy=remedy)


def replay_journal(journal: Journal, target: str | None) -> LearnedState:
    """What a journal comes to. What of its end is lost or damaged is left out, and a warning says so."""
    try:
        kept = journal.read_snapshot()
        counts = loads(kept.model)
        assert isinstance(counts, FittedModel)
        before = LearnedState(counts, kept.epoch, kept.upto, ExponentialDecay(kept.half_life, kept.began), kept.id)
        found, n, left_out = _replay(before, journal.entries_after(kept.upto), resolve_target(counts, target))
        last = max(journal.last_seq(), journal.last_answered_seq())
        lost = last - kept.upto - n
        if lost > 0:
            found = replace(found, last_seq=journal.last_seq())
            journal.repair(found.to_snapshot(kept.base))
        if left_out:  # acknowledged by a release that did not check what it counted
            journal.commit([], [entry.with_remaining(None, 0) for entry in left_out], found.to_snapshot(kept.base))
    except sqlite3.DatabaseError as error:
        raise InputError(f"{journal.path} is damaged: {error}", value=journal.path, remedy=RESTORE_REMEDY) from None
    if lost > 0:
        what = f"{journal.path}: {formatting.format_count(lost, 'entry', 'entries')} of its end could not be read, and were cut"
        warn(f"{what}; requests that are sent again with their keys count once", stacklevel=2)
    for entry in left_out:
        what = f"{formatting.format_count(entry.n)} under the key {entry.key!r} are too large to count and were removed"
        warn(f"{journal.path}: {what}", stacklevel=2)
    return found


def _replay(state: LearnedState, entries: Iterable[Entry], target: str) -> tuple[LearnedState, int, list[Entry]]:
    """Counts after entries of a journal, how many these were, and those too large to be counted.

    What is forgotten has been taken out of the counts that are kept, or out of the entries.
    """
    waiting: list[Entry] = []
    left_out: list[Entry] = []
    size = n = 0

    def in_one() -> LearnedState:
        if not waiting:
            return state
        later, last = state.convert_epoch(waiting[-1].at), waiting[-1].seq
        counts, too_large = _add_entries(later, [entry for entry in waiting if entry.rows is not None], target)
        left_out.extend(too_large)
        waiting.clear()
        return replace(later, counts=counts, last_seq=last)

    for entry in entries:
        n += 1
        waiting.append(entry)
        size += entry.n
        if size >= _ROWS_PER_BATCH:
            state, size = in_one(), 0
    return in_one(), n, left_out


def _add_entries(state: LearnedState, entries: list[Entry], target: str) -> tuple[FittedModel, list[Entry]]:
    """Counts with entries, and without those whose values are too large, which come back."""
    many = [(entry.rows, state.row_weight(entry.at)) for entry in entries if entry.rows is not None]
    try:
        return learned_rows.add_rows(state.counts, many, target), []
    except SumTooLargeError:
        if len(entries) == 1:
            return state.counts, entries
    half = len(entries) // 2
    counts, first = _add_entries(state, entries[:half], target)
    counts, second = _add_entries(replace(state, counts=counts), entries[half:], target)
    return counts, first + second
