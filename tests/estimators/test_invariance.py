"""What must not matter to the default model: order, names of labels, columns without information, signs."""

import numpy as np
import pytest
from benchmarks.honesty_invariance import draw_table

import candide as cd

CASES = [(150, 2), (400, 3)]


@pytest.fixture(scope="module", params=CASES, ids=str)
def fitted(request):
    n, classes = request.param
    (X, y), (asked, _) = draw_table(n, 0, classes), draw_table(300, 1, classes)
    return X, y, asked, cd.BayesClassifier().fit(X, y).predict_proba(asked)


def same(found, want):
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_the_order_of_rows_and_columns(fitted):
    X, y, asked, want = fitted
    rng = np.random.default_rng(2)
    rows, names = rng.permutation(len(y)), rng.permutation(list(X))
    shuffled = {name: X[name][rows] for name in names}
    same(cd.BayesClassifier().fit(shuffled, y[rows]).predict_proba({n: asked[n] for n in names}), want)


def test_names_and_order_of_labels(fitted):
    X, y, asked, want = fitted
    names = np.array(["zeta", "alpha", "mu"])
    model = cd.BayesClassifier().fit(X, names[y])
    same(model.predict_proba(asked)[:, [list(model.classes_).index(names[c]) for c in np.unique(y)]], want)


@pytest.mark.parametrize("value", [3.0, np.nan, "k"])
def test_a_column_that_is_constant_or_empty(fitted, value):
    X, y, asked, want = fitted
    more = [{**rows, "more": np.full(len(rows["x0"]), value)} for rows in (X, asked)]
    same(cd.BayesClassifier().fit(more[0], y).predict_proba(more[1]), want)


@pytest.mark.parametrize("name", ["x0", "count", "gaps", "sign"])
def test_a_column_that_is_negated(fitted, name):
    X, y, asked, want = fitted
    found = cd.BayesClassifier().fit({**X, name: -X[name]}, y).predict_proba({**asked, name: -asked[name]})
    same(found, want)


def test_a_column_whose_two_values_are_equally_frequent_may_be_negated():
    """It has no direction, and its sign decided which rows were drawn first: p moved by .096."""
    X, y = draw_table(400, 7, 3)
    assert (X["sign"] > 0).sum() == 200
    want = cd.BayesClassifier().fit(X, y).predict_proba(X)
    same(cd.BayesClassifier().fit({**X, "sign": -X["sign"]}, y).predict_proba({**X, "sign": -X["sign"]}), want)
