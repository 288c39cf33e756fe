# Scoring dense blocks. A tile of rows is turned feature by feature, so that every loop runs over rows
# and vectorises without reordering a sum; tiles without absent values take the short way.

cdef enum:
    TILE = 64  # rows
    SPAN = 32  # features: a tile fills half of a first-level cache, and its sums are short

cdef enum:
    INFINITE = -1  # what a scoring kernel returns after meeting an infinite value


cdef class Terms:
    """A sum of one term a feature: what every family of scores shares."""

    cdef int add(
        self, const double[:, ::1] x, Py_ssize_t n, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c, bint whole,
        double[::1] score,
    ) except -1 nogil:
        """score[i] = sum over the tile's m features of the terms of class c; x[j, i] is feature first + j of row i."""
        return 0


cdef Py_ssize_t _add_terms(X, Terms terms, out) except? -2:
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
                absent = _count_absent(table.tile, k - j, b - a)
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


cdef Py_ssize_t _count_absent(const double[:, ::1] x, Py_ssize_t m, Py_ssize_t n) except? -2 nogil:
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


cdef class Gaussian(Terms):
    cdef const double[:, :] mean, inv_sd, log_norm

    cdef int add(
        self, const double[:, ::1] x, Py_ssize_t n, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c, bint whole,
        double[::1] score,
    ) except -1 nogil:
        # A full tile's length is a literal: the compiler then unrolls.
        if n == TILE:
            return _gaussian(self, x, TILE, m, first, c, whole, score)
        return _gaussian(self, x, n, m, first, c, whole, score)


cdef inline int _gaussian(
    Gaussian self, const double[:, ::1] x, const Py_ssize_t n, Py_ssize_t m, Py_ssize_t first,
    Py_ssize_t c, bint whole, double[::1] score,
) except -1 nogil:
    cdef double total[TILE]
    cdef double m0, m1, m2, m3, s0, s1, s2, s3, z0, z1, z2, z3, norm
    cdef Py_ssize_t i, j = 0
    for i in range(n):
        total[i] = 0.0
    while whole and j + 4 <= m:
        m0, s0 = self.mean[c, first + j], self.inv_sd[c, first + j]
        m1, s1 = self.mean[c, first + j + 1], self.inv_sd[c, first + j + 1]
        m2, s2 = self.mean[c, first + j + 2], self.inv_sd[c, first + j + 2]
        m3, s3 = self.mean[c, first + j + 3], self.inv_sd[c, first + j + 3]
        norm = (self.log_norm[c, first + j] + self.log_norm[c, first + j + 1]) + (
            self.log_norm[c, first + j + 2] + self.log_norm[c, first + j + 3]
        )
        for i in range(n):
            z0 = (x[j, i] - m0) * s0
            z1 = (x[j + 1, i] - m1) * s1
            z2 = (x[j + 2, i] - m2) * s2
            z3 = (x[j + 3, i] - m3) * s3
            total[i] += norm - 0.5 * ((z0 * z0 + z1 * z1) + (z2 * z2 + z3 * z3))
        j += 4
    while j < m:
        m0, s0, norm = self.mean[c, first + j], self.inv_sd[c, first + j], self.log_norm[c, first + j]
        for i in range(n):
            z0 = (x[j, i] - m0) * s0
            total[i] += norm - 0.5 * z0 * z0 if x[j, i] == x[j, i] else 0.0
        j += 1
    for i in range(n):
        score[i] = total[i]
    return 0


def add_gaussian(X, mean, inv_sd, log_norm, out):
    """out[r, c] += sum over present j of log_norm[c, j] - ((x - mean) * inv_sd)**2 / 2."""
    cdef Gaussian terms = Gaussian()
    terms.mean, terms.inv_sd, terms.log_norm = mean, inv_sd, log_norm
    _same_shape(terms.mean, X, out)
    _same_shape(terms.inv_sd, X, out)
    _same_shape(terms.log_norm, X, out)
    return _add_terms(X, terms, out)


cdef class Student(Terms):
    cdef const double[:, :] loc, inv_scale, df, log_norm

    cdef int add(
        self, const double[:, ::1] x, Py_ssize_t n, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c, bint whole,
        double[::1] score,
    ) except -1 nogil:
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
    return _add_terms(X, terms, out)


cdef class Switch(Terms):
    cdef const double[:, :] low, high
    cdef double threshold

    cdef int add(
        self, const double[:, ::1] x, Py_ssize_t n, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c, bint whole,
        double[::1] score,
    ) except -1 nogil:
        if n == TILE:
            return _switch(self, x, TILE, m, first, c, whole, score)
        return _switch(self, x, n, m, first, c, whole, score)


