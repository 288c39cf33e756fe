"""The hot loops, compiled where they could be built, in NumPy where not: one set of names for both.

``NAME`` is the implementation that runs; ``_numpy`` documents the loops.
"""

from candide.kernels.threads import INFINITE, pad_columns
from candide.kernels.threads import get_loop as __getattr__  # noqa: F401  (loaded when first used)

__all__ = ["INFINITE", "pad_columns"]
