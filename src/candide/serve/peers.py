"""Peers: other servers that began with the same model, and the model of what all of them have learned.

Each server keeps its own journal, and tells what it has learned itself beyond the model that it began with. What is
heard of a peer takes the place of what was heard of it before, so that whoever is asked twice counts once; and so does
a peer that has two addresses, or is this server.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

from candide.errors import CandideError, InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.operations.connection import Connection
from candide.serve.clock import Seconds
from candide.store import loads

PULL_SECONDS = 10.0  # seconds between two questions to a peer
LEARNED_PATH = "/learned"
BASE_HEADER, JOURNAL_HEADER, VERSION_HEADER = (
    "candide-base",
    "candide-journal",
    "candide-version",
)  # headers of what a server has learned
HALF_LIFE_HEADER = "candide-half-life"


@dataclass(frozen=True)
class PeerCounts:
    """What a peer has learned: the journal it is of, which version, and the counts; None where that is nothing."""

    journal_id: str
    version: str
    counts: ModelCounts | None
    received_at: float = 0.0  # when that was, by this server's steady clock
    half_life: float | None = None  # in which it has faded by half since

    @property
    def session(self) -> str:
        """The run of the server."""
        return self.version.rpartition("-")[0]

    def counts_at(self, at: float) -> ModelCounts:
        """What it weighs at a time, though nothing is heard any more."""
        assert self.counts is not None
        return (
            self.counts
            if self.half_life is None
            else self.counts.scale(0.5 ** ((at - self.received_at) / self.half_life))
        )


class Peers:
    """Addresses of peers, and what was heard of each last."""

    def __init__(
        self, addresses: Sequence[str], fingerprint: bytes, token: str | None, monotonic: Seconds = time.monotonic
    ):
        self.monotonic = monotonic
        self._peers = [Connection(address, token) for address in dict.fromkeys(addresses)]
        self._fingerprint = fingerprint.hex()
        self.own_journal_id: str | None = None  # the journal of this server
        self.own_session: str | None = None  # and this run of it
        self.half_life: float | None = None  # of what it learns
        self._peer_counts: dict[str, PeerCounts] = {}
        self._errors: dict[str, str] = {}  # why nothing was heard of a peer when it was asked last
        self._pull_lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def valid_peer_counts(self) -> tuple[PeerCounts, ...]:
        """What counts: each journal once, and not this server's own."""
        found = {one.journal_id: one for one in self._peer_counts.values() if one.journal_id != self.own_journal_id}
        return tuple(one for one in found.values() if one.counts is not None)

    def add_to(self, fitted: FittedModel) -> FittedModel:
        """A model with what peers have learned."""
        for one in self.valid_peer_counts:
            fitted = fitted.add_counts(one.counts_at(self.monotonic()))
        return fitted

    def pull(self) -> bool:
        """Ask each peer what it has learned; whether anything is new."""
        with self._pull_lock:
            before, found = self._peer_counts, dict(self._peer_counts)
            runs = (
                {}
                if self.own_journal_id is None or self.own_session is None
                else {self.own_journal_id: (self.own_session, "this server")}
            )
            for peer in self._peers:
                try:
                    one = self._fetch(peer)
                    session, other = runs.setdefault(one.journal_id, (one.session, peer.name))
                    if session != one.session:
                        what = f"{peer.name} has a copy of the file of {other}: what both had learned would count twice"
                        remedy = "let it begin with a file of its own"
                        raise InputError(what, value=peer.name, remedy=remedy)
                    found[peer.name] = one
                    self._errors.pop(peer.name, None)
                except CandideError as error:  # what was heard before stays
                    if self._errors.get(peer.name) != str(error):
                        warn(f"nothing is heard of a peer: {error}", stacklevel=2)
                    self._errors[peer.name] = str(error)
            self._peer_counts = found  # at once: others read it meanwhile
            return before != found

    def _fetch(self, peer: Connection) -> PeerCounts:
        last = self._peer_counts.get(peer.name)
        answer = peer.fetch(LEARNED_PATH if last is None else f"{LEARNED_PATH}?unless={last.version}")
        said = answer.headers
        if said.get(BASE_HEADER) != self._fingerprint:
            what, remedy = f"{peer.name} began with another model", "start all with the same"
            raise InputError(what, value=peer.name, remedy=remedy)
        half_life = float(said[HALF_LIFE_HEADER]) if said.get(HALF_LIFE_HEADER) else None
        if self.own_journal_id is not None and half_life != self.half_life:
            what, remedy = f"{peer.name} has another half-life", "start all with the same"
            raise InputError(what, value=half_life, remedy=remedy)
        if last is not None and (last.journal_id, last.version) == (said.get(JOURNAL_HEADER), said.get(VERSION_HEADER)):
            return last
        learned = loads(answer.body) if answer.body else None
        counts = learned.counts if isinstance(learned, FittedModel) else None
        return PeerCounts(
            said.get(JOURNAL_HEADER, ""), said.get(VERSION_HEADER, ""), counts, self.monotonic(), half_life
        )

    def status(self) -> list[dict[str, Any]]:
        """What was heard of each."""
        out = []
        for peer in self._peers:
            one = self._peer_counts.get(peer.name)
            rows = 0 if one is None or one.counts is None else one.counts.n_rows
            own = one is not None and one.journal_id == self.own_journal_id
            silent = self._errors.get(peer.name)
            why = {} if silent is None else {"problem": silent}
            out.append({"peer": peer.name, "rows": rows, "self": own, **why})
        return out

    def start(self, on_change: Callable[[], None]) -> None:
        """Ask them time and again, and say when something is new."""

        def run() -> None:
            while not self._stop.is_set():
                try:
                    if self.pull():
                        on_change()
                except CandideError as error:  # such as two classes written alike: ask again later
                    warn(f"the rows of peers cannot be used: {error}", stacklevel=2)
                self._stop.wait(PULL_SECONDS)

        self._thread = threading.Thread(target=run, name="candide-peers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ask no more. Who is asked at this moment is not waited for."""
        self._stop.set()
