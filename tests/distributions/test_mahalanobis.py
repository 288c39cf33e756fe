"""Screening in single precision: its bounds hold, and the class it leaves is the largest of the full scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candide as cd
from candide import kernels
from candide.distributions import MultivariateNormal, MultivariateT, Normal
from candide.distributions.mahalanobis import CholeskyRoot, DistanceScreen
from candide.model.model import Model

WIDE = 80  # columns: wide enough to be screened


def laws(rng, n_classes, p, condition=1e4, free=0, apart=1.0):
    """Means, and covariances of about that condition number; the last ``free`` columns are tied to no other."""
    matrices = np.empty((n_classes, p, p))
    for c in range(n_classes):
        turn, _ = np.linalg.qr(rng.normal(size=(p, p)))
        matrices[c] = turn * np.geomspace(1.0, condition, p) @ turn.T
        matrices[c, p - free :, : p - free] = matrices[c, : p - free, p - free :] = 0.0
        matrices[c, p - free :, p - free :] = np.diag(rng.uniform(0.1, 10, free))
    return rng.normal(0, apart, (n_classes, p)), matrices


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.sampled_from([0.0, 1.0, 1e3]), st.sampled_from([1e1, 1e6]))
def test_distances_lie_between_their_bounds(seed, p, away, condition):
    rng = np.random.default_rng(seed)
    unit = 10.0 ** rng.uniform(-8, 8, p)  # a column's unit decides nothing, and where its nought lies neither
    means, matrices = laws(rng, 3, p, condition, free=p // 3)
    means, matrices = means * unit + away * unit, matrices * unit[:, None] * unit
    roots = [CholeskyRoot.from_matrix(matrix, np.arange(p)) for matrix in matrices]
    spread = np.sqrt(np.einsum("cjj->cj", matrices).mean(axis=0))
    x = (means[rng.integers(3, size=40)] + rng.normal(0, 3, (40, p)) * unit).T
    low, high = DistanceScreen.from_roots(means, roots, spread).bounds(x)
    gap = np.longdouble(x.T)[:, None] - means
    for c, root in enumerate(roots):
        z = gap[:, c, root.tied] @ np.longdouble(root.inverse).T  # in more digits than double precision has
        exact = (z * z).sum(axis=1) + ((gap[:, c, root.free] / root.deviation) ** 2).sum(axis=1)
        assert (low[:, c] <= exact).all()
        assert (exact <= high[:, c]).all()


def a_model(kind, rng, n_classes=4, **how):
    means, matrices = laws(rng, n_classes, WIDE, **how)
    alone = np.zeros(WIDE, bool)
    alone[3] = True
    matrices[:, 3, :] = matrices[:, :, 3] = 0.0
    matrices[:, 3, 3], means[:, 3] = 2.0, 1.0
    if kind == "normal":
        law = MultivariateNormal(means, matrices, alone)
    else:
        df, stretch = np.linspace(2, 30, n_classes), np.linspace(0.5, 1.5, n_classes)
        law = MultivariateT(df, means, matrices, stretch, alone)
    other = Normal(rng.normal(size=(n_classes, 2)), np.ones((n_classes, 2)))
    return Model(np.log(rng.dirichlet(np.ones(n_classes))), (law, other))


def blocks_of(model, n, rng):
    (x, z), _ = model.sample(n, rng)
    return [x, z]


@pytest.mark.parametrize("kind", ["normal", "t"])
@pytest.mark.parametrize("condition", [10.0, 1e9])
@pytest.mark.parametrize("apart", [0.0, 3.0])
def test_the_class_chosen_is_the_largest_of_the_scores(kind, condition, apart):
    rng = np.random.default_rng(5)
    model = a_model(kind, rng, condition=condition, apart=apart)
    blocks = blocks_of(model, 3000, rng)
    blocks[0][::7, 5] = np.nan
    assert model.distributions[0].can_screen_classes
    assert (model.classify(blocks) == model.joint_log_likelihood(blocks).argmax(axis=1)).all()


@pytest.mark.parametrize("kind", ["normal", "t"])
def test_of_equal_classes_the_first_is_chosen(kind):
    """Nothing can be screened here: the bounds of twins overlap, and so full scores decide, as they do elsewhere."""
    rng = np.random.default_rng(6)
    model = a_model(kind, rng, n_classes=2, apart=5.0)
    law, other = model.distributions
    twice = np.array([0, 1, 0, 1])
    law = type(law)(*(value[twice] if len(value) == 2 else value for value in vars(law).values() if np.ndim(value)))
    other = Normal(*(value[twice] for value in (other.loc, other.variance)))
    twins = Model(np.log(np.full(4, 0.25)), (law, other))
    codes = twins.classify(blocks_of(twins, 2000, rng))
    assert set(codes.tolist()) == {0, 1}


@pytest.mark.parametrize("size", [1e30, 1e150, 1e300])
def test_values_too_large_for_single_precision_are_scored_in_full(size):
    rng = np.random.default_rng(7)
    model = a_model("normal", rng)
    blocks = blocks_of(model, 1000, rng)
    blocks[0][::3, 0] = size
    with np.errstate(over="ignore", invalid="ignore"):
        assert (model.classify(blocks) == model.log_posterior(blocks).argmax(axis=1)).all()


def test_most_rows_are_decided_by_the_screen(monkeypatch):
    rng = np.random.default_rng(8)
    model = a_model("normal", rng, condition=100.0)
    blocks, scored = blocks_of(model, 2000, rng), []
    full = CholeskyRoot.distances
    monkeypatch.setattr(CholeskyRoot, "distances", lambda self, x, *to: scored.append(x.shape[1]) or full(self, x, *to))
    model.classify(blocks)
    assert sum(scored) < 0.05 * 4 * 2000


def test_infinity_is_refused():
    rng = np.random.default_rng(9)
    law = a_model("normal", rng).distributions[0]
    x = rng.normal(size=(600, WIDE))
    x[599, 1] = np.inf
    assert law.add_for_argmax(x, np.zeros((600, 4))) == kernels.INFINITE


def test_a_distance_too_large_for_single_precision_rules_no_class_out():
    """Of a t with few degrees of freedom the farther class may be the likelier one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1100, WIDE))
    x[1000:] *= 0.5
    model = cd.GaussianBayes().fit(x, np.repeat(["many", "few"], [1000, 100]))
    for far in 10.0 ** np.arange(18.5, 19.5, 0.05):
        rows = rng.normal(size=(600, WIDE))
        rows[:, 0] = far
        assert (model.predict(rows) == model.classes_[model.predict_log_proba(rows).argmax(axis=1)]).all()


def test_lengths_too_small_for_single_precision_still_bound_the_error():
    rng = np.random.default_rng(1)
    means = np.zeros((2, WIDE))
    _, matrices = laws(rng, 2, WIDE, condition=1e8)
    matrices[1] *= 1e-48
    x = rng.normal(0, 1e-24, (WIDE, 400))
    roots = [CholeskyRoot.from_matrix(matrix, np.arange(WIDE)) for matrix in matrices]
    low, high = DistanceScreen.from_roots(means, roots, np.sqrt(np.einsum("cjj->cj", matrices).mean(axis=0))).bounds(x)
    exact = np.stack([((root.inverse @ x) ** 2).sum(axis=0) for root in roots], axis=1)
    assert (low <= exact).all()
    assert (exact <= high).all()
