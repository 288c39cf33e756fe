"""Three servers that learn apart come to one model: that of all their rows."""

import http.client
import json
import signal
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.serve.client import ask
from tests.serve.conftest import table
from tests.serve.test_learner import labelled, records, same_counts
from tests.serve.test_run import started

import candide as cd
from candide import store
from candide.cli import cli
from candide.data.table import Table
from candide.serve import app


@pytest.mark.all_cases
def test_what_three_have_learned_adds_up(tmp_path):
    columns, y = table(300, seed=3)
    base = replace(cd.BayesClassifier().fit(columns, y).fitted_, target="fate")
    path, new = str(tmp_path / "base.candide"), labelled(30, seed=31)
    new["site"][3] = "met by the first alone"
    store.save(base, path)
    servers = [started(path, "--learn", str(tmp_path / f"{i}.db"), "--quiet") for i in range(3)]
    try:
        for i, (_, port) in enumerate(servers):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            rows = records(new)[10 * i : 10 * i + 10]
            client.request("POST", "/learn", json.dumps(rows), {"content-type": "application/json"})
            assert client.getresponse().status == 200
        readers = [name for _, port in servers for name in ("--peer", f"http://127.0.0.1:{port}")]
        servers.append(started(path, *readers, "--quiet"))  # which learns nothing itself
        client = http.client.HTTPConnection("127.0.0.1", servers[-1][1], timeout=30)
        wanted = app(cd.update_model(base, Table.from_data(new)).fitted)
        for _ in range(2):
            client.request("POST", "/pull")
            assert [told["rows"] for told in json.loads(client.getresponse().read())] == [10, 10, 10]
            for row in records(new)[:3]:
                client.request("POST", "/predict", json.dumps(row), {"content-type": "application/json"})
                answer = json.loads(client.getresponse().read())
                assert answer["p_cut"] == pytest.approx(ask(wanted, "/predict", row).json["p_cut"], rel=1e-9)
    finally:
        for process, _ in servers:
            process.send_signal(signal.SIGTERM)
        for process, _ in servers:
            process.wait(timeout=30)
    parts = [str(tmp_path / f"{i}.candide") for i in range(3)]
    asked = [["export-state", str(tmp_path / f"{i}.db"), "--subtract", path, "-o", parts[i]] for i in range(3)]
    for command in [*asked, ["merge", path, *parts, "-o", str(tmp_path / "all.candide")]]:
        assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    assert store.load(parts[0]).counts.n_rows == 10
    same_counts(store.load(tmp_path / "all.candide"), cd.update_model(base, Table.from_data(new)).fitted)
