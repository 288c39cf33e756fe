# Numbers among ascending ones: cells of a grid, and straight lines between knots. Searched by halving, without branches.


def grid_codes(x, edges, out):
    """out[r] = how many edges lie below x[r]; -1 where it is absent."""
    cdef const double[::1] number = np.ascontiguousarray(x, np.float64), edge = np.ascontiguousarray(edges, np.float64)
    cdef int32_t[:] code = out
    cdef Py_ssize_t r, i, half, left, n = edge.shape[0]
    _require(code.shape[0] == number.shape[0], "out and the rows differ in length")
    with nogil:
        for r in range(number.shape[0]):
            i, left = 0, n
            while left > 1:
                half = left >> 1
                i += half if edge[i + half - 1] < number[r] else 0
                left -= half
            if left == 1 and edge[i] < number[r]:
                i += 1
            code[r] = <int32_t>i if number[r] == number[r] else -1
    return None


def interpolate(x, knots, values, out):
    """out[r] = the straight lines through the knots at x[r], level beyond the ends; 0 where it is absent."""
    cdef const double[::1] number = np.ascontiguousarray(x, np.float64), knot = np.ascontiguousarray(knots, np.float64)
    cdef const double[::1] value = np.ascontiguousarray(values, np.float64)
    cdef double[:] line = out
    cdef Py_ssize_t r, i, half, left, n = knot.shape[0]
    cdef double unit
    _require(line.shape[0] == number.shape[0], "out and the rows differ in length")
    _require(value.shape[0] == n and n > 0, "the knots and their values differ in number, or there are none")
    with nogil:
        unit = 1.0 if knot[n - 1] / 4 - knot[0] / 4 < 2.0**1020 else 0.25  # differences of huge numbers have no room
        for r in range(number.shape[0]):
            i, left = 0, n
            while left > 1:
                half = left >> 1
                i += half if knot[i + half] <= number[r] else 0
                left -= half
            if not number[r] >= knot[0]:
                line[r] = value[0] if number[r] == number[r] else 0.0
            elif i == n - 1:
                line[r] = value[i]
            else:
                # The share of the way first: a slope between tiny knots would be infinite.
                line[r] = value[i] + (value[i + 1] - value[i]) * (
                    (number[r] * unit - knot[i] * unit) / (knot[i + 1] * unit - knot[i] * unit)
                )
    return None
