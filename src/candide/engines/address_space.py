"""Address space: libraries are loaded, or refused with a clear error, before a limit of it (``ulimit -v``) is reached.

OpenBLAS, which SciPy brings, retries for ever if it is loaded when no memory is left, and Python sees no signal then.
So with a limit it is loaded first, while there is room.

>>> check_address_space()
"""

import os
from functools import cache

from candide.errors import MemoryLimitError

_BASE_BYTES = 1_500 << 20  # bytes that the libraries reserve on one core: DuckDB, Arrow, NumPy, SciPy
_BYTES_PER_CORE = 64 << 20  # more for each further core: stacks, arenas and buffers of BLAS threads
_MAX_CORES = 64  # for which OpenBLAS is built
_MIB = 1 << 20


@cache
def check_address_space() -> None:
    """Raise an error where the address space of this process is too small; otherwise reserve what is needed."""
    limit, used = _limit_bytes(), _used_bytes()
    if limit is None:
        return
    least = _BASE_BYTES + _BYTES_PER_CORE * (min(os.cpu_count() or 1, _MAX_CORES) - 1)
    if limit - used < least:
        what = f"virtual memory is limited to {limit // _MIB:,} MiB (ulimit -v)"
        remedy = f"allow at least {(used + least) // _MIB + 1:,} MiB"
        raise MemoryLimitError(what, value=limit, remedy=remedy)
    import scipy.special  # noqa: F401


def _limit_bytes() -> int | None:
    """Return the limit of the address space in bytes; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _used_bytes() -> int:
    """Return the size of the address space in use, 0 where it is not known."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
