"""State: the counts that a journal comes to, and how they fade."""

import hashlib
import sqlite3
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from warnings import warn

from candide import wording
from candide.errors import InputError, TooLargeError
from candide.model.fitted import Fitted
from candide.serve import learned
from candide.serve.fading import Fading
from candide.serve.journal import COPY, Entry, Journal, Kept
from candide.store import digest, dumps, loads
from candide.tasks.models import target_of

_AT_ONCE = 10_000  # rows that are counted together when a journal is read


@dataclass(frozen=True)
class State:
    """Counts in units of an epoch, the last entry that is in them, and how they fade."""

    counts: Fitted
    epoch: int
    last: int
    fading: Fading
    id: str  # of the journal

    def at(self, now: float) -> Fitted:
        """The model at a time."""
        return self.fading.faded(self.counts, self.epoch, now)

    def turned(self, now: float) -> "State":
        """The same counts in the units of a time, if that is of a later epoch."""
        epoch = max(self.fading.epoch(now), self.epoch)
        return replace(self, counts=self.fading.turned(self.counts, self.epoch, epoch), epoch=epoch)

    def weight(self, at: float) -> float:
        """The weight of a row that was learned at a time, in these units."""
        return self.fading.weight(at, self.epoch)

    def without(self, base: Fitted) -> "State":
        """What was learned since a model with which it began."""
        mine = base.census.scale(self.weight(self.fading.began))
        return replace(self, counts=self.counts.with_census(self.counts.census - mine.like(self.counts.census)))

    def kept(self, base: bytes) -> Kept:
        """What a journal keeps of it, which says what it began with."""
        fading = self.fading
        return Kept(dumps(self.counts), base, fading.began, self.id, fading.half_life, self.last, self.epoch)


def told(base: Fitted, target: str) -> bytes:
    """What tells a model, and the column of its labels, from another."""
    return hashlib.sha256(digest(base) + target.encode("utf-8", "surrogatepass")).digest()


def begin(journal: Journal, base: Fitted, target: str, half_life: float | None, now: float) -> None:
    """Let a new journal begin with a model; of one that has begun, check that it did so with this."""
    this = told(base, target)
    if journal.is_new:
        journal.begin(Kept(dumps(base), this, now, uuid.uuid4().hex, half_life))
        return
    kept = journal.kept()
    if kept.base != this:
        remedy = "name the model that it began with, or another file; candide export-state gives what it has learned"
        raise InputError(f"{journal.path} goes on from another model", value=journal.path, remedy=remedy)
    if kept.half_life != half_life:
        had = "no half-life" if kept.half_life is None else f"a half-life of {kept.half_life:g} seconds"
        remedy = "name the same half-life; or begin a new file with the model that candide export-state gives"
        raise InputError(f"{journal.path} has {had}", value=half_life, remedy=remedy)


def read(journal: Journal, target: str | None) -> State:
    """What a journal comes to. What of its end is lost or damaged is left out, and a warning says so."""
    try:
        kept = journal.kept()
        counts = loads(kept.model)
        assert isinstance(counts, Fitted)
        before = State(counts, kept.epoch, kept.upto, Fading(kept.half_life, kept.began), kept.id)
        found, n, left_out = _replayed(before, journal.since(kept.upto), target_of(counts, target))
        last = max(journal.last(), journal.answered())
        lost = last - kept.upto - n
        if lost > 0:
            found = replace(found, last=journal.last())
            journal.mend(found.kept(kept.base))
        if left_out:  # acknowledged by a release that did not check what it counted
            journal.commit([], [entry.without(None, 0) for entry in left_out], found.kept(kept.base))
    except sqlite3.DatabaseError as error:
        raise InputError(f"{journal.path} is damaged: {error}", value=journal.path, remedy=COPY) from None
    if lost > 0:
        what = f"{journal.path}: {wording.plural(lost, 'entry', 'entries')} of its end could not be read, and were cut"
        warn(f"{what}; requests that are sent again with their keys count once", stacklevel=2)
    for entry in left_out:
        what = f"{wording.plural(entry.n)} under the key {entry.key!r} are too large to count and were removed"
        warn(f"{journal.path}: {what}", stacklevel=2)
    return found


def _replayed(state: State, entries: Iterable[Entry], target: str) -> tuple[State, int, list[Entry]]:
    """Counts after entries of a journal, how many these were, and those too large to be counted.

    What is forgotten has been taken out of the counts that are kept, or out of the entries.
    """
    waiting: list[Entry] = []
    left_out: list[Entry] = []
    size = n = 0

    def in_one() -> State:
        if not waiting:
            return state
        later, last = state.turned(waiting[-1].at), waiting[-1].seq
        counts, too_large = _plus(later, [entry for entry in waiting if entry.rows is not None], target)
        left_out.extend(too_large)
        waiting.clear()
        return replace(later, counts=counts, last=last)

    for entry in entries:
        n += 1
        waiting.append(entry)
        size += entry.n
        if size >= _AT_ONCE:
            state, size = in_one(), 0
    return in_one(), n, left_out


def _plus(state: State, entries: list[Entry], target: str) -> tuple[Fitted, list[Entry]]:
    """Counts with entries, and without those whose values are too large, which come back."""
    many = [(entry.rows, state.weight(entry.at)) for entry in entries if entry.rows is not None]
    try:
        return learned.plus(state.counts, many, target), []
    except TooLargeError:
        if len(entries) == 1:
            return state.counts, entries
    half = len(entries) // 2
    counts, first = _plus(state, entries[:half], target)
    counts, second = _plus(replace(state, counts=counts), entries[half:], target)
    return counts, first + second
