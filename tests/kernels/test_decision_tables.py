"""Loops over decision tables: each build equals the NumPy reference, and this an enumeration of all cuts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide import kernels
from candide.kernels import decision_tables as reference

RIDGE, LEVEL_RIDGE = 1.0, 5.0


def rows(seed, n=60, d=5, slopes=1):
    """Codes, sizes and kinds of columns, whole slopes and curvatures, their scale, and random numbers."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, d)
    codes = np.array([rng.integers(0, size, n) for size in sizes], np.uint8).reshape(d, n)
    kinds = rng.integers(0, 3, d).astype(np.uint8)
    slope, curvature = rng.normal(size=(n, slopes)), rng.uniform(0, 0.5, n)
    scale = float(np.abs(slope).sum(axis=0).max() + curvature.sum()) / 2**30
    whole = np.rint(slope / scale).astype(np.int32), np.rint(curvature / scale).astype(np.int32)
    luck = rng.normal(size=(int(rng.integers(1, 9)), d)).astype(np.float32)
    return codes, sizes, kinds, *whole, scale, luck


def tables(seed, codes, n_tables=4, depth=3, k=3):
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, len(codes), (n_tables, depth)).astype(np.int32)
    columns[-1, 1:] = -1  # a table that ended early
    sides = rng.integers(0, 2, (n_tables, depth, 256)).astype(np.uint8)
    sides[0] = np.arange(256) >= rng.integers(0, 256, (depth, 1))  # rises once
    return columns, sides, rng.normal(size=(n_tables, 1 << depth, k)).astype(np.float32)


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(1, 9), st.sampled_from([1, 2, 6]))
def test_tables_grow_as_in_the_reference(seed, n, d, slopes):
    given_rows = rows(seed, n, d, slopes)
    columns, sides, cells = kernels.grow_table(*given_rows, RIDGE, LEVEL_RIDGE)
    expected_columns, expected_sides, expected_cells = reference.grow_table(*given_rows, RIDGE, LEVEL_RIDGE)
    np.testing.assert_array_equal(columns, expected_columns)
    np.testing.assert_array_equal(cells, expected_cells)
    np.testing.assert_array_equal(sides, expected_sides)


def test_the_first_question_has_the_largest_gain_of_all_cuts():
    codes, sizes, kinds, slopes, curvature, scale, _ = rows(3, n=200, d=4)
    kinds[:] = reference.NUMBERS
    columns, sides, cells = kernels.grow_table(
        codes, sizes, kinds, slopes, curvature, scale, np.zeros((1, 4), np.float32), RIDGE, LEVEL_RIDGE
    )
    g, h = slopes[:, 0] * scale, curvature * scale

    def gain(is_yes):
        parts = ((g[part].sum(), h[part].sum()) for part in (is_yes, ~is_yes))
        return sum(a * a / (b + RIDGE) for a, b in parts) - g.sum() ** 2 / (h.sum() + RIDGE)

    every = {(j, cut): gain(codes[j] > cut) for j in range(4) for cut in range(sizes[j] - 1)}
    column, cut = max(every, key=every.get)
    assert columns.tolist() == [column]
    np.testing.assert_array_equal(cells, codes[column] > cut)
    np.testing.assert_array_equal(sides[0][: sizes[column]], np.arange(sizes[column]) > cut)


def test_missing_numbers_may_go_with_the_largest():
    codes = np.array([[0, 1, 2, 3] * 20], np.uint8)
    slopes = np.array([1000, -1500, -1500, 2000], np.int32)[codes[0]][:, None]
    arguments = slopes, np.full(80, 500, np.int32), 1e-3, np.zeros((1, 1), np.float32), RIDGE, LEVEL_RIDGE
    for kind, answers in ((reference.NUMBERS, [0, 0, 0, 1]), (reference.INCOMPLETE_NUMBERS, [1, 0, 0, 1])):
        _, sides, _ = kernels.grow_table(codes, np.array([4]), np.array([kind], np.uint8), *arguments)
        assert sides[0, :4].tolist() == answers


@given(st.integers(0, 2**32 - 1), st.integers(0, 1300), st.sampled_from([1, 2, 3, 5]))
def test_tables_are_added_as_in_the_reference(seed, n, k):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 4)
    codes = np.array([rng.integers(-1, size + 2, n) for size in sizes], np.int32).reshape(4, n).T
    arrays = tables(seed, sizes, k=k)
    weight, out = rng.normal(size=4), rng.normal(size=(n, k))
    expected = out.copy()
    absent = reference.add_tables(codes, sizes, reference.Tables(*arrays), weight, expected)
    assert kernels.add_tables(codes, sizes, kernels.Tables(*arrays), weight, out) == absent == (codes < 0).sum()
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    small = np.where((codes >= 0) & (codes < sizes), codes + 1, 0).astype(np.uint8).T.copy()
    cells = kernels.table_cells(small, kernels.Tables(*arrays))
    np.testing.assert_array_equal(cells, reference.table_cells(small, reference.Tables(*arrays)))


def test_sums_of_cells_are_those_of_their_rows():
    rng = np.random.default_rng(0)
    cells, values = rng.integers(0, 256, 1000).astype(np.uint8), rng.normal(size=(1000, 3))
    expected = [values[cells == cell].sum(axis=0) for cell in range(256)]
    np.testing.assert_allclose(kernels.cell_sums(cells, values), expected, atol=1e-12)


@pytest.mark.parametrize("codes", [np.full((1, 3), 4, np.uint8), np.zeros((1, 0), np.uint8)])
def test_codes_outside_their_column_are_refused(codes):
    n = codes.shape[1]
    whole = np.zeros((n, 1), np.int32), np.zeros(n, np.int32)
    with pytest.raises(ValueError, match=r"code|rows"):
        kernels.grow_table(
            codes, np.array([4]), np.zeros(1, np.uint8), *whole, 1.0, np.zeros((1, 1), np.float32), 1.0, 5.0
        )
