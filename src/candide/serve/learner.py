"""Learner: a model that learns and forgets while it is served, and loses nothing that it said it had.

One thread writes. It takes all requests that wait, counts them, commits them to the journal together, and then lets the
new model answer: so a request that was answered is on the disk, and one that cannot be counted enters nothing. Requests
that were not answered when the server died may be sent again with the same key.

>>> import tempfile
>>> from candide.demo import garden
>>> learner = Learner(os.path.join(tempfile.mkdtemp(), "state.db"), Fitted(garden(), target="herb"))
>>> plant = {"height_cm": 21.0, "leaf_mm": 8.0, "flowers": 14, "soil": "sand", "scented": "yes", "herb": "thyme"}
>>> rows = Rows(1, {name: [value] for name, value in plant.items()})
>>> learner.learn(rows, "monday").result().rows, learner.fitted.rows
(1, 301)
>>> learner.learn(rows, "monday").result().again, learner.fitted.rows  # the same request
(True, 301)
>>> learner.forget_key("monday").result().rows, learner.fitted.rows
(1, 300)
>>> learner.close()
"""

import hashlib
import os
import queue
import sqlite3
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from warnings import warn

from candide.errors import CandideError, InputError
from candide.model.fitted import Fitted
from candide.serve import learned
from candide.serve.formats import Rows
from candide.serve.group import Asked, Group, Outcome
from candide.serve.journal import Journal
from candide.serve.problem import Problem
from candide.store import dumps, loads
from candide.tasks.models import target_of

_GROUP = 512  # requests that are committed together
_ROWS = 50_000  # learned since the model was kept, after which it is kept again
_WAITING = 10_000  # requests in the queue, beyond which more are refused
_LONGEST = 200  # letters of a key


class Learner:
    """A model that changes, its journal, and the thread that writes it."""

    def __init__(
        self,
        path: str | os.PathLike,
        base: Fitted,
        *,
        target: str | None = None,
        new_classes: bool = False,
        window: float | None = None,
    ):
        self.target, self.new_classes, self.window = target_of(base, target), new_classes, window
        self.journal = Journal(path)
        self.fitted, self._last = opened(self.journal, base, self.target)
        self._since, self._started = 0, time.time() - time.monotonic()
        self.changed: Callable[[Fitted], Callable[[], None]] = lambda fitted: lambda: None
        self._queue: queue.Queue[Asked | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="candide-learner", daemon=True)
        self._thread.start()

    # What is asked, from any thread.

    def learn(self, rows: Rows, key: str | None = None) -> "Future[Outcome]":
        """Count rows in, which have their labels."""
        kept = learned.kept(rows, self.fitted, self.target, self.new_classes)
        return self._ask(Asked(_key(key), 1, rows.n, kept))

    def forget(self, rows: Rows, key: str | None = None) -> "Future[Outcome]":
        """Count rows out that were counted in."""
        kept = learned.kept(rows, self.fitted, self.target, new_classes=False)
        return self._ask(Asked(_key(key), -1, rows.n, kept))

    def forget_key(self, of: str, key: str | None = None) -> "Future[Outcome]":
        """Count out what came in under a key."""
        return self._ask(Asked(_key(key), -1, of=of))

    def close(self) -> None:
        """Answer what waits, keep the model, and let go of the file."""
        self._queue.put(None)
        self._thread.join()

    def _ask(self, asked: Asked) -> "Future[Outcome]":
        if self._queue.qsize() >= _WAITING:
            raise Problem(503, "too many requests wait to be learned", headers=(("retry-after", "1"),))
        if not self._thread.is_alive():
            raise Problem(503, "the server is stopping", remedy="send it again, with the same key")
        self._queue.put(asked)
        return asked.future

    # The thread that writes.

    def _run(self) -> None:
        going = True
        while going:
            group = self._group()
            going = None not in group
            asked = [one for one in group if one is not None]
            try:
                self._take(asked)
            except (Problem, CandideError) as error:
                _refuse(asked, error)
            except Exception as error:  # whatever it is, nobody waits for ever
                traceback.print_exc()
                _refuse(asked, error)
        self._keep()
        self.journal.close()

    def _group(self) -> list[Asked | None]:
        """What waits, once something does or old rows are to go."""
        try:
            found = [self._queue.get(timeout=None if self.window is None else min(60.0, self.window / 10))]
        except queue.Empty:
            found = []
        while len(found) < _GROUP and None not in found:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return found

    def _take(self, asked: list[Asked]) -> None:
        """Count, commit, let the new model answer, and say so."""
        group = Group(self.fitted, self.journal, self.target, self._now())
        for one in [*self._old(), *asked]:
            group.add(one)
        group.end()
        if group.entries:
            answer = self.changed(group.fitted)  # estimated before it is written: what has no estimate is refused
            try:
                self._last = self.journal.commit(group.entries)[-1].seq
            except sqlite3.Error as error:
                what, remedy = f"this cannot be kept: {error}", "send it again once there is room, with the same key"
                raise Problem(503, what, headers=(("retry-after", "10"),), remedy=remedy) from None
            self.fitted = group.fitted
            answer()
        for one, outcome in group.outcomes:
            _tell(one, outcome)
        self._since += sum(entry.n for entry in group.entries)
        if self._since >= _ROWS or any(entry.sign < 0 for entry in group.entries):  # what is forgotten is wiped now
            self._keep()

    def _now(self) -> float:
        """Seconds since 1970, by a clock that nobody sets while the server runs, and never before the last entry."""
        return max(self._started + time.monotonic(), self.journal.latest())

    def _old(self) -> list[Asked]:
        """Requests to forget what lies before the window."""
        if self.window is None:
            return []
        old = self.journal.before(self._now() - self.window, _GROUP)
        return [Asked(f"window {entry.seq}", -1, of=entry.key) for entry in old]

    def _keep(self) -> None:
        if not self._since:
            return
        try:
            self.journal.compact(dumps(self.fitted), self._last)
            self._since = 0
        except sqlite3.Error as error:  # what was committed is there for all that
            warn(f"{self.journal.path}: the model was not kept: {error}", stacklevel=1)


