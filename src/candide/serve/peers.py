"""Peers: other servers that started with the same model, whose learned rows count in the responses of this one.

Each server has a journal of its own and publishes what it has learned on top of the common model. New counts of a peer
replace its earlier ones, so that a peer that is asked twice counts once; so does one with two addresses. This server
itself is left out.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit
from warnings import warn

from candide.errors import CandideError, InputError, SourceError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.serve.journal import Seconds
from candide.store import loads

PULL_SECONDS = 10.0  # between two requests to a peer
_TIMEOUT_SECONDS = 60.0  # a server responds within 30, or reports that it cannot
LEARNED_PATH = "/learned"
PEER_HEADERS = ("candide-base", "candide-journal", "candide-version", "candide-half-life")


class PeerConnection:
    def __init__(self, address: str, token: str | None):
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in ("http", "https") or not host or not address.isascii():
            what, remedy = f"{address!r} is not an address of a server", "write it like http://127.0.0.1:8000"
            raise InputError(what, value=address, remedy=remedy)
        if parts.username is not None or parts.query or parts.fragment:
            what = "the address of a server contains a user name, a password or a query"
            raise InputError(what, remedy="leave these out; pass a token with --token (or CANDIDE_TOKEN)")
        self._class = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._root = host, port, parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.name = f"{parts.scheme}://{parts.netloc}{self._root}"

    def fetch(self, path: str) -> tuple[bytes, Mapping[str, str]]:
        """Return the body and the headers at a path; raise an error for any status but 200."""
        connection = self._class(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("GET", self._root + path, headers=self._headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            remedy = "start it (candide serve MODEL), or correct the address"
            raise SourceError(f"the server does not answer ({reason})", source=self.name, remedy=remedy) from None
        finally:
            connection.close()
        if response.status == 200:
            return body, {name.lower(): value for name, value in response.getheaders()}
        try:
            problem = json.loads(body)
            what, remedy = str(problem["detail"]), str(problem.get("remedy", ""))
        except (ValueError, KeyError, TypeError):
            what, remedy = f"status {response.status}", "pass the address of a server that candide serve runs"
        raise SourceError(what, source=self.name, remedy=remedy)


@dataclass(frozen=True)
class PeerCounts:
    """What a peer has learned: its journal, the version, and the counts; None if it has learned nothing."""

    journal_id: str
    version: str
    counts: ModelCounts | None
    received_at: float = 0.0  # by this server's monotonic clock
    half_life: float | None = None

    @property
    def session(self) -> str:
        return self.version.rpartition("-")[0]


class Peers:
    """The addresses of peers, and the last counts of each."""

    def __init__(self, addresses: Sequence[str], fingerprint: bytes, token: str | None):
        self.monotonic: Seconds = time.monotonic
        self.addresses = list(dict.fromkeys(addresses))
        self._peers = [PeerConnection(address, token) for address in self.addresses]
        self._fingerprint = fingerprint.hex()
        self.own_journal_id: str | None = None  # the journal of this server
        self.own_session: str | None = None
        self.half_life: float | None = None
        self._peer_counts: dict[str, PeerCounts] = {}
        self._errors: dict[str, str] = {}  # the error of the last request to a peer
        self._pull_lock, self._stop = threading.Lock(), threading.Event()

    @property
    def valid_peer_counts(self) -> tuple[PeerCounts, ...]:
        by_journal = {p.journal_id: p for p in self._peer_counts.values() if p.journal_id != self.own_journal_id}
        return tuple(peer for peer in by_journal.values() if peer.counts is not None)

    def add_to(self, fitted: FittedModel) -> FittedModel:
        for peer in self.valid_peer_counts:
            assert peer.counts is not None
            seconds, half_life = self.monotonic() - peer.received_at, peer.half_life  # a peer may not respond any more
            counts = peer.counts if half_life is None else peer.counts.scale(0.5 ** (seconds / half_life))
            fitted = fitted.add_counts(counts)
        return fitted

    def pull(self) -> bool:
        """Ask each peer what it has learned; return whether anything is new."""
        with self._pull_lock:
            before, after = self._peer_counts, dict(self._peer_counts)
            sessions: dict[str, tuple[str, str]] = {}  # by journal, its session and server
            if self.own_journal_id is not None and self.own_session is not None:
                sessions[self.own_journal_id] = self.own_session, "this server"
            for peer in self._peers:
                try:
                    after[peer.name] = self._fetch(peer, sessions)
                    self._errors.pop(peer.name, None)
                except CandideError as error:  # its earlier counts stay
                    if self._errors.get(peer.name) != str(error):
                        warn(f"cannot get the rows of a peer: {error}", stacklevel=2)
                    self._errors[peer.name] = str(error)
            self._peer_counts = after  # at once: other threads read it meanwhile
            return before != after

    def _fetch(self, peer: PeerConnection, sessions: dict[str, tuple[str, str]]) -> PeerCounts:
        last = self._peer_counts.get(peer.name)
        body, headers = peer.fetch(LEARNED_PATH if last is None else f"{LEARNED_PATH}?unless={last.version}")
        base, journal_id, version, half_life_text = (headers.get(name, "") for name in PEER_HEADERS)
        if base != self._fingerprint:
            what, remedy = f"{peer.name} started with another model", "start all with the same model"
            raise InputError(what, value=peer.name, remedy=remedy)
        half_life = float(half_life_text) if half_life_text else None
        if self.own_journal_id is not None and half_life != self.half_life:
            what, remedy = f"{peer.name} has another half-life", "start all with the same half-life"
            raise InputError(what, value=half_life, remedy=remedy)
        if last is not None and (last.journal_id, last.version) == (journal_id, version):
            counts = last
        else:
            model = loads(body) if body else None
            learned = model.counts if isinstance(model, FittedModel) else None
            counts = PeerCounts(journal_id, version, learned, self.monotonic(), half_life)
        session, server = sessions.setdefault(journal_id, (counts.session, peer.name))
        if session != counts.session:
            what = f"{peer.name} has a copy of the file of {server}: what both had learned would count twice"
            raise InputError(what, value=peer.name, remedy="start it with a file of its own")
        return counts

    def status(self) -> list[dict[str, Any]]:
        status = []
        for peer in self._peers:
            last, error = self._peer_counts.get(peer.name), self._errors.get(peer.name)
            n_rows = 0 if last is None or last.counts is None else last.counts.n_rows
            is_self = last is not None and last.journal_id == self.own_journal_id
            problem = {} if error is None else {"problem": error}
            status.append({"peer": peer.name, "rows": n_rows, "self": is_self, **problem})
        return status

    def start(self, on_change: Callable[[], None]) -> None:
        """Pull at intervals in a thread, and call ``on_change`` when something is new."""

        def run() -> None:
            while not self._stop.is_set():
                try:
                    if self.pull():
                        on_change()
                except CandideError as error:  # such as two classes with the same text
                    warn(f"the rows of peers cannot be used: {error}", stacklevel=2)
                self._stop.wait(PULL_SECONDS)

        if self._peers:
            threading.Thread(target=run, name="candide-peers", daemon=True).start()

    def close(self) -> None:
        """Stop pulling, without waiting for a request under way."""
        self._stop.set()
