"""The compiled kernels for processors with AVX2 and FMA; `_numpy` is their readable twin."""

include "_tables.pxi"
include "_counting.pxi"
include "_sparse.pxi"
include "_scoring.pxi"
include "_normalising.pxi"
