# Counting dense blocks: moments, levels, sums. A tile of rows stays in cache while it is passed over twice;
# what is absent costs a third pass, and only in the tiles that have it.

cdef enum:
    N, MEAN, DRIFT, SQUARE, PARTS  # of one tile, per (class, column)


cdef Py_ssize_t _tile_width(Py_ssize_t n_features, Py_ssize_t n_classes) noexcept:
    """Columns of a tile: the sums of all classes should stay in cache."""
    return max(1, min(n_features, 512, max(16, 65536 // max(1, n_classes))))


cdef Py_ssize_t _tile_rows(Py_ssize_t n_rows, Py_ssize_t width, Py_ssize_t n_classes) noexcept:
    """Rows of a tile: 128 KB, or more where merging the sums of many classes would cost more than summing."""
    return max(1, min(n_rows, max(16384 // width, 8 * n_classes)))


def moments(X, y, w, Py_ssize_t n_classes):
    """Weight, mean and centred sum of squares per (class, feature). Infinite input gives a non-finite result."""
    cdef Table table = Table(_two_dimensional(X, "X"), True)
    cdef Py_ssize_t d = table.n_columns, n = table.n_rows, a, b, j = 0, k
    cdef Py_ssize_t width = _tile_width(d, n_classes), rows = _tile_rows(n, width, n_classes)
    cdef Members members = Members(y, w, n, n_classes, rows)
    total = np.zeros((3, n_classes, d))
    cdef double[:, :, ::1] whole = total, part = np.empty((PARTS, n_classes, width))
    table.reserve(rows, width)
    with nogil:
        while j < d:
            k, a = min(j + width, d), 0
            while a < n:
                b = min(a + rows, n)
                table.load(a, b, j, k)
                members.load(a, b)
                _tile_moments(table, members, b - a, k - j, part)
                _merge(part, whole, j, k - j)
                a = b
            j = k
    return total[0], total[1], total[2]


cdef int _tile_moments(
    Table table, Members members, Py_ssize_t n, Py_ssize_t m, double[:, :, ::1] part
) except -1 nogil:
    cdef bint whole
    part[:] = 0.0
    _add_values(table, members, n, m, part)
    whole = _divide(part, m)
    if not whole:  # a sum that is not finite: values are absent or infinite
        part[:] = 0.0
        _add_present(table, members, n, m, part)
        _divide(part, m)
    return _add_squares(table, members, n, m, part, whole)


cdef int _add_values(Table table, Members members, Py_ssize_t n, Py_ssize_t m, double[:, :, ::1] part) except -1 nogil:
    """Weights and sums of a tile in which nothing is absent."""
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef double w
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        if w == 0:
            continue  # 0 * inf
        part[N, c, 0] += w
        for j in range(m):
            part[MEAN, c, j] += w * x[row + i, column + j]
    for c in range(members.n_classes):
        w = part[N, c, 0]
        for j in range(m):
            part[N, c, j] = w
    return 0


cdef int _add_present(Table table, Members members, Py_ssize_t n, Py_ssize_t m, double[:, :, ::1] part) except -1 nogil:
    """Weights and sums of what is present in a tile."""
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef double w, v
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        if w == 0:
            continue
        for j in range(m):
            v = x[row + i, column + j]
            part[N, c, j] += w if v == v else 0.0
            part[MEAN, c, j] += w * v if v == v else 0.0
    return 0


cdef bint _divide(double[:, :, ::1] part, Py_ssize_t m) except -1 nogil:
    """Turn sums into means; say whether all are finite."""
    cdef Py_ssize_t c, j
    cdef double s, n
    cdef bint finite = True
    for c in range(part.shape[1]):
        for j in range(m):
            n = part[N, c, j]
            s = part[MEAN, c, j]
            finite &= s - s == 0
            part[MEAN, c, j] = s / n if n > 0 else 0.0
    return finite


cdef int _add_squares(
    Table table, Members members, Py_ssize_t n, Py_ssize_t m, double[:, :, ::1] part, bint whole
) except -1 nogil:
    """Second pass, over residuals: the one-pass sum of squares fails when |mean| >> sd."""
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef double w, e, v
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        if w == 0:
            continue
        if whole:
            for j in range(m):
                e = x[row + i, column + j] - part[MEAN, c, j]
                part[DRIFT, c, j] += w * e
                part[SQUARE, c, j] += w * e * e
        else:
            for j in range(m):
                v = x[row + i, column + j]
                e = v - part[MEAN, c, j] if v == v else 0.0
                part[DRIFT, c, j] += w * e
                part[SQUARE, c, j] += w * e * e
    return 0


cdef int _merge(double[:, :, ::1] part, double[:, :, ::1] whole, Py_ssize_t first, Py_ssize_t m) except -1 nogil:
    """Chan, Golub and LeVeque (1979), after the mean's rounding error (the drift) is taken out."""
    cdef Py_ssize_t c, j
    cdef double n1, n2, drift, mean, gap, share, square
    for c in range(part.shape[1]):
        for j in range(m):
            n1, n2 = whole[0, c, first + j], part[N, c, j]
            drift = part[DRIFT, c, j] / n2 if n2 > 0 else 0.0
            square = part[SQUARE, c, j] - n2 * drift * drift
            square = 0.0 if square < 0 else square
            mean = part[MEAN, c, j] + drift
            gap = mean - whole[1, c, first + j] if n1 > 0 and n2 > 0 else 0.0
            share = n2 / (n1 + n2) if n2 > 0 else 0.0
            whole[0, c, first + j] = n1 + n2
            whole[1, c, first + j] = whole[1, c, first + j] + gap * share if n1 > 0 else mean
            whole[2, c, first + j] += square + gap * gap * share * n1
    return 0


def dense_sums(X, y, w, Py_ssize_t n_classes, double threshold=NAN):
    """Weight present and weighted sum per (class, feature), and the smallest value (at most 0; NaN after an infinity).

    With a threshold, what is summed is ``x > threshold`` rather than x.
    """
    cdef Table table = Table(_two_dimensional(X, "X"), True)
    cdef Py_ssize_t d = table.n_columns, n = table.n_rows, a, b, i, j = 0, k, c
    cdef Py_ssize_t width = _tile_width(d, n_classes), rows = _tile_rows(n, width, n_classes)
    cdef Members members = Members(y, w, n, n_classes, rows)
    total = np.zeros((2, n_classes, d))
    cdef double[:, :, ::1] whole = total, part = np.empty((2, n_classes, width))
    cdef double[:, ::1] survey = np.empty((2, width))
    cdef double low = 0.0
    table.reserve(rows, width)
    with nogil:
        while j < d:
            k, a = min(j + width, d), 0
            while a < n:
                b = min(a + rows, n)
                table.load(a, b, j, k)
                members.load(a, b)
                low = _lower(low, _survey(table, b - a, k - j, survey))
                part[:] = 0.0
                if survey[1, 0] == 0:
                    _sum_values(table, members, b - a, k - j, threshold, part)
                else:
                    _sum_present(table, members, b - a, k - j, threshold, part)
                for i in range(2):
                    for c in range(n_classes):
                        _add_row(part, i, c, whole, j, k - j)
                a = b
            j = k
    return total[0], total[1], low


cdef int _add_row(
    double[:, :, ::1] part, Py_ssize_t i, Py_ssize_t c, double[:, :, ::1] whole, Py_ssize_t first, Py_ssize_t m
) except -1 nogil:
    cdef Py_ssize_t j
    for j in range(m):
        whole[i, c, first + j] += part[i, c, j]
    return 0


cdef inline double _lower(double a, double b) noexcept nogil:
    """The smaller; NaN, once met, stays."""
    return a if isnan(a) or a <= b else b


cdef double _survey(Table table, Py_ssize_t n, Py_ssize_t m, double[:, ::1] survey) except? -1 nogil:
    """The smallest value of a tile (at most 0; NaN if one is infinite); survey[1, 0] is 0 if all are finite."""
    cdef Py_ssize_t i, j, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef double v, low = 0.0, probe = 0.0
    survey[:] = 0.0
    for i in range(n):
        for j in range(m):
            v = x[row + i, column + j]
            survey[0, j] = v if v < survey[0, j] else survey[0, j]
            survey[1, j] += v - v
    for j in range(m):
        low = min(low, survey[0, j])
        probe += survey[1, j]
    survey[1, 0] = probe
    if probe != 0:
        for i in range(n):
            for j in range(m):
                v = x[row + i, column + j]
                if v == v and v - v != 0:
                    return NAN
    return low


cdef int _sum_values(
    Table table, Members members, Py_ssize_t n, Py_ssize_t m, double threshold, double[:, :, ::1] part
) except -1 nogil:
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef bint raw = isnan(threshold)
    cdef double w
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        part[0, c, 0] += w
        if raw:
            for j in range(m):
                part[1, c, j] += w * x[row + i, column + j]
        else:
            for j in range(m):
                part[1, c, j] += w if x[row + i, column + j] > threshold else 0.0
    for c in range(members.n_classes):
        w = part[0, c, 0]
        for j in range(m):
            part[0, c, j] = w
    return 0


cdef int _sum_present(
    Table table, Members members, Py_ssize_t n, Py_ssize_t m, double threshold, double[:, :, ::1] part
) except -1 nogil:
    cdef Py_ssize_t i, j, c, row = table.row, column = table.column
    cdef const double[:, ::1] x = table.tile
    cdef bint raw = isnan(threshold)
    cdef double w, v, s
    for i in range(n):
        w, c = members.weight[i], members.label[i]
        if w == 0:
            continue  # 0 * inf
        for j in range(m):
            v = x[row + i, column + j]
            s = w * v if raw else (w if v > threshold else 0.0)
            part[0, c, j] += w if v == v else 0.0
            part[1, c, j] += s if v == v else 0.0
    return 0


def code_range(codes):
    """Smallest and largest code of each feature; (0, -1) where there are no rows."""
    codes = _integers(codes)
    cdef int kind = _kind(codes)
    low, high = np.zeros(codes.shape[1], np.int64), np.full(codes.shape[1], -1, np.int64)
    if not len(codes):
        return low, high
    if kind == I8:
        _range[int64_t](codes, low, high)
    elif kind == I4:
        _range[int32_t](codes, low, high)
    elif kind == I2:
        _range[int16_t](codes, low, high)
    elif kind == I1:
        _range[int8_t](codes, low, high)
    elif kind == U8:
        _range[uint64_t](codes, low, high)
    elif kind == U4:
        _range[uint32_t](codes, low, high)
    elif kind == U2:
        _range[uint16_t](codes, low, high)
    else:
        _range[uint8_t](codes, low, high)
    return low, high


cdef int _range(const Code[:, :] codes, int64_t[::1] low, int64_t[::1] high) except -1:
    cdef Py_ssize_t i, j, n = codes.shape[0], d = codes.shape[1]
    cdef Code[:, ::1] ends = np.empty((2, d), np.asarray(codes).dtype)
    cdef Code v, least, most
    with nogil:
        for j in range(d):
            ends[0, j] = ends[1, j] = codes[0, j]
        if codes.strides[1] == sizeof(Code):
            for i in range(n):
                for j in range(d):
                    v = codes[i, j]
                    ends[0, j] = v if v < ends[0, j] else ends[0, j]
                    ends[1, j] = v if v > ends[1, j] else ends[1, j]
        else:
            for j in range(d):
                least = most = codes[0, j]
                for i in range(n):
                    v = codes[i, j]
                    least = v if v < least else least
                    most = v if v > most else most
                ends[0, j], ends[1, j] = least, most
        for j in range(d):
            low[j], high[j] = <int64_t>ends[0, j], <int64_t>ends[1, j]
    return 0


def level_counts(codes, y, w, Py_ssize_t n_classes, offsets):
    """Weight of each level per class, ragged: feature j owns columns ``offsets[j]:offsets[j+1]``."""
    cdef CodeTable table = CodeTable(codes, offsets)
    cdef Py_ssize_t a = 0, n, i, j, c
    cdef int64_t level
    cdef Members members = Members(y, w, table.n_rows, n_classes, table.n_tile)
    counts = np.zeros((n_classes, table.n_levels))
    cdef double[:, ::1] count = counts
    cdef double weight
    with nogil:
        while a < table.n_rows:
            n = min(table.n_tile, table.n_rows - a)
            table.load(a, n)
            members.load(a, a + n)
            for i in range(n):
                c, weight = members.label[i], members.weight[i]
                for j in range(table.n_features):
                    level = table.code[table.row + i, j]
                    if <uint64_t>level < <uint64_t>table.sizes[j]:
                        count[c, table.offsets[j] + level] += weight
                    elif level >= 0:
                        with gil:
                            raise IndexError("a level code lies outside its feature's levels")
            a += n
    return counts
