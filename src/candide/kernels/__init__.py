"""The hot loops, compiled where they could be built, in NumPy where not: one set of names for both.

``NAME`` says what runs.
"""

from candide.kernels.choice import (
    INFINITE,
    NAME,
    add_gaussian,
    add_levels,
    add_linear,
    add_linear_csr,
    add_student,
    add_switch,
    code_range,
    csr_sums,
    dense_sums,
    fill_rows,
    first_largest,
    level_counts,
    moments,
    moments_of,
    normalise,
    padded,
    posterior,
    power_sums,
)

__all__ = [
    "INFINITE",
    "NAME",
    "add_gaussian",
    "add_levels",
    "add_linear",
    "add_linear_csr",
    "add_student",
    "add_switch",
    "code_range",
    "csr_sums",
    "dense_sums",
    "fill_rows",
    "first_largest",
    "level_counts",
    "moments",
    "moments_of",
    "normalise",
    "padded",
    "posterior",
    "power_sums",
]
