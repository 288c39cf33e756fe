"""Group commit: requests that are counted and written together.

A request that cannot be counted fails alone, and the others go on without it.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from candide.errors import CandideError, NotCountedError
from candide.model.fitted import FittedModel
from candide.serve.http import RequestProblem
from candide.serve.journal import Entry, Journal
from candide.serve.learned_rows import EntryMatch, RowSearch, add_rows, remove_rows
from candide.serve.learned_state import LearnedState


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
        """Whether this is the request that was sent under its key before, as far as can be told."""
        if entry.rows is not None and not entry.n_removed:
            return self.sign == entry.sign and self.rows == entry.rows
        return (self.sign, self.checksum) == (entry.sign, entry.checksum)


class RequestGroup:
    """Requests that are counted together: the counts, the entries to write, and the outcome of each request."""

    def __init__(self, state: LearnedState, journal: Journal, base: FittedModel, target: str, at: float):
        self._counts, self._first_seq = state.convert_epoch(at), state.last_seq + 1
        self._journal, self._base, self._target, self._time = journal, base, target, at
        self.entries: list[Entry] = []
        self.outcomes: list[tuple[PendingRequest, RequestOutcome | Exception]] = []
        self._waiting: list[PendingRequest] = []
        self._seen_keys: set[str] = set()
        self._changed_entries: dict[int, Entry] = {}  # what remains of earlier entries
        self.base_rows_removed = 0  # rows of the model that the journal started with

    @property
    def state(self) -> LearnedState:
        return replace(self._counts, last_seq=self._first_seq - 1 + len(self.entries))

    @property
    def changed_entries(self) -> list[Entry]:
        return list(self._changed_entries.values())

    @property
    def has_removals(self) -> bool:
        """Whether rows were removed, so that a snapshot without them must be written."""
        return bool(self._changed_entries) or any(entry.sign < 0 for entry in self.entries)

    def add(self, request: PendingRequest) -> None:
        try:
            self._add(request)
        except (CandideError, RequestProblem) as error:
            self.outcomes.append((request, error))

    def _add(self, request: PendingRequest) -> None:
        if request.key in self._seen_keys:
            self.flush()  # to know whether the first request of that key was counted
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

    def expire(self, entries: Iterable[Entry]) -> None:
        """Forget whole entries."""
        self._remove([EntryMatch(e.rows, e.with_remaining(None, 0)) for e in entries if e.rows is not None])

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
        self._write(Entry(request.key, -1, n, None, self._time, checksum=request.checksum))
        self.outcomes.append((request, RequestOutcome(request.key, n)))

    def _remove(self, matches: Sequence[EntryMatch], base_rows: bytes | None = None, n_base_rows: int = 0) -> None:
        """Count rows of entries out, and rows of the model that the journal started with; all or none."""
        state = self._counts
        rows = [(match.matched_rows, state.row_weight(match.remaining_entry.at)) for match in matches]
        if base_rows is not None:
            remove_rows(self._base, [(base_rows, 1.0)], self._target)  # an error if they were never counted
            rows.append((base_rows, state.row_weight(state.decay.start_time)))
        try:
            self._check_precision(matches)
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
                self._changed_entries[entry.seq] = entry

    def _check_precision(self, matches: Sequence[EntryMatch]) -> None:
        """Raise an error if rows are so large that the counts of the base model vanish in rounding beside them.

        Beside other rows as large, which are still counted, that does not show yet.
        """
        rows = [(match.matched_rows, 1.0) for match in matches]
        remove_rows(add_rows(self._base, rows, self._target), rows, self._target)

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
        yield from (self._changed_entries.get(entry.seq, entry) for entry in self._journal.live_entries())

    def _find(self, key: str) -> Entry | None:
        entry = next((e for e in self.entries if e.key == key), None) if key in self._seen_keys else None
        entry = entry or self._journal.find(key)
        return None if entry is None else self._changed_entries.get(entry.seq, entry)

    def flush(self) -> None:
        """Count the requests that wait to be learned: together, or if that fails, one half and then the other."""
        waiting, self._waiting = self._waiting, []
        try:
            self._learn(waiting)
        except CandideError as error:
            if len(waiting) == 1:
                self.outcomes.append((waiting[0], error))
                return
            for half in (waiting[: len(waiting) // 2], waiting[len(waiting) // 2 :]):
                self._waiting = half
                self.flush()

    def _learn(self, requests: list[PendingRequest]) -> None:
        if requests:
            state, weight = self._counts, self._counts.row_weight(self._time)
            counts = add_rows(state.counts, [(request.rows, weight) for request in requests], self._target)
            self._counts = replace(state, counts=counts)
            for request in requests:
                self._write(Entry(request.key, 1, request.n_rows, request.rows, self._time, checksum=request.checksum))
                self.outcomes.append((request, RequestOutcome(request.key, request.n_rows)))

    def _write(self, entry: Entry) -> None:
        self.entries.append(replace(entry, seq=self._first_seq + len(self.entries)))
