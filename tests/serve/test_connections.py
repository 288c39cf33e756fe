"""Clients that keep a connection and do not finish a request: they are ended, and others are answered meanwhile."""

import contextlib
import http.client
import resource
import socket
import sys
from types import SimpleNamespace

import pytest
from tests.serve.test_run import started

from candide import store
from candide.serve import connections

_SHORT = """
import sys
from candide.serve import Limits, app, connections, run
connections.HEAD_SECONDS = 0.2
served = app(sys.argv[1], limits=Limits(timeout_seconds=0.2))
listening = run.open_socket("127.0.0.1", 0)
run.run(served, listening, "127.0.0.1", lambda at: print(at + "/docs", file=sys.stderr, flush=True))
"""
_PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"
_HALF = b"POST /predict HTTP/1.1\r\nhost: localhost\r\nx-slow: "


@pytest.fixture
def model_path(models, tmp_path):
    store.save(models["naive"], tmp_path / "trees.candide")
    return str(tmp_path / "trees.candide")


def answers_until_closed(client):
    """Everything that the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(4096):
            received += part
    return received


def test_slow_clients_are_ended(model_path):
    process, port = started(command=[sys.executable, "-c", _SHORT, model_path])
    slow_body = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\ncontent-length: 99\r\n\r\nage"
    cases = {
        b"": [],  # nothing is sent
        b"G": [b"408 Request Timeout"],
        _HALF: [b"408 Request Timeout"],
        _PING: [b"200 OK"],  # and then idle
        _PING + _HALF: [b"200 OK"],
        slow_body: [b"408 Request Timeout"],
    }
    try:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in cases]
            for client, sent in zip(clients, cases, strict=True):
                client.sendall(sent)
            for client, (sent, statuses) in zip(clients, cases.items(), strict=True):
                received = answers_until_closed(client)
                assert [part.partition(b"\r\n")[0] for part in received.split(b"HTTP/1.1 ")[1:]] == statuses, sent
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_half_open_requests_do_not_shut_others_out(model_path):
    """More of them than the process has file descriptors."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); {_SHORT.replace('0.2', '600')}"
    process, port = started(command=[sys.executable, "-c", limited.replace("; \n", "\n"), model_path])
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
                client.sendall(_HALF)
            for _ in range(3):
                other = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                other.request("GET", "/ping")
                assert other.getresponse().status == 200
                other.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


class FakeTransport:
    def __init__(self):
        self.unsent, self.ended, self.written = 0, None, b""

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.ended is not None

    def write(self, data):
        self.written += data

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"


class FakeProtocol:
    """What the limits need of uvicorn's protocol; the loop keeps what it is asked to call."""

    def __init__(self, open_connections):
        self.cycle, self.connections, self.calls = None, open_connections, []
        self.loop = SimpleNamespace(call_later=self._call_later)

    def _call_later(self, seconds, call):
        self.calls.append(call)
        return SimpleNamespace(cancel=lambda: self.calls.remove(call) if call in self.calls else None)

    def connection_made(self, transport):
        self.transport = transport
        self.connections.add(self)

    def on_response_complete(self):
        pass

    def data_received(self, data):
        pass


def connected(open_connections):
    protocol = connections._with_deadlines(FakeProtocol)(open_connections)
    protocol.connection_made(FakeTransport())
    return protocol


def test_an_answer_that_is_not_read():
    protocol = connected(set())
    protocol.cycle = SimpleNamespace(response_complete=True, more_body=False)
    protocol.transport.unsent = 1000
    protocol.on_response_complete()
    protocol.transport.unsent = 900  # some was read: wait on
    protocol.calls.pop()()
    assert protocol.transport.ended is None
    protocol.calls.pop()()
    assert protocol.transport.ended == "aborted"


def test_a_request_that_is_worked_on_is_left_alone():
    protocol = connected(set())
    protocol.cycle = SimpleNamespace(response_complete=False, more_body=False)
    protocol.calls.pop()()
    assert protocol.transport.ended is None


def test_the_longest_waiting_makes_room(monkeypatch):
    monkeypatch.setattr(connections, "max_connections", lambda: 3)
    every = set()
    working, first, second, third, fourth = [connected(set()) for _ in range(5)]
    working.cycle = SimpleNamespace(response_complete=False, more_body=False)
    for i, protocol in enumerate([working, first, second, third, fourth]):
        protocol.connections, protocol._since = every, float(i)
        every.add(protocol)
    every -= {third, fourth}
    for protocol in (third, fourth):
        protocol.connection_made(protocol.transport)
    assert [one.transport.ended for one in (working, first, second, third, fourth)] == [
        None,
        "aborted",
        "aborted",
        None,
        None,
    ]
    assert every == {working, third, fourth}


@pytest.mark.parametrize(("files", "most"), [(64, 32), (256, 156), (1024, 924), (1 << 20, 4096)])
def test_connections_by_file_descriptors(monkeypatch, files, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert connections.max_connections() == most
