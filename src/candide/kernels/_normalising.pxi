# From joint log-probabilities to posteriors, in place.

from libc.string cimport memcpy

cdef enum:
    LOT = 1024  # exponentials taken together, so that they vectorise for any number of classes


cdef inline void _exp(const double *x, double *y) noexcept nogil:
    """y = exp(x) of some lanes, -708 <= x <= 0, within 2 ulp: 2**n exp(r), |r| <= log(2) / 2, Taylor to r**13."""
    # Adding 1.5 * 2**52 rounds to an integer, which then stands in the low bits.
    cdef Lanes shifted = _load(x) * 1.4426950408889634 + 6755399441055744.0
    cdef Lanes n = shifted - 6755399441055744.0
    cdef Lanes r = (_load(x) - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10  # Cody and Waite (1980)
    cdef Lanes p = r * 1.6059043836821613e-10 + 2.08767569878681e-09
    cdef Lanes scale = _two_to(shifted)
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
    _store(y, scale + scale * p)


cdef int _exp_all(double[::1] x, Py_ssize_t n) except -1 nogil:
    """x = exp(x) for x <= 0, -inf among them."""
    cdef Py_ssize_t i, n_small = 0
    cdef double y[LOT + LANES]
    for i in range(n):
        y[i] = x[i] if x[i] > -708.0 else -708.0
        n_small += x[i] <= -708.0
    for i in range(n, n + LANES):
        y[i] = 0.0  # what fills the last lanes
    i = 0
    while i < n:
        _exp(&y[i], &y[i])
        i += LANES
    if n_small:
        for i in range(n):
            if x[i] <= -708.0:
                y[i] = exp(x[i]) if x[i] > -746.0 else 0.0  # below the normal numbers
    memcpy(&x[0], y, n * sizeof(double))
    return 0


def normalise(joint):
    """Turn joint log-probabilities into log-posteriors in place; return log p(x) of each row.

    A row that is impossible under every class has evidence -inf and keeps -inf everywhere.
    """
    work = np.ascontiguousarray(joint)
    cdef double[:, ::1] z = work
    evidence = np.empty(z.shape[0])
    cdef double[::1] log_p = evidence
    cdef Py_ssize_t a = 0, b, r, c, n = z.shape[0], k = z.shape[1], rows = max(1, min(n, LOT // max(1, k)))
    cdef double[::1] share = np.empty(rows * k), total = np.empty(rows)
    with nogil:
        while a < n:
            b = min(a + rows, n)
            _shares(z, a, b, share, log_p[a:b], total)
            for r in range(a, b):
                if log_p[r] - log_p[r] == 0:
                    log_p[r] += log(total[r - a])
                    for c in range(k):
                        z[r, c] -= log_p[r]
            a = b
    if work is not joint:
        joint[...] = work
    return evidence


def posterior(joint, otherwise):
    """Turn joint log-probabilities into posteriors in place; ``otherwise`` where every class is impossible."""
    work = np.ascontiguousarray(joint)
    cdef double[:, ::1] z = work
    cdef const double[:] fallback = otherwise
    cdef Py_ssize_t a = 0, b, r, c, n = z.shape[0], k = z.shape[1], rows = max(1, min(n, LOT // max(1, k)))
    cdef double[::1] share = np.empty(rows * k), top = np.empty(rows), total = np.empty(rows)
    cdef double scale
    _require(fallback.shape[0] == k, "the posteriors differ in length")
    with nogil:
        while a < n:
            b = min(a + rows, n)
            _shares(z, a, b, share, top, total)
            for r in range(b - a):
                if top[r] - top[r] == 0:
                    scale = 1 / total[r]
                    for c in range(k):
                        z[a + r, c] = scale * share[r * k + c]
                else:
                    for c in range(k):
                        z[a + r, c] = fallback[c] if top[r] < 0 else exp(z[a + r, c])
            a = b
    if work is not joint:
        joint[...] = work


cdef int _shares(
    double[:, ::1] z, Py_ssize_t a, Py_ssize_t b, double[::1] share, double[::1] top, double[::1] total
) except -1 nogil:
    # A literal number of classes: the loops over them then vanish.
    if z.shape[1] == 2:
        return _shares_of(z, a, b, 2, share, top, total)
    if z.shape[1] == 3:
        return _shares_of(z, a, b, 3, share, top, total)
    return _shares_of(z, a, b, z.shape[1], share, top, total)


cdef inline int _shares_of(
    double[:, ::1] z, Py_ssize_t a, Py_ssize_t b, const Py_ssize_t k, double[::1] share, double[::1] top,
    double[::1] total,
) except -1 nogil:
    """The largest z of rows a:b, exp(z - largest), and the sum of these."""
    cdef Py_ssize_t r, c, n_nan, first = 0, size = (b - a) * k
    cdef double best, whole
    for r in range(b - a):
        best, n_nan = -INFINITY, 0
        for c in range(k):
            best = z[a + r, c] if z[a + r, c] > best else best
            n_nan += z[a + r, c] != z[a + r, c]
        best = NAN if n_nan else best
        top[r] = best
        for c in range(k):
            # Where no class is possible, or one is NaN or infinite, there is nothing to share.
            share[r * k + c] = z[a + r, c] - best if best - best == 0 else 0.0
    while first < size:
        _exp_all(share[first:], min(LOT, size - first))
        first += LOT
    for r in range(b - a):
        whole = 0.0
        for c in range(k):
            whole += share[r * k + c]
        total[r] = whole
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
