"""What the drop-ins do otherwise than scikit-learn, on purpose: one named test for each entry of the docs page."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.naive_bayes
from tests.estimators.dropins.dropin_cases import NAMES, ours, rows

from candide.errors import InputError
from candide.kernels.threads import force_parts


def test_epsilon_comes_from_the_pooled_weighted_tally():
    X, y = rows("GaussianNB")
    w = np.random.default_rng(0).exponential(size=len(y))
    centre = np.average(X, axis=0, weights=w)
    expected = 1e-9 * np.average((X - centre) ** 2, axis=0, weights=w).max()
    np.testing.assert_allclose(ours("GaussianNB").fit(X, y, sample_weight=w).epsilon_, expected, rtol=1e-12)


def test_results_are_float64_whatever_the_rows_are():
    X, y = rows("GaussianNB")
    model = ours("GaussianNB").fit(X.astype(np.float32), y)
    assert model.theta_.dtype == model.var_.dtype == model.predict_proba(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("name", [n for n in NAMES if n != "GaussianNB"])
def test_a_label_outside_the_classes_is_an_error_not_a_lost_row(name):
    X, y = rows(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = getattr(sklearn.naive_bayes, name)().partial_fit(X, y, classes=[0, 1])
    assert peer.class_count_.sum() == (y < 2).sum() < len(y)
    with pytest.raises(InputError, match=r"\[2\] in y do not exist in the initial classes"):
        ours(name).partial_fit(X, y, classes=[0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_negative_weights_are_an_error(name):
    X, y = rows(name)
    with pytest.raises(InputError, match="weights must be >= 0"):
        ours(name).fit(X, y, sample_weight=-np.ones(len(y)))


@pytest.mark.parametrize("name", NAMES)
def test_fitted_attributes_are_read_only(name):
    model = ours(name).fit(*rows(name))
    with pytest.raises(ValueError, match="read-only"):
        model.class_count_[0] = 5.0
    with pytest.raises(AttributeError):
        model.class_count_ = np.ones(3)


@pytest.mark.parametrize("rows_of", [np.asarray, scipy.sparse.csr_array])
def test_a_row_impossible_under_every_class_is_left_with_the_class_prior(rows_of):
    X, y = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]]), [0, 1, 1]
    model = ours("MultinomialNB", alpha=0.0).fit(rows_of(X), y)
    impossible = rows_of(np.array([[0, 0, 1], [1, 1, 0]]))
    np.testing.assert_allclose(model.predict_proba(impossible), [[1 / 3, 2 / 3]] * 2, rtol=1e-14)
    assert model.predict(impossible).tolist() == [1, 1]


def test_per_feature_alpha_of_bernoulli():
    X, y = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]]), np.array([0, 0, 1])
    alpha = np.array([0.5, 1.0, 4.0])
    model = ours("BernoulliNB", alpha=alpha).fit(X, y)
    counts = np.array([X[y == c].sum(axis=0) for c in (0, 1)])
    expected = (counts + alpha) / (np.array([[2], [1]]) + 2 * alpha)
    np.testing.assert_allclose(np.exp(model.feature_log_prob_), expected, rtol=1e-14)


def test_rows_that_do_not_vary_leave_the_class_prior():
    model = ours("GaussianNB").fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
    np.testing.assert_allclose(model.predict_proba([[3.0, 0.0], [4.0, 1.0]]), [[0.75, 0.25]] * 2, rtol=1e-14)


def test_density_of_a_row():
    X, y = rows("GaussianNB")
    model = ours("GaussianNB").fit(X, y)
    np.testing.assert_allclose(model.log_density(X), np.logaddexp.reduce(model.predict_joint_log_proba(X), axis=1))
    with pytest.raises(InputError, match="ComplementNB has no density"):
        ours("ComplementNB").fit(*rows("ComplementNB")).log_density(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["GaussianNB", "BernoulliNB", "MultinomialNB"])
def test_rows_are_not_copied(name, order, dtype):
    n_rows = 400_000
    X = np.ones((n_rows, 40), dtype, order)
    X[::7] = X[:, ::5] = 3
    y = np.arange(n_rows) % 3
    model = ours(name).fit(X[:1000], y[:1000])
    tracemalloc.start()
    try:
        with force_parts(2):  # tiles are one a thread, and machines have any number of them
            model.fit(X, y)
            fit = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            model.predict(X)
        predict = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Two arrays of y's size, and tiles. A mask of X would be another 16 MB, a copy 64 or 128.
    assert fit < 2 * n_rows * 8 + 9e6
    assert predict < 2 * n_rows * 8 + 15e6


def test_integer_categories_are_not_copied():
    X, y = np.random.default_rng(0).integers(0, 5, (200_000, 30)).astype(np.int32), np.arange(200_000) % 3
    tracemalloc.start()
    try:
        ours("CategoricalNB").fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2
