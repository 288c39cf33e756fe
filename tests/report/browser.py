"""A real browser for tests: Chromium without a window, spoken to over its DevTools protocol. Standard library alone.

It is looked for by the names that distributions give it, or as ``CANDIDE_CHROMIUM`` says.
"""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LONGEST = 120.0  # seconds that an answer may take


def found():
    """The browser's program; None where there is none."""
    asked = os.environ.get("CANDIDE_CHROMIUM")
    return asked or next(filter(None, map(shutil.which, NAMES)), None)


class Socket:
    """As much of a web socket (RFC 6455) as the protocol needs: text of any length, both ways."""

    def __init__(self, port, path):
        self.wire = socket.create_connection(("127.0.0.1", port), timeout=LONGEST)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self.wire.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.wire.makefile("rb")
        while self.file.readline().strip():
            pass

    def send(self, text):
        raw, mask = text.encode(), os.urandom(4)
        size = bytes([128 | 127]) + struct.pack(">Q", len(raw))
        repeated = mask * (len(raw) // 4 + 1)
        masked = (int.from_bytes(raw, "big") ^ int.from_bytes(repeated[: len(raw)], "big")).to_bytes(len(raw), "big")
        self.wire.sendall(b"\x81" + size + mask + masked)

    def receive(self):
        parts, last = [], False
        while not last:
            first, second = self.file.read(2)
            last, size = bool(first & 128), second & 127
            if size >= 126:
                size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
            raw = self.file.read(size)
            if first & 15 in (0, 1):
                parts.append(raw)
        return b"".join(parts).decode()


class Tab:
    """A page that is open: scripts run in it, and what it said and asked for is kept."""

    def __init__(self, wire):
        self.wire, self.number = wire, 0
        self.said, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **params):
        self.number += 1
        self.wire.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        answer = json.loads(self.wire.receive())
        method, params = answer.get("method"), answer.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.said.append(str([one.get("value", one.get("description")) for one in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("data:"):
            self.requests.append(params["request"]["url"])  # the icon is in its address: asked of nobody
        return answer

    def open(self, path, fragment=""):
        """Go to a file, and wait until it is loaded."""
        self.ask("Page.navigate", url=Path(path).resolve().as_uri() + fragment)
        self.until("document.readyState === 'complete'")

    def until(self, script):
        """Wait until a script comes to something true."""
        end = time.monotonic() + LONGEST
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.02)

    def run(self, script):
        """What a script comes to; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def look(self, width, height=900, dark=False):
        """How wide the page is shown, and whether light or dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)

    def picture(self, path, whole=True):
        """A picture of the page in a PNG file."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def tab():
    """A browser with one empty page, ended at last."""
    folder = tempfile.mkdtemp(prefix="candide-browser-")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-dev-shm-usage", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    with open(os.path.join(folder, "said"), "wb") as said:
        process = subprocess.Popen([found(), *flags], stdout=said, stderr=said)
    try:
        yield Tab(Socket(*_place(folder, process)))
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _place(folder, process):
    """The port and the path of the page's socket, which the browser writes down as it starts."""
    from urllib.request import ProxyHandler, build_opener

    port, end = Path(folder, "DevToolsActivePort"), time.monotonic() + LONGEST
    while not (port.exists() and port.read_text().strip()):
        assert process.poll() is None, Path(folder, "said").read_text()
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.05)
    number = int(port.read_text().split()[0])
    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{number}/json", timeout=LONGEST) as answer:
        [page] = [one for one in json.load(answer) if one["type"] == "page"]
    return number, "/" + page["webSocketDebuggerUrl"].split("/", 3)[3]
