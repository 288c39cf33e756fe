# What sets of columns say together, set by set: margins of their cells, terms of these, and the score test.
# A set of positions within a set of columns is written as the bits of a number.

cdef enum:
    MARGINS = 256  # 2**MOST_COLUMNS


cdef inline double _log_ratio(
    const double *n, const double *even, Py_ssize_t order, double towards, double spread
) noexcept nogil:
    """The term from the counts n of every set of positions (as bits); ``even`` is what an even share adds to each."""
    cdef double single = 1.0 / (n[0] + spread), together = 1.0 / (n[0] + towards)
    cdef double p, q, r, pq, pr, qr, expected, least
    cdef double share[MARGINS]
    cdef Py_ssize_t some, inner
    if order == 2:
        expected = (n[1] + even[0]) * single * ((n[2] + even[1]) * single)
        return log((n[3] + towards * expected) * together / expected)
    if order == 3:
        p, q, r = (n[1] + even[0]) * single, (n[2] + even[1]) * single, (n[4] + even[2]) * single
        pq = (n[3] + towards * p * q) * together
        pr = (n[5] + towards * p * r) * together
        qr = (n[6] + towards * q * r) * together
        expected = min(min(pq * pr * qr / (p * q * r), pq), min(pr, qr))
        return log((n[7] + towards * expected) * together / expected)
    expected = 1.0
    for some in range(1, 1 << order):
        if some & (some - 1) == 0:
            share[some] = (n[some] + even[_bits(some - 1)]) * single
            continue
        expected, least, inner = 1.0, INFINITY, (some - 1) & some
        while inner:
            if _bits(some ^ inner) & 1:
                expected *= share[inner]
            else:
                expected /= share[inner]
            if _bits(some ^ inner) == 1:
                least = min(least, share[inner])
            inner = (inner - 1) & some
        if _bits(some) > 2:
            expected = min(expected, least)
        share[some] = (n[some] + towards * expected) * together
    return log(share[(1 << order) - 1] / expected)


cdef inline Py_ssize_t _bits(Py_ssize_t x) noexcept nogil:
    """How many bits of a small number are set."""
    cdef Py_ssize_t n = 0
    while x:
        x &= x - 1
        n += 1
    return n


