# Rows in CSR: class sums and linear scores. Every column index and every row's extent is checked as it is used.

from libc.float cimport DBL_MAX

cdef enum:
    RUN = 128  # stored values that are looked up together: their sums are short, so rounding stays small
    WIDE = 6  # lanes of classes that are summed together

ctypedef fused Value:
    double
    float
    int64_t
    int32_t

ctypedef fused Index:
    int32_t
    int64_t


cdef tuple _csr(data, indices, indptr):
    """The three arrays with types that the loops read; only the rows in sight are ever converted."""
    data, indices = np.ascontiguousarray(data), np.ascontiguousarray(indices)
    indptr = np.ascontiguousarray(indptr, np.int64)
    _require(data.ndim == 1 and indices.ndim == 1 and indptr.ndim == 1, "the CSR arrays must have one dimension")
    _require(len(indptr) > 0, "indptr is empty")
    if _kind(data) in (F8, F4, I8, I4) and _kind(indices) in (I8, I4):
        return data, indices, indptr
    first = indptr[0]
    _require(first >= 0, "indptr leaves the stored values")
    seen = slice(first, max(first, indptr[len(indptr) - 1]))
    return data[seen].astype(np.float64), indices[seen].astype(np.int64), indptr - first


cdef inline int _extent(
    const int64_t[::1] indptr, Py_ssize_t r, Py_ssize_t n_stored, Py_ssize_t *first, Py_ssize_t *last
) except -1 nogil:
    first[0], last[0] = indptr[r], indptr[r + 1]
    if first[0] < 0 or first[0] > last[0] or last[0] > n_stored:
        with gil:
            raise ValueError("indptr decreases or leaves the stored values")
    return 0


cdef int _no_column() except -1 nogil:
    with gil:
        raise IndexError("a column index lies outside the features")


def csr_sums(data, indices, indptr, y, w, Py_ssize_t n_classes, Py_ssize_t n_features, double threshold=NAN):
    """Weighted sum per (class, feature) of CSR rows, and the smallest value (at most 0; NaN if one is not finite)."""
    data, indices, indptr = _csr(data, indices, indptr)
    _require(n_features >= 0, "the number of features is negative")
    cdef int kind = _kind(data)
    cdef Py_ssize_t n = len(indptr) - 1
    cdef Members members = Members(y, w, n, n_classes, n)
    total = np.zeros((n_classes, n_features))
    if kind == F8:
        low = _csr_sums[double](data, indices, indptr, members, threshold, total)
    elif kind == F4:
        low = _csr_sums[float](data, indices, indptr, members, threshold, total)
    elif kind == I8:
        low = _csr_sums[int64_t](data, indices, indptr, members, threshold, total)
    else:
        low = _csr_sums[int32_t](data, indices, indptr, members, threshold, total)
    return total, low


cdef double _csr_sums(
    const Value[::1] data, indices, const int64_t[::1] indptr, Members members, double threshold, double[:, ::1] total
) except? -1:
    if _kind(indices) == I4:
        return _csr_sums_of[Value, int32_t](data, indices, indptr, members, threshold, total)
    return _csr_sums_of[Value, int64_t](data, indices, indptr, members, threshold, total)


cdef double _csr_sums_of(
    const Value[::1] data, const Index[::1] indices, const int64_t[::1] indptr, Members members,
    double threshold, double[:, ::1] total,
) except? -1:
    cdef Py_ssize_t i, r, p, c, first = 0, last = 0, n = indptr.shape[0] - 1, d = total.shape[1]
    cdef Py_ssize_t n_stored = min(data.shape[0], indices.shape[0])
    cdef double w, low = 0.0
    cdef bint raw = isnan(threshold)
    cdef Py_ssize_t[::1] order = np.empty(n, np.intp)
    members.load(0, n)
    _row_order(members, d, indptr[n] - indptr[0], order)
    with nogil:
        for i in range(n):
            r = order[i]
            c, w = members.label[r], members.weight[r]
            if i + 16 < n:
                candide_prefetch(&indptr[order[i + 16]])
                candide_prefetch(&members.label[order[i + 16]])
                candide_prefetch(&members.weight[order[i + 16]])
            if i + 2 < n:
                _extent(indptr, order[i + 2], n_stored, &first, &last)
                _foresee(data, indices, first, last)
            _extent(indptr, r, n_stored, &first, &last)
            low = _lower(low, _look_over(data, indices, first, last, d))
            if raw:
                _scatter(data, indices, first, last, w, True, threshold, total, c)
            else:
                _scatter(data, indices, first, last, w, False, threshold, total, c)
    return low


