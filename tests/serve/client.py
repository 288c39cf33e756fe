"""A client that asks an application in this process, as a server would."""

import asyncio
import io
import json
from dataclasses import dataclass

import pyarrow as pa


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def notes(self):
        return json.loads(self.headers.get("candide-notes", "[]"))


def ask(app, path, body=None, media="application/json", method=None, root="", chunks=1, **headers):
    """Ask once. A body that is not bytes is sent as JSON, in so many chunks."""
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = [(name.replace("_", "-").encode(), str(value).encode()) for name, value in headers.items()]
    sent += [(b"content-type", media.encode())] if media and body is not None else []
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method or ("GET" if body is None else "POST"), "headers": sent}
    scope |= {"path": root + path, "root_path": root, "query_string": query.encode()}
    step = max(1, -(-len(raw) // chunks))
    parts = [raw[i : i + step] for i in range(0, len(raw), step)] or [b""]
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False
    out = []

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        out.append(message)

    asyncio.run(app(scope, receive, send))
    start, *rest = out
    known = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], known, b"".join(part["body"] for part in rest))


def stream(columns):
    """Columns as an Arrow stream."""
    out, table = io.BytesIO(), pa.table(columns)
    with pa.ipc.new_stream(out, table.schema) as sink:
        sink.write_table(table)
    return out.getvalue()
