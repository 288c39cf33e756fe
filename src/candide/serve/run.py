"""Run the application on a socket until it is stopped; requests that have arrived are answered first.

uvicorn limits neither the size of request headers nor the time they take, so that a few hundred clients that never
finish theirs would use up the file descriptors of the process and lock out all others. Connections are bounded here.
"""

import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from candide.errors import InputError, MissingLibraryError
from candide.kernels import threads
from candide.serve.application import Application
from candide.serve.formats import encode

_SHUTDOWN_SECONDS = 30  # for requests to end
_FINAL_SECONDS = 5  # more, until the process ends whatever still runs: answered requests are on disk
HEAD_SECONDS = 10.0  # to send the headers of a request, from the connection or from the last response
_IDLE_SECONDS = 5  # a connection is kept open after a response
_HEAD_BYTES = 1 << 16  # of a request before its body
_MAX_CONNECTIONS = 4096  # connections at once
_RESERVED_DESCRIPTORS = 100  # file descriptors for the rest of the process
_REFUSAL_RESPONSE = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def open_socket(host: str, port: int) -> socket.socket:
    """Open the socket of an address, before any other work."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        raise InputError(f"port {port} of {host} {why}", value=port, remedy="pass another --port, or --host") from None


def run(application: Application, bound: socket.socket, host: str, ready: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or SIGINT, then accept no more, answer requests that have arrived, and return.

    ``ready`` is called with the address.
    """
    try:
        import uvicorn
        from uvicorn.protocols.http.auto import AutoHTTPProtocol
    except ImportError:
        raise MissingLibraryError("serving a model needs uvicorn", remedy="pip install 'candide[serve]'") from None
    if is_loopback(host):  # so that no web page can reach it through a name of its own that resolves here
        application.hosts = frozenset({b"localhost", b"127.0.0.1", b"[::1]", host.encode(), f"[{host}]".encode()})
    name = f"[{host}]" if ":" in host else host
    end = threading.Timer(_SHUTDOWN_SECONDS + _FINAL_SECONDS, os._exit, (0,))
    end.daemon = True
    timers = iter([end])

    class Server(uvicorn.Server):
        def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
            """Signals are handled from before the address is printed, and a handled one is not raised again."""
            return contextlib.nullcontext()

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            for timer in timers:  # an iterator: only the first of several signals starts it
                timer.start()

    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    options |= {"timeout_graceful_shutdown": _SHUTDOWN_SECONDS, "timeout_keep_alive": _IDLE_SECONDS}
    server = Server(uvicorn.Config(application, ws="none", http=bound_protocol(AutoHTTPProtocol), **options))
    handlers = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
    log, json_handler = logging.getLogger("uvicorn"), _JsonLogHandler(logging.WARNING)
    log.addHandler(json_handler)
    try:
        ready(f"http://{name}:{bound.getsockname()[1]}")
        with threads.one_blas_thread():  # requests are many and small: BLAS threads would wait for each other
            server.run([bound])
    finally:
        application.close()
        end.cancel()
        log.removeHandler(json_handler)
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _JsonLogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        level, message = record.levelname.lower(), record.getMessage()
        log_to_stderr({"time": round(time.time(), 3), "level": level, "message": message})


def check_host(host: str, has_token: bool, is_public: bool) -> None:
    """Reject a host that other machines can reach without a token, unless the server is public."""
    if not (is_loopback(host) or has_token or is_public):
        what = f"{host} can be reached from other machines, and there is no token"
        raise InputError(what, value=host, remedy="pass --token (or CANDIDE_TOKEN), or --public to allow anyone")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to_stderr(record: dict[str, Any]) -> None:
    sys.stderr.write(encode(record).decode() + "\n")


def max_connections() -> int:
    """Return how many connections may be open, by the limit of file descriptors of this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return min(_MAX_CONNECTIONS, files - min(_RESERVED_DESCRIPTORS, files // 2))


def bound_protocol(protocol: Any) -> Any:
    """Return uvicorn's protocol with a deadline for headers, a limit of their size, and one of connections."""
    limit = max_connections()

    class Bounded(protocol):
        _deadline: Any = None
        _since, _unsent, _has_begun = 0.0, 0, False
        _in_head, _n_received = False, 0

        def on_message_begin(self) -> None:  # called by httptools; without it, uvicorn limits the size already
            self._in_head, self._n_received = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > limit:
                waiting = [connection for connection in self.connections if not connection.is_working]
                oldest = min(waiting, key=lambda connection: connection._since)
                self.connections.discard(oldest)  # now: more may come before it is closed
                oldest.transport.abort()

        @property
        def is_working(self) -> bool:
            """Whether a request has arrived completely, and its response is pending."""
            return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

        def data_received(self, data: bytes) -> None:
            self._has_begun = True
            super().data_received(data)
            self._n_received += len(data)
            if self._in_head and self._n_received > _HEAD_BYTES:
                self.refuse(b"431 Request Header Fields Too Large")

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._has_begun = False
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def refuse(self, status: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(_REFUSAL_RESPONSE % status)
                self.transport.close()

        def _wait(self) -> None:
            """Give the client time to send the headers of a request, or to read the last response."""
            if self._deadline is not None:
                self._deadline.cancel()
            self._since, self._unsent = time.monotonic(), self.transport.get_write_buffer_size()
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._end_if_overdue)

        def _end_if_overdue(self) -> None:
            self._deadline = None
            if self.cycle is not None and not self.cycle.response_complete:
                return  # the application limits the time for the body and the response
            unsent = self.transport.get_write_buffer_size()
            if 0 < unsent < self._unsent:
                self._wait()
            elif unsent:
                self.transport.abort()
            elif self._has_begun:
                self.refuse(b"408 Request Timeout")
            else:
                self.transport.close()

    return Bounded