cdef inline double _look_over(
    const Value[::1] data, const Index[::1] indices, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n_features
) except? -1 nogil:
    """The smallest of some stored values (at most 0; NaN if one is not finite), once their columns are known to exist.

    Loops of their own, and no branch in them: they vectorise, and the loop that scatters has nothing left to ask.
    """
    cdef Py_ssize_t p, outside = 0
    cdef double v, low = 0.0, probe = 0.0
    cdef Lanes least = _all(0.0), doubt = _all(0.0), value
    for p in range(first, last):
        outside |= indices[p] | (n_features - 1 - indices[p])  # the sign of either says that it lies outside
    if outside < 0:
        _no_column()
    p = first
    if Value is double:
        while p + LANES <= last:
            value = _load(&data[p])
            least = _least(least, value)
            doubt += value - value
            p += LANES
        probe = _sum(doubt)
        low = _least_of(least)
    while p < last:
        v = <double>data[p]
        low = v if v < low else low
        probe += v - v
        p += 1
    return low if probe == 0 else NAN


cdef inline int _scatter(
    const Value[::1] data, const Index[::1] indices, Py_ssize_t first, Py_ssize_t last, double w, const bint raw,
    double threshold, double[:, ::1] total, Py_ssize_t c,
) except -1 nogil:
    """Add a row to the sums of its class.

    Four places of the row in turn: a sum that is read right after it was written must wait, and rows in which a
    column is stored twice have the two side by side.
    """
    cdef Py_ssize_t p, q = (last - first) // 4
    for p in range(first, first + q):
        total[c, indices[p]] += w * _amount(<double>data[p], raw, threshold)
        total[c, indices[p + q]] += w * _amount(<double>data[p + q], raw, threshold)
        total[c, indices[p + 2 * q]] += w * _amount(<double>data[p + 2 * q], raw, threshold)
        total[c, indices[p + 3 * q]] += w * _amount(<double>data[p + 3 * q], raw, threshold)
    for p in range(first + 4 * q, last):
        total[c, indices[p]] += w * _amount(<double>data[p], raw, threshold)
    return 0


cdef inline double _amount(double v, bint raw, double threshold) noexcept nogil:
    return v if raw else (1.0 if v > threshold else 0.0)


cdef inline int _foresee(
    const Value[::1] data, const Index[::1] indices, Py_ssize_t first, Py_ssize_t last
) except -1 nogil:
    """Fetch a row that comes soon: the processor cannot guess it where rows are not visited in order."""
    cdef Py_ssize_t p = first
    while p < min(last, first + 256):
        candide_prefetch(&data[p])
        candide_prefetch(&indices[p])
        p += 8
    return 0


cdef int _row_order(Members members, Py_ssize_t n_features, Py_ssize_t n_stored, Py_ssize_t[::1] order) except -1:
    """The order to visit rows in: class by class if the sums of all classes exceed the cache and rows are long."""
    cdef Py_ssize_t r, c, n = order.shape[0], k = members.n_classes
    cdef Py_ssize_t[::1] start
    if k * n_features <= 65536 or n_stored < 32 * n:
        for r in range(n):
            order[r] = r
        return 0
    start = np.zeros(k + 1, np.intp)
    for r in range(n):
        start[members.label[r] + 1] += 1
    for c in range(k):
        start[c + 1] += start[c]
    for r in range(n):
        c = members.label[r]
        order[start[c]] = r
        start[c] += 1
    return 0


def add_linear_csr(data, indices, indptr, weights, out, double threshold=NAN):
    """out[r, c] += sum over stored j of x * weights[j, c]; with a threshold, of (x > threshold) * weights.

    Columns of the weights past the classes of ``out`` are padding.
    """
    data, indices, indptr = _csr(data, indices, indptr)
    cdef const double[:, ::1] table = _padded(weights)
    cdef double[:, :] score = out
    cdef int kind = _kind(data)
    _require(len(indptr) - 1 == score.shape[0], "out and the rows differ in length")
    _require(np.shape(weights)[1] >= score.shape[1], "out and the weights differ in classes")
    if kind == F8:
        return _add_linear[double](data, indices, indptr, table, threshold, score)
    if kind == F4:
        return _add_linear[float](data, indices, indptr, table, threshold, score)
    if kind == I8:
        return _add_linear[int64_t](data, indices, indptr, table, threshold, score)
    return _add_linear[int32_t](data, indices, indptr, table, threshold, score)


