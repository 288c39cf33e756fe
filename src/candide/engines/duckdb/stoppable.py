"""Calls that can be stopped. DuckDB looks out for signals while it works, but does not always come back from one.

So it works on a thread of its own, and whoever waits for it stops it: an interrupt ends in the error it should.

>>> import duckdb
>>> con = duckdb.connect()
>>> stoppable(con, lambda: con.sql("SELECT 1 + 1").fetchall())
[(2,)]
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_PAUSE = 0.01  # seconds between two interrupts


def stoppable(con: Any, call: Callable[[], T]) -> T:
    """What a call on a connection gives. Where this thread is told to stop meanwhile, the connection is."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes there
        return call()
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1, "candide-query") as pool:
        waiting = pool.submit(call)
        try:
            return waiting.result()
        except BaseException:
            while not waiting.done():  # one that is yet to begin would not know of it
                con.interrupt()
                wait([waiting], _PAUSE)
            raise
