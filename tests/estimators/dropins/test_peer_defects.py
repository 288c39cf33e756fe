"""Defects of peers that concern the drop-ins, each a named test."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.naive_bayes
from tests.estimators.dropins.dropin_cases import NAMES, assert_same_attributes, assert_same_scores, ours, rows


@pytest.mark.parametrize("name", NAMES)
def test_partial_fit_in_chunks_equals_fit_on_the_whole(name):
    """scikit-learn's GaussianNB takes epsilon_ from the last chunk; its CategoricalNB takes n_categories_ from it."""
    X, y = rows(name, n_rows=90)
    by_size = np.argsort(X[:, 0], kind="stable")  # chunks that differ as much as they can
    X, y = X[by_size], y[by_size]
    parts = ours(name)
    for a in range(0, 90, 9):
        parts.partial_fit(X[a : a + 9], y[a : a + 9], classes=[0, 1, 2])
    whole = ours(name).fit(X, y)
    assert_same_attributes(name, parts, whole)
    assert_same_scores(parts, whole, X, rtol=1e-10)


def test_the_peer_has_the_gaussian_defect():
    """The rows above do show it: else the test above would prove little."""
    X, y = rows("GaussianNB", n_rows=90)
    by_size = np.argsort(X[:, 0], kind="stable")
    X, y = X[by_size], y[by_size]
    peer = sklearn.naive_bayes.GaussianNB()
    for a in range(0, 90, 9):
        peer.partial_fit(X[a : a + 9], y[a : a + 9], classes=[0, 1, 2])
    assert abs(peer.epsilon_ / sklearn.naive_bayes.GaussianNB().fit(X, y).epsilon_ - 1) > 0.01


def test_an_unseen_category_is_finite_and_sensible():
    """scikit-learn raises IndexError. The share is alpha / (n + K alpha), as for a category with no row."""
    X, y = np.array([[0, 0], [0, 1], [1, 1], [1, 1]]), np.array([0, 0, 1, 1])
    model = ours("CategoricalNB", alpha=0.5).fit(X, y)
    joint = model.predict_joint_log_proba([[0, 7], [0, 10**12], [0, 1]])
    first = np.log([2.5 / 3, 0.5 / 3])  # category 0 of column 0: 2 of 2 rows, 0 of 2
    unseen = np.log(0.5 / 3)
    np.testing.assert_allclose(joint[0], np.log(0.5) + first + unseen, rtol=1e-14)
    np.testing.assert_array_equal(joint[0], joint[1])
    assert model.predict([[0, 7], [1, 7]]).tolist() == [0, 1]
    np.testing.assert_allclose(model.predict_proba([[7, 7]]), [[0.5, 0.5]])  # nothing known is left but the class prior
    with pytest.raises(IndexError):
        sklearn.naive_bayes.CategoricalNB().fit(X, y).predict([[0, 7]])


def test_an_unseen_category_without_smoothing_contributes_nothing():
    X, y = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1, 1])
    model = ours("CategoricalNB", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0, 7]]), [[1.0, 0.0]])
    np.testing.assert_allclose(model.predict_proba([[9, 7]]), [[0.5, 0.5]])


def test_a_category_first_seen_in_a_later_chunk_is_counted():
    model = ours("CategoricalNB").partial_fit([[0], [1]], [0, 1], classes=[0, 1])
    model.partial_fit([[4], [4]], [1, 1]).partial_fit([[0]], [0])
    assert model.category_count_[0].tolist() == [[2, 0, 0, 0, 0], [0, 1, 0, 0, 2]]
    assert model.n_categories_.tolist() == [5]
    assert model.predict([[4]]).tolist() == [1]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_bernoulli_feature_that_is_always_one_gives_no_nan(sparse):
    """scikit-learn takes log(1 - 1), warns, and multiplies it by zero."""
    X, y = np.array([[1, 0], [1, 1], [0, 1], [1, 1]]), np.array([0, 0, 1, 1])
    rows_of = scipy.sparse.csr_array if sparse else np.asarray
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ours("BernoulliNB", alpha=0.0).fit(rows_of(X), y)
        posterior = model.predict_proba(rows_of(np.array([[1, 0], [0, 1], [1, 1], [0, 0]])))
    # Column 0 is always 1 in class 0, column 1 always in class 1: by hand p(x | 0) = .5 for each row with x0 = 1,
    # p(x | 1) = .5 for each with x1 = 1; (0, 0) is impossible under both, and the class prior is all there is.
    np.testing.assert_allclose(posterior, [[1, 0], [0, 1], [0.5, 0.5], [0.5, 0.5]], atol=1e-15)


def test_a_bernoulli_feature_that_is_nearly_always_one_keeps_its_digits():
    """log(1 - p) from the count of no, not from 1 - exp(log p), which has no digits left at p = 1 - 1e-12."""
    n = 10**12
    model = ours("BernoulliNB").fit([[1.0], [0.0], [1.0], [0.0]], [0, 0, 1, 1], sample_weight=[n, 1, 1, n])
    joint = model.predict_joint_log_proba([[0.0]])[0]
    expected = np.log(0.5) + np.array([np.log(2) - np.log(n + 3), np.log1p(-2 / (n + 3))])
    np.testing.assert_allclose(joint, expected, rtol=1e-14)
