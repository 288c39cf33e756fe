# Cells: combinations of levels of sets of columns, counted and looked up a tile of rows at a time.

cdef enum:
    MOST_COLUMNS = 8  # of a set
    ABSENT = -1  # the cell of a row in which a value is absent,
    NEW = -2  # or past the levels


cdef class Sets:
    """Sets of columns, checked: the cells of set s stand from offsets[s] on, the last column fastest."""

    cdef const Py_ssize_t[:, ::1] columns  # (set, position)
    cdef const Py_ssize_t[::1] sizes  # of all columns
    cdef const Py_ssize_t[::1] offsets
    cdef Py_ssize_t n_sets, order, n_cells
    cdef object starts  # of the levels of each column, one after another

    def __cinit__(self, sets, sizes):
        # Copies of its own: what was checked is what is used.
        columns, sizes = np.array(sets, dtype=np.intp, order="C"), np.array(sizes, dtype=np.intp)
        _require(columns.ndim == 2 and sizes.ndim == 1, "sets must have 2 dimensions, sizes 1")
        self.n_sets, self.order = columns.shape
        _require(1 <= self.order <= MOST_COLUMNS, f"a set has 1 to {MOST_COLUMNS} columns")
        _require((sizes >= 0).all(), "a size is negative")
        _require(((columns >= 0) & (columns < len(sizes))).all(), "a set has a column that there is not")
        _require(np.prod(sizes[columns], axis=1, dtype=float).sum() < 2.0**48, "the sets have too many cells")
        offsets = np.zeros(len(columns) + 1, np.intp)
        np.cumsum(sizes[columns].prod(axis=1), out=offsets[1:])
        self.columns, self.sizes, self.offsets, self.n_cells = columns, sizes, offsets, offsets[self.n_sets]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])

    cdef inline Py_ssize_t cell(self, Py_ssize_t s, const int64_t *code) noexcept nogil:
        """The cell of a row in set s, or ABSENT or NEW."""
        cdef Py_ssize_t i, j, out = 0
        cdef bint new = False
        for i in range(self.order):
            j = self.columns[s, i]
            if code[j] < 0:
                return ABSENT
            if code[j] >= self.sizes[j]:
                new = True
            elif not new:
                out = out * self.sizes[j] + code[j]
        return NEW if new else out


def cell_counts(codes, y, w, Py_ssize_t n_classes, sets, sizes):
    """(class, cell) the weight of each combination of levels."""
    cdef Sets of = Sets(sets, sizes)
    cdef CodeTable table = CodeTable(codes, of.starts)
    cdef Members members = Members(y, w, table.n_rows, n_classes, table.n_tile)
    cdef Py_ssize_t a = 0, n, i, s, cell
    counts = np.zeros((n_classes, of.n_cells))
    cdef double[:, ::1] count = counts
    with nogil:
        while a < table.n_rows:
            n = min(table.n_tile, table.n_rows - a)
            table.load(a, n)
            members.load(a, a + n)
            for s in range(of.n_sets):
                for i in range(n):
                    cell = of.cell(s, &table.code[table.row + i, 0])
                    if cell >= 0:
                        count[members.label[i], of.offsets[s] + cell] += members.weight[i]
                    elif cell == NEW:
                        with gil:
                            raise IndexError("a level code lies outside its feature's levels")
            a += n
    return counts


def add_cells(codes, Sets of not None, table, out):
    """out[r, c] += table[cell, c] of the cell of every set; nothing where a value is absent or past the levels.

    Columns of the table past the classes of ``out`` are padding. Returns how many values are absent.
    """
    cdef CodeTable rows = CodeTable(codes, of.starts)
    cdef const double[:, ::1] said = _padded(table)
    cdef double[:, :] target = out
    cdef Py_ssize_t[::1] known = np.empty(max(1, of.n_sets), np.intp)
    cdef Py_ssize_t a = 0, n, i, j, s, c, m, cell, k = target.shape[1], n_absent = 0
    _require(target.shape[0] == rows.n_rows, "out and the rows differ in length")
    _require(said.shape[0] >= of.n_cells and table.shape[1] >= k, "the table, the cells and out differ in shape")
    with nogil:
        while a < rows.n_rows:
            n = min(rows.n_tile, rows.n_rows - a)
            rows.load(a, n)
            for i in range(n):
                m = 0
                for j in range(rows.n_features):
                    n_absent += rows.code[rows.row + i, j] < 0
                for s in range(of.n_sets):
                    cell = of.cell(s, &rows.code[rows.row + i, 0])
                    if cell >= 0:
                        known[m] = of.offsets[s] + cell
                        m += 1
                c = 0
                while c < k:
                    if k - c > 2 * LANES:
                        _add_known(said, known, m, c, 4, target, a + i)
                        c += 4 * LANES
                    elif k - c > LANES:
                        _add_known(said, known, m, c, 2, target, a + i)
                        c += 2 * LANES
                    else:
                        _add_known(said, known, m, c, 1, target, a + i)
                        c += LANES
            a += n
    return n_absent


