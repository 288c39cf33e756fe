"""A connection to a server that holds a model (``candide serve``): requests out, answers or errors back.

What the server says is wrong becomes the error that a model at hand would have raised. Only questions are asked, so one
that was cut off is asked again, on a new connection. Threads each have a connection of their own.

>>> Connection("http://127.0.0.1:8000/")
Connection('http://127.0.0.1:8000')
>>> Connection("127.0.0.1:8000")
Traceback (most recent call last):
candide.errors.InputError: '127.0.0.1:8000' is no address of a server; write such as http://127.0.0.1:8000
"""

import json
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import local
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from candide.errors import InputError, SourceError

_PATIENCE = 60.0  # seconds without a word; a server answers within 30, or says that it cannot
_TRIES = 3  # of a question that was cut off, or that the server has no time for
_PAUSE = 0.5  # seconds before it is asked again
_BUSY, _TOO_LARGE = 503, 413


class Answer(NamedTuple):
    """What was answered: the body, and the headers by their names in small letters."""

    body: bytes
    headers: dict[str, str]


class TooLargeError(SourceError):
    """A request that has more rows, or more bytes, than the server takes at a time."""


class Connection:
    """The address of a server, and how it is asked."""

    def __init__(self, address: str, token: str | None = None):
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in ("http", "https") or not host or not address.isascii():
            remedy = "write such as http://127.0.0.1:8000"
            raise InputError(f"{address!r} is no address of a server", value=address, remedy=remedy)
        if parts.username is not None or parts.query or parts.fragment:
            what = "the address of a server has a name, a password or a query in it"
            raise InputError(what, remedy="leave these out; a token goes into --token (or CANDIDE_TOKEN)")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InputError("the token is not of ASCII letters", remedy="pass that of the server")
        self._host, self._port, self._kind = host, port, HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._root = parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.name = f"{parts.scheme}://{parts.netloc}{self._root}"
        self._own, self._all = local(), list[HTTPConnection]()  # the connection of each thread

    def __repr__(self) -> str:
        return f"Connection({self.name!r})"

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._all:
            held.close()

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        answer = self._ask("GET", path, None, {})
        try:
            return json.loads(answer.body)
        except ValueError:
            raise self._foreign() from None

    def fetch(self, path: str) -> Answer:
        """What is at a path, as it is."""
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: bytes, media: str) -> Answer:
        """The answer to a body, in the same format."""
        answer = self._ask("POST", path, body, {"content-type": media, "accept": media})
        if answer.headers.get("content-type", "").partition(";")[0] != media:
            raise self._foreign()
        return answer

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        for again in range(_TRIES):
            last = again == _TRIES - 1
            try:
                status, answer = self._once(method, path, body, headers)
            except (OSError, HTTPException) as error:
                self._own.held.close()  # it opens again when it is asked
                if last or isinstance(error, ConnectionRefusedError):
                    raise self._unreachable(error) from None
            else:
                if status == 200:
                    return answer
                if status != _BUSY or last:
                    raise self._refused(status, answer)
            time.sleep(_PAUSE * again)
        raise AssertionError  # the last try ends in an answer or an error

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Answer]:
        held = getattr(self._own, "held", None)
        if held is None:
            held = self._own.held = self._kind(self._host, self._port, timeout=_PATIENCE)
            self._all.append(held)
        held.request(method, self._root + path, body, {**self._headers, **headers})
        found = held.getresponse()
        return found.status, Answer(found.read(), {name.lower(): value for name, value in found.getheaders()})

    def _unreachable(self, error: Exception) -> SourceError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        remedy = "start it (candide serve MODEL), or mend the address"
        return SourceError(f"the server does not answer ({why})", where=self.name, remedy=remedy)

    def _foreign(self) -> SourceError:
        remedy = "name the address that candide serve tells"
        return SourceError("this is no server of a model of this version", where=self.name, remedy=remedy)

    def _refused(self, status: int, answer: Answer) -> InputError:
        """The error that a problem (RFC 9457) tells."""
        try:
            problem = json.loads(answer.body)
            what = str(problem["detail"])
        except (ValueError, KeyError, TypeError):
            if status < 500:
                return self._foreign()
            return SourceError(f"the server failed, with status {status}", where=self.name, remedy="try later")
        place = {name: problem.get(name) for name in ("column", "row", "value")}
        remedy = str(problem.get("remedy", ""))
        if status == _TOO_LARGE:
            return TooLargeError(what, where=self.name, remedy=remedy, **place)
        if status == 401:
            remedy = "pass that of the server: --token (or CANDIDE_TOKEN)"
        if status != 422:
            return SourceError(what, where=self.name, remedy=remedy, **place)
        said = str(InputError("", column=place["column"], row=place["row"]))  # what a text of all parts begins with
        what = what.removeprefix(said).removesuffix(f"; {remedy}")
        return InputError(what, remedy=remedy, **place)
