"""Check a built site: it fetches nothing from elsewhere, no page is too wide, and search works from the disk.

    mkdocs build --strict && python tests/site/check.py build/site

All but the first need Chromium, and are left out with a word where there is none.
"""

import json
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WIDTH = 1280
# What a browser fetches by itself: not the links that a reader follows.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|link(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|icon|preload)))"
    r"[^>]*?(?:src|href|srcset)=[\"']?((?:https?:)?//[^\"'> ]+)"
    r"|@import\s+(?:url\()?[\"']?((?:https?:)?//[^\"')]+)"
    r"|url\(\s*[\"']?((?:https?:)?//[^\"')]+)",
    re.IGNORECASE,
)
_MEASURE = """<!doctype html><body><iframe id="f" style="width:%dpx;height:900px;border:0"></iframe><script>
const pages = %s, found = {}, frame = document.getElementById("f");
(async () => {
  for (const page of pages) {
    await new Promise(done => { frame.onload = done; frame.src = page; });
    found[page] = frame.contentDocument.documentElement.scrollWidth;
  }
  fetch("found", {method: "POST", body: JSON.stringify(found)});
})();
</script></body>"""


def fetched_from_elsewhere(site: Path) -> list[str]:
    """Addresses outside the site that a page, a style sheet or a picture would fetch."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            for match in _FETCHED.finditer(path.read_text(errors="replace")):
                found.append(f"{path.relative_to(site)}: {next(filter(None, match.groups()))}")
    return found


def widths(site: Path, browser: str) -> dict[str, int]:
    """How wide each page wants to be in a window of 1280 pixels: a page of frames measures them, and reports."""
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    measure = (_MEASURE % (WIDTH, json.dumps(pages))).encode()
    reports: queue.Queue[bytes] = queue.Queue()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path != "/measure":
                return super().do_GET()
            self._answer(measure)
            return None

        def do_POST(self):
            reports.put(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(b"thanks")

        def _answer(self, body):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", f"--user-data-dir={profile}"]
        flags += ["--no-first-run", "--disable-background-networking", "--remote-debugging-port=0", "--no-proxy-server"]
        address = f"http://127.0.0.1:{server.server_port}/measure"
        process = subprocess.Popen([browser, *flags, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.loads(reports.get(timeout=120))
        except queue.Empty:
            raise RuntimeError(f"{browser} measured nothing within two minutes") from None
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


def found_from_the_disk(site: Path, browser: str, word: str) -> int:
    """How many results a page that was opened from the disk has for a word."""
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
        flags += ["--no-first-run", "--disable-background-networking", "--virtual-time-budget=20000"]
        address = f"{(site / 'index.html').resolve().as_uri()}?q={word}"
        done = subprocess.run([browser, *flags, address], capture_output=True, text=True, timeout=120)
    return done.stdout.count("md-search-result__item")


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")
    if not (site / "index.html").exists():
        print(f"{site} holds no site; mkdocs build first")
        return 2
    elsewhere = fetched_from_elsewhere(site)
    for line in elsewhere:
        print("fetched from elsewhere:", line)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    wide, lost = {}, False
    if browser:
        found = widths(site, browser)
        wide = {page: width for page, width in found.items() if width > WIDTH}
        for page, width in wide.items():
            print(f"too wide: {page} wants {width} of {WIDTH} pixels")
        lost = not found_from_the_disk(site, browser, "covariance")
        if lost:
            print("search finds nothing in pages opened from the disk")
        print(f"{len(found)} pages, the widest {max(found.values())} pixels")
    else:
        print("widths were not measured: there is no Chromium here")
    return 1 if elsewhere or wide or lost else 0


if __name__ == "__main__":
    sys.exit(main())