cdef inline int _add_known(
    const double[:, ::1] said, const Py_ssize_t[::1] known, Py_ssize_t m, Py_ssize_t c, const Py_ssize_t blocks,
    double[:, :] out, Py_ssize_t row,
) except -1 nogil:
    """Add m rows of a table, at the classes from c, in ``blocks`` of lanes: a literal at every call."""
    cdef Lanes total[4]
    cdef double score[4 * LANES]
    cdef const double *term
    cdef Py_ssize_t i, q, width = min(blocks * LANES, said.shape[1] - c) // LANES
    for q in range(blocks):
        total[q] = _all(0.0)
    if width == blocks:
        for i in range(m):
            term = &said[known[i], c]
            for q in range(blocks):
                total[q] += _load(term + q * LANES)
    else:
        for i in range(m):
            term = &said[known[i], c]
            for q in range(width):
                total[q] += _load(term + q * LANES)
    for q in range(blocks):
        _store(&score[q * LANES], total[q])
    for q in range(min(blocks * LANES, out.shape[1] - c)):
        out[row, c + q] += score[q]
    return 0


ctypedef fused Term:
    double
    float


def take_cells(codes, sets, sizes, table, unseen, y, own_terms, out):
    """out[r, c, s] = table[cell, c] of the cell of set s, but ``own_terms[r, s]`` in the row's own class.

    ``unseen[s, c]`` where a value is past the levels, 0 where one is absent.
    """
    if out.dtype == np.float32:
        _take_cells[float](codes, Sets(sets, sizes), table, unseen, y, own_terms, out)
    else:
        _take_cells[double](codes, Sets(sets, sizes), table, unseen, y, own_terms, out)


cdef int _take_cells(
    codes, Sets of, const double[:, ::1] table, const double[:, ::1] unseen, y, const double[:, :] own_terms,
    Term[:, :, ::1] out
) except -1:
    cdef CodeTable rows = CodeTable(codes, of.starts)
    cdef Py_ssize_t a = 0, n, i, s, c, cell, k = out.shape[1]
    cdef Members members = Members(y, None, rows.n_rows, k, rows.n_tile)
    cdef const double *term
    _require(out.shape[0] == rows.n_rows and own_terms.shape[0] == rows.n_rows, "out and the rows differ in length")
    _require(out.shape[2] == of.n_sets and own_terms.shape[1] == of.n_sets, "out and the sets differ in number")
    _require(table.shape[0] >= of.n_cells and table.shape[1] >= k, "the table, the cells and out differ in shape")
    _require(unseen.shape[0] == of.n_sets and unseen.shape[1] >= k, "unseen, the sets and out differ in shape")
    if k == 0:
        return 0
    with nogil:
        while a < rows.n_rows:
            n = min(rows.n_tile, rows.n_rows - a)
            rows.load(a, n)
            members.load(a, a + n)
            for i in range(n):
                for s in range(of.n_sets):
                    cell = of.cell(s, &rows.code[rows.row + i, 0])
                    if cell == ABSENT:
                        for c in range(k):
                            out[a + i, c, s] = 0.0
                    else:
                        term = &table[of.offsets[s] + cell, 0] if cell >= 0 else &unseen[s, 0]
                        for c in range(k):
                            out[a + i, c, s] = <Term>term[c]
                    out[a + i, members.label[i], s] = <Term>own_terms[a + i, s]
            a += n
    return 0
