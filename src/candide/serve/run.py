"""Running: the application behind a socket, until it is told to stop; then requests that came are answered first."""

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

_SHUTDOWN_SECONDS = 30  # seconds that requests have to end
_FINAL_SECONDS = 5  # more until the process ends whatever still runs: what was answered is on the disk by then


def open_socket(host: str, port: int) -> socket.socket:
    """The socket of an address, before anything is made for it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be listened at: {error.strerror or error}"
        raise InputError(f"port {port} of {host} {why}", value=port, remedy="pass another --port, or --host") from None


def run(application: Application, listening: socket.socket, host: str, ready: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or SIGINT, then stop listening, answer what is asked already, and return.

    ``ready`` is told the address, where the port may be any.
    """
    uvicorn = _uvicorn()
    if is_loopback(host):  # so that no page can reach it by a name of its own that leads here
        application.hosts = frozenset({b"localhost", b"127.0.0.1", b"[::1]", host.encode(), f"[{host}]".encode()})
    name = f"[{host}]" if ":" in host else host
    end = threading.Timer(_SHUTDOWN_SECONDS + _FINAL_SECONDS, os._exit, (0,))
    end.daemon = True
    ends = iter([end])

    class Server(uvicorn.Server):  # type: ignore[name-defined]
        def capture_signals(self) -> contextlib.AbstractContextManager[None]:
            """Signals are obeyed from before the address is told, and one that was obeyed is not raised again."""
            return contextlib.nullcontext()

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            for timer in ends:  # also where a signal comes amid another, as what an iterator has it gives once
                timer.start()

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    times = {"timeout_graceful_shutdown": _SHUTDOWN_SECONDS, "timeout_keep_alive": IDLE_SECONDS}
    how = {**times, "ws": "none", "http": make_bounded_protocol(), **quiet}
    server = Server(uvicorn.Config(application, **how))
    before = {one: signal.signal(one, server.handle_exit) for one in (signal.SIGTERM, signal.SIGINT)}
    log, lines = logging.getLogger("uvicorn"), _JsonLogHandler(logging.WARNING)
    log.addHandler(lines)
    try:
        ready(f"http://{name}:{listening.getsockname()[1]}")
        with threads.one_blas_thread():  # requests are many and small: threads of BLAS would wait for each other
            server.run([listening])
    finally:
        application.close()
        end.cancel()
        log.removeHandler(lines)
        for one, handler in before.items():
            signal.signal(one, handler)


class _JsonLogHandler(logging.Handler):
    """What the library that speaks HTTP says, as lines of JSON like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        log_to_stderr(
            {"time": round(time.time(), 3), "level": record.levelname.lower(), "message": record.getMessage()}
        )


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingLibraryError("to serve a model uvicorn is needed", remedy="pip install 'candide[serve]'") from None
    return uvicorn


def check_host(host: str, has_token: bool, is_public: bool) -> None:
    """Refuse to listen where others can ask, if nobody said that they may.

    >>> (
    ...     check_host("127.0.0.1", has_token=False, is_public=False),
    ...     check_host("0.0.0.0", has_token=True, is_public=False),
    ... )
    (None, None)
    """
    if not (is_loopback(host) or has_token or is_public):
        what = f"{host} can be reached from other machines, and there is no token"
        raise InputError(what, value=host, remedy="pass --token (or CANDIDE_TOKEN), or --public to let anyone ask")


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    >>> is_loopback("::1"), is_loopback("localhost"), is_loopback("10.0.0.7"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to_stderr(record: dict[str, Any]) -> None:
    """The facts of a request as a line of JSON."""
    sys.stderr.write(encode(record).decode() + "\n")
