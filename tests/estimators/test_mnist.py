"""Handwritten digits: what covariances give beyond naive Bayes. Real data; skipped where it is not at hand."""

import numpy as np
import pytest
from tests.tables import table

import candide as cd


@pytest.fixture(scope="module")
def digits():
    file = np.load(table("mnist.npz"))
    return [file[name] for name in ("X_train", "y_train", "X_test", "y_test")]


@pytest.mark.all_cases
def test_grey_pixels_with_covariances(digits):
    """Shrinkage and estimate are the best of a few on the last 10,000 training rows."""
    X, y, Xt, yt = digits
    model = cd.GaussianBayes("full", shrinkage=0.8, estimate="map").fit(X, y)
    assert model.score(Xt[5000:7000], yt[5000:7000]) >= 0.95  # all 10,000 are in the benchmark


def test_black_and_white_pixels_apart(digits):
    X, y, Xt, yt = digits
    model = cd.NaiveBayes(cd.events.Bernoulli(threshold=127)).fit(X, y)
    assert model.score(Xt, yt) >= 0.84