cdef class Scan:
    """One set after another: the cell of every row, counts and their margins, and the term of any cell."""

    cdef Sets of
    cdef const int32_t[:, :] code  # (column, row)
    cdef int32_t[::1] cell  # (row)
    cdef int32_t[:, ::1] margin  # (set of positions, cell) where its count stands
    cdef double[:, ::1] count  # (class, margins of all sets of positions)
    cdef double even[MOST_COLUMNS]
    cdef double towards, spread
    cdef Py_ssize_t n_rows, n_cells, n_margins, whole

    def __cinit__(self, codes, Sets of, Py_ssize_t n_classes, double towards, double spread):
        self.of, self.towards, self.spread = of, towards, spread
        shape = np.asarray(of.sizes)[np.asarray(of.columns)]
        most = int(np.diff(of.offsets).max(initial=1))
        _require(np.prod(shape + 1.0, axis=1).max(initial=0.0) < 2.0**31, "a set has too many cells")
        if codes is not None:
            codes = _integers(codes)
            if codes.dtype != np.int32:
                codes = np.clip(codes, -1, 2**31 - 1).astype(np.int32)
            _require(codes.shape[1] == of.sizes.shape[0], "codes and sizes differ in number")
            self.code, self.n_rows = codes.T, len(codes)
            self.cell = np.empty(self.n_rows, np.int32)
        self.margin = np.empty((1 << of.order, most), np.int32)
        self.count = np.empty((n_classes, int(np.prod(shape + 1, axis=1).max(initial=1))))

    cdef int turn_to(self, Py_ssize_t s) except -1 nogil:
        """Take up set s: where the margins of its cells stand."""
        cdef Py_ssize_t order = self.of.order, some, i, j, left, start = 0, number, size, cell
        cdef Py_ssize_t level[MOST_COLUMNS]
        self.n_cells = self.of.offsets[s + 1] - self.of.offsets[s]
        for i in range(order):
            self.even[i] = self.spread / max(1, self.of.sizes[self.of.columns[s, i]])
        for some in range(1 << order):
            size = 1
            for i in range(order):
                level[i] = 0
                if some >> i & 1:
                    size *= self.of.sizes[self.of.columns[s, i]]
            for cell in range(self.n_cells):
                number = 0
                for i in range(order):
                    if some >> i & 1:
                        number = number * self.of.sizes[self.of.columns[s, i]] + level[i]
                self.margin[some, cell] = <int32_t>(start + number)
                i = order - 1
                while i >= 0:  # the next cell
                    level[i] += 1
                    if level[i] < self.of.sizes[self.of.columns[s, i]]:
                        break
                    level[i] = 0
                    i -= 1
            self.whole = start
            start += size
        self.n_margins = start
        return 0

    cdef int place(self, Py_ssize_t s) except -1 nogil:
        """The cell of every row in set s."""
        cdef Py_ssize_t i, r, j
        cdef int32_t size, level
        for r in range(self.n_rows):
            self.cell[r] = 0
        for i in range(self.of.order):
            j = self.of.columns[s, i]
            size = <int32_t>self.of.sizes[j]
            for r in range(self.n_rows):
                level = self.code[j, r]
                if level < 0 or self.cell[r] == ABSENT:
                    self.cell[r] = ABSENT
                elif level >= size or self.cell[r] == NEW:
                    self.cell[r] = NEW
                else:
                    self.cell[r] = self.cell[r] * size + level
        return 0

    cdef int sum_up(self, Py_ssize_t c, const double *counts) except -1 nogil:
        """The margins of a class, from the counts of its cells."""
        cdef Py_ssize_t some, cell
        for cell in range(self.n_margins):
            self.count[c, cell] = 0.0
        for some in range(1 << self.of.order):
            for cell in range(self.n_cells):
                self.count[c, self.margin[some, cell]] += counts[cell]
        return 0

    cdef inline double term(self, Py_ssize_t c, Py_ssize_t cell, double gone) noexcept nogil:
        """The term of a cell in class c, without a row of this weight, or without all that the cell has."""
        cdef double n[MARGINS]
        cdef Py_ssize_t some
        gone = min(gone, self.count[c, self.margin[(1 << self.of.order) - 1, cell]])
        for some in range(1 << self.of.order):
            n[some] = self.count[c, self.margin[some, cell]] - gone
        return _log_ratio(n, self.even, self.of.order, self.towards, self.spread)


def cell_terms(counts, sets, sizes, double towards, double spread):
    """(class, cell) log of the share of a cell over what its smaller sets say of it, drawn to these.

    ``towards`` is how many rows the smaller sets weigh, ``spread`` how many even shares weigh in a single column.
    """
    cdef const double[:, ::1] count = np.ascontiguousarray(counts, np.float64)
    cdef Sets of = Sets(sets, sizes)
    cdef Py_ssize_t k = count.shape[0], s, c, cell
    cdef Scan scan = Scan(None, of, k, towards, spread)
    out = np.empty((k, of.n_cells))
    cdef double[:, ::1] term = out
    _require(count.shape[1] == of.n_cells, "the counts and the cells differ in number")
    with nogil:
        for s in range(of.n_sets):
            scan.turn_to(s)
            if scan.n_cells:
                for c in range(k):
                    scan.sum_up(c, &count[c, of.offsets[s]])
                    for cell in range(scan.n_cells):
                        term[c, of.offsets[s] + cell] = scan.term(c, cell, 0.0)
    return out


