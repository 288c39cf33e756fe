"""Bins: Fayyad and Irani's rule on counts, against one that goes through the rows one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.conjugate.bins import merge_cells


def entropy(y):
    n = np.unique(y, return_counts=True)[1]
    return -(n / n.sum() * np.log2(n / n.sum())).sum()


def cuts_of(x, y):
    """The rule as its paper has it, on rows."""
    edges = np.unique(x)[1:]
    if not len(edges):
        return []
    gains = [entropy(y) - (x < e).mean() * entropy(y[x < e]) - (x >= e).mean() * entropy(y[x >= e]) for e in edges]
    best = int(np.argmax(np.round(gains, 12)))
    left, right = y[x < edges[best]], y[x >= edges[best]]
    k, k1, k2 = (len(set(some.tolist())) for some in (y, left, right))
    delta = np.log2(3.0**k - 2) - (k * entropy(y) - k1 * entropy(left) - k2 * entropy(right))
    if gains[best] <= (np.log2(len(edges)) + delta) / len(y):
        return []
    below = x < edges[best]
    return sorted([edges[best], *cuts_of(x[below], y[below]), *cuts_of(x[~below], y[~below])])


def counts_of(x, y, n_cells, k):
    counts = np.zeros((k, n_cells))
    np.add.at(counts, (y, x), 1.0)
    return counts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 30), st.integers(2, 300), st.floats(0, 12))
def test_bins_are_those_of_the_paper(seed, k, n_cells, n, shift):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = np.clip(rng.integers(0, n_cells, n) + (shift * y).astype(int), 0, n_cells - 1)
    found = merge_cells(counts_of(x, y, n_cells, k))
    there = np.unique(x)
    assert len(set(found[there].tolist())) == 1 + len(cuts_of(x, y))
    np.testing.assert_array_equal(np.diff(found[there]) > 0, np.isin(there[1:], cuts_of(x, y)))


def test_numbers_of_bins_ascend_without_gaps():
    counts = np.array([[90.0, 0.0, 0.0, 90.0, 0.0], [0.0, 0.0, 90.0, 0.0, 0.0]])
    assert merge_cells(counts).tolist() == [0, 1, 1, 2, 2]  # read from above, where fewer rows are
    assert merge_cells(counts[:, ::-1]).tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("counts", [np.zeros((2, 3)), np.ones((1, 5)), np.zeros((3, 0))])
def test_what_tells_nothing_is_one_bin(counts):
    assert merge_cells(counts).tolist() == [0] * counts.shape[1]


def test_weights_count_as_rows():
    x, y = np.arange(60) // 10, np.repeat([0, 1], 30)
    counts = counts_of(x, y, 6, 2)
    assert merge_cells(counts).tolist() == [0, 0, 0, 1, 1, 1]
    assert merge_cells(counts * 0.01).tolist() == [0] * 6  # less than a row tells nothing
