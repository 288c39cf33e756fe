"""A server that is killed in the middle of its work has all that it answered for, once.

``CANDIDE_KILLS=200 pytest -s tests/serve/test_kill.py`` kills it so often, and says how much it was asked meanwhile.
"""

import http.client
import json
import os
import random
import signal
import threading
import time
from dataclasses import replace

import pytest
from tests.serve.conftest import table
from tests.serve.test_learner import labelled, records, same_counts
from tests.serve.test_run import started

import candide as cd
from candide import store
from candide.data.table import Table

KILLS = int(os.environ.get("CANDIDE_KILLS", "2"))
TALKERS = 6
JSON = {"content-type": "application/json"}


def post(port, path, body, connection=None):
    client = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("POST", path, body, JSON if body else {})
    answer = client.getresponse()
    return answer.status, json.loads(answer.read())


class Talker(threading.Thread):
    """A client that learns rows, forgets some and asks for others, until the server is gone.

    ``doubt`` is what it heard nothing of.
    """

    def __init__(self, port, rows, name, seed):
        super().__init__()
        self.port, self.rows, self.label, self.rng = port, rows, name, random.Random(seed)
        self.learned, self.forgotten, self.doubt, self.wrong = {}, set(), None, []

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            for i in range(10**6):
                key, row = f"{self.label}-{i}", self.rng.randrange(len(self.rows))
                self.doubt = ("learn", key, row)
                self.check(post(self.port, f"/learn?key={key}", json.dumps(self.rows[row]), connection))
                self.learned[key] = row
                if self.rng.random() < 0.2:
                    gone = self.rng.choice(sorted(self.learned.keys() - self.forgotten))
                    self.doubt = ("forget", gone, None)
                    self.check(post(self.port, f"/forget?of={gone}&key=f-{gone}", "", connection))
                    self.forgotten.add(gone)
                self.doubt = None
                if self.rng.random() < 0.3:
                    self.check(post(self.port, "/predict", json.dumps(self.rows[row]), connection))
        except (OSError, http.client.HTTPException):
            return

    def check(self, answer):
        if answer[0] != 200:
            self.wrong.append(answer)
            raise http.client.HTTPException  # what it asked is in doubt, and it asks no more


def again(port, talker):
    """Ask once more what was not answered: with its key it counts once, heard or not."""
    what, key, row = talker.doubt
    if what == "learn":
        assert post(port, f"/learn?key={key}", json.dumps(talker.rows[row]))[0] == 200
        talker.learned[key] = row
    else:
        assert post(port, f"/forget?of={key}&key=f-{key}", "")[0] == 200
        talker.forgotten.add(key)


@pytest.mark.all_cases
@pytest.mark.parametrize("seed", [0])
def test_kills(tmp_path, seed):
    columns, y = table(300, seed=3)
    base = replace(cd.NaiveBayes().fit(columns, y).fitted_, target="fate")
    store.save(base, tmp_path / "m.candide")
    rows, rng = records(labelled(50, seed=21)), random.Random(seed)
    counted, asked, doubts = {}, 0, 0
    options = ("--learn", str(tmp_path / "state.db"), "--quiet")
    for kill in range(KILLS):
        process, port = started(str(tmp_path / "m.candide"), *options)
        talkers = [Talker(port, rows, f"{kill}-{t}", rng.random()) for t in range(TALKERS)]
        try:
            [talker.start() for talker in talkers]
            time.sleep(rng.uniform(0.05, 0.8))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        [talker.join() for talker in talkers]
        process, port = started(str(tmp_path / "m.candide"), *options)
        try:
            [again(port, talker) for talker in talkers if talker.doubt]
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            client.request("GET", "/state")
            found = store.loads(client.getresponse().read())
        finally:
            process.terminate()
            process.wait(timeout=30)
        assert [talker.wrong for talker in talkers] == [[]] * TALKERS
        for talker in talkers:
            asked += len(talker.learned) + len(talker.forgotten)
            doubts += talker.doubt is not None
            counted |= {key: row for key, row in talker.learned.items() if key not in talker.forgotten}
        held = [rows[row] for row in counted.values()]
        same_counts(
            found,
            cd.update_model(base, Table.from_data({name: [row[name] for row in held] for name in rows[0]})).fitted,
        )
    assert len(counted) > KILLS
    print(f"{KILLS} kills: {asked} answered, {doubts} sent again")
