"""Connections: limits on how long a client may keep one without a complete request, and on their number.

uvicorn limits neither the size of request headers nor the time they take, so that a few hundred clients that never
finish theirs would use up the file descriptors of the process and lock out all others.
"""

import time
from typing import Any

HEAD_SECONDS = 10.0  # to send the headers of a request, from the connection or from the last response
IDLE_SECONDS = 5  # a connection is kept open after a response
_HEAD_BYTES = 1 << 16  # of a request before its body
_MAX_CONNECTIONS = 4096  # connections at once
_RESERVED_DESCRIPTORS = 100  # file descriptors for the rest of the process
_REFUSAL_RESPONSE = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def max_connections() -> int:
    """Return how many connections may be open, by the limit of file descriptors of this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return min(_MAX_CONNECTIONS, files - min(_RESERVED_DESCRIPTORS, files // 2))


def make_bounded_protocol() -> Any:
    """Return uvicorn's protocol with a deadline for headers, a limit of their size, and one of connections."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

    class Bounded(_with_deadlines(Protocol)):  # type: ignore[misc]
        _in_head, _n_received = False, 0

        def on_message_begin(self) -> None:
            self._in_head, self._n_received = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._n_received += len(data)
            if self._in_head and self._n_received > _HEAD_BYTES:
                self.refuse(b"431 Request Header Fields Too Large")

    # Without httptools the size is limited already.
    return Bounded if hasattr(Protocol, "on_message_begin") else _with_deadlines(Protocol)


def _with_deadlines(protocol: Any) -> Any:
    """Return a protocol that closes connections whose client is too slow."""
    limit = max_connections()

    class Timed(protocol):
        _deadline: Any = None
        _since, _unsent, _has_begun = 0.0, 0, False

        @property
        def is_working(self) -> bool:
            """Whether a request has arrived completely, and its response is pending."""
            return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > limit:
                waiting = [connection for connection in self.connections if not connection.is_working]
                oldest = min(waiting, key=lambda connection: connection._since)
                self.connections.discard(oldest)  # now: more may come before it is closed
                oldest.transport.abort()

        def data_received(self, data: bytes) -> None:
            self._has_begun = True
            super().data_received(data)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._has_begun = False
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def refuse(self, status: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(_REFUSAL_RESPONSE % status)
                self.transport.close()

        def _wait(self) -> None:
            """Give the client time to send the headers of a request, or to read the last response."""
            if self._deadline is not None:
                self._deadline.cancel()
            self._since, self._unsent = time.monotonic(), self.transport.get_write_buffer_size()
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._end_if_overdue)

        def _end_if_overdue(self) -> None:
            self._deadline = None
            if self.cycle is not None and not self.cycle.response_complete:
                return  # the application limits the time for the body and the response
            unsent = self.transport.get_write_buffer_size()
            if 0 < unsent < self._unsent:
                self._wait()
            elif unsent:
                self.transport.abort()
            elif self._has_begun:
                self.refuse(b"408 Request Timeout")
            else:
                self.transport.close()

    return Timed
