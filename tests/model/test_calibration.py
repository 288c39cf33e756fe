"""Calibration against reference implementations, and what it must leave as it is."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from candide.model.calibration import fit_isotonic, fit_logistic


def stated(n=900, k=3, seed=0, too_sure=2.5):
    """log p(class | x) of a model that is too sure, and the classes that came true."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (n, k)) + np.linspace(0, 1, k)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    joint = too_sure * scores + np.linspace(0.5, -0.5, k)
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), y


@pytest.mark.parametrize("k", [2, 3, 7])
def test_equals_a_reference_optimiser(k):
    log_p, y = stated(k=k)
    found = fit_logistic(log_p, y)

    def loss(x):
        joint = x[0] * log_p + x[1:]
        said = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return -said[np.arange(len(y)), y].sum() + 0.5 * (x[0] - 1) ** 2 + 0.05 * (x[1:] ** 2).sum()

    wanted = minimize(loss, np.array([1.0, *[0.0] * k]), method="BFGS", options={"gtol": 1e-8})
    assert loss(np.array([found.scale, *found.bias])) <= wanted.fun + 1e-6
    np.testing.assert_allclose([found.scale, *found.bias], wanted.x, atol=1e-4)


def test_of_two_classes_it_is_platts():
    log_p, y = stated(4000, k=2)
    odds = log_p[:, 1] - log_p[:, 0]
    platt = LogisticRegression(C=np.inf).fit(odds[:, None], y)
    found = fit_logistic(log_p, y)(log_p)
    np.testing.assert_allclose(np.exp(found[:, 1]), platt.predict_proba(odds[:, None])[:, 1], atol=2e-3)


@pytest.mark.parametrize("calibrate", [fit_logistic, fit_isotonic])
@pytest.mark.parametrize("k", [2, 4])
def test_a_weight_is_so_many_rows(calibrate, k):
    log_p, y = stated(200, k)
    w = np.random.default_rng(0).integers(0, 4, 200)
    found, wanted = calibrate(log_p, y, w.astype(float)), calibrate(np.repeat(log_p, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(found(log_p), wanted(log_p), rtol=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_steps_are_scikit_learns_and_half_a_row_is_either_way(k):
    log_p, y = stated(3000, k)
    curves = fit_isotonic(log_p, y)
    for c, (odds, shares) in enumerate(zip(curves.log_odds, curves.observed_frequencies, strict=True)):
        at, own = c + (k == 2), y == c + (k == 2)
        steps = IsotonicRegression().fit_transform(np.exp(log_p[:, at]), own.astype(float))
        found, rows = np.unique(steps.round(9), return_counts=True)
        wanted = np.maximum.accumulate((found * rows + 0.5) / (rows + 1))
        np.testing.assert_allclose(shares, wanted, atol=1e-6)
        assert (np.diff(odds) > 0).all()
    said = curves(log_p)
    np.testing.assert_allclose(np.exp(said).sum(axis=1), 1.0)
    assert np.isfinite(curves(log_p * 1e3)).all()


def test_what_is_right_or_sure_stays_finite_and_near():
    log_p, y = stated(5000, too_sure=1.0)
    assert fit_logistic(log_p + 0.0, y).scale == pytest.approx(1.0, abs=0.1)
    sure = np.log(np.where(np.eye(2)[[0, 1] * 20] > 0, 1 - 1e-12, 1e-12))
    apart = fit_logistic(sure, np.array([0, 1] * 20))
    assert np.isfinite([apart.scale, *apart.bias]).all()
