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

_TIMEOUT_SECONDS = 60.0  # seconds without a word; a server answers within 30, or says that it cannot
_MAX_TRIES = 3  # of a question that was cut off, or that the server has no time for
_RETRY_SECONDS = 0.5  # seconds before it is asked again
_BUSY_STATUS, _TOO_LARGE_STATUS = 503, 413


class ServerResponse(NamedTuple):
    """What was answered: the body, and the headers by their names in small letters."""

    body: bytes
    headers: dict[str, str]


class RequestTooLargeError(SourceError):
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
        self._thread_local, self._connections = local(), list[HTTPConnection]()  # the connection of each thread

    def __repr__(self) -> str:
        return f"Connection({self.name!r})"

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._connections:
            held.close()

    def get_json(self, path: str) -> Any:
        """The JSON at a path."""
        answer = self._request("GET", path, None, {})
        try:
            return json.loads(answer.body)
        except ValueError:
            raise self._not_a_server_error() from None

    def fetch(self, path: str) -> ServerResponse:
        """What is at a path, as it is."""
        return self._request("GET", path, None, {})

    def post(self, path: str, body: bytes, media_type: str) -> ServerResponse:
        """The answer to a body, in the same format."""
        answer = self._request("POST", path, body, {"content-type": media_type, "accept": media_type})
        if answer.headers.get("content-type", "").partition(";")[0] != media_type:
            raise self._not_a_server_error()
        return answer

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> ServerResponse:
        for again in range(_MAX_TRIES):
            last = again == _MAX_TRIES - 1
            try:
                status, answer = self._request_once(method, path, body, headers)
            except (OSError, HTTPException) as error:
                self._thread_local.held.close()  # it opens again when it is asked
                if last or isinstance(error, ConnectionRefusedError):
                    raise self._unreachable_error(error) from None
            else:
                if status == 200:
                    return answer
                if status != _BUSY_STATUS or last:
                    raise self._problem_error(status, answer)
            time.sleep(_RETRY_SECONDS * again)
        raise AssertionError  # the last try ends in an answer or an error

    def _request_once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, ServerResponse]:
        held = getattr(self._thread_local, "held", None)
        if held is None:
            held = self._thread_local.held = self._kind(self._host, self._port, timeout=_TIMEOUT_SECONDS)
            self._connections.append(held)
        held.request(method, self._root + path, body, {**self._headers, **headers})
        found = held.getresponse()
        return found.status, ServerResponse(found.read(), {name.lower(): value for name, value in found.getheaders()})

    def _unreachable_error(self, error: Exception) -> SourceError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        remedy = "start it (candide serve MODEL), or mend the address"
        return SourceError(f"the server does not answer ({why})", source=self.name, remedy=remedy)

    def _not_a_server_error(self) -> SourceError:
        remedy = "name the address that candide serve tells"
        return SourceError("this is no server of a model of this version", source=self.name, remedy=remedy)

    def _problem_error(self, status: int, answer: ServerResponse) -> InputError:
        """The error that a problem (RFC 9457) tells."""
        try:
            problem = json.loads(answer.body)
            what = str(problem["detail"])
        except (ValueError, KeyError, TypeError):
            if status < 500:
                return self._not_a_server_error()
            return SourceError(f"the server failed, with status {status}", source=self.name, remedy="try later")
        place = {name: problem.get(name) for name in ("column", "row", "value")}
        remedy = str(problem.get("remedy", ""))
        if status == _TOO_LARGE_STATUS:
            return RequestTooLargeError(what, source=self.name, remedy=remedy, **place)
        if status == 401:
            remedy = "pass that of the server: --token (or CANDIDE_TOKEN)"
        if status != 422:
            return SourceError(what, source=self.name, remedy=remedy, **place)
        said = str(InputError("", column=place["column"], row=place["row"]))  # what a text of all parts begins with
        what = what.removeprefix(said).removesuffix(f"; {remedy}")
        return InputError(what, remedy=remedy, **place)
