"""Calls that can be stopped. DuckDB looks out for signals while it works, but does not always come back from one.

So it works on a thread of its own, and whoever waits for it stops it: an interrupt ends in the error it should.

>>> import duckdb
>>> con = duckdb.connect()
>>> run_interruptible(con, lambda: con.sql("SELECT 1 + 1").fetchall())
[(2,)]
"""

import os
import select
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_INTERRUPT_SECONDS = 0.01  # seconds between two interrupts
_SIGNAL_CHECK_SECONDS = 0.1  # and between two looks for a signal


def run_interruptible(con: Any, call: Callable[[], T]) -> T:
    """What a call on a connection gives. Where this thread is told to stop meanwhile, the connection is."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes there
        return call()
    found: list[T] = []
    failed: list[BaseException] = []
    begun, stop, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            if not stop.is_set():
                found.append(call())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="candide-query", daemon=True)
    try:
        thread.start()
        while not ended.wait(
            _SIGNAL_CHECK_SECONDS
        ):  # a signal that came to another thread is seen only when this one wakes
            pass
    except BaseException:
        stop.set()  # a signal may come before the thread has begun
        while begun.is_set() and not ended.wait(
            _INTERRUPT_SECONDS
        ):  # and a query that is yet to begin not know of an interrupt
            con.interrupt()
        raise
    if failed:
        raise failed[0]
    return found[0]


def read_pieces(stream: Any, size: int = 1 << 20) -> Iterator[bytes]:
    """What comes on a stream, as it comes; whoever waits for more sees a signal meanwhile.

    >>> import io
    >>> list(read_pieces(io.BytesIO(b"one two"), 4))
    [b'one ', b'two']
    """
    try:
        waits = [stream.fileno()] if os.name == "posix" else []
    except (OSError, AttributeError):  # it is in memory
        waits = []
    while True:
        while waits and not select.select(waits, [], [], _SIGNAL_CHECK_SECONDS)[0]:
            pass
        piece = stream.read1(size)
        if not piece:
            return
        yield piece
