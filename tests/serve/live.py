"""Servers for a test: at a port of this machine, in a thread, until the test is over."""

import contextlib
import http.server
import socket
import threading
import time

import uvicorn
from tests.serve.client import ask


@contextlib.contextmanager
def listening(application):
    """The address of an application that is served as ``candide serve`` does it."""
    socket_ = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_config=None, ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([socket_],), daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{socket_.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def failing(application, fails):
    """The same, of a server that fails at some requests: ``fails`` is asked the path and which request it is.

    It may answer with None (all is well), or a status and a body to send; "gone" closes the connection.
    """
    asked = []

    class Faulty(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked.append(self.path)
            body = self.rfile.read(int(self.headers.get("content-length", 0))) if self.command == "POST" else None
            fault = fails(self.path, len(asked))
            if fault == "gone":
                self.close_connection = True
                return
            if fault is None:
                answer = ask(application, self.path, body, self.headers.get("content-type"))
                status, raw, media = answer.status, answer.body, answer.headers["content-type"]
            else:
                (status, raw), media = fault, "text/plain"
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
