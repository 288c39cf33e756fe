"""Group: requests that are counted and written together.

Those that cannot be counted are told why, and the others go on without them.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from candide.errors import CandideError, NotCountedError
from candide.model.fitted import FittedModel
from candide.serve import learned_rows
from candide.serve.journal import Entry, Journal
from candide.serve.learned_state import LearnedState
from candide.serve.problem import RequestProblem
from candide.serve.row_lookup import EntryMatch, RowSearch


@dataclass(frozen=True)
class RequestOutcome:
    """What came of a request: its key, how many rows went in or out, and whether it had been heard before."""

    key: str
    rows: int
    is_repeat: bool = False


@dataclass
class PendingRequest:
    """A request that waits: to learn rows, to forget them, or to forget what came under a key."""

    key: str
    sign: int
    n_rows: int = 0
    rows: bytes = b""
    learned_key: str | None = None
    checksum: int = field(init=False)
    future: "Future[RequestOutcome]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        """Of 65,536 other requests one has the same mark: enough for a mistake, and of no use to guess rows by."""
        self.checksum = (
            zlib.crc32(self.rows if self.learned_key is None else b"of " + self.learned_key.encode()) & 0xFFFF
        )


class RequestGroup:
    """Requests that are counted together: the counts they make, what is to be written, and what came of each."""

    def __init__(self, state: LearnedState, journal: Journal, base: FittedModel, target: str, at: float):
        self._counts, self._first_seq = state.convert_epoch(at), state.last_seq + 1
        self._journal, self._base, self._target, self._time = journal, base, target, at
        self.entries: list[Entry] = []
        self.outcomes: list[tuple[PendingRequest, RequestOutcome | Exception]] = []
        self._waiting: list[PendingRequest] = []
        self._seen_keys: set[str] = set()
        self._changed_entries: dict[int, Entry] = {}  # what is left of earlier entries
        self.base_rows_removed = 0  # rows that were taken out of the model with which all began

    @property
    def state(self) -> LearnedState:
        return replace(self._counts, last_seq=self._first_seq - 1 + len(self.entries))

    @property
    def changed_entries(self) -> list[Entry]:
        return list(self._changed_entries.values())

    @property
    def has_removals(self) -> bool:
        """Whether rows were taken out, so that the counts must be kept without them."""
        return bool(self._changed_entries) or any(entry.sign < 0 for entry in self.entries)

    def add(self, request: PendingRequest) -> None:
        try:
            self._add(request)
        except (CandideError, RequestProblem) as error:
            self.outcomes.append((request, error))

    def _add(self, one: PendingRequest) -> None:
        if one.key in self._seen_keys:
            self.flush()  # so that it is known whether the first of that key entered
        before = self._find(one.key)
        if before is not None:
            alike = _is_same_request(one, before)
            self.outcomes.append((one, RequestOutcome(one.key, 0, is_repeat=True) if alike else _key_conflict(one.key)))
            return
        self._seen_keys.add(one.key)
        if one.sign > 0:
            self._waiting.append(one)
        else:
            self.flush()
            self._forget(one)

    def expire(self, entries: Iterable[Entry]) -> None:
        """Forget entries that nobody asks for any more."""
        self._remove_rows(
            [EntryMatch(entry.rows, entry.with_remaining(None, 0)) for entry in entries if entry.rows is not None]
        )

    def _forget(self, one: PendingRequest) -> None:
        if one.learned_key is None:
            search = RowSearch(one.rows, self._counts.counts, self._target)
            parts, n = list(search.find_in(self._live_entries())), one.n_rows
            self._remove_rows(parts, *search.unmatched_rows())
        else:
            found = self._find(one.learned_key)
            if found is None or found.sign < 0:
                remedy = "name the key of rows that were learned"
                raise RequestProblem(
                    404, f"nothing was learned under the key {one.learned_key!r}", value=one.learned_key, remedy=remedy
                )
            if found.rows is None:
                self.outcomes.append((one, RequestOutcome(one.key, 0, is_repeat=True)))
                return
            n = found.n
            self._remove_rows([EntryMatch(found.rows, found.with_remaining(None, 0))])
        self._write(Entry(one.key, -1, n, None, self._time, mark=one.checksum))
        self.outcomes.append((one, RequestOutcome(one.key, n)))

    def _remove_rows(self, parts: Sequence[EntryMatch], base_rows: bytes | None = None, n_base_rows: int = 0) -> None:
        """Count rows of entries out, and such as the model began with; all or none."""
        state = self._counts
        many = [(part.matched_rows, state.row_weight(part.remaining_entry.at)) for part in parts]
        if base_rows is not None:
            learned_rows.remove_rows(
                self._base, [(base_rows, 1.0)], self._target
            )  # an error where these were never counted
            many.append((base_rows, state.row_weight(state.decay.start_time)))
        try:
            self._check_precision(parts)
            counts = learned_rows.remove_rows(state.counts, many, self._target)
        except NotCountedError:
            again = None if base_rows is not None else self._recount(parts)
            if again is None:
                raise
            counts = again
        self._counts, self.base_rows_removed = replace(state, counts=counts), self.base_rows_removed + n_base_rows
        for part in parts:
            if part.remaining_entry.seq >= self._first_seq:
                self.entries[part.remaining_entry.seq - self._first_seq] = part.remaining_entry
            else:
                self._changed_entries[part.remaining_entry.seq] = part.remaining_entry

    def _check_precision(self, parts: Sequence[EntryMatch]) -> None:
        """An error where rows are so large that beside them even the model was lost with which all began.

        Beside others as large, which are there still, that does not show yet.
        """
        once = [(part.matched_rows, 1.0) for part in parts]
        learned_rows.remove_rows(learned_rows.add_rows(self._base, once, self._target), once, self._target)

    def _recount(self, parts: Sequence[EntryMatch]) -> FittedModel | None:
        """The counts of all that stays: what goes may be so large that the rest was lost beside it.

        None where rows of the model that it began with are gone, which are nowhere to be counted.
        """
        state, left = self._counts, {part.remaining_entry.seq: part.remaining_entry for part in parts}
        live = list(self._live_entries())
        if self._base.counts.n_rows + sum(entry.n for entry in live) != state.counts.counts.n_rows:
            return None
        stays = [left.get(entry.seq, entry) for entry in reversed(live)]
        many = [(entry.rows, state.row_weight(entry.at)) for entry in stays if entry.rows is not None]
        base = self._base.scale(state.row_weight(state.decay.start_time))
        return learned_rows.add_rows(state.counts.with_counts(base.counts), many, self._target)

    def _live_entries(self) -> Iterator[Entry]:
        """What is learned and not forgotten, the latest first."""
        yield from reversed([entry for entry in self.entries if entry.rows is not None])
        yield from (self._changed_entries.get(entry.seq, entry) for entry in self._journal.live_entries())

    def _find(self, key: str) -> Entry | None:
        found = next((entry for entry in self.entries if entry.key == key), None) if key in self._seen_keys else None
        found = found or self._journal.find(key)
        return None if found is None else self._changed_entries.get(found.seq, found)

    def flush(self) -> None:
        """Count what waits to be learned: together, or where that cannot be, one half and then the other."""
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
            counts = learned_rows.add_rows(state.counts, [(one.rows, weight) for one in requests], self._target)
            self._counts = replace(state, counts=counts)
            for one in requests:
                self._write(Entry(one.key, 1, one.n_rows, one.rows, self._time, mark=one.checksum))
                self.outcomes.append((one, RequestOutcome(one.key, one.n_rows)))

    def _write(self, entry: Entry) -> None:
        self.entries.append(replace(entry, seq=self._first_seq + len(self.entries)))


def _is_same_request(one: PendingRequest, before: Entry) -> bool:
    """Whether a request is the one that came under its key before, as far as that can be told."""
    if before.rows is not None and not before.gone:
        return one.sign == before.sign and one.rows == before.rows
    return (one.sign, one.checksum) == (before.sign, before.mark)


def _key_conflict(key: str) -> RequestProblem:
    what, remedy = f"another request came under the key {key!r}", "send this one with a key of its own"
    return RequestProblem(409, what, value=key, remedy=remedy)
