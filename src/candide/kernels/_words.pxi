# Words that have weights of their own: what the words of documents say of each class, in CSR, and what their weights
# learn from it. A word says ``table[word, c]`` of a class; of a document's own class it says ``own`` more, for that
# document was left out of its counts. Tables have zeros behind the classes, up to whole lots of eight: a sum of eight
# at a time is a sum in one order on every processor. Every index is checked before it is used.

cdef enum:
    EIGHT = 8


cdef int _check_words(
    const int64_t[::1] starts, const int32_t[::1] term, const float[::1] x, const float[::1] own, const float[:, ::1] table,
    const int64_t[::1] y,
) except -1:
    cdef Py_ssize_t r, p, n = starts.shape[0] - 1, k = table.shape[1], v = table.shape[0]
    cdef bint fits = n >= 0 and y.shape[0] == n and starts[0] >= 0 and starts[n] <= term.shape[0]
    fits &= x.shape[0] == term.shape[0] and own.shape[0] == term.shape[0] and k % EIGHT == 0
    _require(fits, "the words differ in length, or the classes are no lots of eight")
    with nogil:
        for r in range(n):
            fits &= starts[r] <= starts[r + 1] and 0 <= y[r] < k
        if fits:
            for p in range(starts[0], starts[n]):
                fits &= 0 <= term[p] < v
    _require(fits, "a word, a class or a document lies outside the tables")
    return 0


cdef inline float _dot(const float *a, const float *b, Py_ssize_t k) noexcept nogil:
    """The sum of the products, k a multiple of eight."""
    cdef float part[EIGHT]
    cdef Py_ssize_t c = 0, j
    for j in range(EIGHT):
        part[j] = 0.0
    while c < k:
        for j in range(EIGHT):
            part[j] += a[c + j] * b[c + j]
        c += EIGHT
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]))


def word_scores(
    const int64_t[::1] starts, const int32_t[::1] term, const float[::1] x, const float[::1] own, const float[:, ::1] table,
    const int64_t[::1] y, const double[::1] weight, double[:, ::1] out,
):
    """out[d, c] += the sum over the words of a document of weight * x * what they say of a class."""
    _check_words(starts, term, x, own, table, y)
    cdef Py_ssize_t r, p, c, k = table.shape[1]
    cdef float f
    cdef double mine
    cdef const float *row
    _require(weight.shape[0] == table.shape[0] and out.shape[0] == y.shape[0] and out.shape[1] <= k, "shapes differ")
    cdef float[::1] score = np.zeros(k, np.float32)
    with nogil:
        for r in range(y.shape[0]):
            for c in range(k):
                score[c] = 0.0
            mine = 0.0
            for p in range(starts[r], starts[r + 1]):
                if p + 8 < starts[r + 1]:
                    candide_prefetch(&table[term[p + 8], 0])
                f = <float>weight[term[p]] * x[p]
                row = &table[term[p], 0]
                for c in range(k):
                    score[c] += f * row[c]
                mine += f * own[p]
            for c in range(out.shape[1]):
                out[r, c] += score[c]
            if y[r] < out.shape[1]:
                out[r, y[r]] += mine


def word_slopes(
    const int64_t[::1] starts, const int32_t[::1] term, const float[::1] x, const float[::1] own, const float[:, ::1] table,
    const int64_t[::1] y, const float[:, ::1] error, double[::1] out,
):
    """out[v] += the sum over documents of x * what the word says of each class, times the error of that class."""
    _check_words(starts, term, x, own, table, y)
    cdef Py_ssize_t r, p, k = table.shape[1]
    cdef const float *row
    cdef const float *e
    _require(out.shape[0] == table.shape[0] and error.shape[0] == y.shape[0] and error.shape[1] == k, "shapes differ")
    with nogil:
        for r in range(y.shape[0]):
            e = &error[r, 0]
            for p in range(starts[r], starts[r + 1]):
                row = &table[term[p], 0]
                out[term[p]] += x[p] * (own[p] * e[y[r]] + _dot(e, row, k))


def word_spreads(
    const int64_t[::1] starts, const int32_t[::1] term, const float[::1] x, const float[::1] own, const float[:, ::1] table,
    const int64_t[::1] y, const double[::1] often, const float[:, ::1] share, double[::1] out,
):
    """out[v] += the sum over documents of often * x**2 * the variance, over the classes, of what the word says."""
    _check_words(starts, term, x, own, table, y)
    cdef Py_ssize_t r, p, c, k = table.shape[1]
    cdef float s, q
    cdef const float *row
    cdef const float *e
    cdef float[::1] square = np.zeros(k, np.float32)
    _require(out.shape[0] == table.shape[0] and share.shape[0] == y.shape[0] and share.shape[1] == k, "shapes differ")
    _require(often.shape[0] == y.shape[0], "shapes differ")
    with nogil:
        for r in range(y.shape[0]):
            e = &share[r, 0]
            for p in range(starts[r], starts[r + 1]):
                row = &table[term[p], 0]
                for c in range(k):
                    square[c] = row[c] * row[c]
                s = _dot(e, row, k) + e[y[r]] * own[p]
                q = _dot(e, &square[0], k) + e[y[r]] * own[p] * (2 * row[y[r]] + own[p])
                out[term[p]] += often[r] * x[p] * x[p] * max(q - s * s, <float>0.0)


def word_groups(
    const int64_t[::1] starts, const int32_t[::1] term, const float[::1] x, const float[::1] own, const float[:, ::1] table,
    const int64_t[::1] y, const int64_t[::1] group, double[:, :, ::1] out,
):
    """out[d, g, c] += the sum over the words of a document that are of group g of x * what they say of a class."""
    _check_words(starts, term, x, own, table, y)
    cdef Py_ssize_t r, p, c, g, k = table.shape[1]
    cdef bint fits = group.shape[0] == table.shape[0] and out.shape[0] == y.shape[0] and out.shape[2] == k
    cdef const float *row
    cdef double *to
    for g in range(group.shape[0] if fits else 0):
        fits &= 0 <= group[g] < out.shape[1]
    _require(fits, "shapes differ, or a word is of no group")
    with nogil:
        for r in range(y.shape[0]):
            for p in range(starts[r], starts[r + 1]):
                row, to = &table[term[p], 0], &out[r, group[term[p]], 0]
                for c in range(k):
                    to[c] += x[p] * row[c]
                to[y[r]] += x[p] * own[p]
