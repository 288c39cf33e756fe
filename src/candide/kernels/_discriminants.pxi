# Discriminants: squared distances of rows to the centre of each class, where a root has made a covariance one, and what
# such distances say. Rows stand in lanes, and two rows of a root pass over them at a time; a row by itself lies along them.

cdef enum:
    DEEP = 4  # lanes that hold the rows of a tile
    ROWS = DEEP * LANES


def add_discriminant(z, centres, roots, law, bint heavy, double weight, out):
    """out[r, c] += weight times what the squared distance q of root z[r] and centres[c] says of class c.

    ``roots`` is one lower triangular matrix for all classes, or one for each. ``law`` has, each (class,): rows, peak,
    fall and factor; the log of the density is peak - fall q, or where it is ``heavy`` peak - fall log1p(factor q). What
    is added is the log of that density, mixed with that of any class once in rows + 1.
    """
    cdef const double[:, :] x = np.asarray(z, np.float64)
    cdef const double[:, ::1] centre = centres, say = law
    cdef const double[:, :, ::1] root = roots
    cdef double[:, :] target = out
    cdef Py_ssize_t p = x.shape[1], k = target.shape[1], a = 0, n
    _require(centre.shape[0] == k and centre.shape[1] == p, "centres, z and out differ in shape")
    _require(root.shape[0] in (1, k) and root.shape[1] == p and root.shape[2] == p, "roots and z differ in shape")
    _require(say.shape[0] == 4 and say.shape[1] == k, "the law has not four numbers for each class")
    _require(target.shape[0] == x.shape[0], "out and the rows differ in length")
    cdef double[::1] tile = np.empty(max(1, p) * ROWS), far = np.empty(max(1, k) * ROWS)
    with nogil:
        while a < x.shape[0]:
            n = min(<Py_ssize_t>ROWS, x.shape[0] - a)
            _turn_about(x, a, n, &tile[0])
            if n == 1:
                _distances_of_one(&tile[0], centre, root, k, &far[0])
            else:
                _distances(&tile[0], centre, root, k, &far[0])
            _add_guarded(&far[0], say, heavy, weight, a, n, target)
            a += n


cdef void _turn_about(const double[:, :] x, Py_ssize_t a, Py_ssize_t n, double *tile) noexcept nogil:
    """The rows from a on, column by column; 0 where there are fewer than a tile holds. One alone is as it was."""
    cdef Py_ssize_t i, j
    if n == 1:
        for j in range(x.shape[1]):
            tile[j] = x[a, j]
        return
    for j in range(x.shape[1]):
        for i in range(n):
            tile[j * ROWS + i] = x[a + i, j]
        for i in range(n, ROWS):
            tile[j * ROWS + i] = 0.0


cdef void _distances_of_one(
    const double *z, const double[:, ::1] centre, const double[:, :, ::1] root, Py_ssize_t k, double *far
) noexcept nogil:
    """far[c, 0] of one row."""
    cdef Py_ssize_t own, c, j
    cdef bint alike = root.shape[0] == 1
    cdef double x, gap
    for c in range(k):
        far[c * ROWS] = 0.0
    for own in range(root.shape[0]):
        for j in range(centre.shape[1]):
            x = _product(&root[own, j, 0], z, j + 1)
            for c in range(0 if alike else own, k if alike else own + 1):
                gap = x - centre[c, j]
                far[c * ROWS] += gap * gap


cdef inline double _product(const double *x, const double *z, Py_ssize_t n) noexcept nogil:
    cdef Lanes even = _all(0.0), odd = _all(0.0)
    cdef double rest = 0.0
    cdef Py_ssize_t i = 0
    while i + 2 * LANES <= n:
        even += _load(x + i) * _load(z + i)
        odd += _load(x + i + LANES) * _load(z + i + LANES)
        i += 2 * LANES
    while i < n:
        rest += x[i] * z[i]
        i += 1
    return _sum(even + odd) + rest


cdef void _distances(
    const double *tile, const double[:, ::1] centre, const double[:, :, ::1] root, Py_ssize_t k, double *far
) noexcept nogil:
    """far[c, r] of the rows of a tile."""
    cdef Py_ssize_t p = centre.shape[1], own, c, j, last
    cdef bint alike = root.shape[0] == 1  # then every class has the one root
    cdef double product[2 * ROWS]
    for c in range(k * ROWS):
        far[c] = 0.0
    for own in range(root.shape[0]):
        for j in range(0, p, 2):
            last = min(j + 1, p - 1)
            _two_products(&root[own, j, 0], &root[own, last, 0], tile, last + 1, product)
            for c in range(0 if alike else own, k if alike else own + 1):
                _add_square(product, centre[c, j], far + c * ROWS)
                if last > j:
                    _add_square(product + ROWS, centre[c, last], far + c * ROWS)


cdef inline void _two_products(
    const double *first, const double *second, const double *tile, Py_ssize_t n, double *product
) noexcept nogil:
    """The products of the first n columns of a tile with two rows of a root, of which the first may end in 0."""
    cdef Lanes a0 = _all(0.0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0, x, u, v
    cdef Py_ssize_t i
    for i in range(n):
        u, v = _all(first[i]), _all(second[i])
        x = _load(tile + i * ROWS)
        a0 += u * x
        b0 += v * x
        x = _load(tile + i * ROWS + LANES)
        a1 += u * x
        b1 += v * x
        x = _load(tile + i * ROWS + 2 * LANES)
        a2 += u * x
        b2 += v * x
        x = _load(tile + i * ROWS + 3 * LANES)
        a3 += u * x
        b3 += v * x
    _store(product, a0)
    _store(product + LANES, a1)
    _store(product + 2 * LANES, a2)
    _store(product + 3 * LANES, a3)
    _store(product + ROWS, b0)
    _store(product + ROWS + LANES, b1)
    _store(product + ROWS + 2 * LANES, b2)
    _store(product + ROWS + 3 * LANES, b3)


cdef inline void _add_square(const double *x, double centre, double *far) noexcept nogil:
    cdef Py_ssize_t q
    cdef Lanes gap
    for q in range(DEEP):
        gap = _load(x + q * LANES) - _all(centre)
        _store(far + q * LANES, _load(far + q * LANES) + gap * gap)


cdef void _add_guarded(
    double *far, const double[:, ::1] say, bint heavy, double weight, Py_ssize_t a, Py_ssize_t n, double[:, :] out
) noexcept nogil:
    """What distances say, of each of n rows; they are overwritten."""
    cdef Py_ssize_t r, c, k = out.shape[1]
    cdef double top, term, any_class, total = 0.0
    for c in range(k):
        total += say[0, c]
    for r in range(n):
        top, any_class = -INFINITY, 0.0
        for c in range(k):
            term = far[c * ROWS + r]
            term = say[1, c] - say[2, c] * (log1p(say[3, c] * term) if heavy else term)
            far[c * ROWS + r] = term
            top = term if term > top else top
        for c in range(k):
            term = say[0, c] * exp(far[c * ROWS + r] - top)
            far[c * ROWS + r] = term
            any_class += term
        any_class /= total
        for c in range(k):
            out[a + r, c] += weight * (log((far[c * ROWS + r] + any_class) / (say[0, c] + 1.0)) + top)
