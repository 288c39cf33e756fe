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
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.serve.clock import Seconds
from candide.store import loads
from candide.tasks.connection import Connection

EVERY = 10.0  # seconds between two questions to a peer
PATH = "/learned"
BASE, JOURNAL, VERSION = "candide-base", "candide-journal", "candide-version"  # headers of what a server has learned
HALF_LIFE = "candide-half-life"


@dataclass(frozen=True)
class Heard:
    """What a peer has learned: the journal it is of, which version, and the counts; None where that is nothing."""

    journal: str
    version: str
    learned: Census | None
    at: float = 0.0  # when that was, by this server's steady clock
    half_life: float | None = None  # in which it has faded by half since

    @property
    def session(self) -> str:
        """The run of the server."""
        return self.version.rpartition("-")[0]

    def now(self, at: float) -> Census:
        """What it weighs at a time, though nothing is heard any more."""
        assert self.learned is not None
        return self.learned if self.half_life is None else self.learned.scale(0.5 ** ((at - self.at) / self.half_life))


class Peers:
    """Addresses of peers, and what was heard of each last."""

    def __init__(self, addresses: Sequence[str], base: bytes, token: str | None, steady: Seconds = time.monotonic):
        self.steady = steady
        self._peers = [Connection(address, token) for address in dict.fromkeys(addresses)]
        self._base = base.hex()
        self.own: str | None = None  # the journal of this server
        self.session: str | None = None  # and this run of it
        self.half_life: float | None = None  # of what it learns
        self._heard: dict[str, Heard] = {}
        self._silent: dict[str, str] = {}  # why nothing was heard of a peer when it was asked last
        self._asking, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def heard(self) -> tuple[Heard, ...]:
        """What counts: each journal once, and not this server's own."""
        found = {one.journal: one for one in self._heard.values() if one.journal != self.own}
        return tuple(one for one in found.values() if one.learned is not None)

    def together(self, fitted: Fitted) -> Fitted:
        """A model with what peers have learned."""
        for one in self.heard:
            fitted = fitted.plus(one.now(self.steady()))
        return fitted

    def pull(self) -> bool:
        """Ask each peer what it has learned; whether anything is new."""
        with self._asking:
            before, found = self._heard, dict(self._heard)
            runs = {} if self.own is None or self.session is None else {self.own: (self.session, "this server")}
            for peer in self._peers:
                try:
                    one = self._ask(peer)
                    session, other = runs.setdefault(one.journal, (one.session, peer.name))
                    if session != one.session:
                        what = f"{peer.name} has a copy of the file of {other}: what both had learned would count twice"
                        remedy = "let it begin with a file of its own"
                        raise InputError(what, value=peer.name, remedy=remedy)
                    found[peer.name] = one
                    self._silent.pop(peer.name, None)
                except CandideError as error:  # what was heard before stays
                    if self._silent.get(peer.name) != str(error):
                        warn(f"nothing is heard of a peer: {error}", stacklevel=2)
                    self._silent[peer.name] = str(error)
            self._heard = found  # at once: others read it meanwhile
            return before != found

    def _ask(self, peer: Connection) -> Heard:
        last = self._heard.get(peer.name)
        answer = peer.fetch(PATH if last is None else f"{PATH}?unless={last.version}")
        said = answer.headers
        if said.get(BASE) != self._base:
            what, remedy = f"{peer.name} began with another model", "start all with the same"
            raise InputError(what, value=peer.name, remedy=remedy)
        half_life = float(said[HALF_LIFE]) if said.get(HALF_LIFE) else None
        if self.own is not None and half_life != self.half_life:
            what, remedy = f"{peer.name} has another half-life", "start all with the same"
            raise InputError(what, value=half_life, remedy=remedy)
        if last is not None and (last.journal, last.version) == (said.get(JOURNAL), said.get(VERSION)):
            return last
        learned = loads(answer.body) if answer.body else None
        counts = learned.census if isinstance(learned, Fitted) else None
        return Heard(said.get(JOURNAL, ""), said.get(VERSION, ""), counts, self.steady(), half_life)

    def told(self) -> list[dict[str, Any]]:
        """What was heard of each."""
        out = []
        for peer in self._peers:
            one = self._heard.get(peer.name)
            rows = 0 if one is None or one.learned is None else one.learned.n_rows
            own = one is not None and one.journal == self.own
            silent = self._silent.get(peer.name)
            why = {} if silent is None else {"problem": silent}
            out.append({"peer": peer.name, "rows": rows, "self": own, **why})
        return out

    def start(self, changed: Callable[[], None]) -> None:
        """Ask them time and again, and say when something is new."""

        def run() -> None:
            while not self._stop.is_set():
                try:
                    if self.pull():
                        changed()
                except CandideError as error:  # such as two classes written alike: ask again later
                    warn(f"the rows of peers cannot be used: {error}", stacklevel=2)
                self._stop.wait(EVERY)

        self._thread = threading.Thread(target=run, name="candide-peers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ask no more. Who is asked at this moment is not waited for."""
        self._stop.set()
