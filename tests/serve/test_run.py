"""The server itself: it listens where it may, answers, and stops when it is told to."""

import http.client
import json
import re
import signal
import subprocess
import sys

import pytest

from candide import store


@pytest.fixture
def path(models, tmp_path):
    store.save(models["naive"], tmp_path / "trees.candide")
    return str(tmp_path / "trees.candide")


def started(path, *options):
    """A server at any port, once it says which."""
    command = [sys.executable, "-m", "candide", "serve", path, "--port", "0", *options]
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
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    [line] = log.splitlines()
    assert json.loads(line).keys() == {"time", "method", "path", "status", "ms", "rows", "bytes_in", "bytes_out"}


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
