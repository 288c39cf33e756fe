"""The server itself: it listens where it may, answers, and stops when it is told to."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys

import pytest

from candide import store


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

    from candide.cli.run import cli
    from candide.errors import InputError

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        state = str(tmp_path / "state.db")
        result = CliRunner().invoke(cli, ["serve", path, "--port", str(port), "--learn", state, "--target", "fate"])
    assert isinstance(result.exception, InputError)
    assert (result.exception.value, "is in use" in str(result.exception)) == (port, True)
    assert [one.name for one in tmp_path.iterdir()] == ["trees.candide"]


def test_it_may_be_stopped_as_soon_as_it_says_where_it_is(path, tmp_path):
    process, _ = started(path, "--learn", str(tmp_path / "state.db"), "--target", "fate")
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert (process.returncode, log) == (0, "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["state.db", "trees.candide"]


def test_it_does_not_listen_to_others_without_a_token(path):
    from click.testing import CliRunner

    from candide.cli.group import cli
    from candide.cli.run import main  # noqa: F401  every command
    from candide.errors import InputError

    result = CliRunner().invoke(cli, ["serve", path, "--host", "0.0.0.0"])
    assert isinstance(result.exception, InputError)
    assert (result.exception.value, "--token" in result.exception.remedy) == ("0.0.0.0", True)
