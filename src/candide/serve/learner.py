"""Learner: a model that learns and forgets while it is served, and loses nothing that it said it had.

One thread writes. It takes all requests that wait, counts them, commits them to the journal together, and then lets the
new model answer: so a request that was answered is on the disk, and one that cannot be counted enters nothing. Requests
that were not answered when the server died may be sent again with the same key.

>>> import tempfile
>>> from candide.demo import garden
>>> learner = Learner(os.path.join(tempfile.mkdtemp(), "state.db"), FittedModel(garden(), target="herb"))
>>> plant = {"height_cm": 21.0, "leaf_mm": 8.0, "flowers": 14, "soil": "sand", "scented": "yes", "herb": "thyme"}
>>> rows = RequestRows(1, {name: [value] for name, value in plant.items()})
>>> learner.learn(rows, "monday").result().rows, learner.fitted.n_rows
(1, 301)
>>> learner.learn(rows, "monday").result().is_repeat, learner.fitted.n_rows  # the same request
(True, 301)
>>> learner.forget_key("monday").result().rows, learner.fitted.n_rows
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

from candide.errors import CandideError, InputError, NotCountedError
from candide.model.fitted import FittedModel
from candide.serve import learned_rows, learned_state
from candide.serve.clock import Clock, Seconds, format_time
from candide.serve.formats import RequestRows
from candide.serve.group_commit import PendingRequest, RequestGroup, RequestOutcome
from candide.serve.journal import RESTORE_REMEDY, Entry, Journal
from candide.serve.problem import RequestProblem
from candide.store.models import resolve_target

_MAX_GROUP = 512  # requests that are committed together
_PAUSE_SECONDS = 0.001  # seconds in which no request comes, after which those that came together are all here
_MAX_PAUSES = 20  # such pauses, at most
_SNAPSHOT_ROWS = 50_000  # learned since the model was kept, after which it is kept again
_MAX_QUEUE = 10_000  # requests in the queue, beyond which more are refused
_MAX_KEY_LENGTH = 200  # letters of a key
_MAX_TICK_SECONDS = 60.0  # seconds, at most, until what is old is looked for


class Learner:
    """A model that changes, its journal, and the thread that writes it."""

    def __init__(
        self,
        path: str | os.PathLike,
        base: FittedModel,
        *,
        target: str | None = None,
        new_classes: bool = False,
        window: float | None = None,
        half_life: float | None = None,
        calendar: Seconds = time.time,
        steady: Seconds = time.monotonic,
    ):
        self.target, self.new_classes, self.window = resolve_target(base, target), new_classes, window
        self.base, self.fingerprint, self.journal = (
            base,
            learned_state.model_fingerprint(base, self.target),
            Journal(path),
        )
        try:
            spans = [span for span in (window, half_life) if span is not None]
            self._span = min(spans, default=None)
            self._tick = min(_MAX_TICK_SECONDS, *(span / 100 for span in spans)) if spans else None
            self._clock = Clock(
                None if self.journal.is_new else self.journal.latest_time(), self._span, calendar, steady
            )
            learned_state.start_journal(self.journal, base, self.target, half_life, self._clock())
            self._state = learned_state.replay_journal(self.journal, self.target)
            counted = base.counts.n_rows + self.journal.count_live_rows()
            self._base_rows_removed = counted - self._state.counts.counts.n_rows  # rows of the base that were forgotten
        except BaseException:
            self.journal.close()
            raise
        if self._clock.rejected_time is not None:
            since = f"the clock says {format_time(self._clock.rejected_time)}, and the file ends at {format_time(self._clock())}"
            warn(f"{self.journal.path}: {since}; the time between counts as none", stacklevel=2)
        self.fitted, self._last_recorded_time = self._state.model_at(self._clock()), self._clock()
        self._rows_since_snapshot, self._last_expired_seq = (
            0,
            0,
        )  # rows since the model was kept; the last entry that was too old
        self._has_more_expired = False  # whether more may be too old
        self._session, self._version = uuid.uuid4().hex, 0
        self.prepare_model: Callable[[FittedModel], Callable[[], None]] = lambda fitted: lambda: None
        self._queue: queue.Queue[PendingRequest | None] = queue.Queue()
        self._closing, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._run, name="candide-learner", daemon=True)
        self._thread.start()

    # What is asked, from any thread.

    def learn(self, rows: RequestRows, key: str | None = None) -> "Future[RequestOutcome]":
        """Count rows in, which have their labels."""
        kept = learned_rows.encode_rows(rows, self.fitted, self.target, self.new_classes)
        return self._enqueue(PendingRequest(check_key(key), 1, rows.n_rows, kept))

    def forget(self, rows: RequestRows, key: str | None = None) -> "Future[RequestOutcome]":
        """Count rows out that were counted in."""
        kept = learned_rows.encode_rows(rows, self.fitted, self.target, new_classes=False)
        return self._enqueue(PendingRequest(check_key(key), -1, rows.n_rows, kept))

    def forget_key(self, learned_key: str, key: str | None = None) -> "Future[RequestOutcome]":
        """Count out what came in under a key."""
        return self._enqueue(PendingRequest(check_key(key), -1, learned_key=learned_key))

    def close(self) -> None:
        """Answer what waits, keep the model, and let go of the file."""
        with self._closing:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def current_model(self) -> FittedModel:
        """The model at this moment."""
        return self._state.model_at(self._clock())

    def learned_model(self) -> FittedModel:
        """What was learned here at this moment, without the model that it began with, if that is whole."""
        if self._base_rows_removed:
            raise NotCountedError("rows of the model that this server began with were forgotten")
        return self._state.without_base(self.base).model_at(self._clock())

    @property
    def journal_id(self) -> str:
        return self._state.journal_id

    @property
    def half_life(self) -> float | None:
        return self._state.decay.half_life

    @property
    def session(self) -> str:
        """What no other run has, of this journal or a copy of it."""
        return self._session

    @property
    def version(self) -> str:
        """What is another whenever the model is."""
        return f"{self._session}-{self._version}"

    def _enqueue(self, asked: PendingRequest) -> "Future[RequestOutcome]":
        if self._queue.qsize() >= _MAX_QUEUE:
            what, remedy = "too many requests wait to be learned", "send it again later, with the same key"
            raise RequestProblem(503, what, headers=(("retry-after", "1"),), remedy=remedy)
        with self._closing:  # so that nothing is put where nobody takes it
            if self._closed:
                raise RequestProblem(503, "the server is stopping", remedy="send it again, with the same key")
            self._queue.put(asked)
        return asked.future

    # The thread that writes.

    def _run(self) -> None:
        going = True
        while going:
            group = self._group()
            going = None not in group
            self._answer([one for one in group if one is not None])
        self._write_snapshot()
        if self._tick is not None:
            self._try_write(lambda: self.journal.record_time(self._clock()))
        self.journal.close()

    def _answer(self, asked: list[PendingRequest]) -> None:
        """Take requests together; where the model that they make has no estimate, one half and then the other."""
        try:
            self._process(asked)
        except CandideError as error:
            if len(asked) > 1:  # one of them is to blame
                self._answer(asked[: len(asked) // 2])
                self._answer(asked[len(asked) // 2 :])
            else:
                _fail_all(asked, error)
        except RequestProblem as error:
            _fail_all(asked, error)
        except sqlite3.DatabaseError as error:
            _fail_all(asked, RequestProblem(503, f"{self.journal.path} cannot be read: {error}", remedy=RESTORE_REMEDY))
        except Exception as error:  # whatever it is, nobody waits for ever
            traceback.print_exc()
            _fail_all(asked, error)

    def _group(self) -> list[PendingRequest | None]:
        """What waits, once something does or it is time to see what is old."""
        try:
            found = [self._queue.get(timeout=0.0 if self._has_more_expired else self._tick)]
        except queue.Empty:
            found = []
        self._wait_for_more(found)
        while len(found) < _MAX_GROUP and None not in found:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return found

    def _wait_for_more(self, found: list[PendingRequest | None]) -> None:
        """Let those come that were sent at the same time: to write many together takes hardly longer than to write one.

        Answers wake clients, and these ask again one after another: whoever began with the first would write few.
        """
        waiting = -1
        for _ in range(_MAX_PAUSES if found != [None] else 0):
            if waiting == (waiting := self._queue.qsize()) or waiting >= _MAX_GROUP:
                return
            time.sleep(_PAUSE_SECONDS)

    def _process(self, asked: list[PendingRequest]) -> None:
        """Count, commit, let the new model answer, and say so."""
        at = self._clock()
        group = RequestGroup(self._state, self.journal, self.base, self.target, at)
        old = self._expire(group, at)
        for one in asked:
            group.add(one)
        group.flush()
        if group.entries or group.changed_entries:
            self._commit(group, at)
        elif self._tick is not None:
            self._apply_decay(at)
        self._last_expired_seq, self._has_more_expired = (
            old[-1].seq if old else self._last_expired_seq,
            len(old) == _MAX_GROUP,
        )
        for one, outcome in group.outcomes:
            _set_outcome(one, outcome)
        self._rows_since_snapshot += sum(entry.n for entry in group.entries)
        if group.has_removals:
            self._rows_since_snapshot = 0
            self._try_write(self.journal.truncate_log)
        elif self._rows_since_snapshot >= _SNAPSHOT_ROWS:
            self._write_snapshot()

    def _commit(self, group: RequestGroup, at: float) -> None:
        fitted = group.state.model_at(at)
        answer = self.prepare_model(fitted)  # estimated before it is written: what has no estimate is refused
        kept = group.state.to_snapshot(self.fingerprint) if group.has_removals else None
        try:
            self.journal.commit(group.entries, group.changed_entries, kept)
        except sqlite3.Error as error:
            what, remedy = f"this cannot be kept: {error}", "send it again once there is room, with the same key"
            raise RequestProblem(503, what, headers=(("retry-after", "10"),), remedy=remedy) from None
        self._state, self.fitted, self._last_recorded_time = group.state, fitted, at
        self._base_rows_removed += group.base_rows_removed
        self._version += 1
        answer()

    def _apply_decay(self, at: float) -> None:
        """Let time pass: what was learned weighs less."""
        if self._state.decay.half_life is not None:
            self.fitted = self._state.model_at(at)
            self._version += 1
            self.prepare_model(self.fitted)()
        if self._span is not None and at - self._last_recorded_time > self._span / 10:
            self._try_write(lambda: self.journal.record_time(at))
            self._last_recorded_time = at

    def _expire(self, group: RequestGroup, at: float) -> list[Entry]:
        """Forget what lies before the window, and has not been tried."""
        old = (
            []
            if self.window is None
            else self.journal.entries_before(at - self.window, self._last_expired_seq, _MAX_GROUP)
        )
        try:
            group.expire(old)
        except CandideError:
            for entry in old:
                self._expire_one(group, entry)
        return old

    def _expire_one(self, group: RequestGroup, entry: Entry) -> None:
        try:
            group.expire([entry])
        except CandideError as error:  # it stays until the next start tries it
            warn(f"{self.journal.path}: what came under {entry.key!r} cannot be forgotten: {error}", stacklevel=2)

    def _write_snapshot(self) -> None:
        if self._rows_since_snapshot and self._try_write(
            lambda: self.journal.commit([], [], self._state.to_snapshot(self.fingerprint))
        ):
            self._rows_since_snapshot = 0
            self._try_write(self.journal.truncate_log)

    def _try_write(self, write: Callable[[], None]) -> bool:
        """Write what may as well be written later: what was committed is there for all that."""
        try:
            write()
        except (sqlite3.Error, InputError) as error:
            warn(f"{self.journal.path}: the model was not kept: {error}", stacklevel=1)
            return False
        return True


def check_key(given: str | None) -> str:
    """The key of a request: what it says, or one of its own."""
    if given is None or given == "":
        return uuid.uuid4().hex
    if len(given) > _MAX_KEY_LENGTH or not given.isprintable():
        raise RequestProblem(
            422, "a key is at most 200 letters that can be printed", value=given, remedy="choose a shorter one"
        )
    return given


def _set_outcome(one: PendingRequest, outcome: RequestOutcome | Exception) -> None:
    if one.future.set_running_or_notify_cancel():
        if isinstance(outcome, RequestOutcome):
            one.future.set_result(outcome)
        else:
            one.future.set_exception(outcome)


def _fail_all(asked: list[PendingRequest], error: Exception) -> None:
    for one in asked:
        if not one.future.done():
            _set_outcome(one, error)
