"""``partial_fit`` in any chunks, under any order of classes, is ``fit``: to rounding, attributes and scores."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimators.dropins.dropin_cases import NAMES, SPARSE, assert_same_attributes, assert_same_scores, ours, rows

LABELS = [np.array([0, 1, 2, 3]), np.array(["b", "a", "d", "c"]), np.array([30, -1, 7, 2])]


@st.composite
def divisions(draw):
    """Rows of a drop-in in chunks (some empty of a class, some of one row), labels, an order of classes, weights."""
    n_rows, n_classes = draw(st.integers(2, 60)), draw(st.integers(1, 4))
    cuts = sorted(draw(st.sets(st.integers(1, n_rows - 1), max_size=8)))
    edges = [0, *cuts, n_rows]
    seed = draw(st.integers(0, 2**32 - 1))
    order = draw(st.permutations(range(n_classes)))
    weighted = draw(st.booleans())
    return n_rows, n_classes, list(pairwise(edges)), seed, order, weighted, draw(st.integers(0, 2))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(division=divisions())
def test_any_chunks_are_one_fit(name, division):
    n_rows, n_classes, chunks, seed, order, weighted, kind = division
    n_classes = min(n_classes, n_rows)
    X, y = rows(name, n_rows=n_rows, n_classes=n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    shuffle = rng.permutation(n_rows)
    X, y = X[shuffle], LABELS[kind][y[shuffle]]
    w = rng.exponential(size=n_rows) + 0.01 if weighted else None
    classes = LABELS[kind][[c for c in order if c < n_classes]]
    whole, parts = ours(name).fit(X, y, sample_weight=w), ours(name)
    for i, (a, b) in enumerate(chunks):
        part = None if w is None else w[a:b]
        parts.partial_fit(X[a:b], y[a:b], classes=classes if i == 0 else None, sample_weight=part)
    np.testing.assert_array_equal(parts.classes_, whole.classes_)
    assert_same_attributes(name, parts, whole, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_one_row_at_a_time(name):
    X, y = rows(name, n_rows=80)
    whole, parts = ours(name).fit(X, y), ours(name)
    for i in range(len(y)):
        parts.partial_fit(X[i : i + 1], y[i : i + 1], classes=[2, 0, 1] if i % 3 == 0 else None)
    assert_same_attributes(name, parts, whole)
    assert_same_scores(parts, whole, X, rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_fit_then_partial_fit_goes_on_and_fit_starts_anew(name):
    X, y = rows(name)
    whole = ours(name).fit(X, y)
    on = ours(name).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert_same_attributes(name, on, whole)
    assert_same_attributes(name, on.fit(X, y), whole, rtol=0, atol=0)


@pytest.mark.parametrize("name", SPARSE)
def test_dense_and_sparse_chunks_mix(name):
    X, y = rows(name)
    parts = (
        ours(name).partial_fit(scipy.sparse.csc_array(X[:70]), y[:70], classes=[0, 1, 2]).partial_fit(X[70:], y[70:])
    )
    assert_same_attributes(name, parts, ours(name).fit(X, y))


def test_categories_that_come_later_are_counted_and_none_is_lost():
    model = ours("CategoricalNB").partial_fit([[0, 5]], [0], classes=[0, 1]).partial_fit([[3, 1]], [1])
    whole = ours("CategoricalNB").fit([[0, 5], [3, 1]], [0, 1])
    assert_same_attributes("CategoricalNB", model, whole, rtol=0, atol=0)
    assert model.n_categories_.tolist() == [4, 6]


def test_gaussian_at_a_large_mean():
    # mean 1e9, sd 1: sums of squares would leave no digit of the variance.
    rng = np.random.default_rng(0)
    X, y = 1e9 + rng.normal(size=(3000, 2)), np.arange(3000) % 2
    parts = ours("GaussianNB", var_smoothing=0.0)
    for a in range(0, 3000, 7):
        parts.partial_fit(X[a : a + 7], y[a : a + 7], classes=[0, 1])
    exact = np.stack([np.var((X[y == c] - 1e9), axis=0) for c in (0, 1)])
    np.testing.assert_allclose(parts.var_, exact, rtol=1e-6)
