"""How the loops run: those of which implementation, and on how many threads.

``CANDIDE_KERNELS`` chooses the loops: ``avx2``, ``baseline`` (any processor), ``numpy`` (reference) or ``auto``. The
last, the default, takes the first of them that is available. They are loaded when the first of them is used.

Rows are divided among threads, each part is computed without the GIL, and the parts are returned in order. The number
of threads is ``CANDIDE_THREADS``, else the number of cores this process may use.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from importlib import import_module
from itertools import pairwise
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, UnknownNameError

T = TypeVar("T")
INFINITE = -1  # what a scoring kernel returns for an infinite value
_SIMD_DOUBLES = 4  # doubles that the compiled loops process together
_CACHE_LINE_DOUBLES = 8
_CHOICES = ("auto", "avx2", "baseline", "numpy")
_NAMES = """
moments power_sums moments_of code_range distinct grid_codes interpolate level_counts dense_sums csr_sums
add_gaussian add_student add_switch add_linear add_levels add_linear_csr cell_counts cell_terms held_out_cells
score_cells Sets add_cells take_cells grow_table Tables table_cells add_tables cell_sums
add_discriminant word_scores word_slopes word_spreads word_groups
normalise posterior fill_rows first_largest
"""  # _numpy.py has their signatures
_MIN_THREAD_WORK = 400_000  # rows x features x classes below which a second thread costs more than it gains
_forced_parts: tuple[int, list[int]] | None = None  # set in tests: the number of parts, and those made


def get_loop(name: str) -> Any:
    """Return a loop for ``candide.kernels``, which has them all from then on; ``NAME`` is their implementation."""
    if name != "NAME" and name not in _NAMES.split():
        raise AttributeError(f"module {__package__!r} has no attribute {name!r}")
    chosen, loops = _choose(os.environ.get("CANDIDE_KERNELS", "auto"))
    package = vars(import_module("candide.kernels"))
    package.update({loop: getattr(loops, loop) for loop in _NAMES.split()}, NAME=chosen)
    return package[name]


def _choose(requested: str) -> tuple[str, ModuleType]:
    if requested not in _CHOICES:
        remedy = f"pass one of {', '.join(_CHOICES)}"
        raise UnknownNameError(f"CANDIDE_KERNELS={requested!r}", value=requested, remedy=remedy)
    for name in (requested,) if requested != "auto" else _CHOICES[1:]:
        try:
            return name, _load(name)
        except ImportError:
            if requested != "auto":
                raise
    raise AssertionError("the NumPy reference always imports")


def _load(name: str) -> ModuleType:
    # Checked first: merely importing code built for AVX2 may stop a processor that lacks it.
    if name == "avx2" and not _load("baseline").cpu_has_avx2():
        raise ImportError("this processor has no AVX2; set CANDIDE_KERNELS to baseline, numpy or auto")
    return import_module(f"candide.kernels._{name}")


def pad_columns(table: NDArray) -> NDArray[np.float64]:
    """A table padded with zero columns, so that a row is read in whole SIMD lanes; scoring kernels skip them."""
    n_rows, n_columns = table.shape
    width = -(-n_columns // _SIMD_DOUBLES) * _SIMD_DOUBLES
    memory = np.zeros(n_rows * width + _CACHE_LINE_DOUBLES)
    start = -memory.ctypes.data % (8 * _CACHE_LINE_DOUBLES) // 8  # lanes that straddle two cache lines cost twice
    out = memory[start : start + n_rows * width].reshape(n_rows, width)
    out[:, :n_columns] = table
    return out


@cache
def thread_count() -> int:
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
    """Apply ``work`` to slices that cover the rows, one per thread; ``cost`` is the work per row.

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
    """Divide all work into this many parts, however small it is: no result may depend on it."""
    global _forced_parts
    before, _forced_parts = _forced_parts, (parts, [])
    try:
        yield _forced_parts[1]
    finally:
        _forced_parts = before


class _BlasLimit:
    """The limit on the threads of BLAS in this process: the first user sets it, the last lifts it."""

    lock = Lock()
    users = 0
    limiter: Any = None


@lru_cache(1)
def _libraries(modules: int) -> Any:
    """The BLAS libraries of this process, searched again when the number of imported modules changes."""
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
    """Apply ``work`` to items on threads, a few ahead of the reader of the results, which keep their order."""
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
