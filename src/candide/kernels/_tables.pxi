# What the loops read: dense blocks of any number type as float64 tiles, level codes of any
# integer type, class codes and weights. Whatever could point outside an array is checked here, as it is read.

import numpy as np

from libc.math cimport INFINITY, NAN, exp, isfinite, isnan, log, log1p
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Number:
    double
    float
    int64_t
    int32_t
    uint8_t
    int8_t

ctypedef fused Code:
    int64_t
    int32_t
    int16_t
    int8_t
    uint64_t
    uint32_t
    uint16_t
    uint8_t

cdef enum:
    F8 = 1
    F4
    I8
    I4
    I2
    I1
    U8
    U4
    U2
    U1

cdef dict _KINDS = {
    np.dtype(name).str: kind
    for name, kind in [
        ("f8", F8), ("f4", F4), ("i8", I8), ("i4", I4), ("i2", I2), ("i1", I1),
        ("u8", U8), ("u4", U4), ("u2", U2), ("u1", U1),
    ]
}


cdef int _kind(x) except -1:
    """The number type of an array, 0 if it is none that the loops read in place."""
    return _KINDS.get(x.dtype.str, 0) if x.flags.aligned else 0


cdef _two_dimensional(x, str name):
    x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(f"{name} has {x.ndim} dimensions; pass 2")
    return x.view(np.uint8) if x.dtype == np.bool_ else x


cdef int _require(bint holds, str message) except -1:
    if not holds:
        raise ValueError(message)
    return 0


cdef int _copy(
    const Number[:, :] x, Py_ssize_t a, Py_ssize_t j, double[:, ::1] to, Py_ssize_t n, Py_ssize_t m
) except -1 nogil:
    """to[:n, :m] = x[a : a+n, j : j+m]."""
    cdef Py_ssize_t i, k, t = 0
    if x.strides[1] == sizeof(Number):
        for i in range(n):
            for k in range(m):
                to[i, k] = <double>x[a + i, j + k]
        return 0
    while t + 8 <= m:  # a whole cache line at a time
        for i in range(n):
            to[i, t] = <double>x[a + i, j + t]
            to[i, t + 1] = <double>x[a + i, j + t + 1]
            to[i, t + 2] = <double>x[a + i, j + t + 2]
            to[i, t + 3] = <double>x[a + i, j + t + 3]
            to[i, t + 4] = <double>x[a + i, j + t + 4]
            to[i, t + 5] = <double>x[a + i, j + t + 5]
            to[i, t + 6] = <double>x[a + i, j + t + 6]
            to[i, t + 7] = <double>x[a + i, j + t + 7]
        t += 8
    for k in range(t, m):
        for i in range(n):
            to[i, k] = <double>x[a + i, j + k]
    return 0


cdef class Table:
    """A dense block, handed out tile by tile: ``tile[row + i, column + j]``.

    float64 in C order is read where it lies; anything else is copied, one tile at a time.
    """

    cdef object source
    cdef int kind
    cdef bint in_place
    cdef const double[:, :] f8
    cdef const float[:, :] f4
    cdef const int64_t[:, :] i8
    cdef const int32_t[:, :] i4
    cdef const uint8_t[:, :] u1
    cdef const int8_t[:, :] i1
    cdef double[:, ::1] scratch
    cdef const double[:, ::1] tile
    cdef Py_ssize_t n_rows, n_columns, row, column

    def __cinit__(self, x, bint in_place):
        self.source = x
        self.n_rows, self.n_columns = x.shape
        self.kind = _kind(x)
        self.in_place = in_place and self.kind == F8 and x.flags.c_contiguous
        if self.in_place:
            self.tile = x
        elif self.kind == F8:
            self.f8 = x
        elif self.kind == F4:
            self.f4 = x
        elif self.kind == I8:
            self.i8 = x
        elif self.kind == I4:
            self.i4 = x
        elif self.kind == U1:
            self.u1 = x
        elif self.kind == I1:
            self.i1 = x

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t m) except -1:
        """Make room for tiles of n rows and m columns."""
        if not self.in_place:
            self.scratch = np.empty((n, m))
            self.tile = self.scratch
        return 0

    cdef int load(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t j, Py_ssize_t k) except -1 nogil:
        """Let the tile show rows a:b and columns j:k."""
        if self.in_place:
            self.row, self.column = a, j
        elif self.kind == F8:
            _copy(self.f8, a, j, self.scratch, b - a, k - j)
        elif self.kind == F4:
            _copy(self.f4, a, j, self.scratch, b - a, k - j)
        elif self.kind == I8:
            _copy(self.i8, a, j, self.scratch, b - a, k - j)
        elif self.kind == I4:
            _copy(self.i4, a, j, self.scratch, b - a, k - j)
        elif self.kind == U1:
            _copy(self.u1, a, j, self.scratch, b - a, k - j)
        elif self.kind == I1:
            _copy(self.i1, a, j, self.scratch, b - a, k - j)
        else:
            with gil:
                _copy[double](self.source[a:b, j:k].astype(np.float64), 0, 0, self.scratch, b - a, k - j)
        return 0


