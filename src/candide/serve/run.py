"""Run the application on a socket until it is stopped; requests that have arrived are answered first."""

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
from candide.serve.connections import IDLE_SECONDS, make_bounded_protocol
from candide.serve.formats import encode

_SHUTDOWN_SECONDS = 30  # for requests to end
_FINAL_SECONDS = 5  # more, until the process ends whatever still runs: answered requests are on disk


def open_socket(host: str, port: int) -> socket.socket:
    """Open the socket of an address, before any other work."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        raise InputError(f"port {port} of {host} {why}", value=port, remedy="pass another --port, or --host") from None


def run(application: Application, listening: socket.socket, host: str, ready: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or SIGINT, then stop listening, answer requests that have arrived, and return.

    ``ready`` is called with the address.
    """
    uvicorn = _uvicorn()
    if is_loopback(host):  # so that no web page can reach it through a name of its own that resolves here
        application.hosts = frozenset({b"localhost", b"127.0.0.1", b"[::1]", host.encode(), f"[{host}]".encode()})
    name = f"[{host}]" if ":" in host else host
    end = threading.Timer(_SHUTDOWN_SECONDS + _FINAL_SECONDS, os._exit, (0,))
    end.daemon = True
    timers = iter([end])

    class Server(uvicorn.Server):  # type: ignore[name-defined]
        def capture_signals(self) -> contextlib.AbstractContextManager[None]:
            """Signals are handled from before the address is printed, and a handled one is not raised again."""
            return contextlib.nullcontext()

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            for timer in timers:  # an iterator: only the first of several signals starts it
                timer.start()

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    times = {"timeout_graceful_shutdown": _SHUTDOWN_SECONDS, "timeout_keep_alive": IDLE_SECONDS}
    server = Server(uvicorn.Config(application, ws="none", http=make_bounded_protocol(), **times, **quiet))
    handlers = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
    log, json_handler = logging.getLogger("uvicorn"), _JsonLogHandler(logging.WARNING)
    log.addHandler(json_handler)
    try:
        ready(f"http://{name}:{listening.getsockname()[1]}")
        with threads.one_blas_thread():  # requests are many and small: BLAS threads would wait for each other
            server.run([listening])
    finally:
        application.close()
        end.cancel()
        log.removeHandler(json_handler)
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _JsonLogHandler(logging.Handler):
    """Writes the log of uvicorn as lines of JSON."""

    def emit(self, record: logging.LogRecord) -> None:
        level, message = record.levelname.lower(), record.getMessage()
        log_to_stderr({"time": round(time.time(), 3), "level": level, "message": message})


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingLibraryError("serving a model needs uvicorn", remedy="pip install 'candide[serve]'") from None
    return uvicorn


def check_host(host: str, has_token: bool, is_public: bool) -> None:
    """Reject a host that other machines can reach without a token, unless the server is public."""
    if not (is_loopback(host) or has_token or is_public):
        what = f"{host} can be reached from other machines, and there is no token"
        raise InputError(what, value=host, remedy="pass --token (or CANDIDE_TOKEN), or --public to allow anyone")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("::1"), is_loopback("localhost"), is_loopback("10.0.0.7"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to_stderr(record: dict[str, Any]) -> None:
    """Write a record as a line of JSON."""
    sys.stderr.write(encode(record).decode() + "\n")
