"""A server that is told to stop under load: what it answered is there, what it did not may be sent again."""

import signal
import sqlite3
import time
from dataclasses import replace
from types import SimpleNamespace

from click.testing import CliRunner
from tests.serve.conftest import table
from tests.serve.test_kill import Talker
from tests.serve.test_learned_state import of
from tests.serve.test_learner import labelled, records, same_counts
from tests.serve.test_run import started

import candide as cd
from candide import store
from candide.cli import cli
from candide.data.table import Table
from candide.errors import BusyError
from candide.serve import app
from candide.serve import run as running
from candide.serve.learner import Learner


def test_it_stops_under_load(tmp_path, monkeypatch):
    columns, y = table(300, seed=3)
    base = replace(cd.NaiveBayes().fit(columns, y).fitted_, target="fate")
    model, state = str(tmp_path / "m.candide"), tmp_path / "state.db"
    store.save(base, model)
    rows = records(labelled(50, seed=21))
    process, port = started(model, "--learn", str(state), "--window", "60d")
    try:
        monkeypatch.setattr("candide.serve.journal._LOCK_TIMEOUT", 0.05)
        second = CliRunner().invoke(cli, ["serve", model, "--learn", str(state), "--port", "0"])
        assert isinstance(second.exception, BusyError)
        assert "in use by another process" in str(second.exception)
        assert second.exception.remedy == "stop that server first"
        talkers = [Talker(port, rows, str(t), t) for t in range(4)]
        [talker.start() for talker in talkers]
        deadline = time.monotonic() + 60
        while sum(len(talker.learned) for talker in talkers) < 40:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # which changes nothing
        _, log = process.communicate(timeout=60)
        [talker.join() for talker in talkers]
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in log
    assert {answer[0] for talker in talkers for answer in talker.wrong} <= {503}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.candide", "state.db"]
    with sqlite3.connect(state) as db:
        last = db.execute("SELECT max(seq) FROM entry").fetchone()
        assert db.execute("SELECT last_seq FROM state").fetchone() == last
    db.close()
    learner, counted = Learner(state, base), {}
    for talker in talkers:
        if talker.doubt is not None:
            what, key, row = talker.doubt
            if what == "learn":
                learner.learn(of(rows[row]), key).result()
                talker.learned[key] = row
            else:
                learner.forget_key(key, f"f-{key}").result()
                talker.forgotten.add(key)
        counted |= {key: row for key, row in talker.learned.items() if key not in talker.forgotten}
    held = [rows[row] for row in counted.values()]
    same_counts(
        learner.fitted,
        cd.update_model(base, Table.from_data({name: [row[name] for row in held] for name in rows[0]})).fitted,
    )
    learner.close()


def test_signals_amid_each_other(models, monkeypatch):
    """However many come while the first is heeded, the last resort is set up once."""
    begun = []

    class Timer:
        def __init__(self, *_):
            pass

        def start(self):
            begun.append(self)
            if len(begun) < 3:
                signal.raise_signal(signal.SIGTERM)

        def cancel(self):
            pass

    monkeypatch.setattr(running, "threading", SimpleNamespace(Timer=Timer))
    running.run(
        app(models["naive"], log=None),
        running.open_socket("127.0.0.1", 0),
        "127.0.0.1",
        lambda _: signal.raise_signal(signal.SIGTERM),
    )
    assert len(begun) == 1
