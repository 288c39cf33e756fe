"""Nasty input for the kernels: blocks, labels and weights as hypothesis strategies."""

import numpy as np
from hypothesis import strategies as st

FLOATS = (np.float64, np.float32)
NUMBERS = (*FLOATS, np.int64, np.int32, np.uint8, np.int8, np.bool_, np.float16, np.int16, np.uint32, ">f8")
INTEGERS = (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8, ">i4")


def arranged(draw, x):
    """The same values in another memory layout, now and then read-only."""
    layout = draw(st.sampled_from(["C", "Fortran", "every second", "reversed", "read-only"]))
    if layout == "Fortran":
        return np.asfortranarray(x)
    if layout == "every second":
        wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
        wide[::2, 1::3] = x
        return wide[::2, 1::3]
    if layout == "reversed":
        return x[::-1, ::-1].copy()[::-1, ::-1]
    x = np.ascontiguousarray(x)
    x.flags.writeable = layout != "read-only"
    return x


@st.composite
def shapes(draw):
    """Rows and features: small ones, and some around the edges of the tiles."""
    return draw(st.sampled_from([0, 1, 2, 3, 7, 63, 64, 65, 130, 700])), draw(
        st.sampled_from([0, 1, 2, 3, 4, 5, 31, 32, 33, 70])
    )


@st.composite
def blocks(draw, infinities=False):
    """A dense block: offsets up to 1e9, absent values, whole absent columns, every number type and layout."""
    shape, dtype = draw(shapes()), np.dtype(draw(st.sampled_from(NUMBERS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind != "f":
        return arranged(draw, rng.integers(0, 100, shape).astype(dtype))
    offset, scale = draw(st.sampled_from([0.0, 3.0, 1e8, -1e9])), draw(st.sampled_from([1e-3, 1.0, 50.0]))
    x = rng.normal(offset if dtype.itemsize == 8 else 1.0, scale, shape)
    if draw(st.booleans()):
        x[rng.random(shape) < 0.2] = np.nan
    if draw(st.booleans()):
        x[:, rng.random(shape[1]) < 0.3] = np.nan
    if infinities:
        x[rng.random(shape) < 0.002] = np.inf
        x[rng.random(shape) < 0.002] = -np.inf
    return arranged(draw, x.astype(dtype))


@st.composite
def members(draw, n_rows):
    """Class codes, weights (some of them zero) or None, and the number of classes; some classes are empty."""
    n_classes = draw(st.sampled_from([1, 2, 3, 9]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.integers(0, draw(st.integers(1, n_classes)), n_rows)
    w = rng.choice([0.0, 0.5, 1.0, 2.75], n_rows) if draw(st.booleans()) else None
    return y, w, n_classes


@st.composite
def codes(draw, absent=True):
    """Level codes with their offsets: features without levels that are present, absent values, every integer type."""
    (n, d), dtype = draw(shapes()), np.dtype(draw(st.sampled_from(INTEGERS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.integers(1, 12, d)
    x = (rng.random((n, d)) * sizes).astype(np.int64)
    if absent and dtype.kind == "i":
        x[rng.random((n, d)) < 0.2] = draw(st.sampled_from([-1, -7]))
    return arranged(draw, x.astype(dtype)), np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


@st.composite
def sparse(draw):
    """CSR rows: empty ones, unsorted and repeated columns, stored zeros, storage before and behind the rows."""
    n, d = draw(st.sampled_from([0, 1, 5, 80])), draw(st.sampled_from([1, 4, 50]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, 9, n) * rng.integers(0, 2, n)
    before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    indptr = before + np.concatenate([[0], np.cumsum(lengths)])
    n_stored = int(indptr[-1]) + behind
    indices = rng.integers(0, d, n_stored).astype(draw(st.sampled_from([np.int32, np.int64, np.uint16])))
    value_type = draw(st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.int8, np.bool_]))
    data = rng.integers(-1 if np.dtype(value_type).kind in "if" else 0, 5, n_stored).astype(value_type)
    return data, indices, indptr.astype(draw(st.sampled_from([np.int32, np.int64]))), d
