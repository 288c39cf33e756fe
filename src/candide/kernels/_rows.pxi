# Scoring dense rows where they lie: four rows and two classes at a time, so that a value and a parameter
# are each loaded once for several terms. Rows with absent values take a careful way of their own.

cdef enum:
    GROUP = 4  # rows scored together
    PAIR = 2  # classes scored together
    REACH = 128  # features of a tile: the sums are short, so rounding stays small
    VALUES = 2048  # of a tile, which then stays in the first-level cache while every class passes over it
    INFINITE = -1  # what a scoring kernel returns after meeting an infinite value

cdef enum Family:
    GAUSSIAN  # a: mean, b: 1 / sd, c: log of the norm
    SWITCH  # a: low, b: high
    LINEAR  # a: weights


cdef class Scores:
    """One term a feature and class, added up: the parameters of a family, each (class, feature)."""

    cdef Family family
    cdef const double[:, ::1] a, b, c
    cdef double threshold
    cdef bint tame  # whether 0 * a is 0
    cdef double[:, ::1] norms  # (tile of features, class) sums of c

    def __cinit__(self, X, int family, parameters, out, double threshold=0.0):
        cdef Py_ssize_t k = out.shape[1], d = X.shape[1], q, j = 0
        arrays = [np.ascontiguousarray(p, np.float64) for p in parameters]
        for p in arrays:
            _require(p.shape[0] == k and p.shape[1] == d, "parameters, X and out differ in shape")
        self.family, self.threshold, self.tame = <Family>family, threshold, True
        self.a, self.b, self.c = arrays[0], arrays[len(arrays) > 1], arrays[len(arrays) - 1]
        if self.family == LINEAR:
            self.tame = np.isfinite(arrays[0]).all()
        elif self.family == GAUSSIAN and d:
            self.norms = np.empty(((d - 1) // REACH + 1, k))
            while j < d:
                for q in range(k):
                    self.norms[j // REACH, q] = _run_sum(&self.c[q, j], min(REACH, d - j))
                j += REACH


cdef double _run_sum(const double *x, Py_ssize_t n) noexcept nogil:
    cdef Lanes total = _all(0.0)
    cdef double rest = 0.0
    cdef Py_ssize_t j = 0
    while j + LANES <= n:
        total += _load(x + j)
        j += LANES
    while j < n:
        rest += x[j]
        j += 1
    return _sum(total) + rest


cdef Py_ssize_t _add_rows(X, Scores scores, out) except? -2:
    cdef Table table = Table(X, True)
    cdef double[:, :] target = out
    cdef Py_ssize_t n = table.n_rows, d = table.n_columns, a = 0, b, j, k, absent, n_absent = 0
    cdef Py_ssize_t width = min(d, REACH), height = GROUP * max(1, min(16, VALUES // (GROUP * max(1, width))))
    _require(target.shape[0] == n, "out and the rows differ in length")
    table.reserve(min(n, height), width)
    with nogil:
        while a < n:
            b, j = min(a + height, n), 0
            while j < d:
                k = min(j + REACH, d)
                table.load(a, b, j, k)
                absent = _add_tile(table, scores, a, b - a, j, k - j, target)
                if absent == INFINITE:
                    return INFINITE
                n_absent += absent
                j = k
            a = b
    return n_absent


cdef Py_ssize_t _add_tile(
    Table table, Scores scores, Py_ssize_t a, Py_ssize_t n, Py_ssize_t first, Py_ssize_t m, double[:, :] out
) except? -2 nogil:
    """Score rows a : a+n on features first : first+m; how many of the values are absent, or INFINITE."""
    cdef Py_ssize_t step = table.tile.shape[1], c = 0, i, group, absent, n_absent = 0, k = out.shape[1]
    cdef bint whole[16 + 1]
    cdef const double *x = &table.tile[table.row, table.column]
    cdef double norm0, norm1
    for group in range((n + GROUP - 1) // GROUP):
        i = group * GROUP
        whole[group] = _all_finite(x + i * step, step, min(GROUP, n - i), m)
        if not whole[group]:
            absent = _count_absent(x + i * step, step, min(GROUP, n - i), m)
            if absent == INFINITE:
                return INFINITE
            n_absent += absent
        whole[group] = whole[group] and scores.tame
    while c < k:
        i = 0
        while i < n:
            if k - c >= PAIR and n - i >= GROUP:
                _score(scores, x + i * step, step, m, first, c, GROUP, PAIR, whole[i // GROUP], a + i, out)
                i += GROUP
            elif n - i >= GROUP:
                _score(scores, x + i * step, step, m, first, c, GROUP, 1, whole[i // GROUP], a + i, out)
                i += GROUP
            elif k - c >= PAIR:
                _score(scores, x + i * step, step, m, first, c, 1, PAIR, whole[i // GROUP], a + i, out)
                i += 1
            else:
                _score(scores, x + i * step, step, m, first, c, 1, 1, whole[i // GROUP], a + i, out)
                i += 1
        c += PAIR
    return n_absent


cdef bint _all_finite(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    cdef Lanes even = _all(0.0), odd = _all(0.0), value
    cdef double rest = 0.0
    cdef Py_ssize_t i, j
    for i in range(n):
        j = 0
        while j + 2 * LANES <= m:
            value = _load(x + j)
            even += value - value
            value = _load(x + j + LANES)
            odd += value - value
            j += 2 * LANES
        while j < m:
            rest += x[j] - x[j]
            j += 1
        x += step
    return _sum(even) + _sum(odd) + rest == 0


cdef Py_ssize_t _count_absent(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    """How many values are NaN, or INFINITE."""
    cdef Py_ssize_t i, j, absent = 0
    for i in range(n):
        for j in range(m):
            if x[j] != x[j]:
                absent += 1
            elif x[j] - x[j] != 0:
                return INFINITE
        x += step
    return absent


cdef inline int _score(
    Scores scores, const double *x, Py_ssize_t step, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c,
    const Py_ssize_t rows, const Py_ssize_t classes, bint whole, Py_ssize_t r, double[:, :] out,
) except -1 nogil:
    """out[r + i, c + q] += the terms of m features. Families and sizes are literals in every call that is compiled."""
    cdef double total[GROUP * PAIR]
    cdef Py_ssize_t i, q
    if scores.family == GAUSSIAN and whole:
        _add_up(scores, x, step, m, first, c, rows, classes, GAUSSIAN, True, total)
        for i in range(rows):
            for q in range(classes):
                out[r + i, c + q] += scores.norms[first // REACH, c + q] - 0.5 * total[i * classes + q]
        return 0
    if scores.family == GAUSSIAN:
        _add_up(scores, x, step, m, first, c, rows, classes, GAUSSIAN, False, total)
    elif scores.family == SWITCH and whole:
        _add_up(scores, x, step, m, first, c, rows, classes, SWITCH, True, total)
    elif scores.family == SWITCH:
        _add_up(scores, x, step, m, first, c, rows, classes, SWITCH, False, total)
    elif whole:
        _add_up(scores, x, step, m, first, c, rows, classes, LINEAR, True, total)
    else:
        _add_up(scores, x, step, m, first, c, rows, classes, LINEAR, False, total)
    for i in range(rows):
        for q in range(classes):
            out[r + i, c + q] += total[i * classes + q]
    return 0


cdef inline int _add_up(
    Scores scores, const double *x, Py_ssize_t step, Py_ssize_t m, Py_ssize_t first, Py_ssize_t c,
    const Py_ssize_t rows, const Py_ssize_t classes, const Family family, const bint whole, double *total,
) except -1 nogil:
    """total[i * classes + q]: the sum of terms. Of whole Gaussian rows it is that of the squares alone."""
    cdef const double *pa = &scores.a[c, first]
    cdef const double *pb = &scores.b[c, first]
    cdef const double *pc = &scores.c[c, first]
    cdef Py_ssize_t i, q, j = 0, width = scores.a.shape[1]
    cdef Lanes sums[GROUP * PAIR]
    cdef Lanes value, term, threshold = _all(scores.threshold)
    cdef double v, t
    for i in range(rows * classes):
        sums[i] = _all(0.0)
    while j + LANES <= m:
        for i in range(rows):
            value = _load(x + i * step + j)
            for q in range(classes):
                if family == GAUSSIAN:
                    term = (value - _load(pa + q * width + j)) * _load(pb + q * width + j)
                    term = term * term
                    if not whole:
                        term = _if_present(value, _load(pc + q * width + j) - 0.5 * term)
                elif family == SWITCH:
                    term = _if_above(value, threshold, _load(pb + q * width + j), _load(pa + q * width + j))
                    if not whole:
                        term = _if_present(value, term)
                else:
                    term = value * _load(pa + q * width + j)
                    if not whole:
                        term = _if_some(value, term)
                sums[i * classes + q] += term
        j += LANES
    for i in range(rows * classes):
        total[i] = _sum(sums[i])
    while j < m:
        for i in range(rows):
            v = x[i * step + j]
            for q in range(classes):
                if family == GAUSSIAN:
                    t = (v - pa[q * width + j]) * pb[q * width + j]
                    t = t * t
                    if not whole:
                        t = pc[q * width + j] - 0.5 * t if v == v else 0.0
                elif family == SWITCH:
                    t = pb[q * width + j] if v > scores.threshold else pa[q * width + j]
                    if not whole:
                        t = t if v == v else 0.0
                else:
                    t = v * pa[q * width + j]
                    if not whole:
                        t = t if v < 0 or v > 0 else 0.0
                total[i * classes + q] += t
        j += 1
    return 0


def add_gaussian(X, mean, inv_sd, log_norm, out):
    """out[r, c] += sum over present j of log_norm[c, j] - ((x - mean) * inv_sd)**2 / 2."""
    X = _two_dimensional(X, "X")
    return _add_rows(X, Scores(X, GAUSSIAN, (mean, inv_sd, log_norm), out), out)


def add_switch(X, double threshold, low, high, out):
    """out[r, c] += high[c, j] where x > threshold, low[c, j] where it is not, nothing where x is absent."""
    X = _two_dimensional(X, "X")
    return _add_rows(X, Scores(X, SWITCH, (low, high), out, threshold), out)


def add_linear(X, weights, out):
    """out[r, c] += sum over j of x * weights[j, c], where 0 * -inf = 0; nothing where x is absent."""
    X = _two_dimensional(X, "X")
    return _add_rows(X, Scores(X, LINEAR, (np.asarray(weights).T,), out), out)
