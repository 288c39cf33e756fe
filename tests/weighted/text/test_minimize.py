"""Descent, beside SciPy's and where the least is known."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from candide.weighted.text.token_weights import minimize as least


def counted(value):
    calls = []

    def asked(x):
        calls.append(x.copy())
        return value(x)

    return asked, calls


def test_a_bent_valley_is_walked_to_its_end():
    value, calls = counted(lambda x: (float(rosen(x)), rosen_der(x)))
    start = np.tile([-1.2, 1.0], 5)
    np.testing.assert_allclose(least(value, start, max_steps=500, tolerance=0.0), 1.0, atol=1e-3)
    peer = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"maxcor": 10, "ftol": 0.0, "gtol": 1e-6})
    assert len(calls) < 3 * peer.nfev


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e4])
def test_a_bowl_of_many_numbers(spread):
    rng = np.random.default_rng(0)
    scale, goal = np.geomspace(1.0, spread, 400), rng.normal(size=400)
    turned = np.linalg.qr(rng.normal(size=(400, 400)))[0]
    matrix = turned @ np.diag(scale) @ turned.T

    def value(x):
        away = matrix @ (x - goal)
        return 0.5 * float((x - goal) @ away), away

    before, _ = value(np.zeros(400))
    after, _ = value(least(value, np.zeros(400), max_steps=2000, tolerance=1e-10))
    assert after <= 1e-5 * before


def test_it_stays_where_nothing_is_lower():
    value, calls = counted(lambda x: (float(x @ x), 2 * x))
    assert least(value, np.zeros(3), max_steps=10, tolerance=1e-6).tolist() == [0.0, 0.0, 0.0]
    assert len(calls) == 1


def test_it_comes_back_from_where_there_is_no_number():
    def value(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1 - 1 / x  # no number below 0

    np.testing.assert_allclose(least(value, np.array([0.01, 5.0]), max_steps=200, tolerance=1e-12), 1.0, atol=1e-3)


def test_it_never_ends_higher_than_it_began():
    rng = np.random.default_rng(1)
    for noise in (0.0, 1e-3, 1.0):  # of a slope that is not quite that of the values

        def value(x, noise=noise):
            return float(np.cosh(x).sum()), np.sinh(x) + noise * rng.normal(size=x.shape)

        start = rng.normal(size=30)
        assert value(least(value, start, max_steps=50, tolerance=1e-9))[0] <= value(start)[0]
