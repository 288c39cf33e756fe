"""Measuring: best of several runs, taken in turns so that a noisy moment hits both sides; peak memory in a child."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


def seconds(*works: Callable[[], object], repeat: int = 5, budget: float = 30.0) -> list[float]:
    """The best time of each work; the works take turns."""
    best = [float("inf")] * len(works)
    spent = time.perf_counter()
    for _ in range(repeat):
        for i, work in enumerate(works):
            gc.collect()
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
        if time.perf_counter() - spent > budget:
            break
    return best


def read_once(*arrays: np.ndarray) -> Callable[[], object]:
    """The limit: touch every byte of the input once, on all cores, and do nothing with it."""
    from candide.kernels import threads

    flat = [a.reshape(-1).view(np.uint64) for a in arrays if a.nbytes % 8 == 0 and a.flags.c_contiguous]

    def work() -> None:
        for a in flat:
            threads.map_rows(lambda rows, a=a: np.bitwise_or.reduce(a[rows]), len(a), cost=1)

    return work


@dataclass(frozen=True)
class Done:
    """What a child process took: wall seconds from start to end, peak memory, and the seconds it said itself."""

    seconds: float
    megabytes: float
    said: float


def child(code: str, timeout: float = 900) -> Done:
    """Run code in a new process; a line ``seconds N`` of its output is what it measured itself."""
    ending = "\nfrom benchmarks.measure import high_water; print('peak', high_water())"
    start = time.perf_counter()
    out = subprocess.run(
        [sys.executable, "-c", code + ending], capture_output=True, text=True, check=True, timeout=timeout
    )
    took = time.perf_counter() - start
    said = dict(line.split() for line in out.stdout.splitlines() if line.startswith(("seconds ", "peak ")))
    return Done(took, float(said["peak"]), float(said.get("seconds", "nan")))


def high_water(*, reset: bool = False) -> float:
    """The most memory this process itself (``ru_maxrss`` would count its parent) has held, in MB.

    Since it was started, or since the mark was last ``reset`` to what it held then.
    """
    if reset:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def peak_megabytes(code: str) -> float:
    """Run ``code`` in a child; it prints the growth of its peak memory in MB as its last line."""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout.strip().splitlines()[-1])