cdef int _widen(const Code[:, :] codes, Py_ssize_t a, Py_ssize_t n, int64_t[:, ::1] to) except -1 nogil:
    """to[:n] = codes[a : a+n]; what is beyond int64 is beyond every level."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(codes.shape[1]):
            if Code is uint64_t:
                to[i, j] = <int64_t>min(codes[a + i, j], <uint64_t>INT64_MAX)
            else:
                to[i, j] = codes[a + i, j]
    return 0


cdef class CodeTable:
    """Level codes of any integer type, handed out a run of rows at a time: ``code[row + i, j]``.

    A code is a level if it lies in [0, sizes[j]), which then stands at offsets[j] + code of a flat table. It is
    absent if it is negative. int64 in C order is read where it lies; anything else is copied.
    """

    cdef const int64_t[:, :] i8
    cdef const int32_t[:, :] i4
    cdef const int16_t[:, :] i2
    cdef const int8_t[:, :] i1
    cdef const uint64_t[:, :] u8
    cdef const uint32_t[:, :] u4
    cdef const uint16_t[:, :] u2
    cdef const uint8_t[:, :] u1
    cdef int kind
    cdef bint in_place
    cdef const Py_ssize_t[::1] offsets, sizes
    cdef int64_t[:, ::1] scratch
    cdef const int64_t[:, ::1] code
    cdef Py_ssize_t n_rows, n_features, n_levels, n_tile, row

    def __cinit__(self, codes, offsets):
        codes = _integers(codes)
        self.n_rows, self.n_features = codes.shape
        self.kind = _kind(codes)
        self.n_tile = max(1, min(64, self.n_rows, 16384 // max(1, self.n_features)))
        self.in_place = self.kind == I8 and codes.flags.c_contiguous
        if self.in_place:
            self.code = codes
        else:
            self.scratch = np.empty((self.n_tile, self.n_features), np.int64)
            self.code = self.scratch
            self._see(codes)
        # A copy of its own: the offsets that were checked are the offsets that are used.
        offsets = np.array(offsets, dtype=np.intp)
        self.offsets, self.sizes = offsets, offsets[1:] - offsets[: max(0, len(offsets) - 1)]
        self.n_levels = _levels(self.offsets, self.n_features)

    cdef int _see(self, codes) except -1:
        if self.kind == I8:
            self.i8 = codes
        elif self.kind == I4:
            self.i4 = codes
        elif self.kind == I2:
            self.i2 = codes
        elif self.kind == I1:
            self.i1 = codes
        elif self.kind == U8:
            self.u8 = codes
        elif self.kind == U4:
            self.u4 = codes
        elif self.kind == U2:
            self.u2 = codes
        else:
            self.u1 = codes
        return 0

    cdef int load(self, Py_ssize_t a, Py_ssize_t n) except -1 nogil:
        """Let ``code`` show rows a : a+n."""
        if self.in_place:
            self.row = a
        elif self.kind == I8:
            _widen(self.i8, a, n, self.scratch)
        elif self.kind == I4:
            _widen(self.i4, a, n, self.scratch)
        elif self.kind == I2:
            _widen(self.i2, a, n, self.scratch)
        elif self.kind == I1:
            _widen(self.i1, a, n, self.scratch)
        elif self.kind == U8:
            _widen(self.u8, a, n, self.scratch)
        elif self.kind == U4:
            _widen(self.u4, a, n, self.scratch)
        elif self.kind == U2:
            _widen(self.u2, a, n, self.scratch)
        else:
            _widen(self.u1, a, n, self.scratch)
        return 0


cdef _integers(codes):
    codes = _two_dimensional(codes, "codes")
    if codes.dtype.kind not in "iu":
        raise TypeError(f"codes are {codes.dtype}; pass integers")
    return codes if _kind(codes) else codes.astype(np.int64)


cdef Py_ssize_t _levels(const Py_ssize_t[::1] offsets, Py_ssize_t n_features) except -1:
    """The number of levels of all features, once the offsets are known to make sense."""
    cdef Py_ssize_t j
    _require(offsets.shape[0] == n_features + 1, "there must be one offset more than features")
    _require(offsets[0] >= 0, "an offset is negative")
    for j in range(n_features):
        _require(offsets[j] <= offsets[j + 1], "the offsets decrease")
    return offsets[n_features]


cdef class Members:
    """Class and weight of each row: a run of rows at a time, in ``label`` and ``weight``."""

    cdef const Py_ssize_t[:] y
    cdef const double[:] w
    cdef bint weighted
    cdef Py_ssize_t n_classes
    cdef Py_ssize_t[::1] label
    cdef double[::1] weight

    def __cinit__(self, y, w, Py_ssize_t n_rows, Py_ssize_t n_classes, Py_ssize_t n_run):
        _require(n_classes >= 0, "the number of classes is negative")
        self.y = np.asarray(y, np.intp)
        _require(self.y.shape[0] == n_rows, "y and the rows differ in length")
        self.weighted = w is not None
        if self.weighted:
            self.w = np.asarray(w, np.float64)
            _require(self.w.shape[0] == n_rows, "the weights and the rows differ in length")
        self.n_classes = n_classes
        self.label = np.empty(n_run, np.intp)
        self.weight = np.ones(n_run)

    cdef int load(self, Py_ssize_t a, Py_ssize_t b) except -1 nogil:
        cdef Py_ssize_t i, c
        for i in range(b - a):
            c = self.y[a + i]
            if c < 0 or c >= self.n_classes:
                with gil:
                    raise IndexError("a class code lies outside the classes")
            self.label[i] = c
        if self.weighted:
            for i in range(b - a):
                self.weight[i] = self.w[a + i]
        return 0
