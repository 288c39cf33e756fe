"""Prototypes: a Gaussian kernel that does not depend on labels, the order of rows or rounding."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.gaussian_process.kernels import RBF

from candide.encoding.scores import Prototypes
from candide.errors import InputError
from candide.kernels import threads


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(300, 5))


def test_what_is_read_has_the_inner_products_of_the_kernel_at_prototypes(scores):
    prototypes = Prototypes.from_scores(scores, 20)
    kernel = RBF(prototypes.length_scale)
    to, among = kernel(scores, prototypes.prototypes), kernel(prototypes.prototypes) + 1e-3 * np.eye(20)
    read = prototypes.read(scores)
    np.testing.assert_allclose(read @ read.T / 20, to @ np.linalg.solve(among, to.T), atol=1e-9)


def test_it_reaches_as_far_as_rows_lie_apart(scores):
    apart = ((scores[:, None] - scores[None]) ** 2).sum(axis=2).mean()
    assert Prototypes.from_scores(scores, 64).length_scale ** 2 == pytest.approx(apart / 2)


def test_prototypes_are_spread_as_those_of_scikit_learn(scores):
    centres = Prototypes.from_scores(scores, 8).prototypes
    mine = ((scores[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum()
    assert mine < 1.1 * KMeans(8, n_init=10, random_state=0).fit(scores).inertia_


def test_neither_the_order_of_columns_nor_rounding_makes_a_difference(scores):
    want = Prototypes.from_scores(scores, 16)
    turned = Prototypes.from_scores(scores[:, ::-1], 16)
    np.testing.assert_allclose(turned.prototypes[:, ::-1], want.prototypes, atol=1e-12)
    rng = np.random.default_rng(1)
    near = Prototypes.from_scores(scores * (1 + 1e-15 * rng.choice([-1, 1], scores.shape)), 16)
    np.testing.assert_allclose(near.prototypes, want.prototypes, atol=1e-9)
    mirrored = Prototypes.from_scores(scores * np.array([-1.0, *np.ones(scores.shape[1] - 1)]), 16)
    np.testing.assert_allclose(np.abs(mirrored.prototypes), np.abs(want.prototypes), atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_and_equal_ones_have_fewer_prototypes(n):
    assert Prototypes.from_scores(np.arange(2.0 * n).reshape(n, 2), 64).n_prototypes == max(1, n // 2)
    same = Prototypes.from_scores(np.ones((n, 2)), 64)
    assert same.n_prototypes == 1
    assert np.isfinite(same.read(np.ones((n, 2)))).all()


def test_a_row_is_most_similar_to_the_nearest_prototype(scores):
    prototypes = Prototypes.from_scores(scores, 30)
    near = ((scores[:, None] - prototypes.prototypes) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(prototypes.nearest_prototype(prototypes.read(scores)), near)


def test_threads_read_the_same(scores):
    prototypes = Prototypes.from_scores(scores, 16)
    want = prototypes.read(scores)
    with threads.force_parts(3):
        np.testing.assert_allclose(prototypes.read(scores), want, atol=1e-12)


@pytest.mark.parametrize(
    "given", [((), 0, 1.0), ((1.0, 2.0, 3.0), 2, 1.0), ((1.0, np.nan), 1, 1.0), ((1.0, 2.0), 1, 0.0)]
)
def test_prototypes_that_are_none_are_refused(given):
    with pytest.raises(InputError):
        Prototypes(*given)
