"""Token weights, learned from documents left out of the counts, against another optimiser; and L-BFGS."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import logsumexp
from tests.weighted.test_held_out_tokens import corpus, leave_out

from candide.events import Text
from candide.events.text import DEFAULT_TEXT
from candide.weighted import token_optimizer


@pytest.mark.parametrize("weighted", [False, True])
def test_the_maximum_is_that_of_another_optimiser(weighted):
    texts, y = corpus(2, n=40, k=2)
    weight = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weighted else None
    _, found = leave_out(Text(sublinear=True), texts, y, 2)
    offset = np.log([0.3, 0.7])
    [learned] = token_optimizer.learn_joint_token_weights([found], offset, weight)
    v, g = len(found.group), found.n_groups
    each = np.stack([found.scores(np.eye(v)[j]) for j in range(v)], axis=2)  # (document, class, term)
    often = np.where(np.diff(found.ends) > 0, 1.0 if weight is None else weight, 0.0)  # of no words, none
    assert found.is_informative.all()

    def objective(q):
        w, b, mean = q[:v], q[v : v + 2], q[v + 2 :]
        joint = each @ w + offset + b
        loss = often @ (logsumexp(joint, axis=1) - joint[np.arange(len(y)), y])
        away = w - mean[found.group]
        from_one = mean / found.scale - 1.0
        held = (
            found.weighting.strength * away @ away + from_one @ from_one + token_optimizer.TOKEN_BIAS_STRENGTH * b @ b
        )
        return loss + 0.5 * held

    peer = minimize(objective, np.zeros(v + 2 + g), method="BFGS", options={"gtol": 1e-6})
    order = np.argsort(found.keys())
    np.testing.assert_allclose(learned.token_weights.weight * found.scale, peer.x[:v][order], atol=2e-2)
    at = np.concatenate([peer.x[:v]])
    at[order] = learned.token_weights.weight * found.scale
    mine = minimize(lambda q: objective(np.append(at, q)), peer.x[v:], method="BFGS").fun
    assert mine <= peer.fun * (1 + 1e-5)


def test_classes_of_few_documents_leave_weights_at_1():
    texts, y = [f"word{i} common" for i in range(12)] * 2, np.arange(24) % 12
    _, found = leave_out(DEFAULT_TEXT, texts, y, 12)
    assert not found.is_informative.any()
    [learned] = token_optimizer.learn_joint_token_weights([found], np.log(np.full(12, 1 / 12)))
    np.testing.assert_allclose(learned.token_weights.weight, 1.0, atol=1e-6)
    np.testing.assert_allclose(learned.bias, 0.0, atol=1e-9)


def test_the_starting_point_makes_no_difference():
    texts, y = corpus(4, n=90)
    _, found = leave_out(DEFAULT_TEXT, texts, y)
    [first] = token_optimizer.learn_joint_token_weights([found], np.log(np.ones(3) / 3))
    [again] = token_optimizer.learn_joint_token_weights([found], np.log(np.ones(3) / 3), start=[first.token_weights])
    np.testing.assert_allclose(first.contributions, again.contributions, atol=2e-2)


def count_calls(value):
    calls = []

    def wrapped(x):
        calls.append(x.copy())
        return value(x)

    return wrapped, calls


def test_a_curved_valley_is_followed_to_its_minimum():
    value, calls = count_calls(lambda x: (float(rosen(x)), rosen_der(x)))
    start = np.tile([-1.2, 1.0], 5)
    np.testing.assert_allclose(token_optimizer.minimize(value, start, max_steps=500, tolerance=0.0), 1.0, atol=1e-3)
    peer = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"maxcor": 10, "ftol": 0.0, "gtol": 1e-6})
    assert len(calls) < 3 * peer.nfev


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e4])
def test_a_quadratic_of_many_variables(spread):
    rng = np.random.default_rng(0)
    scale, goal = np.geomspace(1.0, spread, 400), rng.normal(size=400)
    turned = np.linalg.qr(rng.normal(size=(400, 400)))[0]
    matrix = turned @ np.diag(scale) @ turned.T

    def value(x):
        away = matrix @ (x - goal)
        return 0.5 * float((x - goal) @ away), away

    before, _ = value(np.zeros(400))
    after, _ = value(token_optimizer.minimize(value, np.zeros(400), max_steps=2000, tolerance=1e-10))
    assert after <= 1e-5 * before


def test_a_minimum_is_kept():
    value, calls = count_calls(lambda x: (float(x @ x), 2 * x))
    assert token_optimizer.minimize(value, np.zeros(3), max_steps=10, tolerance=1e-6).tolist() == [0.0, 0.0, 0.0]
    assert len(calls) == 1


def test_steps_outside_the_domain_are_shortened():
    def value(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1 - 1 / x  # no number below 0

    np.testing.assert_allclose(
        token_optimizer.minimize(value, np.array([0.01, 5.0]), max_steps=200, tolerance=1e-12), 1.0, atol=1e-3
    )


def test_the_value_never_rises():
    rng = np.random.default_rng(1)
    for noise in (0.0, 1e-3, 1.0):  # of a slope that is not quite that of the values

        def value(x, noise=noise):
            return float(np.cosh(x).sum()), np.sinh(x) + noise * rng.normal(size=x.shape)

        start = rng.normal(size=30)
        assert value(token_optimizer.minimize(value, start, max_steps=50, tolerance=1e-9))[0] <= value(start)[0]
