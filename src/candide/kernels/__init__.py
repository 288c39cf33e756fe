"""The hot loops, compiled where they could be built, in NumPy where not: one set of names for both.

``NAME`` is the implementation that runs; ``_numpy`` documents the loops.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    value = getattr(import_module("candide.kernels.choice"), name)
    globals()[name] = value
    return value
