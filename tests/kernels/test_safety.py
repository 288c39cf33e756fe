"""Codes, indices and shapes that make no sense are refused: nothing is read or written out of bounds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.kernels import threads

X = np.ones((4, 3))
CODES = np.zeros((4, 3), np.int64)
OFFSETS = np.array([0, 2, 4, 6])
SETS, SIZES = np.array([[0, 2], [1, 2]]), np.array([2, 2, 2])
CSR = (np.ones(4), np.array([0, 1, 2, 0], np.int32), np.array([0, 1, 2, 3, 4], np.int32))
PARAMETERS = np.ones((2, 3))


@pytest.mark.parametrize("y", [[0, 0, 2, 0], [0, 0, -1, 0], [2**62, 0, 0, 0]])
def test_a_class_code_outside_the_classes(loops, y):
    y = np.array(y)
    with pytest.raises(IndexError):
        loops.moments(X, y, None, 2)
    with pytest.raises(IndexError):
        loops.dense_sums(X, y, None, 2)
    with pytest.raises(IndexError):
        loops.level_counts(CODES, y, None, 2, OFFSETS)
    with pytest.raises(IndexError):
        loops.csr_sums(*CSR, y, None, 2, 3)
    with pytest.raises(IndexError):
        loops.cell_counts(CODES, y, None, 2, SETS, SIZES)
    with pytest.raises(IndexError):
        loops.held_out_cells(np.ones((2, 8)), CODES, y, None, SETS, SIZES, 10.0, 1.0)
    with pytest.raises(IndexError):
        loops.score_cells(CODES, y, None, None, np.ones((4, 2)), SETS, SIZES, 10.0, 1.0)
    with pytest.raises(IndexError):
        loops.take_cells(CODES, SETS, SIZES, np.ones((8, 2)), np.ones((2, 2)), y, np.ones((4, 2)), np.empty((4, 2, 2)))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64])
@pytest.mark.parametrize("code", [2, 127, "largest"])
def test_a_level_code_past_the_levels(loops, dtype, code):
    codes = CODES.astype(dtype)
    codes[3, 2] = np.iinfo(dtype).max if code == "largest" else code
    with pytest.raises(IndexError):
        loops.level_counts(codes, np.zeros(4, np.intp), None, 2, OFFSETS)
    with pytest.raises(IndexError):
        loops.cell_counts(codes, np.zeros(4, np.intp), None, 2, SETS, SIZES)
    with pytest.raises(IndexError):
        loops.score_cells(codes, np.zeros(4, np.intp), None, None, np.ones((4, 2)), SETS, SIZES, 10.0, 1.0)


@pytest.mark.parametrize("column", [3, -1, 2**31 - 1, -(2**31)])
def test_a_column_outside_the_features(loops, column):
    data, indices, indptr = CSR
    indices = indices.copy()
    indices[2] = column
    with pytest.raises(IndexError):
        loops.csr_sums(data, indices, indptr, np.zeros(4, np.intp), None, 2, 3)
    with pytest.raises(IndexError):
        loops.add_linear_csr(data, indices, indptr, np.ones((3, 2)), np.zeros((4, 2)))


@pytest.mark.parametrize(
    "indptr",
    [[0, 2, 1, 3, 4], [0, 1, 2, 3, 5], [0, 1, 2, 3, 2**31 - 1], [-4, 1, 2, 3, 4], [0, 1, 2, 3], [4, 3, 2, 1, 0]],
)
@pytest.mark.parametrize("data_type", [np.float64, np.int8])
def test_row_starts_that_leave_the_storage(compiled, indptr, data_type):
    indptr = np.array(indptr)
    with pytest.raises(ValueError, match=r"indptr|length"):
        compiled.csr_sums(CSR[0].astype(data_type), CSR[1], indptr, np.zeros(4, np.intp), None, 2, 3)
    with pytest.raises(ValueError, match=r"indptr|length"):
        compiled.add_linear_csr(CSR[0].astype(data_type), CSR[1], indptr, np.ones((3, 2)), np.zeros((4, 2)))


def test_arrays_that_differ_in_length(compiled):
    y, w, short = np.zeros(4, np.intp), np.ones(4), slice(3)

    def take(**other):
        shapes = {"table": (8, 2), "unseen": (2, 2), "own": (4, 2), "out": (4, 2, 2)} | other
        table, unseen, own, out = (np.ones(shape) for shape in shapes.values())
        compiled.take_cells(CODES, SETS, SIZES, table, unseen, y, own, out)

    def discriminant(**other):
        shapes = {"centres": (2, 3), "roots": (1, 3, 3), "params": (4, 2), "out": (4, 2)} | other
        centres, roots, params, out = (np.ones(shape) for shape in shapes.values())
        compiled.add_discriminant(np.ones((4, 3)), centres, roots, params, True, 1.0, out)

    for call in (
        lambda: compiled.moments(X, y[short], None, 2),
        lambda: compiled.moments(X, y, w[short], 2),
        lambda: compiled.moments(X[0], y, None, 2),
        lambda: compiled.moments(X, y, None, -1),
        lambda: compiled.dense_sums(X, y[short], None, 2),
        lambda: compiled.level_counts(CODES, y[short], None, 2, OFFSETS),
        lambda: compiled.level_counts(CODES, y, None, 2, OFFSETS[:-1]),
        lambda: compiled.level_counts(CODES, y, None, 2, OFFSETS[::-1]),
        lambda: compiled.level_counts(CODES, y, None, 2, OFFSETS - 1),
        lambda: compiled.grid_codes(w, w[:1], np.empty(3, np.int32)),
        lambda: compiled.interpolate(w, w[:1], w[:1], w[short].copy()),
        lambda: compiled.interpolate(w, w[:1], w[:2], w.copy()),
        lambda: compiled.interpolate(w, w[:0], w[:0], w.copy()),
        lambda: compiled.cell_counts(CODES, y[short], None, 2, SETS, SIZES),
        lambda: compiled.cell_counts(CODES, y, None, 2, SETS + 1, SIZES),
        lambda: compiled.cell_counts(CODES, y, None, 2, SETS, -SIZES),
        lambda: compiled.cell_counts(CODES, y, None, 2, SETS, SIZES[:2]),
        lambda: compiled.cell_counts(CODES, y, None, 2, SETS, SIZES << 30),
        lambda: compiled.cell_counts(CODES, y, None, 2, np.zeros((1, 9), int), SIZES),
        lambda: compiled.cell_terms(np.ones((2, 7)), SETS, SIZES, 10.0, 1.0),
        lambda: compiled.cell_terms(np.ones((2, 8)), SETS, SIZES << 20, 10.0, 1.0),
        lambda: compiled.held_out_cells(np.ones((2, 7)), CODES, y, None, SETS, SIZES, 10.0, 1.0),
        lambda: compiled.held_out_cells(np.ones((2, 8)), CODES[:, :2], y, None, SETS, SIZES, 10.0, 1.0),
        lambda: compiled.score_cells(CODES, y, None, None, np.ones((3, 2)), SETS, SIZES, 10.0, 1.0),
        lambda: compiled.add_cells(CODES, compiled.Sets(SETS, SIZES), np.ones((7, 2)), np.zeros((4, 2))),
        lambda: compiled.add_cells(CODES, compiled.Sets(SETS, SIZES), np.ones((8, 2)), np.zeros((4, 3))),
        lambda: compiled.add_cells(CODES, compiled.Sets(SETS, SIZES), np.ones((8, 2)), np.zeros((3, 2))),
        lambda: discriminant(centres=(2, 2)),
        lambda: discriminant(centres=(1, 3)),
        lambda: discriminant(roots=(3, 3, 3)),
        lambda: discriminant(roots=(1, 2, 3)),
        lambda: discriminant(roots=(1, 3, 2)),
        lambda: discriminant(params=(3, 2)),
        lambda: discriminant(params=(4, 3)),
        lambda: discriminant(out=(3, 2)),
        lambda: take(out=(3, 2, 2)),
        lambda: take(out=(4, 2, 3)),
        lambda: take(table=(7, 2)),
        lambda: take(unseen=(1, 2)),
        lambda: take(own=(3, 2)),
        lambda: compiled.csr_sums(*CSR, y[short], None, 2, 3),
        lambda: compiled.csr_sums(*CSR, y, None, 2, -3),
        lambda: compiled.add_linear_csr(*CSR, np.ones((3, 2)), np.zeros((3, 2))),
        lambda: compiled.add_linear_csr(*CSR, np.ones((3, 2)), np.zeros((4, 3))),
        lambda: compiled.add_gaussian(X, PARAMETERS, PARAMETERS, PARAMETERS[:, :2], np.zeros((4, 2))),
        lambda: compiled.add_gaussian(X, PARAMETERS, PARAMETERS, PARAMETERS, np.zeros((3, 2))),
        lambda: compiled.add_student(X, PARAMETERS, PARAMETERS, PARAMETERS[:1], PARAMETERS, np.zeros((4, 2))),
        lambda: compiled.add_switch(X, 0.0, PARAMETERS, PARAMETERS, np.zeros((4, 3))),
        lambda: compiled.add_linear(X, np.ones((2, 2)), np.zeros((4, 2))),
        lambda: compiled.add_linear(X, np.ones((3, 2)), np.zeros((4, 3))),
        lambda: compiled.posterior(np.zeros((4, 2)), np.ones(3)),
        lambda: compiled.fill_rows(np.zeros((4, 2)), np.ones(3)),
        lambda: compiled.first_largest(np.zeros((4, 2)), 0, np.zeros(3, np.intp)),
        lambda: compiled.add_levels(CODES, OFFSETS, np.ones((6, 2)), np.ones((3, 9)), np.zeros((4, 2))),
        lambda: compiled.add_levels(CODES, OFFSETS, np.ones((5, 2)), np.ones((3, 2)), np.zeros((4, 2))),
        lambda: compiled.add_levels(CODES, OFFSETS, np.ones((6, 2)), np.ones((2, 2)), np.zeros((4, 2))),
        lambda: compiled.add_levels(CODES, OFFSETS, np.ones((6, 2)), np.ones((3, 2)), np.zeros((3, 2))),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()


def test_what_is_written_must_be_writable(compiled):
    out = np.zeros((4, 2))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled.normalise(out)
    with pytest.raises(ValueError, match="read-only"):
        compiled.posterior(out, np.ones(2))
    with pytest.raises(ValueError, match="read-only"):
        compiled.add_gaussian(X, PARAMETERS, PARAMETERS, PARAMETERS, out)


def test_codes_that_are_not_integers(compiled):
    with pytest.raises(TypeError):
        compiled.code_range(X)


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_number_of_threads_does_not_matter(compiled, parts, seed):
    """Rows split in any number of parts, worked at the same time, give the same scores and the same counts."""
    rng = np.random.default_rng(seed)
    n = 500
    x, y, codes = rng.normal(size=(n, 5)), rng.integers(0, 3, n), rng.integers(0, 4, (n, 5))
    offsets, table, p = np.arange(0, 21, 4), rng.normal(size=(20, 3)), rng.uniform(0.5, 2, (3, 5))
    edges = np.linspace(0, n, parts + 1).astype(int)
    slices = [slice(a, b) for a, b in pairwise(edges)]

    def score(rows, out):
        compiled.add_gaussian(x[rows], p, p, p, out[rows])
        compiled.add_levels(codes[rows], offsets, table, np.zeros((5, 3)), out[rows])
        evidence = compiled.normalise(out[rows].copy())
        compiled.posterior(out[rows], np.ones(3))
        return evidence

    whole, split = np.zeros((n, 3)), np.zeros((n, 3))
    evidence = score(slice(0, n), whole)
    scored = list(threads._pool().map(lambda s: score(s, split), slices))
    np.testing.assert_allclose(np.concatenate(scored), evidence, rtol=1e-13)
    np.testing.assert_allclose(split, whole, rtol=1e-12, atol=1e-300)
    counted = threads._pool().map(lambda s: compiled.level_counts(codes[s], y[s], None, 3, offsets), slices)
    np.testing.assert_array_equal(sum(counted), compiled.level_counts(codes, y, None, 3, offsets))