def held_out_cells(counts, codes, y, w, sets, sizes, double towards, double spread):
    """(row, set) the term of a row's cell in its own class, where the row is taken out of the counts.

    Of what is absent, and of what was never met, 0.
    """
    cdef const double[:, ::1] count = np.ascontiguousarray(counts, np.float64)
    cdef Sets of = Sets(sets, sizes)
    cdef Py_ssize_t k = count.shape[0], s, c, r
    cdef Scan scan = Scan(codes, of, k, towards, spread)
    cdef Members members = Members(y, w, scan.n_rows, k, scan.n_rows)
    out = np.zeros((of.n_sets, scan.n_rows))
    cdef double[:, ::1] term = out
    _require(count.shape[1] == of.n_cells, "the counts and the cells differ in number")
    with nogil:
        members.load(0, scan.n_rows)
        for s in range(of.n_sets):
            scan.turn_to(s)
            scan.place(s)
            if scan.n_cells:
                for c in range(k):
                    scan.sum_up(c, &count[c, of.offsets[s]])
            for r in range(scan.n_rows):
                if scan.cell[r] >= 0:
                    term[s, r] = scan.term(members.label[r], scan.cell[r], members.weight[r])
    return out.T


def score_cells(codes, y, w, left_out, posterior, sets, sizes, double towards, double spread):
    """(set,) the slope and the information of the likelihood where each set's terms join those of a posterior.

    The sums over rows of f(y) - sum_c p_c f(c), and of the variance of f under p; each row left out of its own terms,
    from whose counts ``left_out`` is taken.
    """
    cdef const double[:, ::1] p = _padded(posterior)
    cdef Sets of = Sets(sets, sizes)
    cdef Py_ssize_t k = posterior.shape[1], s, c, r, cell, q, blocks = p.shape[1] // LANES
    cdef Scan scan = Scan(codes, of, k, towards, spread)
    cdef Members members = Members(y, w, scan.n_rows, k, scan.n_rows)
    cdef Members removed = Members(y, left_out, scan.n_rows, k, scan.n_rows)
    cdef Py_ssize_t most = np.diff(of.offsets).max(initial=1)
    cdef double[:, ::1] count = np.empty((k, most)), table = np.zeros((most, p.shape[1]))
    cdef double[:, ::1] total = np.zeros((2, of.n_sets))
    cdef double mean, square, own, f, weight
    cdef Lanes means, squares, term
    _require(p.shape[0] == scan.n_rows, "the posterior and the rows differ in length")
    with nogil:
        members.load(0, scan.n_rows)
        removed.load(0, scan.n_rows)
        for s in range(of.n_sets):
            scan.turn_to(s)
            scan.place(s)
            for c in range(k):
                for cell in range(scan.n_cells):
                    count[c, cell] = 0.0
            for r in range(scan.n_rows):
                if scan.cell[r] >= 0:
                    count[members.label[r], scan.cell[r]] += members.weight[r]
                elif scan.cell[r] == NEW:
                    with gil:
                        raise IndexError("a level code lies outside its feature's levels")
            for c in range(k):
                scan.sum_up(c, &count[c, 0])
                for cell in range(scan.n_cells):
                    table[cell, c] = scan.term(c, cell, 0.0)
            for r in range(scan.n_rows):
                cell = scan.cell[r]
                if cell < 0:
                    continue
                means, squares = _all(0.0), _all(0.0)
                for q in range(blocks):
                    term = _load(&p[r, q * LANES]) * _load(&table[cell, q * LANES])
                    means += term
                    squares += term * _load(&table[cell, q * LANES])
                c, weight = members.label[r], members.weight[r]
                own, f = scan.term(c, cell, removed.weight[r]), table[cell, c]
                mean = _sum(means) + p[r, c] * (own - f)
                square = _sum(squares) + p[r, c] * (own * own - f * f)
                total[0, s] += weight * (own - mean)
                total[1, s] += weight * (square - mean * mean)
    return np.asarray(total[0]), np.asarray(total[1])
