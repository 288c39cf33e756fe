"""Serving: what one request takes of the server's processor, against a FastAPI application with a pipeline.

Processor time is that of the server's process, as the kernel counts it, over the requests that were answered; other
work on the machine disturbs it less than the time that passes. The peer is scikit-learn's naive Bayes behind FastAPI,
as one writes it: a row becomes a data frame, and the pipeline predicts. It needs ``pip install fastapi``. Where the
data sets are, the rows are those of Adult, else they are made. The limits are an application that answers at once,
behind the same server, and how often this disk takes a page.
"""

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.files import DATA

_JSON, _ARROW = "application/json", "application/vnd.apache.arrow.stream"
_PEER = """
import pickle, sys
import pandas as pd
import uvicorn
from fastapi import Body, FastAPI
pipeline = pickle.load(open(sys.argv[1], "rb"))
app = FastAPI()
@app.post("/predict")
async def predict(rows: dict | list[dict] = Body()):
    frame = pd.DataFrame(rows if isinstance(rows, list) else [rows])
    p = pipeline.predict_proba(frame)
    best = pipeline.classes_[p.argmax(axis=1)]
    return [{"prediction": str(c), "p": one} for c, one in zip(best, p.tolist())]
"""
_LIMIT = """
import sys
import uvicorn
async def app(scope, receive, send):
    await receive()
    head = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"{}"})
"""
_RUN = """
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", file=sys.stderr, flush=True)
Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off")).run()
"""


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    lasts, turns = (0.5, 1) if quick else (4.0, 3)
    rows, y = _table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = []
        commands = _commands(folder, rows, y)
        bodies = _bodies(rows)
        found: dict[tuple[str, str], list[float]] = {}
        for _ in range(turns):
            for server, command in commands.items():
                with _started(command) as (process, port):
                    for what, (body, media) in bodies.items():
                        if _takes(server, what):
                            asyncio.run(_load(port, "/predict", body, media, 8, 0.3))  # warm
                            took = _measured(process.pid, port, "/predict", body, media, 8, lasts)
                            found.setdefault((server, what), []).append(took[0])
        for what in bodies:
            peer = min(found.get(("FastAPI", what), [float("nan")]))
            for server in commands:
                if (server, what) in found:
                    own = min(found[server, what])
                    ratio = "" if np.isnan(peer) or not server.startswith("Candide") else f"{peer / own:.1f}"
                    lines.append([what, server, f"{own * 1e6:,.0f}", ratio])
        lines += _learning(folder, commands, rows, y, lasts, turns)
        lines.append(_memory(commands, rows, 10_000 if quick else 1_000_000))
    text = results.table(["request", "server", "µs of the processor", "times as many as FastAPI"], lines)
    print(text)
    return text


def _takes(server: str, what: str) -> bool:
    """Whether a server is asked so."""
    return server.startswith("Candide") or what == "one row" or (server == "FastAPI" and "JSON" in what)


def _table() -> tuple[dict[str, list[Any]], list[str]]:
    path = DATA / "tables" / "adult_train.parquet"
    if path.exists():
        import pyarrow.parquet as pq

        columns = pq.read_table(path).to_pydict()
        return columns, columns.pop("class")
    rng = np.random.default_rng(0)
    made = {f"x{j}": rng.normal(size=20_000).round(3).tolist() for j in range(6)}
    made |= {f"c{j}": rng.choice(list("abcdefgh"), 20_000).tolist() for j in range(8)}
    return made, np.where(np.array(made["x0"]) + (np.array(made["c0"]) < "d") > 0.5, "yes", "no").tolist()


def _commands(folder: Path, rows: dict[str, list[Any]], y: list[str]) -> dict[str, list[str]]:
    """How each server is started."""
    import candide as cd

    table = {**rows, "class": y}
    serve = [sys.executable, "-m", "candide", "serve", "--port", "0", "--quiet"]
    commands = {}
    for model in ("naive", "bayes"):
        cd.fit(table, target="class", model=model).save(folder / f"{model}.candide")
        commands[f"Candide, {model}"] = [*serve, str(folder / f"{model}.candide")]
    commands["the limit"] = [sys.executable, "-c", _LIMIT + _RUN]
    try:
        import fastapi  # noqa: F401
    except ImportError:
        print("no peer: pip install fastapi")
        return commands
    _pipeline(folder / "pipeline", rows, y)
    return {**commands, "FastAPI": [sys.executable, "-c", _PEER + _RUN, str(folder / "pipeline")]}


