"""Group: requests that are counted and written together.

Those that cannot be counted are told why, and the others go on without them.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field

from candide.errors import CandideError
from candide.model.fitted import Fitted
from candide.serve import learned
from candide.serve.journal import Entry, Journal
from candide.serve.problem import Problem


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
    future: "Future[Outcome]" = field(default_factory=Future)


class Group:
    """Requests that are counted together: the model they make, what is to be written, and what came of each."""

    def __init__(self, fitted: Fitted, journal: Journal, target: str, at: float):
        self.fitted, self._journal, self._target, self._at = fitted, journal, target, at
        self.entries: list[Entry] = []
        self.outcomes: list[tuple[Asked, Outcome | Exception]] = []
        self._waiting: list[Asked] = []
        self._met: set[str] = set()

    def add(self, one: Asked) -> None:
        before = self._journal.find(one.key)
        if one.key in self._met:
            self.end()  # so that it is known whether the first of that key entered
            before = next((entry for entry in self.entries if entry.key == one.key), before)
        if before is not None:
            alike = _alike(one, before)
            self.outcomes.append((one, Outcome(one.key, 0, again=True) if alike else _conflict(one.key)))
            return
        self._met.add(one.key)
        if one.sign > 0:
            self._waiting.append(one)
            return
        self.end()
        try:
            self._forget(one)
        except (CandideError, Problem) as error:
            self.outcomes.append((one, error))

    def _forget(self, one: Asked) -> None:
        rows, n, of = one.rows, one.n, None
        if one.of is not None:
            found = next((e for e in self.entries if e.key == one.of), None) or self._journal.find(one.of)
            if found is None or found.sign < 0:
                raise Problem(404, f"nothing was learned under the key {one.of!r}", value=one.of)
            if found.wiped or found.rows is None:
                self.outcomes.append((one, Outcome(one.key, 0, again=True)))
                return
            if not found.seq:  # it came in this very group
                raise Problem(409, f"{one.of!r} is being learned", value=one.of, remedy="send this again")
            rows, n, of = found.rows, found.n, found.seq
            if any(entry.of == of for entry in self.entries):
                self.outcomes.append((one, Outcome(one.key, 0, again=True)))
                return
        self.fitted = learned.minus(self.fitted, rows, self._target)
        self.entries.append(Entry(one.key, -1, n, rows, self._at, of))
        self.outcomes.append((one, Outcome(one.key, n)))

    def end(self) -> None:
        """Count what waits to be learned: together, or where that cannot be, each by itself."""
        waiting, self._waiting = self._waiting, []
        try:
            self._learn(waiting)
        except CandideError as error:
            if len(waiting) == 1:
                self.outcomes.append((waiting[0], error))
                return
            for one in waiting:
                self._waiting = [one]
                self.end()

    def _learn(self, some: list[Asked]) -> None:
        if some:
            self.fitted = learned.plus(self.fitted, [one.rows for one in some], self._target)
            self.entries += [Entry(one.key, 1, one.n, one.rows, self._at) for one in some]
            self.outcomes += [(one, Outcome(one.key, one.n)) for one in some]


def _alike(one: Asked, before: Entry) -> bool:
    """Whether a request is the one that came under its key before, as far as that can be told."""
    return one.sign == before.sign and (before.rows is None or one.of is not None or one.rows == before.rows)


def _conflict(key: str) -> Problem:
    return Problem(
        409, f"other rows came under the key {key!r}", value=key, remedy="send these with a key of their own"
    )
