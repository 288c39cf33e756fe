"""Learner: a model that learns and forgets while it is served, and loses nothing that it has acknowledged.

One thread writes. It takes all requests in the queue, counts them, commits them to the journal together, and then
publishes the new model: an answered request is on disk, and one that cannot be counted changes nothing. A request that
was not answered when the server died may be sent again with the same key.
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
from contextlib import suppress
from datetime import UTC, datetime
from warnings import warn

from candide.errors import CandideError, InputError, NotCountedError
from candide.model.fitted import FittedModel
from candide.serve import learned_state
from candide.serve.formats import RequestRows
from candide.serve.http import RequestProblem
from candide.serve.journal import RESTORE_REMEDY, Clock, Entry, Journal, Seconds
from candide.serve.learned_rows import encode_rows
from candide.serve.learned_state import PendingRequest, RequestGroup, RequestOutcome
from candide.store.file import resolve_target

_MAX_GROUP = 512  # requests committed together
_PAUSE_SECONDS = 0.001  # without a new request, after which a group is complete
_MAX_PAUSES = 20
_SNAPSHOT_ROWS = 50_000  # rows learned since the last snapshot, after which another is written
_MAX_QUEUE = 10_000  # requests
_MAX_KEY_LENGTH = 200  # characters
_MAX_TICK_SECONDS = 60.0  # between two checks for expired rows


class Learner:
    """A changing model, its journal, and the thread that writes it."""

    def __init__(
        self,
        path: str | os.PathLike,
        base: FittedModel,
        *,
        target: str | None = None,
        allow_new_classes: bool = False,
        window: float | None = None,
        half_life: float | None = None,
        calendar: Seconds = time.time,
        monotonic: Seconds = time.monotonic,
    ):
        self.target, self.allow_new_classes, self.window = resolve_target(base, target), allow_new_classes, window
        self.base, self.fingerprint = base, learned_state.model_fingerprint(base, self.target)
        self.journal = Journal(path)
        try:
            spans = [span for span in (window, half_life) if span is not None]
            self._span = min(spans, default=None)
            self._tick = min(_MAX_TICK_SECONDS, *(span / 100 for span in spans)) if spans else None
            last_time = None if self.journal.is_new else self.journal.latest_time()
            self._clock = Clock(last_time, self._span, calendar, monotonic)
            learned_state.start_journal(self.journal, base, self.target, half_life, self._clock())
            self._state = learned_state.replay_journal(self.journal, self.target)
            n_counted = base.counts.n_rows + self.journal.count_live_rows()
            self._base_rows_removed = n_counted - self._state.counts.counts.n_rows
        except BaseException:
            self.journal.close()
            raise
        if self._clock.rejected_time is not None:
            now, last = (_format_time(at) for at in (self._clock.rejected_time, self._clock()))
            what = f"it is {now}, and the file ends at {last}; no time is assumed to have passed"
            warn(f"{self.journal.path}: {what}", stacklevel=2)
        self.fitted, self._last_recorded_time = self._state.model_at(self._clock()), self._clock()
        self.journal_id, self.half_life = self._state.journal_id, half_life
        self._rows_since_snapshot = self._last_expired_seq = 0
        self._has_more_expired = False
        self.session, self._version = uuid.uuid4().hex, 0  # unique to a run, also of a copied journal
        self.prepare_model: Callable[[FittedModel], Callable[[], None]] = lambda fitted: lambda: None
        self._queue: queue.Queue[PendingRequest | None] = queue.Queue()
        self._closing, self._is_closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._run, name="candide-learner", daemon=True)
        self._thread.start()

    # Called from any thread.

    def learn(self, rows: RequestRows, key: str | None = None) -> "Future[RequestOutcome]":
        stored = encode_rows(rows, self.fitted, self.target, self.allow_new_classes)
        return self._enqueue(PendingRequest(check_key(key), 1, rows.n_rows, stored))

    def forget(self, rows: RequestRows, key: str | None = None) -> "Future[RequestOutcome]":
        stored = encode_rows(rows, self.fitted, self.target, allow_new_classes=False)
        return self._enqueue(PendingRequest(check_key(key), -1, rows.n_rows, stored))

    def forget_key(self, learned_key: str, key: str | None = None) -> "Future[RequestOutcome]":
        return self._enqueue(PendingRequest(check_key(key), -1, learned_key=learned_key))

    def close(self) -> None:
        """Answer the requests in the queue, write a snapshot, and release the file."""
        with self._closing:
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()

    def current_model(self) -> FittedModel:
        return self._state.model_at(self._clock())

    def learned_model(self) -> FittedModel:
        """Return what was learned on top of the model this server started with, unless rows of that were forgotten."""
        if self._base_rows_removed:
            raise NotCountedError("rows of the model that this server started with were forgotten")
        return self._state.without_base(self.base).model_at(self._clock())

    @property
    def version(self) -> str:
        return f"{self.session}-{self._version}"

    def _enqueue(self, request: PendingRequest) -> "Future[RequestOutcome]":
        if self._queue.qsize() >= _MAX_QUEUE:
            what, remedy = "too many requests wait to be learned", "send it again later, with the same key"
            raise RequestProblem(503, what, headers=(("retry-after", "1"),), remedy=remedy)
        with self._closing:  # so that nothing is put into a queue that is read no more
            if self._is_closed:
                raise RequestProblem(503, "the server is stopping", remedy="send it again, with the same key")
            self._queue.put(request)
        return request.future

    # The thread that writes.

    def _run(self) -> None:
        is_running = True
        while is_running:
            group = self._next_group()
            is_running = None not in group
            self._answer([request for request in group if request is not None])
        self._write_snapshot()
        if self._tick is not None:
            self._try_write(lambda: self.journal.record_time(self._clock()))
        self.journal.close()

    def _answer(self, requests: list[PendingRequest]) -> None:
        """Process requests together; if the resulting model cannot be estimated, one half and then the other."""
        failure: Exception
        try:
            self._process(requests)
            return
        except CandideError as error:
            if len(requests) > 1:  # one of them is the cause
                self._answer(requests[: len(requests) // 2])
                self._answer(requests[len(requests) // 2 :])
                return
            failure = error
        except RequestProblem as error:
            failure = error
        except sqlite3.DatabaseError as error:
            failure = RequestProblem(503, f"{self.journal.path} cannot be read: {error}", remedy=RESTORE_REMEDY)
        except Exception as error:  # so that no client waits for ever
            traceback.print_exc()
            failure = error
        for request in requests:
            if not request.future.done():
                _set_outcome(request, failure)

    def _next_group(self) -> list[PendingRequest | None]:
        """Return the requests in the queue, once there are any or it is time to check for expired rows.

        Responses wake clients, which send their next requests one after another. Wait for those: writing many takes
        hardly longer than writing one.
        """
        group: list[PendingRequest | None] = []
        with suppress(queue.Empty):
            group.append(self._queue.get(timeout=0.0 if self._has_more_expired else self._tick))
        size = -1
        for _ in range(_MAX_PAUSES if group != [None] else 0):
            if size == (size := self._queue.qsize()) or size >= _MAX_GROUP:
                break
            time.sleep(_PAUSE_SECONDS)
        with suppress(queue.Empty):
            while len(group) < _MAX_GROUP and None not in group:
                group.append(self._queue.get_nowait())
        return group

    def _process(self, requests: list[PendingRequest]) -> None:
        """Count, commit, publish the new model, and set the outcomes."""
        at = self._clock()
        group = RequestGroup(self._state, self.journal, self.base, self.target, at)
        expired = self._expire(group, at)
        for request in requests:
            group.add(request)
        group.flush()
        if group.entries or group.changed:
            self._commit(group, at)
        elif self.half_life is not None:
            self.fitted = self._state.model_at(at)
            self._version += 1
            self.prepare_model(self.fitted)()
        if self._span is not None and at - self._last_recorded_time > self._span / 10:
            self._try_write(lambda: self.journal.record_time(at))
            self._last_recorded_time = at
        self._last_expired_seq = expired[-1].seq if expired else self._last_expired_seq
        self._has_more_expired = len(expired) == _MAX_GROUP
        for request, outcome in group.outcomes:
            _set_outcome(request, outcome)
        self._rows_since_snapshot += sum(entry.n for entry in group.entries)
        if group.has_removals:
            self._rows_since_snapshot = 0
            self._try_write(self.journal.truncate_log)
        elif self._rows_since_snapshot >= _SNAPSHOT_ROWS:
            self._write_snapshot()

    def _commit(self, group: RequestGroup, at: float) -> None:
        fitted = group.state.model_at(at)
        publish = self.prepare_model(fitted)  # estimated before it is written: an error leaves the journal as it is
        snapshot = group.state.to_snapshot(self.fingerprint) if group.has_removals else None
        try:
            self.journal.commit(group.entries, [*group.changed.values()], snapshot)
        except sqlite3.Error as error:
            what, remedy = f"the rows cannot be stored: {error}", "send them again later, with the same key"
            raise RequestProblem(503, what, headers=(("retry-after", "10"),), remedy=remedy) from None
        self._state, self.fitted, self._last_recorded_time = group.state, fitted, at
        self._base_rows_removed += group.base_rows_removed
        self._version += 1
        publish()

    def _expire(self, group: RequestGroup, at: float) -> list[Entry]:
        """Forget entries older than the window that were not tried yet; return them."""
        if self.window is None:
            return []
        entries = self.journal.entries_before(at - self.window, self._last_expired_seq, _MAX_GROUP)
        try:
            group.expire(entries)
        except CandideError:
            for entry in entries:
                try:
                    group.expire([entry])
                except CandideError as error:  # it stays until the next start tries it again
                    warn(f"{self.journal.path}: the rows of {entry.key!r} cannot be forgotten: {error}", stacklevel=2)
        return entries

    def _write_snapshot(self) -> None:
        if self._rows_since_snapshot and self._try_write(
            lambda: self.journal.commit([], [], self._state.to_snapshot(self.fingerprint))
        ):
            self._rows_since_snapshot = 0
            self._try_write(self.journal.truncate_log)

    def _try_write(self, write: Callable[[], None]) -> bool:
        """Write what may be written later as well: committed entries are on disk already."""
        try:
            write()
        except (sqlite3.Error, InputError) as error:
            warn(f"{self.journal.path}: the snapshot was not written: {error}", stacklevel=1)
            return False
        return True


def check_key(key: str | None) -> str:
    """Return the key of a request, or a new one if it has none."""
    if key is None or key == "":
        return uuid.uuid4().hex
    if len(key) > _MAX_KEY_LENGTH or not key.isprintable():
        what = f"a key has at most {_MAX_KEY_LENGTH} printable characters"
        raise RequestProblem(422, what, value=key, remedy="choose another key")
    return key


def _set_outcome(request: PendingRequest, outcome: RequestOutcome | Exception) -> None:
    if request.future.set_running_or_notify_cancel():
        if isinstance(outcome, RequestOutcome):
            request.future.set_result(outcome)
        else:
            request.future.set_exception(outcome)


def _format_time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return f"{at:.0f} seconds after 1970"
