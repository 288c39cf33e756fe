"""Running: the application behind a socket, until it is told to stop; then requests that came are answered first."""

import contextlib
import signal
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from candide.errors import InputError, MissingLibraryError
from candide.kernels import threads
from candide.serve.application import Application
from candide.serve.formats import encode

_DRAIN = 30  # seconds that requests have to end


def run(application: Application, host: str, port: int, ready: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or SIGINT, then stop listening, answer what is asked already, and return.

    ``ready`` is told the address, where the port may be any.
    """
    uvicorn = _uvicorn()
    if is_loopback(host):  # so that no page can reach it by a name of its own that leads here
        application.hosts = frozenset({b"localhost", b"127.0.0.1", b"[::1]", host.encode(), f"[{host}]".encode()})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=2048)
    name = f"[{host}]" if ":" in host else host

    class Server(uvicorn.Server):  # type: ignore[name-defined]
        def capture_signals(self) -> contextlib.AbstractContextManager[None]:
            """Signals are obeyed from before the address is told, and one that was obeyed is not raised again."""
            return contextlib.nullcontext()

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    server = Server(uvicorn.Config(application, timeout_graceful_shutdown=_DRAIN, ws="none", **quiet))
    before = {one: signal.signal(one, server.handle_exit) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        ready(f"http://{name}:{listening.getsockname()[1]}")
        with threads.one_blas_thread():  # requests are many and small: threads of BLAS would wait for each other
            server.run([listening])
    finally:
        application.close()
        for one, handler in before.items():
            signal.signal(one, handler)


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingLibraryError("to serve a model uvicorn is needed", remedy="pip install 'candide[serve]'") from None
    return uvicorn


def check_host(host: str, has_token: bool, told: bool) -> None:
    """Refuse to listen where others can ask, if nobody said that they may.

    >>> check_host("127.0.0.1", has_token=False, told=False), check_host("0.0.0.0", has_token=True, told=False)
    (None, None)
    """
    if not (is_loopback(host) or has_token or told):
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


def to_stderr(facts: dict[str, Any]) -> None:
    """The facts of a request as a line of JSON."""
    sys.stderr.write(encode(facts).decode() + "\n")
