"""Threads split rows; each part is worked without the GIL; the parts come back in order.

The number of threads is ``CANDIDE_THREADS``, else the cores this process may use.

>>> map_rows(lambda rows: rows.stop - rows.start, 10, cost=1)
[10]
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

from candide.errors import InputError

T = TypeVar("T")
_MIN_THREAD_WORK = 400_000  # work (rows x features x classes) below which a second thread costs more than it gives
_forced_parts: tuple[int, list[int]] | None = None  # the parts to make of any work, and those made


@cache
def thread_count() -> int:
    """How many threads are used."""
    setting = os.environ.get("CANDIDE_THREADS")
    if setting:
        if not setting.strip().isdecimal():
            what = f"CANDIDE_THREADS: {setting!r} is not a number of threads"
            raise InputError(what, value=setting, remedy="set a whole number, such as 2")
        return max(1, int(setting))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> Any:
    from concurrent.futures import ThreadPoolExecutor  # here, because it costs as much as loading a small model

    return ThreadPoolExecutor(max_workers=thread_count(), thread_name_prefix="candide")


os.register_at_fork(after_in_child=_pool.cache_clear) if hasattr(os, "register_at_fork") else None


def map_rows(work: Callable[[slice], T], n_rows: int, *, cost: int, is_blas_bound: bool = False) -> list[T]:
    """Apply ``work`` to slices that cover the rows, one a thread; ``cost`` is the work per row.

    ``is_blas_bound``: BLAS is limited to one thread meanwhile, since nested threads compete.
    """
    if _forced_parts is None:
        parts = min(thread_count(), max(1, n_rows * cost // _MIN_THREAD_WORK))
    else:
        parts = max(1, min(_forced_parts[0], n_rows))
        _forced_parts[1].append(parts)
    if parts <= 1:
        return [work(slice(0, n_rows))]
    edges = [n_rows * i // parts for i in range(parts + 1)]
    with one_blas_thread() if is_blas_bound else nullcontext():
        return list(_pool().map(work, (slice(a, b) for a, b in pairwise(edges))))


@contextmanager
def force_parts(parts: int) -> Iterator[list[int]]:
    """Make so many parts of all work meanwhile, however small it is: no result may depend on it.

    >>> with force_parts(3) as made:
    ...     map_rows(lambda rows: rows.stop - rows.start, 10, cost=1)
    [3, 3, 4]
    >>> made
    [3]
    """
    global _forced_parts
    before, _forced_parts = _forced_parts, (parts, [])
    try:
        yield _forced_parts[1]
    finally:
        _forced_parts = before


class _BlasLimit:
    """The limit on the threads of BLAS, which is one for the process: the first user sets it, the last lifts it."""

    lock = Lock()
    users = 0
    limiter: Any = None


@lru_cache(1)
def _libraries(modules: int) -> Any:
    """The BLAS libraries of this process, once so many modules are imported: they come with these.

    Finding them takes milliseconds, because the names of all loaded libraries are read.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    with _BlasLimit.lock:
        if _BlasLimit.users == 0:
            _BlasLimit.limiter = _libraries(len(sys.modules)).limit(limits=1)
        _BlasLimit.users += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.users -= 1
            if _BlasLimit.users == 0:
                _BlasLimit.limiter.restore_original_limits()


def map_ahead(work: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """Apply ``work`` to items on threads, a few ahead of the reader of the results, which keep their order.

    >>> list(map_ahead(len, ["a", "bcd", ""]))
    [1, 3, 0]
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    # A pool of its own: the work may itself divide rows among the threads of the other.
    with ThreadPoolExecutor(max_workers=thread_count(), thread_name_prefix="candide-ahead") as pool:
        waiting: deque[Future[T]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > thread_count():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
