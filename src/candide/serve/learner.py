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

from candide.errors import CandideError, InputError, NotWithinError
from candide.model.fitted import Fitted
from candide.serve import learned, state
from candide.serve.clock import Clock, Seconds, day
from candide.serve.formats import Rows
from candide.serve.group import Asked, Group, Outcome
from candide.serve.journal import COPY, Entry, Journal
from candide.serve.problem import Problem
from candide.tasks.models import target_of

_GROUP = 512  # requests that are committed together
_PAUSE = 0.001  # seconds in which no request comes, after which those that came together are all here
_PATIENCE = 20  # such pauses, at most
_ROWS = 50_000  # learned since the model was kept, after which it is kept again
_WAITING = 10_000  # requests in the queue, beyond which more are refused
_LONGEST = 200  # letters of a key
_OFTEN = 60.0  # seconds, at most, until what is old is looked for


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
        half_life: float | None = None,
        calendar: Seconds = time.time,
        steady: Seconds = time.monotonic,
    ):
        self.target, self.new_classes, self.window = target_of(base, target), new_classes, window
        self.base, self.told, self.journal = base, state.told(base, self.target), Journal(path)
        try:
            spans = [span for span in (window, half_life) if span is not None]
            self._span = min(spans, default=None)
            self._tick = min(_OFTEN, *(span / 100 for span in spans)) if spans else None
            self._now = Clock(None if self.journal.is_new else self.journal.latest(), self._span, calendar, steady)
            state.begin(self.journal, base, self.target, half_life, self._now())
            self._state = state.read(self.journal, self.target)
            counted = base.census.n_rows + self.journal.rows()
            self._of_base = counted - self._state.counts.census.n_rows  # rows of the base that were forgotten
        except BaseException:
            self.journal.close()
            raise
        if self._now.unbelieved is not None:
            since = f"the clock says {day(self._now.unbelieved)}, and the file ends at {day(self._now())}"
            warn(f"{self.journal.path}: {since}; the time between counts as none", stacklevel=2)
        self.fitted, self._seen = self._state.at(self._now()), self._now()
        self._since, self._past = 0, 0  # rows since the model was kept; the last entry that was too old
        self._more = False  # whether more may be too old
        self._session, self._version = uuid.uuid4().hex, 0
        self.changed: Callable[[Fitted], Callable[[], None]] = lambda fitted: lambda: None
        self._queue: queue.Queue[Asked | None] = queue.Queue()
        self._closing, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._run, name="candide-learner", daemon=True)
        self._thread.start()

    # What is asked, from any thread.

    def learn(self, rows: Rows, key: str | None = None) -> "Future[Outcome]":
        """Count rows in, which have their labels."""
        kept = learned.kept(rows, self.fitted, self.target, self.new_classes)
        return self._ask(Asked(key_of(key), 1, rows.n, kept))

    def forget(self, rows: Rows, key: str | None = None) -> "Future[Outcome]":
        """Count rows out that were counted in."""
        kept = learned.kept(rows, self.fitted, self.target, new_classes=False)
        return self._ask(Asked(key_of(key), -1, rows.n, kept))

    def forget_key(self, of: str, key: str | None = None) -> "Future[Outcome]":
        """Count out what came in under a key."""
        return self._ask(Asked(key_of(key), -1, of=of))

    def close(self) -> None:
        """Answer what waits, keep the model, and let go of the file."""
        with self._closing:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def now(self) -> Fitted:
        """The model at this moment."""
        return self._state.at(self._now())

    def own(self) -> Fitted:
        """What was learned here at this moment, without the model that it began with, if that is whole."""
        if self._of_base:
            raise NotWithinError("rows of the model that this server began with were forgotten")
        return self._state.without(self.base).at(self._now())

    @property
    def journal_id(self) -> str:
        return self._state.id

    @property
    def half_life(self) -> float | None:
        return self._state.fading.half_life

    @property
    def session(self) -> str:
        """What no other run has, of this journal or a copy of it."""
        return self._session

    @property
    def version(self) -> str:
        """What is another whenever the model is."""
        return f"{self._session}-{self._version}"

    def _ask(self, asked: Asked) -> "Future[Outcome]":
        if self._queue.qsize() >= _WAITING:
            what, remedy = "too many requests wait to be learned", "send it again later, with the same key"
            raise Problem(503, what, headers=(("retry-after", "1"),), remedy=remedy)
        with self._closing:  # so that nothing is put where nobody takes it
            if self._closed:
                raise Problem(503, "the server is stopping", remedy="send it again, with the same key")
            self._queue.put(asked)
        return asked.future

    # The thread that writes.

    def _run(self) -> None:
        going = True
        while going:
            group = self._group()
            going = None not in group
            self._answer([one for one in group if one is not None])
        self._keep()
        if self._tick is not None:
            self._try(lambda: self.journal.saw(self._now()))
        self.journal.close()

    def _answer(self, asked: list[Asked]) -> None:
        """Take requests together; where the model that they make has no estimate, one half and then the other."""
        try:
            self._take(asked)
        except CandideError as error:
            if len(asked) > 1:  # one of them is to blame
                self._answer(asked[: len(asked) // 2])
                self._answer(asked[len(asked) // 2 :])
            else:
                _refuse(asked, error)
        except Problem as error:
            _refuse(asked, error)
        except sqlite3.DatabaseError as error:
            _refuse(asked, Problem(503, f"{self.journal.path} cannot be read: {error}", remedy=COPY))
        except Exception as error:  # whatever it is, nobody waits for ever
            traceback.print_exc()
            _refuse(asked, error)

    def _group(self) -> list[Asked | None]:
        """What waits, once something does or it is time to see what is old."""
        try:
            found = [self._queue.get(timeout=0.0 if self._more else self._tick)]
        except queue.Empty:
            found = []
        self._rest(found)
        while len(found) < _GROUP and None not in found:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return found

    def _rest(self, found: list[Asked | None]) -> None:
        """Let those come that were sent at the same time: to write many together takes hardly longer than to write one.

        Answers wake clients, and these ask again one after another: whoever began with the first would write few.
        """
        waiting = -1
        for _ in range(_PATIENCE if found != [None] else 0):
            if waiting == (waiting := self._queue.qsize()) or waiting >= _GROUP:
                return
            time.sleep(_PAUSE)

    def _take(self, asked: list[Asked]) -> None:
        """Count, commit, let the new model answer, and say so."""
        at = self._now()
        group = Group(self._state, self.journal, self.base, self.target, at)
        old = self._expire(group, at)
        for one in asked:
            group.add(one)
        group.end()
        if group.entries or group.changed:
            self._commit(group, at)
        elif self._tick is not None:
            self._pass(at)
        self._past, self._more = old[-1].seq if old else self._past, len(old) == _GROUP
        for one, outcome in group.outcomes:
            _tell(one, outcome)
        self._since += sum(entry.n for entry in group.entries)
        if group.forgets:
            self._since = 0
            self._try(self.journal.wipe)
        elif self._since >= _ROWS:
            self._keep()

    def _commit(self, group: Group, at: float) -> None:
        fitted = group.state.at(at)
        answer = self.changed(fitted)  # estimated before it is written: what has no estimate is refused
        kept = group.state.kept(self.told) if group.forgets else None
        try:
            self.journal.commit(group.entries, group.changed, kept)
        except sqlite3.Error as error:
            what, remedy = f"this cannot be kept: {error}", "send it again once there is room, with the same key"
            raise Problem(503, what, headers=(("retry-after", "10"),), remedy=remedy) from None
        self._state, self.fitted, self._seen = group.state, fitted, at
        self._of_base += group.of_base
        self._version += 1
        answer()

    def _pass(self, at: float) -> None:
        """Let time pass: what was learned weighs less."""
        if self._state.fading.half_life is not None:
            self.fitted = self._state.at(at)
            self._version += 1
            self.changed(self.fitted)()
        if self._span is not None and at - self._seen > self._span / 10:
            self._try(lambda: self.journal.saw(at))
            self._seen = at

    def _expire(self, group: Group, at: float) -> list[Entry]:
        """Forget what lies before the window, and has not been tried."""
        old = [] if self.window is None else self.journal.before(at - self.window, self._past, _GROUP)
        try:
            group.expire(old)
        except CandideError:
            for entry in old:
                self._expire_one(group, entry)
        return old

    def _expire_one(self, group: Group, entry: Entry) -> None:
        try:
            group.expire([entry])
        except CandideError as error:  # it stays until the next start tries it
            warn(f"{self.journal.path}: what came under {entry.key!r} cannot be forgotten: {error}", stacklevel=2)

    def _keep(self) -> None:
        if self._since and self._try(lambda: self.journal.commit([], [], self._state.kept(self.told))):
            self._since = 0
            self._try(self.journal.wipe)

    def _try(self, write: Callable[[], None]) -> bool:
        """Write what may as well be written later: what was committed is there for all that."""
        try:
            write()
        except (sqlite3.Error, InputError) as error:
            warn(f"{self.journal.path}: the model was not kept: {error}", stacklevel=1)
            return False
        return True


def key_of(given: str | None) -> str:
    """The key of a request: what it says, or one of its own."""
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
