# From joint log-probabilities to posteriors, in place.

from libc.string cimport memcpy

cdef enum:
    LOT = 1024  # exponentials taken together, so that they vectorise for any number of classes


cdef inline double _exp(double x) noexcept nogil:
    """exp(x) for -708 <= x <= 0, within 2 ulp: 2**n exp(r), |r| <= log(2) / 2, and Taylor's series to r**13."""
    # Adding 1.5 * 2**52 rounds to an integer, which then stands in the low bits.
    cdef double shifted = x * 1.4426950408889634 + 6755399441055744.0
    cdef double n = shifted - 6755399441055744.0
    cdef double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10  # Cody and Waite (1980)
    cdef int64_t bits
    cdef double p = 1.6059043836821613e-10, scale
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r * r + r
    memcpy(&bits, &shifted, 8)
    bits = <int64_t>((<uint64_t>bits + 1023) << 52)
    memcpy(&scale, &bits, 8)
    return scale + scale * p


cdef int _exp_all(double[::1] x, Py_ssize_t n) except -1 nogil:
    """x = exp(x) for x <= 0, -inf among them."""
    cdef Py_ssize_t i
    cdef double y[LOT]
    for i in range(n):
        y[i] = _exp(x[i] if x[i] > -708.0 else -708.0)
    for i in range(n):
        if x[i] > -708.0:
            x[i] = y[i]
        else:
            x[i] = exp(x[i])  # below the normal numbers
    return 0


def normalise(joint, bint exponentiate):
    """Turn joint log-probabilities into (log-)posteriors in place; return log p(x) of each row.

    A row that is impossible under every class has evidence -inf and keeps -inf everywhere (0 if exponentiated).
    """
    cdef double[:, :] z = joint
    evidence = np.empty(z.shape[0])
    cdef double[::1] log_p = evidence
    cdef Py_ssize_t a = 0, b, n = z.shape[0], k = z.shape[1], rows = max(1, min(n, LOT // max(1, k)))
    cdef double[::1] share = np.empty(rows * k)
    with nogil:
        while a < n:
            b = min(a + rows, n)
            _shares(z, a, b, share, log_p)
            if exponentiate:
                _write_shares(z, a, b, share, log_p)
            else:
                _subtract(z, a, b, log_p)
            a = b
    return evidence


cdef int _shares(double[:, :] z, Py_ssize_t a, Py_ssize_t b, double[::1] share, double[::1] log_p) except -1 nogil:
    """exp(z - largest z of the row), and log p(x)."""
    cdef Py_ssize_t r, c, k = z.shape[1], first, size = (b - a) * k
    cdef double top, total
    for r in range(a, b):
        top = -INFINITY
        for c in range(k):
            top = top if top > z[r, c] or top != top else z[r, c]
        log_p[r] = top
        for c in range(k):
            # Where no class is possible, or one is NaN or infinite, there is nothing to share.
            share[(r - a) * k + c] = z[r, c] - top if top - top == 0 else 0.0
    first = 0
    while first < size:
        _exp_all(share[first:], min(LOT, size - first))
        first += LOT
    for r in range(a, b):
        if log_p[r] - log_p[r] == 0:
            total = 0.0
            for c in range(k):
                total += share[(r - a) * k + c]
            log_p[r] += log(total)
            total = 1 / total
            for c in range(k):
                share[(r - a) * k + c] *= total
    return 0


cdef int _write_shares(
    double[:, :] z, Py_ssize_t a, Py_ssize_t b, double[::1] share, double[::1] log_p
) except -1 nogil:
    cdef Py_ssize_t r, c, k = z.shape[1]
    for r in range(a, b):
        if log_p[r] - log_p[r] == 0:
            for c in range(k):
                z[r, c] = share[(r - a) * k + c]
        else:
            for c in range(k):
                z[r, c] = exp(z[r, c])
    return 0


cdef int _subtract(double[:, :] z, Py_ssize_t a, Py_ssize_t b, double[::1] log_p) except -1 nogil:
    cdef Py_ssize_t r, c
    for r in range(a, b):
        if log_p[r] - log_p[r] == 0:
            for c in range(z.shape[1]):
                z[r, c] -= log_p[r]
    return 0


def fill_rows(out, row):
    """out[r] = row for every r: what scores start from."""
    cdef double[:, :] z = out
    cdef const double[:] value = row
    cdef Py_ssize_t r, c, k = z.shape[1]
    _require(value.shape[0] == k, "out and the row differ in length")
    with nogil:
        for r in range(z.shape[0]):
            for c in range(k):
                z[r, c] = value[c]


def first_largest(joint, otherwise, out):
    """out[r] = the first class with the largest joint[r]; ``otherwise`` where every class is impossible."""
    cdef const double[:, :] z = joint
    cdef Py_ssize_t[:] code = out
    cdef Py_ssize_t r, c, best, k = z.shape[1], fallback = otherwise
    cdef double top
    _require(code.shape[0] == z.shape[0], "out and the rows differ in length")
    with nogil:
        for r in range(z.shape[0]):
            best, top = fallback, -INFINITY
            for c in range(k):
                if z[r, c] > top:
                    best, top = c, z[r, c]
            code[r] = best
