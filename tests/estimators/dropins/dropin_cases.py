"""Rows that suit each drop-in, and comparisons, for the tests beside this file."""

import numpy as np
import sklearn.naive_bayes

import candide

NAMES = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
SPARSE = ("BernoulliNB", "ComplementNB", "MultinomialNB")
ATTRIBUTES = {
    "BernoulliNB": ("class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_"),
    "CategoricalNB": ("class_count_", "class_log_prior_", "category_count_", "feature_log_prob_", "n_categories_"),
    "ComplementNB": ("class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_", "feature_all_"),
    "GaussianNB": ("class_count_", "class_prior_", "theta_", "var_", "epsilon_"),
    "MultinomialNB": ("class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_"),
}
SCORES = ("predict_proba", "predict_log_proba", "predict_joint_log_proba")


def ours(name, **settings):
    return getattr(candide, name)(**settings)


def theirs(name, **settings):
    return getattr(sklearn.naive_bayes, name)(**settings)


def rows(name, n_rows=120, n_features=6, n_classes=3, seed=0):
    """X and y, with classes that differ; every category occurs, so that scikit-learn can score them."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    if name == "GaussianNB":
        scale = 10.0 ** rng.integers(-2, 3, n_features)
        return (rng.normal(size=(n_rows, n_features)) + y[:, None] * rng.normal(size=n_features)) * scale, y
    if name == "CategoricalNB":
        return ((rng.integers(0, 4, (n_rows, n_features)) + y[:, None]) % (2 + np.arange(n_features))).astype(float), y
    return rng.poisson(np.exp(rng.normal(size=(n_classes, n_features)))[y]).astype(float), y


def assert_same_attributes(name, a, b, rtol=1e-10, atol=1e-10):
    for attribute in ATTRIBUTES[name]:
        left, right = getattr(a, attribute), getattr(b, attribute)
        pairs = zip(left, right, strict=True) if isinstance(right, list) else [(left, right)]
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=attribute)


def assert_same_scores(a, b, X, rtol=1e-9, atol=1e-10):
    for score in SCORES:
        np.testing.assert_allclose(getattr(a, score)(X), getattr(b, score)(X), rtol=rtol, atol=atol, err_msg=score)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def state(name, model, X):
    """Everything a user can see of a fitted drop-in, copied."""
    seen = {a: getattr(model, a) for a in (*ATTRIBUTES[name], "classes_", "n_features_in_")}
    seen |= {score: getattr(model, score)(X) for score in SCORES}
    return {
        key: [np.array(v) for v in value] if isinstance(value, list) else np.array(value) for key, value in seen.items()
    }


def assert_same_state(a, b):
    assert a.keys() == b.keys()
    for key, value in a.items():
        for x, y in zip(value, b[key], strict=True) if isinstance(value, list) else [(value, b[key])]:
            np.testing.assert_array_equal(x, y, err_msg=key)