cdef _add_linear(
    const Value[::1] data, indices, const int64_t[::1] indptr, const double[:, ::1] table, double threshold,
    double[:, :] out,
):
    if _kind(indices) == I4:
        return _add_linear_of[Value, int32_t](data, indices, indptr, table, threshold, out)
    return _add_linear_of[Value, int64_t](data, indices, indptr, table, threshold, out)


cdef _add_linear_of(
    const Value[::1] data, const Index[::1] indices, const int64_t[::1] indptr, const double[:, ::1] table,
    double threshold, double[:, :] out,
):
    cdef Py_ssize_t r, p, c, m, stop, first = 0, last = 0, d = table.shape[0], k = out.shape[1]
    cdef Py_ssize_t n_stored = min(data.shape[0], indices.shape[0]), run = max(16, min(RUN, 2560 // max(1, k)))
    cdef Index column[RUN]
    cdef double value[RUN]
    cdef bint raw = isnan(threshold), finite = True
    with nogil:
        for r in range(indptr.shape[0] - 1):
            _extent(indptr, r, n_stored, &first, &last)
            while first < last:
                stop = min(first + run, last)
                finite &= not isnan(_look_over(data, indices, first, stop, d))
                for p in range(first, stop):
                    c = 0
                    while c < k:
                        candide_prefetch(&table[indices[p], c])
                        c += 8
                m = stop - first
                if Value is double:
                    if raw and _no_zero(&data[first], m):
                        _add_run(&indices[first], &data[first], m, table, r, out)
                        first = stop
                        continue
                m = _gather(data, indices, first, stop, raw, threshold, column, value)
                _add_run(column, value, m, table, r, out)
                first = stop
    return 0 if finite else INFINITE


cdef inline bint _no_zero(const double *value, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, zeros = 0
    for i in range(n):
        zeros += value[i] == 0
    return zeros == 0


cdef inline Py_ssize_t _gather(
    const Value[::1] data, const Index[::1] indices, Py_ssize_t first, Py_ssize_t last, bint raw, double threshold,
    Index *column, double *value,
) except -1 nogil:
    """Columns and amounts that are not zero, and how many: 0 * -inf = 0, an absent word says nothing."""
    cdef Py_ssize_t p, m = 0
    for p in range(first, last):
        column[m], value[m] = indices[p], _amount(<double>data[p], raw, threshold)
        m += value[m] != 0
    return m


cdef int _add_run(
    const Index *column, const double *value, Py_ssize_t m, const double[:, ::1] table, Py_ssize_t r,
    double[:, :] out,
) except -1 nogil:
    """out[r, c] += sum of value[i] * table[column[i], c]."""
    cdef Py_ssize_t c = 0, blocks
    while c < out.shape[1]:
        blocks = (out.shape[1] - c + LANES - 1) // LANES
        if blocks >= WIDE:
            _add_lanes(column, value, m, table, r, c, WIDE, out)
        elif blocks == 5:
            _add_lanes(column, value, m, table, r, c, 5, out)
        elif blocks == 4:
            _add_lanes(column, value, m, table, r, c, 4, out)
        elif blocks == 3:
            _add_lanes(column, value, m, table, r, c, 3, out)
        elif blocks == 2:
            _add_lanes(column, value, m, table, r, c, 2, out)
        else:
            _add_lanes(column, value, m, table, r, c, 1, out)
        c += WIDE * LANES
    return 0


cdef inline int _add_lanes(
    const Index *column, const double *value, Py_ssize_t m, const double[:, ::1] table, Py_ssize_t r,
    Py_ssize_t first, const Py_ssize_t blocks, double[:, :] out,
) except -1 nogil:
    """Classes from the first, in ``blocks`` of lanes: a literal at every call, so that the sums live in registers."""
    cdef Lanes total[WIDE]
    cdef Lanes v
    cdef double score[WIDE * LANES]
    cdef const double *row
    cdef Py_ssize_t i, q
    for q in range(blocks):
        total[q] = _all(0.0)
    for i in range(m):
        row, v = &table[column[i], first], _all(value[i])
        for q in range(blocks):
            total[q] += v * _load(row + q * LANES)
    for q in range(blocks):
        _store(&score[q * LANES], total[q])
    for q in range(min(out.shape[1] - first, blocks * LANES)):
        out[r, first + q] += score[q]
    return 0
