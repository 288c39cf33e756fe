"""Group: requests that are counted and written together.

Those that cannot be counted are told why, and the others go on without them.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from candide.errors import CandideError, NotWithinError
from candide.model.fitted import Fitted
from candide.serve import learned
from candide.serve.found import Part, Search
from candide.serve.journal import Entry, Journal
from candide.serve.problem import Problem
from candide.serve.state import State


@dataclass(frozen=True)
class Outcome:
    """What came of a request: its key, how many rows went in or out, and whether it had been heard before."""

    key: str
    rows: int
    again: bool = False


@dataclass
class Asked:
    """A request that waits: to learn rows, to forget them, or to forget what came under a key."""

    key: str
    sign: int
    n: int = 0
    rows: bytes = b""
    of: str | None = None
    mark: int = field(init=False)
    future: "Future[Outcome]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        """Of 65,536 other requests one has the same mark: enough for a mistake, and of no use to guess rows by."""
        self.mark = zlib.crc32(self.rows if self.of is None else b"of " + self.of.encode()) & 0xFFFF


class Group:
    """Requests that are counted together: the counts they make, what is to be written, and what came of each."""

    def __init__(self, state: State, journal: Journal, base: Fitted, target: str, at: float):
        self._counts, self._first = state.turned(at), state.last + 1
        self._journal, self._base, self._target, self._at = journal, base, target, at
        self.entries: list[Entry] = []
        self.outcomes: list[tuple[Asked, Outcome | Exception]] = []
        self._waiting: list[Asked] = []
        self._met: set[str] = set()
        self._changed: dict[int, Entry] = {}  # what is left of earlier entries
        self.of_base = 0  # rows that were taken out of the model with which all began

    @property
    def state(self) -> State:
        return replace(self._counts, last=self._first - 1 + len(self.entries))

    @property
    def changed(self) -> list[Entry]:
        return list(self._changed.values())

    @property
    def forgets(self) -> bool:
        """Whether rows were taken out, so that the counts must be kept without them."""
        return bool(self._changed) or any(entry.sign < 0 for entry in self.entries)

    def add(self, one: Asked) -> None:
        try:
            self._add(one)
        except (CandideError, Problem) as error:
            self.outcomes.append((one, error))

    def _add(self, one: Asked) -> None:
        if one.key in self._met:
            self.end()  # so that it is known whether the first of that key entered
        before = self._find(one.key)
        if before is not None:
            alike = _alike(one, before)
            self.outcomes.append((one, Outcome(one.key, 0, again=True) if alike else _conflict(one.key)))
            return
        self._met.add(one.key)
        if one.sign > 0:
            self._waiting.append(one)
        else:
            self.end()
            self._forget(one)

    def expire(self, entries: Iterable[Entry]) -> None:
        """Forget entries that nobody asks for any more."""
        self._take_out([Part(entry.rows, entry.without(None, 0)) for entry in entries if entry.rows is not None])

    def _forget(self, one: Asked) -> None:
        if one.of is None:
            search = Search(one.rows, self._counts.counts, self._target)
            parts, n = list(search.among(self._live())), one.n
            self._take_out(parts, *search.rest())
        else:
            found = self._find(one.of)
            if found is None or found.sign < 0:
                remedy = "name the key of rows that were learned"
                raise Problem(404, f"nothing was learned under the key {one.of!r}", value=one.of, remedy=remedy)
            if found.rows is None:
                self.outcomes.append((one, Outcome(one.key, 0, again=True)))
                return
            n = found.n
            self._take_out([Part(found.rows, found.without(None, 0))])
        self._write(Entry(one.key, -1, n, None, self._at, mark=one.mark))
        self.outcomes.append((one, Outcome(one.key, n)))

    def _take_out(self, parts: Sequence[Part], of_base: bytes | None = None, n_of_base: int = 0) -> None:
        """Count rows of entries out, and such as the model began with; all or none."""
        state = self._counts
        many = [(part.rows, state.weight(part.left.at)) for part in parts]
        if of_base is not None:
            learned.minus(self._base, [(of_base, 1.0)], self._target)  # an error where these were never counted
            many.append((of_base, state.weight(state.fading.began)))
        try:
            self._check_beside_base(parts)
            counts = learned.minus(state.counts, many, self._target)
        except NotWithinError:
            again = None if of_base is not None else self._counted_again(parts)
            if again is None:
                raise
            counts = again
        self._counts, self.of_base = replace(state, counts=counts), self.of_base + n_of_base
        for part in parts:
            if part.left.seq >= self._first:
                self.entries[part.left.seq - self._first] = part.left
            else:
                self._changed[part.left.seq] = part.left

    def _check_beside_base(self, parts: Sequence[Part]) -> None:
        """An error where rows are so large that beside them even the model was lost with which all began.

        Beside others as large, which are there still, that does not show yet.
        """
        once = [(part.rows, 1.0) for part in parts]
        learned.minus(learned.plus(self._base, once, self._target), once, self._target)

    def _counted_again(self, parts: Sequence[Part]) -> Fitted | None:
        """The counts of all that stays: what goes may be so large that the rest was lost beside it.

        None where rows of the model that it began with are gone, which are nowhere to be counted.
        """
        state, left = self._counts, {part.left.seq: part.left for part in parts}
        live = list(self._live())
        if self._base.census.n_rows + sum(entry.n for entry in live) != state.counts.census.n_rows:
            return None
        stays = [left.get(entry.seq, entry) for entry in reversed(live)]
        many = [(entry.rows, state.weight(entry.at)) for entry in stays if entry.rows is not None]
        base = self._base.scale(state.weight(state.fading.began))
        return learned.plus(state.counts.with_census(base.census), many, self._target)

    def _live(self) -> Iterator[Entry]:
        """What is learned and not forgotten, the latest first."""
        yield from reversed([entry for entry in self.entries if entry.rows is not None])
        yield from (self._changed.get(entry.seq, entry) for entry in self._journal.learned())

    def _find(self, key: str) -> Entry | None:
        found = next((entry for entry in self.entries if entry.key == key), None) if key in self._met else None
        found = found or self._journal.find(key)
        return None if found is None else self._changed.get(found.seq, found)

    def end(self) -> None:
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
                self.end()

    def _learn(self, some: list[Asked]) -> None:
        if some:
            state, weight = self._counts, self._counts.weight(self._at)
            counts = learned.plus(state.counts, [(one.rows, weight) for one in some], self._target)
            self._counts = replace(state, counts=counts)
            for one in some:
                self._write(Entry(one.key, 1, one.n, one.rows, self._at, mark=one.mark))
                self.outcomes.append((one, Outcome(one.key, one.n)))

    def _write(self, entry: Entry) -> None:
        self.entries.append(replace(entry, seq=self._first + len(self.entries)))


def _alike(one: Asked, before: Entry) -> bool:
    """Whether a request is the one that came under its key before, as far as that can be told."""
    if before.rows is not None and not before.gone:
        return one.sign == before.sign and one.rows == before.rows
    return (one.sign, one.mark) == (before.sign, before.mark)


def _conflict(key: str) -> Problem:
    what, remedy = f"another request came under the key {key!r}", "send this one with a key of its own"
    return Problem(409, what, value=key, remedy=remedy)
