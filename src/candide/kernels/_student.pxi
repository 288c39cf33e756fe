# Student's t. A tile of rows is turned feature by feature, so that every loop runs over rows: features of equal
# degrees of freedom share one logarithm a row. Tiles without absent values take the short way.

cdef enum:
    TILE = 64  # rows
    SPAN = 32  # features: a tile fills half of a first-level cache, and its sums are short


cdef Py_ssize_t _add_student(X, Student terms, out) except? -2:
    cdef Table table = Table(_two_dimensional(X, "X").T, False)
    cdef double[:, :] target = out
    cdef Py_ssize_t n = table.n_columns, d = table.n_rows, a = 0, b, j, k, c, i, absent, n_absent = 0
    cdef double[::1] score = np.empty(TILE)
    _require(target.shape[0] == n, "out and the rows differ in length")
    table.reserve(min(d, SPAN), TILE)
    with nogil:
        while a < n:
            b, j = min(a + TILE, n), 0
            while j < d:
                k = min(j + SPAN, d)
                table.load(j, k, a, b)
                absent = _tile_absent(table.tile, k - j, b - a)
                if absent == INFINITE:
                    return INFINITE
                n_absent += absent
                for c in range(target.shape[1]):
                    terms.add(table.tile, b - a, k - j, j, c, absent == 0, score)
                    for i in range(b - a):
                        target[a + i, c] += score[i]
                j = k
            a = b
    return n_absent


cdef Py_ssize_t _tile_absent(const double[:, ::1] x, Py_ssize_t m, Py_ssize_t n) except? -2 nogil:
    """How many values are NaN, or INFINITE."""
    cdef Py_ssize_t i, j, absent = 0
    cdef double probe[TILE]
    cdef double total = 0.0
    for i in range(n):
        probe[i] = 0.0
    for j in range(m):
        for i in range(n):
            probe[i] += x[j, i] - x[j, i]
    for i in range(n):
        total += probe[i]
    if total == 0:
        return 0
    for j in range(m):
        for i in range(n):
            if x[j, i] != x[j, i]:
                absent += 1
            elif x[j, i] - x[j, i] != 0:
                return INFINITE
    return absent


cdef int _same_shape(const double[:, :] a, X, out) except -1:
    _require(a.shape[0] == out.shape[1] and a.shape[1] == X.shape[1], "parameters, X and out differ in shape")
    return 0


cdef class Student:
    cdef const double[:, :] loc, inv_scale, df, log_norm

    cdef int add(
        self, const double[:, ::1] x, Py_ssize_t n, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c, bint whole,
        double[::1] score,
    ) except -1 nogil:
        """score[i] = sum over the tile's m features of the terms of class c; x[j, i] is feature first + j of row i."""
        cdef double excess[TILE]
        cdef double df
        cdef Py_ssize_t i, j = 0, end
        for i in range(n):
            score[i] = 0.0
        while j < m:
            df, end = self.df[c, first + j], j + 1
            while end < m and self.df[c, first + end] == df:
                end += 1
            if n == TILE and whole:
                _excess(self, x, TILE, j, end, first, c, True, excess, score)
            else:
                _excess(self, x, n, j, end, first, c, whole, excess, score)
            for i in range(n):
                if isfinite(excess[i]):
                    score[i] -= 0.5 * (df + 1) * log1p(excess[i])
                else:
                    score[i] -= 0.5 * (df + 1) * _one_by_one(self, x, i, j, end, first, c)
            j = end
        return 0


cdef inline int _excess(
    Student self, const double[:, ::1] x, const Py_ssize_t n, Py_ssize_t j,
    Py_ssize_t end, Py_ssize_t first, Py_ssize_t c,
    const bint whole, double *excess, double[::1] score,
) except -1 nogil:
    """The product of 1 + z**2 / df over features j:end, less 1; the norms go to the score.

    (1 + u)(1 + t) = 1 + (u + t + u t): features of equal df share one logarithm, and a small t loses no digit.
    """
    cdef double total[TILE]
    cdef double loc, scale, norm, z, t, inv_df = 1 / self.df[c, first + j], norms = 0.0
    cdef Py_ssize_t i, k
    for i in range(n):
        total[i] = 0.0
    for k in range(j, end):
        loc, scale, norm = self.loc[c, first + k], self.inv_scale[c, first + k], self.log_norm[c, first + k]
        if whole:
            norms += norm
            for i in range(n):
                z = (x[k, i] - loc) * scale
                t = z * z * inv_df
                total[i] = total[i] + t + total[i] * t
        else:
            for i in range(n):
                z = (x[k, i] - loc) * scale
                t = z * z * inv_df if x[k, i] == x[k, i] else 0.0
                total[i] = total[i] + t + total[i] * t
                score[i] += norm if x[k, i] == x[k, i] else 0.0
    for i in range(n):
        excess[i] = total[i]
        score[i] += norms
    return 0


cdef double _one_by_one(
    Student self, const double[:, ::1] x, Py_ssize_t i, Py_ssize_t j, Py_ssize_t end, Py_ssize_t first, Py_ssize_t c
) except? -1 nogil:
    """The sum of logarithms where their product overflows."""
    cdef double z, total = 0.0
    cdef Py_ssize_t k
    for k in range(j, end):
        z = (x[k, i] - self.loc[c, first + k]) * self.inv_scale[c, first + k]
        total += log1p(z * z / self.df[c, first + k]) if x[k, i] == x[k, i] else 0.0
    return total


def add_student(X, loc, inv_scale, df, log_norm, out):
    """out[r, c] += sum over present j of log_norm[c, j] - (df + 1) / 2 * log1p(((x - loc) * inv_scale)**2 / df)."""
    cdef Student terms = Student()
    terms.loc, terms.inv_scale, terms.df, terms.log_norm = loc, inv_scale, df, log_norm
    _same_shape(terms.loc, X, out)
    _same_shape(terms.inv_scale, X, out)
    _same_shape(terms.df, X, out)
    _same_shape(terms.log_norm, X, out)
    return _add_student(X, terms, out)
