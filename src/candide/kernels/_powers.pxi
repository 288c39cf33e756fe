# Sums of w, w x and w x^2 as expansions: three doubles each, so that nothing is lost beside a value that is far larger.

from libc.math cimport fma

cdef enum:
    EXPANDED = 3  # doubles of an expansion
    CELL = 9  # of the three sums of a cell
    TERMS = 16  # that are added at once, at most


cdef inline void _two_sum(double *a, double *b) noexcept nogil:
    """a + b, and what rounding took from it (Knuth, 1969)."""
    cdef double s = a[0] + b[0]
    cdef double v = s - a[0]
    b[0] = (a[0] - (s - v)) + (b[0] - v)
    a[0] = s


cdef inline double _two_product(double a, double b, double *error) noexcept nogil:
    """a b, and what rounding took from it. By fma alone: a compiler may join a product and a sum into one rounding."""
    cdef double p = fma(a, b, 0.0)
    error[0] = fma(a, b, -p)
    if not isfinite(error[0]):
        error[0] = 0.0
    return p


cdef inline void _grow(double *s, double x, double more) noexcept nogil:
    """s += x + more, where more is far smaller."""
    _two_sum(&s[0], &x)
    _two_sum(&x, &more)
    _two_sum(&s[1], &x)
    s[2] += x + more


cdef void _distil(double *t, Py_ssize_t k) noexcept nogil:
    """The sum of k terms, as the expansion in the first three."""
    cdef Py_ssize_t top, i
    for top in range(EXPANDED):
        i = k - 1
        while i > top:
            _two_sum(&t[i - 1], &t[i])
            i -= 1
    for i in range(EXPANDED, k):
        t[2] += t[i]
    for i in range(2):
        _two_sum(&t[1], &t[2])
        _two_sum(&t[0], &t[1])
    _two_sum(&t[1], &t[2])


def power_sums(X, y, w, Py_ssize_t n_classes):
    """(class, feature, power, part) the sums of w, w x and w x^2; NaN is an absent value."""
    cdef Table table = Table(_two_dimensional(X, "X"), True)
    cdef Py_ssize_t d = table.n_columns, n = table.n_rows, a, b, c, j = 0, k
    cdef Py_ssize_t width = _tile_width(d, n_classes), rows = _tile_rows(n, width, n_classes)
    cdef Members members = Members(y, w, n, n_classes, rows)
    total = np.zeros((n_classes, d, 3, 3))
    cdef double[:, :, ::1] whole = total.reshape(n_classes, d, CELL)
    table.reserve(rows, width)
    with nogil:
        while j < d:
            k, a = min(j + width, d), 0
            while a < n:
                b = min(a + rows, n)
                table.load(a, b, j, k)
                members.load(a, b)
                _add_powers(table, members, b - a, j, k - j, whole)
                a = b
            j = k
        for c in range(n_classes):
            for j in range(d):
                for k in range(3):
                    _distil(&whole[c, j, EXPANDED * k], EXPANDED)
    return total


cdef int _add_powers(
    Table table, Members members, Py_ssize_t n, Py_ssize_t first, Py_ssize_t m, double[:, :, ::1] whole
) except -1 nogil:
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef double w, v, p, e, q, f
    cdef double *cell
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        if w == 0:
            continue
        for j in range(m):
            v = x[row + i, column + j]
            if v != v:
                continue
            cell = &whole[c, first + j, 0]
            p = _two_product(v, v, &e)
            _grow(cell, w, 0.0)
            if w == 1:
                _grow(cell + 3, v, 0.0)
                _grow(cell + 6, p, e)
            else:
                q = _two_product(w, v, &f)
                _grow(cell + 3, q, f)
                q = _two_product(w, p, &f)
                _grow(cell + 6, q, f)
                q = _two_product(w, e, &f)
                _grow(cell + 6, q, f)
    return 0


def moments_of(sums):
    """Weight, mean and centred sum of squares of such sums, each rounded once; the last may be negative by rounding."""
    cells = np.ascontiguousarray(sums, np.float64).reshape(-1, CELL)
    out = np.zeros((3, len(cells)))
    cdef const double[:, ::1] s = cells
    cdef double[:, ::1] found = out
    cdef Py_ssize_t i
    with nogil:
        for i in range(s.shape[0]):
            found[0, i] = s[i, 0]
            if s[i, 0] > 0:
                _moments_of(&s[i, 0], &found[1, i], &found[2, i])
    n, mean, m2 = out.reshape(3, *sums.shape[: sums.ndim - 2])
    return n, mean, m2


cdef int _moments_of(const double *s, double *mean, double *m2) noexcept nogil:
    cdef double t[TERMS]
    cdef double gap[TERMS]
    cdef double square, error, c = s[3] / s[0]
    cdef Py_ssize_t i
    _left(s, c, gap)
    c += gap[0] / s[0]
    _left(s, c, gap)  # sum of w (x - mean): the mean's own rounding
    square = _two_product(c, c, &error)
    for i in range(3):
        t[i] = s[6 + i]
    t[3] = -_two_product(s[0], square, &t[4])
    t[5] = -_two_product(s[0], error, &t[6])
    t[7] = -_two_product(s[1], square, &t[8])
    t[9] = -2.0 * _two_product(c, gap[0], &t[10])
    t[11] = -2.0 * _two_product(c, gap[1], &t[12])
    t[4], t[6], t[8], t[10], t[12] = -t[4], -t[6], -t[8], -2.0 * t[10], -2.0 * t[12]
    t[13] = -s[1] * error - s[2] * square
    t[14] = -gap[0] * gap[0] / s[0]
    _distil(t, 15)
    mean[0], m2[0] = c, t[0]
    return 0


cdef void _left(const double *s, double c, double *t) noexcept nogil:
    """The sum of w (x - c), as an expansion."""
    cdef Py_ssize_t i
    for i in range(3):
        t[i] = s[3 + i]
        t[3 + 2 * i] = -_two_product(s[i], c, &t[4 + 2 * i])
        t[4 + 2 * i] = -t[4 + 2 * i]
    _distil(t, 9)