cdef inline int _switch(
    Switch self, const double[:, ::1] x, const Py_ssize_t n, Py_ssize_t m, Py_ssize_t first,
    Py_ssize_t c, bint whole, double[::1] score,
) except -1 nogil:
    cdef double total[TILE]
    cdef double l0, l1, l2, l3, h0, h1, h2, h3, t = self.threshold
    cdef Py_ssize_t i, j = 0
    for i in range(n):
        total[i] = 0.0
    while whole and j + 4 <= m:
        l0, h0 = self.low[c, first + j], self.high[c, first + j]
        l1, h1 = self.low[c, first + j + 1], self.high[c, first + j + 1]
        l2, h2 = self.low[c, first + j + 2], self.high[c, first + j + 2]
        l3, h3 = self.low[c, first + j + 3], self.high[c, first + j + 3]
        for i in range(n):
            total[i] += ((h0 if x[j, i] > t else l0) + (h1 if x[j + 1, i] > t else l1)) + (
                (h2 if x[j + 2, i] > t else l2) + (h3 if x[j + 3, i] > t else l3)
            )
        j += 4
    while j < m:
        l0, h0 = self.low[c, first + j], self.high[c, first + j]
        for i in range(n):
            total[i] += (h0 if x[j, i] > t else l0) if x[j, i] == x[j, i] else 0.0
        j += 1
    for i in range(n):
        score[i] = total[i]
    return 0


def add_switch(X, double threshold, low, high, out):
    """out[r, c] += high[c, j] where x > threshold, low[c, j] where it is not, nothing where x is absent."""
    cdef Switch terms = Switch()
    terms.threshold, terms.low, terms.high = threshold, low, high
    _same_shape(terms.low, X, out)
    _same_shape(terms.high, X, out)
    return _add_terms(X, terms, out)


def add_levels(codes, offsets, table, unseen, out):
    """out[r, c] += table[offsets[j] + code, c] over features j; ``unseen[j, c]`` for a code past the levels.

    ``table`` is (levels, classes), ``unseen`` (features, classes).
    """
    cdef CodeTable places = CodeTable(codes, offsets)
    cdef const double[:, ::1] seen = np.ascontiguousarray(table, np.float64)
    cdef const double[:, ::1] new = np.ascontiguousarray(unseen, np.float64)
    cdef double[:, :] target = out
    cdef Py_ssize_t a = 0, n, c, k = target.shape[1], n_absent = 0
    _require(target.shape[0] == places.n_rows, "out and the rows differ in length")
    _require(seen.shape[0] >= places.n_levels and seen.shape[1] == k, "the table, the levels and out differ in shape")
    _require(new.shape[0] == places.n_features and new.shape[1] == k, "unseen, codes and out differ in shape")
    with nogil:
        while a < places.n_rows:
            n = min(places.n_tile, places.n_rows - a)
            n_absent += places.load(a, n)
            for c in range(0, k - 7, 8):
                _add_places(places.place, a, n, seen, new, c, 8, target)
            c = k - k % 8
            if k % 8 == 1:
                _add_places(places.place, a, n, seen, new, c, 1, target)
            elif k % 8 == 2:
                _add_places(places.place, a, n, seen, new, c, 2, target)
            elif k % 8 == 3:
                _add_places(places.place, a, n, seen, new, c, 3, target)
            elif k % 8 == 4:
                _add_places(places.place, a, n, seen, new, c, 4, target)
            elif k % 8 == 5:
                _add_places(places.place, a, n, seen, new, c, 5, target)
            elif k % 8 == 6:
                _add_places(places.place, a, n, seen, new, c, 6, target)
            elif k % 8 == 7:
                _add_places(places.place, a, n, seen, new, c, 7, target)
            a += n
    return n_absent


cdef inline int _add_places(
    const Py_ssize_t[:, ::1] place, Py_ssize_t a, Py_ssize_t n, const double[:, ::1] seen,
    const double[:, ::1] new, Py_ssize_t c,
    const Py_ssize_t width, double[:, :] out,
) except -1 nogil:
    """Classes c : c+width. The width is written out at every call: the sums then live in registers."""
    cdef double total[8]
    cdef Py_ssize_t i, j, p, q, stop, d = place.shape[1]
    for i in range(n):
        j = 0
        while j < d:
            for q in range(width):
                total[q] = 0.0
            stop = min(j + 512, d)  # short sums, added up: rounding grows with their length
            while j < stop:
                p = place[i, j]
                if p >= 0:
                    for q in range(width):
                        total[q] += seen[p, c + q]
                elif p == UNSEEN:
                    for q in range(width):
                        total[q] += new[j, c + q]
                j += 1
            for q in range(width):
                out[a + i, c + q] += total[q]
    return 0
