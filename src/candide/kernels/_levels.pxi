# Scoring level codes: one row of a table of log-probabilities a value, classes in lanes.

cdef enum:
    SHORT = 512  # features summed together: rounding grows with the length of a sum


def add_levels(codes, offsets, table, unseen, out):
    """out[r, c] += table[offsets[j] + code, c] over features j; ``unseen[j, c]`` for a code past the levels.

    ``table`` is (levels, classes), ``unseen`` (features, classes); columns past the classes of ``out`` are padding.
    """
    cdef CodeTable rows = CodeTable(codes, offsets)
    cdef const double[:, ::1] seen = _padded(table), new = _padded(unseen)
    cdef double[:, :] target = out
    cdef Py_ssize_t a = 0, n, c, blocks, k = target.shape[1], n_absent = 0
    _require(target.shape[0] == rows.n_rows, "out and the rows differ in length")
    _require(seen.shape[0] >= rows.n_levels and table.shape[1] >= k, "the table, the levels and out differ in shape")
    _require(new.shape[0] == rows.n_features and new.shape[1] == seen.shape[1], "unseen, codes and out differ in shape")
    with nogil:
        while a < rows.n_rows:
            n, c = min(rows.n_tile, rows.n_rows - a), 0
            rows.load(a, n)
            while c < k:
                blocks = (k - c + LANES - 1) // LANES
                if blocks >= 4:
                    n_absent += _add_levels(rows, a, n, seen, new, c, 4, target)
                    c += 4 * LANES
                elif blocks >= 2:
                    n_absent += _add_levels(rows, a, n, seen, new, c, 2, target)
                    c += 2 * LANES
                else:
                    n_absent += _add_levels(rows, a, n, seen, new, c, 1, target)
                    c += LANES
            a += n
    return n_absent


cdef _padded(table):
    """The table in C order with whole lanes in every row; no copy if it has them."""
    table = np.ascontiguousarray(table, np.float64)
    _require(table.ndim == 2, "a table must have 2 dimensions")
    missing = -table.shape[1] % LANES
    return np.pad(table, ((0, 0), (0, missing))) if missing else table


cdef inline Py_ssize_t _add_levels(
    CodeTable rows, Py_ssize_t a, Py_ssize_t n, const double[:, ::1] seen, const double[:, ::1] new, Py_ssize_t c,
    const Py_ssize_t blocks, double[:, :] out,
) except -1 nogil:
    """Classes from c, in ``blocks`` of lanes: a literal at every call, so that the sums live in registers.

    Returns how many values are absent, if c is 0.
    """
    cdef Lanes total[4]
    cdef double score[4 * LANES]
    cdef const double *term
    cdef const int64_t *code
    cdef const Py_ssize_t *sizes
    cdef const Py_ssize_t *offsets
    cdef Py_ssize_t i, j, q, stop, d = rows.n_features, n_absent = 0, k = min(out.shape[1] - c, blocks * LANES)
    cdef int64_t level
    if d == 0:
        return 0
    sizes, offsets = &rows.sizes[0], &rows.offsets[0]
    for i in range(n):
        j, code = 0, &rows.code[rows.row + i, 0]
        while j < d:
            for q in range(blocks):
                total[q] = _all(0.0)
            stop = min(j + SHORT, d)
            while j < stop:
                level = code[j]
                if <uint64_t>level < <uint64_t>sizes[j]:
                    term = &seen[offsets[j] + level, c]
                elif level >= 0:
                    term = &new[j, c]
                else:
                    n_absent += c == 0
                    j += 1
                    continue
                for q in range(blocks):
                    total[q] += _load(term + q * LANES)
                j += 1
            for q in range(blocks):
                _store(&score[q * LANES], total[q])
            for q in range(k):
                out[a + i, c + q] += score[q]
    return n_absent
