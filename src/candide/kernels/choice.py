"""Which loops run: those compiled for AVX2, those compiled for any processor, or the NumPy reference.

``CANDIDE_KERNELS`` chooses: ``auto`` (default: the first of them that there is), ``avx2``, ``baseline`` or ``numpy``.
"""

import importlib
import os
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from candide.errors import UnknownNameError

_SIMD_DOUBLES = 4  # doubles that the compiled loops work on together
_CACHE_LINE_DOUBLES = 8  # doubles of a cache line
_CHOICES = ("auto", "avx2", "baseline", "numpy")


def _choose(requested: str) -> tuple[str, ModuleType]:
    if requested not in _CHOICES:
        raise UnknownNameError(
            f"CANDIDE_KERNELS={requested!r}", value=requested, remedy=f"pass one of {', '.join(_CHOICES)}"
        )
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
    return importlib.import_module(f"candide.kernels._{name}")


NAME, _chosen = _choose(os.environ.get("CANDIDE_KERNELS", "auto"))

INFINITE = -1  # what a scoring kernel returns for an infinite value
_NAMES = """
moments power_sums moments_of code_range distinct grid_codes interpolate level_counts dense_sums csr_sums
add_gaussian add_student add_switch add_linear add_levels add_linear_csr cell_counts cell_terms held_out_cells
score_cells Sets add_cells take_cells add_discriminant word_scores word_slopes word_spreads word_groups
normalise posterior fill_rows first_largest
"""
globals().update({name: getattr(_chosen, name) for name in _NAMES.split()})  # _numpy.py has their signatures


def pad_columns(table: NDArray) -> NDArray[np.float64]:
    """A table padded with zero columns, so that a row is read in whole SIMD lanes; scoring kernels skip them."""
    n_rows, n_columns = table.shape
    width = -(-n_columns // _SIMD_DOUBLES) * _SIMD_DOUBLES
    memory = np.zeros(n_rows * width + _CACHE_LINE_DOUBLES)
    start = -memory.ctypes.data % (8 * _CACHE_LINE_DOUBLES) // 8  # lanes that straddle two cache lines cost twice
    out = memory[start : start + n_rows * width].reshape(n_rows, width)
    out[:, :n_columns] = table
    return out
