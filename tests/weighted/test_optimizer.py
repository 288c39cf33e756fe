"""The optimiser of weights: the maximum is that of SciPy's; duplicated terms share a weight, noise has none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from candide.kernels import threads
from candide.model.settings import WeightedLimits
from candide.weighted import optimizer
from candide.weighted.optimizer import LearnedWeights, WeightProblem, center_contributions, learn_weights


def problem(seed, n=200, n_terms=6, k=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    terms = rng.normal(size=(n, k, n_terms))
    terms[np.arange(n), y] += rng.uniform(0, 1, n_terms)
    return terms, np.log(np.bincount(y, minlength=k) / n), y, np.array([0] * (n_terms - 2) + [1, 2])


def objective(x, terms, log_prior, y, weight, groups, strength):
    """The penalised likelihood as its formula has it: a mean for each group, with a normal prior of its own."""
    v = terms.shape[2]
    w, b, mean = x[:v], x[v : v + len(log_prior)], x[v + len(log_prior) :]
    joint = np.einsum("ncv,v->nc", terms, w) + log_prior + b
    loss = weight @ (logsumexp(joint, axis=1) - joint[np.arange(len(y)), y])
    return loss + 0.5 * (strength[groups] * (w - mean[groups]) ** 2).sum() + 0.5 * mean @ mean + 0.01 * b @ b


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_the_maximum_is_that_of_another_optimiser(seed, k, weighted):
    terms, log_prior, y, groups = problem(seed, k=k)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    found = learn_weights([terms], log_prior, y, weight if weighted else None, groups=groups)
    centred = terms - terms.mean(axis=1, keepdims=True)
    given = centred, log_prior, y, weight, groups, found.strength
    peer = minimize(objective, np.zeros(6 + k + 3), given, jac="3-point", method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.weight, peer.x[:6], atol=1e-6)
    np.testing.assert_allclose(found.bias, peer.x[6 : 6 + k], atol=1e-5)


def test_the_starting_point_makes_no_difference():
    terms, log_prior, y, groups = problem(0)
    first = learn_weights([terms], log_prior, y, groups=groups)
    some = learn_weights([terms[..., :4]], log_prior, y, groups=groups[:4])
    again = learn_weights([terms], log_prior, y, groups=groups, start=some)
    np.testing.assert_allclose(first.weight, again.weight, atol=0.02)  # strengths stand within a tenth


def test_a_term_repeated_ten_times_counts_once():
    terms, log_prior, y, _ = problem(1, n=2000, n_terms=3)
    once = learn_weights([terms], log_prior, y, groups=[0, 0, 0])
    often = learn_weights([terms, *[terms[..., :1]] * 9], log_prior, y, groups=[0] * 12)
    heard = often.weight[0] + often.weight[3:].sum()
    assert heard == pytest.approx(once.weight[0], rel=0.1)


def test_noise_in_its_own_group_has_weight_0():
    rng = np.random.default_rng(2)
    terms, log_prior, y, _ = problem(2, n=3000, n_terms=4)
    noise = rng.normal(size=(3000, 3, 1))
    found = learn_weights([terms, noise], log_prior, y, groups=[0, 0, 0, 0, 1])
    assert abs(found.weight[4]) < 0.05


def test_single_precision_gives_nearly_the_same_weights(monkeypatch):
    terms, log_prior, y, groups = problem(3, n=5000)
    exact = learn_weights([terms], log_prior, y, groups=groups)
    monkeypatch.setattr(optimizer, "LIMITS", WeightedLimits(max_double_contributions=0))
    single = center_contributions(terms)
    assert single.dtype == np.float32
    np.testing.assert_allclose(learn_weights([single], log_prior, y, groups=groups).weight, exact.weight, atol=1e-5)


def test_the_curvature_is_the_variance_of_contributions(monkeypatch):
    monkeypatch.setattr(optimizer, "LIMITS", WeightedLimits(chunk_numbers=50))  # a few rows at a time
    terms, log_prior, y, groups = problem(4, n=300, k=5)
    weight = np.random.default_rng(4).uniform(0, 2, len(y))
    of = WeightProblem([terms[..., :4], terms[..., 4:]], log_prior, y, weight, groups, 3)
    p = of.evaluate(np.full(11, 3.0)).p  # many classes are all but excluded
    assert (p < 1e-6).mean() > 0.2
    said = np.concatenate([terms, np.broadcast_to(np.eye(5), (300, 5, 5))], axis=2)
    away = said - np.einsum("nc,ncu->nu", p, said)[:, None]
    wanted = np.einsum("n,nc,ncu,ncv->uv", weight, p, away, away)
    np.testing.assert_allclose(of.curvature(p), wanted, atol=1e-4 * np.abs(wanted).max())


def test_the_cost_of_a_row_is_linear_in_the_classes(monkeypatch):
    """A thousand classes took minutes: the bias of every class was multiplied with every other, row by row."""
    over_rows, costs = threads.map_rows, []

    def seen(work, n, cost, **how):
        costs.append(cost * n)
        return over_rows(work, n, cost=cost, **how)

    monkeypatch.setattr(threads, "map_rows", seen)
    for k in (4, 40):
        terms, log_prior, y, groups = problem(4, n=300, k=k)
        of = WeightProblem([terms], log_prior, y, None, groups, 3)
        p = of.evaluate(np.zeros(terms.shape[2] + k)).p
        costs.clear()
        found = of.curvature(p)
        assert max(costs) <= 2 * terms.size * terms.shape[2]
        said = np.concatenate([terms, np.broadcast_to(np.eye(k), (300, k, k))], axis=2)
        away = said - np.einsum("nc,ncu->nu", p, said)[:, None]
        wanted = np.einsum("nc,ncu,ncv->uv", p, away, away)
        np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


def test_a_term_of_zeros_has_the_mean_weight_of_its_group():
    terms, log_prior, y, groups = problem(5)
    start = LearnedWeights(np.zeros(0), np.zeros(3), np.zeros(0))
    alone = learn_weights([terms], log_prior, y, groups=groups, start=start)
    silent = learn_weights([np.zeros((200, 3, 2)), terms], log_prior, y, groups=[0, 3, *groups], start=start)
    np.testing.assert_allclose(silent.weight[2:], alone.weight, atol=1e-9)
    mean = alone.strength[0] * alone.weight[:4].sum() / (1 + 4 * alone.strength[0])
    np.testing.assert_allclose(silent.weight[:2], [mean, 0.0], atol=1e-9)
    again = learn_weights([np.zeros((200, 3, 2)), terms], log_prior, y, groups=[0, 3, *groups], start=silent)
    np.testing.assert_allclose(again.weight, silent.weight, atol=0.02)


def test_without_terms_the_intercepts_are_0():
    found = learn_weights([np.zeros((10, 2, 0))], np.log([0.3, 0.7]), np.repeat([0, 1], [3, 7]), groups=[])
    assert found.weight.shape == (0,)
    np.testing.assert_allclose(found.bias, 0.0, atol=1e-6)


def test_columns_of_noise_have_no_negative_weights():
    from candide.conjugate.dirichlet import held_out_levels
    from candide.tally import LevelTally

    rng = np.random.default_rng(1)
    codes, y = rng.integers(0, 5, (100, 200)), rng.permutation(np.repeat([0, 1], 50))
    counts = np.concatenate([np.eye(5)[codes[:, j]].T @ np.eye(2)[y] for j in range(200)]).T
    tally = LevelTally(np.ascontiguousarray(counts), np.arange(0, 1001, 5))
    terms = center_contributions(held_out_levels(tally, np.full(1000, 0.2), "predictive", codes, y, None))
    rows = [terms], np.log([0.5, 0.5]), y
    plain = learn_weights(*rows, groups=[0] * 200)
    held = learn_weights(*rows, groups=[0] * 200, term_degrees=np.full(200, 4.0))
    assert plain.weight.min() < -0.1  # without their degrees of freedom, chance looks like evidence
    assert held.weight.min() > -0.05
    assert held.weight.max() < 0.2
