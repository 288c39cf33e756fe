"""The drop-ins against scikit-learn's classes on the same rows: attributes, scores, inputs, settings, routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from tests.estimators.dropins.dropin_cases import (
    NAMES,
    SPARSE,
    assert_same_attributes,
    assert_same_scores,
    ours,
    rows,
    theirs,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn")


def both(name, X, y, sample_weight=None, **settings):
    return (make(name, **settings).fit(X, y, sample_weight=sample_weight) for make in (ours, theirs))


def compare(name, X, y, sample_weight=None, queries=None, **settings):
    a, b = both(name, X, y, sample_weight, **settings)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.classes_.dtype == b.classes_.dtype
    assert a.n_features_in_ == b.n_features_in_
    assert_same_attributes(name, a, b)
    assert_same_scores(a, b, X if queries is None else queries)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_random_rows(name, n_classes):
    X, y = rows(name, n_classes=n_classes)
    compare(name, X, y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_real_tables(name, load):
    X, y = load(return_X_y=True)
    # Categories of the drop-in are the whole numbers below; breast cancer's areas are capped to keep the tables small.
    compare(name, np.minimum(X, 50) if name == "CategoricalNB" else X, y)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "GaussianNB"])
def test_weights(name):
    X, y = rows(name)
    compare(name, X, y, sample_weight=np.random.default_rng(1).exponential(size=len(y)))


def test_gaussian_weights():
    # scikit-learn takes epsilon_ from the unweighted rows, so the part that both define alike is compared.
    X, y = rows("GaussianNB")
    a, b = both("GaussianNB", X, y, np.random.default_rng(1).exponential(size=len(y)))
    for attribute in ("class_count_", "class_prior_", "theta_"):
        np.testing.assert_allclose(getattr(a, attribute), getattr(b, attribute), rtol=1e-12)
    np.testing.assert_allclose(a.var_ - a.epsilon_, b.var_ - b.epsilon_, rtol=1e-9)
    a, b = both("GaussianNB", X, y, np.random.default_rng(1).exponential(size=len(y)), var_smoothing=0.0)
    assert_same_attributes("GaussianNB", a, b)
    assert_same_scores(a, b, X)


@pytest.mark.parametrize("name", NAMES)
def test_integer_weights_are_copies(name):
    X, y = rows(name)
    times = np.random.default_rng(2).integers(0, 4, len(y))
    times[: y.max() + 1] = 1  # every class stays
    again = np.repeat(np.arange(len(y)), times)
    a, b = ours(name).fit(X, y, sample_weight=times), ours(name).fit(X[again], y[again])
    assert_same_attributes(name, a, b) if name != "CategoricalNB" else None
    assert_same_scores(a, b, X[again])


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("container", ["matrix", "array"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_sparse_rows(name, layout, container, dtype):
    X, y = rows(name)
    S = getattr(scipy.sparse, f"{layout}_{container}")(X.astype(dtype))
    a, b = ours(name).fit(S, y), theirs(name).fit(S, y)
    assert_same_attributes(name, a, b)
    assert_same_scores(a, b, S)
    assert_same_scores(a, ours(name).fit(X, y), X)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_weights_and_chunks(name):
    X, y = rows(name, n_features=40)
    S, w = scipy.sparse.csr_array(X), np.random.default_rng(3).random(len(y))
    a = ours(name).partial_fit(S[:50], y[:50], classes=[0, 1, 2], sample_weight=w[:50])
    a.partial_fit(S[50:], y[50:], sample_weight=w[50:])
    b = theirs(name).fit(S, y, sample_weight=w)
    assert_same_attributes(name, a, b)
    assert_same_scores(a, b, S)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, bool])
def test_layouts_and_types(name, order, dtype):
    X, y = rows(name)
    X = {np.uint8: np.abs(X), bool: np.median(X, axis=0) < X}.get(dtype, X).astype(dtype, order=order)
    a, b = ours(name).fit(X, y), theirs(name).fit(X.astype(np.int64 if X.dtype.kind in "iub" else np.float64), y)
    assert_same_attributes(name, a, b)
    assert_same_scores(a, b, X.astype(np.int64 if X.dtype.kind in "iub" else np.float64))
    np.testing.assert_allclose(
        a.predict_joint_log_proba(X), a.predict_joint_log_proba(X.astype(np.float64)), rtol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_strided_and_read_only_rows(name):
    X, y = rows(name, n_rows=240)
    every_other, labels = X[::2, ::2], y[::2]
    every_other.flags.writeable = labels.flags.writeable = False
    compare(name, every_other, labels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["low", "mid", "high"]),
        np.array(["low", "mid", "high"], dtype=object),
        np.array([-7, 1000000, 3]),
        np.array([2, 0, 1], dtype=np.int32),
        np.array([2, 0, 1], dtype=np.uint8),
        np.array([0.0, 5.0, 2.0]),
    ],
    ids=["text", "object", "wide", "int32", "uint8", "float"],
)
def test_label_types(name, labels):
    X, y = rows(name)
    compare(name, X, labels[y])


@pytest.mark.parametrize("name", NAMES)
def test_boolean_labels_lists_and_series(name):
    X, y = rows(name, n_classes=2)
    compare(name, X, y == 1)
    compare(name, X.tolist(), y.tolist())
    compare(name, X, pd.Series(y, index=np.arange(len(y))[::-1]))


@pytest.mark.parametrize("name", NAMES)
def test_data_frames_keep_their_names(name):
    X, y = rows(name)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    a, b = both(name, frame, y)
    assert a.feature_names_in_.tolist() == b.feature_names_in_.tolist() == list(frame.columns)
    assert_same_scores(a, b, frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        a.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        a.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        a.partial_fit(frame.rename(columns={"c0": "other"}), y)
    assert not hasattr(a.fit(X, y), "feature_names_in_")


SETTINGS = [
    ("GaussianNB", {"priors": [0.2, 0.3, 0.5]}),
    ("GaussianNB", {"var_smoothing": 0.1}),
    ("BernoulliNB", {"alpha": 0.3, "binarize": 1.0}),
    ("BernoulliNB", {"fit_prior": False}),
    ("BernoulliNB", {"class_prior": [0.2, 0.3, 0.5]}),
    ("MultinomialNB", {"alpha": 0.01}),
    ("MultinomialNB", {"alpha": [0.1, 0.2, 0.3, 1, 2, 3]}),
    ("MultinomialNB", {"class_prior": [0.2, 0.3, 0.5], "fit_prior": False}),
    ("ComplementNB", {"norm": True}),
    ("ComplementNB", {"alpha": np.array([0.1, 0.2, 0.3, 1, 2, 3]), "norm": True}),
    ("ComplementNB", {"class_prior": [0.2, 0.3, 0.5]}),
    ("CategoricalNB", {"alpha": 0.5}),
    ("CategoricalNB", {"min_categories": 9}),
    ("CategoricalNB", {"min_categories": [3, 1, 9, 5, 5, 5], "fit_prior": False}),
    ("CategoricalNB", {"class_prior": [0.2, 0.3, 0.5]}),
]


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_settings(name, settings):
    X, y = rows(name)
    compare(name, X, y, **settings)


@pytest.mark.parametrize("name", ["BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"])
def test_small_alpha_is_raised_unless_forced(name):
    X, y = rows(name)
    with pytest.warns(UserWarning, match="alpha too small"):
        a = ours(name, alpha=0.0, force_alpha=False).fit(X, y)
    with pytest.warns(UserWarning, match="alpha too small"):
        b = theirs(name, alpha=0.0, force_alpha=False).fit(X, y)
    assert_same_attributes(name, a, b)
    if name != "BernoulliNB":  # whose log(1 - p) has lost its digits in scikit-learn; see the differences
        assert_same_scores(a, b, X)


@pytest.mark.parametrize("sparse", [False, True])
def test_bernoulli_accepts_fractions(sparse):
    X = np.random.default_rng(5).random((60, 4)) * (np.random.default_rng(6).random((60, 4)) > 0.4)
    y = np.arange(60) % 3
    compare("BernoulliNB", scipy.sparse.csr_array(X) if sparse else X, y, binarize=None)
    compare("BernoulliNB", (X > 0).astype(int), y, binarize=None)


def test_text():
    texts = [
        "the cat sat",
        "a cat and a dog",
        "stocks fell",
        "stocks rose as banks sold",
        "the dog ran",
        "banks fell",
    ] * 5
    y = np.array([0, 0, 1, 1, 0, 1] * 5)
    X = CountVectorizer().fit_transform(texts)
    for name in SPARSE:
        compare(name, X, y)
        model = make_pipeline(CountVectorizer(), ours(name)).fit(texts, y)
        assert model.predict(["the cat", "banks"]).tolist() == [0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_unseen_announced_class(name):
    X, y = rows(name)
    a, b = (make(name).partial_fit(X, y, classes=[0, 1, 2, 3]) for make in (ours, theirs))
    np.testing.assert_allclose(a.class_count_, b.class_count_)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert np.isfinite(a.predict_proba(X)).all()


@pytest.mark.parametrize("name", NAMES)
def test_wide_rows_do_not_underflow(name):
    X, y = rows(name, n_rows=30, n_features=5000)
    X = X % 3 if name == "CategoricalNB" else X
    a, b = both(name, X, y)
    assert np.isfinite(a.predict_joint_log_proba(X)).all()
    np.testing.assert_allclose(a.predict_joint_log_proba(X), b.predict_joint_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_settings_count_from_the_next_fit_on(name):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(**({"var_smoothing": 10.0} if name == "GaussianNB" else {"alpha": 50.0}))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert not np.allclose(model.fit(X, y).predict_proba(X), before)


@pytest.mark.parametrize("name", NAMES)
def test_clone_pickle_and_search(name):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "classes_")
    assert repr(model) == repr(theirs(name))
    parameter = "var_smoothing" if name == "GaussianNB" else "alpha"
    values = {parameter: [0.01, 1.0]}
    found = [GridSearchCV(make(name), values, cv=3).fit(X, y).cv_results_["mean_test_score"] for make in (ours, theirs)]
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_parameters_are_scikit_learns(name):
    assert ours(name).get_params() == theirs(name).get_params()
    a, b = ours(name).__sklearn_tags__(), theirs(name).__sklearn_tags__()
    assert a.input_tags == b.input_tags
    assert a.classifier_tags == b.classifier_tags


@pytest.mark.parametrize("name", NAMES)
def test_metadata_routing(name):
    X, y = rows(name)
    w = np.random.default_rng(4).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        request = (
            ours(name).set_fit_request(sample_weight=True).set_partial_fit_request(classes=True, sample_weight=True)
        )
        assert request.get_metadata_routing().fit.requests == {"sample_weight": True}
        assert request.get_metadata_routing().partial_fit.requests == {"classes": True, "sample_weight": True}
        scores = [
            cross_val_score(
                make(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
                X, y, cv=3, params={"sample_weight": w},
            )
            for make in (ours, theirs)
        ]  # fmt: skip
    np.testing.assert_allclose(*scores)
