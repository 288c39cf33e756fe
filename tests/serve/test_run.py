"""The server process: its socket, its connections, slow clients, and how it stops."""

import contextlib
import http.client
import json
import re
import resource
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from candide import store
from candide.serve import run


@pytest.fixture
def path(models, tmp_path):
    store.save(models["naive"], tmp_path / "trees.candide")
    return str(tmp_path / "trees.candide")


def started(path=None, *options, command=None):
    """A server at any port, once it says which."""
    command = command or [sys.executable, "-m", "candide", "serve", path, "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    found = re.search(r"http://127.0.0.1:(\d+)/docs", process.stderr.readline())
    assert found, process.communicate()[1]
    return process, int(found[1])


def test_it_answers_and_stops(path):
    process, port = started(path)
    try:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("POST", "/predict", json.dumps({"height": 12.0}), {"content-type": "application/json"})
        answer = client.getresponse()
        assert answer.status == 200
        assert "p_cut" in json.loads(answer.read())
        head = b"GET /ping HTTP/1.1\r\nhost: localhost\r\nx: "
        assert said(port, head, b"y" * 10) == b"HTTP/1.1 200 OK"
        refused = b"HTTP/1.1 431 Request Header Fields Too Large"
        assert said(port, head, b"y" * 10**6) in (refused, b"")  # closed amid what is sent, the answer may be lost
        assert said(port, b"nothing that is HTTP\r\n") == b"HTTP/1.1 400 Bad Request"
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    first, second, third = map(json.loads, log.splitlines())
    assert first.keys() == second.keys() == {"time", "method", "path", "status", "ms", "rows", "bytes_in", "bytes_out"}
    assert third.keys() == {"time", "level", "message"}


def said(port, *parts):
    """The first line of the answer to what is sent, and then ended."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        with contextlib.suppress(OSError):  # it need not be taken to its end
            client.sendall(b"".join(parts) + b"\r\n\r\n")
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while b"\r\n" not in found and (some := client.recv(4096)):
                found += some
        return found.partition(b"\r\n")[0]


_HANGS = """
import sys, time
from candide.serve import app, run
from candide.serve.endpoints import Endpoint
run._SHUTDOWN_SECONDS = run._FINAL_SECONDS = 0.3
served = app(sys.argv[1])
def hang(request, scorer):
    print("asked", file=sys.stderr, flush=True)
    time.sleep(600)
served.paths["/hang"] = {"GET": Endpoint("GET", "/hang", "", hang, is_slow=True)}
listening = run.open_socket("127.0.0.1", 0)
run.run(served, listening, "127.0.0.1", lambda at: print(at + "/docs", file=sys.stderr, flush=True))
"""


def test_it_ends_though_a_request_does_not(path):
    process, port = started(command=[sys.executable, "-c", _HANGS, path])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"GET /hang HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert process.stderr.readline() == "asked\n"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0


def test_a_port_that_is_in_use_leaves_nothing_behind(path, tmp_path):
    from click.testing import CliRunner

    from candide.cli.group import cli
    from candide.errors import InputError

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        state = str(tmp_path / "state.db")
        result = CliRunner().invoke(cli, ["serve", path, "--port", str(port), "--learn", state, "--target", "fate"])
    assert isinstance(result.exception, InputError)
    assert (result.exception.value, "is in use" in str(result.exception)) == (port, True)
    assert [one.name for one in tmp_path.iterdir()] == ["trees.candide"]


def test_it_may_be_stopped_as_soon_as_it_prints_its_address(path, tmp_path):
    process, _ = started(path, "--learn", str(tmp_path / "state.db"), "--target", "fate")
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert (process.returncode, log) == (0, "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["state.db", "trees.candide"]


def test_it_does_not_listen_to_others_without_a_token(path):
    from click.testing import CliRunner

    from candide.cli.group import cli
    from candide.errors import InputError

    result = CliRunner().invoke(cli, ["serve", path, "--host", "0.0.0.0"])
    assert isinstance(result.exception, InputError)
    assert (result.exception.value, "--token" in result.exception.remedy) == ("0.0.0.0", True)


_SHORT = """
import sys
from candide.serve import Limits, app, run
run.HEAD_SECONDS = 0.2
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
    protocol = run.bound_protocol(FakeProtocol)(open_connections)
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


def test_the_longest_waiting_is_dropped(monkeypatch):
    monkeypatch.setattr(run, "max_connections", lambda: 3)
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
    assert run.max_connections() == most


def test_loopback_addresses():
    assert [run.is_loopback(host) for host in ("::1", "localhost", "10.0.0.7", "example.org")] == [
        True,
        True,
        False,
        False,
    ]
