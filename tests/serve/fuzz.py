"""A long fuzz of a server, too long for every run of the tests: ``python -m tests.serve.fuzz [REQUESTS]``.

First requests made from the OpenAPI text, by Schemathesis (``pip install schemathesis openapi-spec-validator``), to a
server that learns; then as many good requests with bytes changed, in this process. No answer may have status 500, one
that is not described, or another shape; none may tell a path of the machine; and memory may not grow.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from pathlib import Path

from tests.serve.client import ask
from tests.serve.conftest import table

from candide import store
from candide.fit_source import fit_model
from candide.serve import app
from candide.store.input_schema import example_row

# Text that is no CSV, labels that no row has and the like fit the description, and are refused all the same.
CHECKS = "--exclude-checks=positive_data_acceptance"
PIECES = [b"", b"[", b"]", b"{", b'"', b"1e309", b"-", b"null", b"NaN", b"9" * 40, b"\xf0", b"\\ud800", b",", b"\0"]
GROWTH = 1.25  # of memory, from what it is once a tenth of the requests have warmed it


def rss(pid):
    """Kilobytes of memory that a process holds."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def by_description(fitted, folder, requests):
    """Requests that Schemathesis makes of the OpenAPI text, to a server of its own; the status of its command."""
    store.save(fitted, folder / "trees.candide")
    command = [sys.executable, "-m", "candide", "serve", str(folder / "trees.candide"), "--port", "0", "--quiet"]
    command += ["--learn", str(folder / "state.db"), "--token", "secret"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://127.0.0.1:\d+", server.stderr.readline())[0]
        client = HTTPConnection(address.removeprefix("http://"))
        described = get(client, "/openapi.json")
        (folder / "openapi.json").write_bytes(described)
        subprocess.run([sys.executable, "-m", "openapi_spec_validator", folder / "openapi.json"], check=True)
        bodies = sum("post" in methods for methods in json.loads(described)["paths"].values())
        run = ["schemathesis", "run", f"{address}/openapi.json", "-H", "Authorization: Bearer secret", CHECKS]
        run += ["--no-color", "--continue-on-failure", "--seed", "0", "--max-examples"]
        status = subprocess.run([*run, str(max(1, requests // bodies // 20))], cwd=folder).returncode
        before = rss(server.pid)
        status |= subprocess.run([*run, str(max(1, requests // bodies))], cwd=folder).returncode
        after = rss(server.pid)
        print(f"the server holds {before:,} kB, then {after:,} kB")
        failed = [line for line in get(client, "/metrics").decode().splitlines() if 'status="5' in line]
        print("\n".join(failed) or "no answer has a status of 500 or more")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    return status or bool(failed) or after > GROWTH * before


def get(client, path):
    client.request("GET", path)
    body = client.getresponse().read()
    client.close()
    return body


def mutated(fitted, folder, requests, seed=0):
    """Good requests with bytes changed, cut and doubled."""
    rng, before, statuses = random.Random(seed), 0, {}
    served = app(fitted, name="m", journal_path=folder / "mutated.db", target="fate")
    described, row = ask(served, "/openapi.json").json["paths"], example_row(fitted)
    lesson = {**row, "fate": "cut"}
    tensors = [{"name": k, "shape": [1], "datatype": "BYTES", "data": [v]} for k, v in row.items()]
    good = {"/predict": [row, row], "/explain": row, "/invocations": {"inputs": [row]}, "/learn": lesson}
    good |= {"/v2/models/m/infer": {"inputs": tensors}, "/forget": lesson}
    for i in range(requests):
        path = rng.choice(list(good))
        raw = bytearray(json.dumps(good[path]).encode())
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(raw) + 1)
            raw[at : at + rng.randint(0, 3)] = rng.choice(PIECES)
        media = rng.choice(["application/json"] * 6 + ["text/csv", "application/x-ndjson"])
        answer = ask(served, path, bytes(raw), media)
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        assert str(answer.status) in described[path]["post"]["responses"], (answer.status, bytes(raw))
        assert answer.status < 500, bytes(raw)
        assert os.fsencode(folder) not in answer.body, bytes(raw)
        assert b".py" not in answer.body, bytes(raw)
        if i == requests // 10:
            before = rss("self")
    served.close()
    print(f"{requests:,} mutations: {statuses}; this process holds {before:,} kB, then {rss('self'):,} kB")
    return rss("self") > GROWTH * before


def main(requests=100_000):
    columns, labels = table()
    fitted = fit_model({**columns, "fate": labels}, "fate").fitted
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        return by_description(fitted, folder, requests) | mutated(fitted, folder, requests)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
