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
moments = _chosen.moments
power_sums = _chosen.power_sums
moments_of = _chosen.moments_of
code_range = _chosen.code_range
distinct = _chosen.distinct
grid_codes = _chosen.grid_codes
interpolate = _chosen.interpolate
level_counts = _chosen.level_counts
dense_sums = _chosen.dense_sums
csr_sums = _chosen.csr_sums
add_gaussian = _chosen.add_gaussian
add_student = _chosen.add_student
add_switch = _chosen.add_switch
add_linear = _chosen.add_linear
add_levels = _chosen.add_levels
add_linear_csr = _chosen.add_linear_csr
cell_counts = _chosen.cell_counts
cell_terms = _chosen.cell_terms
held_out_cells = _chosen.held_out_cells
score_cells = _chosen.score_cells
Sets = _chosen.Sets
add_cells = _chosen.add_cells
take_cells = _chosen.take_cells
add_discriminant = _chosen.add_discriminant
word_scores = _chosen.word_scores
word_slopes = _chosen.word_slopes
word_spreads = _chosen.word_spreads
word_groups = _chosen.word_groups
normalise = _chosen.normalise
posterior = _chosen.posterior
fill_rows = _chosen.fill_rows
first_largest = _chosen.first_largest


def pad_columns(table: NDArray) -> NDArray[np.float64]:
    """A table padded with zero columns, so that a row is read in whole SIMD lanes; scoring kernels skip them."""
    n_rows, n_columns = table.shape
    width = -(-n_columns // _SIMD_DOUBLES) * _SIMD_DOUBLES
    memory = np.zeros(n_rows * width + _CACHE_LINE_DOUBLES)
    start = -memory.ctypes.data % (8 * _CACHE_LINE_DOUBLES) // 8  # lanes that straddle two cache lines cost twice
    out = memory[start : start + n_rows * width].reshape(n_rows, width)
    out[:, :n_columns] = table
    return out