def _pipeline(path: Path, rows: dict[str, list[Any]], y: list[str]) -> None:
    """Naive Bayes as scikit-learn has it for a mixed table: an indicator for every bin and level."""
    import pickle

    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

    frame = pd.DataFrame(rows)
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    codes, bins = OneHotEncoder(handle_unknown="ignore"), KBinsDiscretizer(20, quantile_method="averaged_inverted_cdf")
    columns = ColumnTransformer([("numbers", bins, [n for n in frame if n not in text]), ("text", codes, text)])
    path.write_bytes(pickle.dumps(make_pipeline(columns, MultinomialNB()).fit(frame, y)))


def _bodies(rows: dict[str, list[Any]]) -> dict[str, tuple[bytes, str]]:
    import pyarrow as pa

    some = [dict(zip(rows, row, strict=True)) for row in zip(*(c[:1000] for c in rows.values()), strict=True)]
    out, table = io.BytesIO(), pa.table({name: column[:1000] for name, column in rows.items()})
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return {
        "one row": (json.dumps(some[0]).encode(), _JSON),
        "1,000 rows, JSON": (json.dumps(some).encode(), _JSON),
        "1,000 rows, Arrow": (out.getvalue(), _ARROW),
    }


def _memory(commands: dict[str, list[str]], rows: dict[str, list[Any]], requests: int) -> list[str]:
    """What a server holds after very many requests, of rows that differ, against what it held after a tenth of them."""
    server = "Candide, bayes"
    each = zip(*(column[:20_000] for column in rows.values()), strict=True)
    bodies = [json.dumps(dict(zip(rows, row, strict=True))).encode() for row in each]
    with _started(commands[server]) as (process, port):
        asyncio.run(_sent(port, bodies, requests // 10))
        before = _megabytes(process.pid)
        asyncio.run(_sent(port, bodies, requests - requests // 10))
        after = _megabytes(process.pid)
    return [
        f"{requests:,} requests: {before:,.0f} MB held after a tenth of them, {after:,.0f} MB in the end",
        server,
        "",
        "",
    ]


def _megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def _sent(port: int, bodies: list[bytes], requests: int, at_once: int = 50) -> None:
    """Send so many requests by one connection, some of them before the first is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    for first in range(0, requests, at_once):
        some = [bodies[i % len(bodies)] for i in range(first, min(first + at_once, requests))]
        writer.write(b"".join(_request("/predict", body, _JSON) for body in some))
        for _ in some:
            await _answered(reader)
    writer.close()


def _request(path: str, body: bytes, media: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _answered(reader: asyncio.StreamReader) -> None:
    told = await reader.readuntil(b"\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 200"), told
    await reader.readexactly(int(re.search(rb"content-length: (\d+)", told)[1]))  # type: ignore[index]


def _learning(
    folder: Path, commands: dict[str, list[str]], rows: dict, y: list[str], lasts: float, turns: int
) -> list[list[str]]:
    """Rows learned one a request, by 64 clients, each on the disk before it is answered."""
    lines = []
    body = json.dumps({**{name: column[0] for name, column in rows.items()}, "class": y[0]}).encode()
    for server, command in commands.items():
        if not server.startswith("Candide"):
            continue
        best, most = float("inf"), 0.0
        for turn in range(turns):
            with _started([*command, "--learn", str(folder / f"{server} {turn}.db")]) as (process, port):
                took, rate = _measured(process.pid, port, "/learn", body, _JSON, 64, lasts)
                best, most = min(best, took), max(most, rate)
        lines.append([f"learn one row, 64 clients: {most:,.0f} a second", server, f"{best * 1e6:,.0f}", ""])
    return [*lines, [f"4 KB on the disk, one by one: {_pages(folder):,.0f} a second", "the limit", "", ""]]


def _pages(folder: Path, n: int = 200) -> float:
    """How often a second a page is written, and is on the disk."""
    with (folder / "pages").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(n):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        return n / (time.perf_counter() - start)


@contextmanager
def _started(command: list[str]) -> Iterator[tuple[subprocess.Popen, int]]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://127.0.0.1:(\d+)", line):
                yield process, int(found[1])
                break
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def _measured(
    pid: int, port: int, path: str, body: bytes, media: str, clients: int, lasts: float
) -> tuple[float, float]:
    """Seconds of the server's processor for each request, and requests a second."""
    before = _processor(pid)
    answered = asyncio.run(_load(port, path, body, media, clients, lasts))
    return (_processor(pid) - before) / answered, answered / lasts


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _load(port: int, path: str, body: bytes, media: str, clients: int, lasts: float) -> int:
    """Ask again and again from so many connections; how many requests were answered."""
    request, end = _request(path, body, media), asyncio.get_running_loop().time() + lasts

    async def client() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        done = 0
        while asyncio.get_running_loop().time() < end:
            writer.write(request)
            await _answered(reader)
            done += 1
        writer.close()
        return done

    return sum(await asyncio.gather(*(client() for _ in range(clients))))