def opened(journal: Journal, base: Fitted, target: str) -> tuple[Fitted, int]:
    """The model that a journal comes to, which began with ``base``; and the number of its last entry."""
    counts = base.census
    told = (counts.plan.columns, counts.labels.values, counts.class_weight.tolist(), counts.n_rows, target)
    digest = hashlib.sha256(repr(told).encode()).digest()
    if journal.base is None:
        journal.begin(dumps(base), digest)
    elif journal.base != digest:
        remedy = "name the model that it began with, or another file; candide export-state gives what it has learned"
        raise InputError(f"{journal.path} goes on from another model", value=journal.path, remedy=remedy)
    return state(journal, target)


def state(journal: Journal, target: str | None) -> tuple[Fitted, int]:
    """The model that a journal comes to. Entries at its end that cannot be read are cut, and a warning says so."""
    try:
        model, upto = journal.model()
        fitted = loads(model)
        assert isinstance(fitted, Fitted)
        fitted, last = learned.replayed(fitted, journal.since(upto), upto, target_of(fitted, target))
        lost = journal.cut(last)
    except sqlite3.DatabaseError as error:
        remedy = "put a copy of the file in its place"
        raise InputError(f"{journal.path} is damaged: {error}", value=journal.path, remedy=remedy) from None
    if lost:
        warn(f"{journal.path}: its last {lost} entries are damaged, and were cut", stacklevel=2)
    return fitted, last


def _key(given: str | None) -> str:
    if given is None or given == "":
        return uuid.uuid4().hex
    if len(given) > _LONGEST or not given.isprintable():
        raise Problem(
            422, "a key is at most 200 letters that can be printed", value=given, remedy="choose a shorter one"
        )
    return given


def _tell(one: Asked, outcome: Outcome | Exception) -> None:
    if one.future.set_running_or_notify_cancel():
        if isinstance(outcome, Outcome):
            one.future.set_result(outcome)
        else:
            one.future.set_exception(outcome)


def _refuse(asked: list[Asked], error: Exception) -> None:
    for one in asked:
        if not one.future.done():
            _tell(one, error)
