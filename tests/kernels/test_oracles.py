"""Every kernel, reference and compiled, against NumPy, SciPy or exact sums."""

import math

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats

SEVEN = [0, 1, 0, 2, 1, 0, 0]


def exact_moments(x):
    """Mean and centred sum of squares, free of rounding until the end."""
    mean = math.fsum(x) / len(x)
    return mean, math.fsum((v - mean) ** 2 for v in x) - len(x) * (math.fsum(v - mean for v in x) / len(x)) ** 2


@pytest.mark.parametrize("mean", [0.0, 1e8, -1e9])
def test_variance_does_not_drown_in_the_mean(loops, mean):
    rng = np.random.default_rng(1)
    x, y = rng.normal(mean, 1.0, (20_000, 3)), rng.integers(0, 2, 20_000)
    _, means, m2 = loops.moments(x, y, None, 2)
    for c in range(2):
        for j in range(3):
            expected = exact_moments(x[y == c, j].tolist())
            assert means[c, j] == pytest.approx(expected[0], rel=1e-14, abs=1e-14)
            # A mean that is merged is rounded: by half a unit in the last place, measured in standard deviations.
            assert m2[c, j] == pytest.approx(expected[1], rel=max(1e-12, np.spacing(abs(mean)) / 2))


def test_variance_survives_a_first_value_far_from_the_rest(loops):
    x = np.random.default_rng(2).normal(0, 1, (30_000, 1))
    x[:3] = 1e9
    _, mean, m2 = loops.moments(x, np.zeros(30_000, np.intp), None, 1)
    assert (mean[0, 0], m2[0, 0]) == pytest.approx(exact_moments(x[:, 0].tolist()), rel=1e-12)


def test_moments_with_weights_and_absent_values(loops):
    rng = np.random.default_rng(3)
    x, w = rng.normal(5, 2, (7, 4)), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.0, 1.5])
    x[0, 1] = x[5, 2] = np.nan
    x[:, 3] = np.nan
    y = np.array(SEVEN)
    n, mean, m2 = loops.moments(x, y, w, 4)
    for c in range(3):
        for j in range(3):
            here = (y == c) & ~np.isnan(x[:, j])
            expected = np.average(x[here, j], weights=w[here])
            assert n[c, j] == pytest.approx(w[here].sum())
            assert mean[c, j] == pytest.approx(expected, rel=1e-14)
            assert m2[c, j] == pytest.approx((w[here] * (x[here, j] - expected) ** 2).sum(), rel=1e-12, abs=1e-14)
    assert not np.any([n[3], mean[3], m2[3]])
    assert not np.any([n[:, 3], mean[:, 3], m2[:, 3]])


def test_an_infinity_shows_in_its_class_and_feature_only(loops):
    x = np.random.default_rng(4).normal(size=(7, 3))
    x[1, 2] = np.inf
    _, mean, m2 = loops.moments(x, np.array(SEVEN), None, 3)
    assert np.argwhere(~np.isfinite(mean)).tolist() == [[1, 2]]
    assert np.isfinite(np.delete(m2.ravel(), 5)).all()


def test_counts_and_sums(loops):
    rng = np.random.default_rng(5)
    codes, w = rng.integers(-1, 4, (500, 3)), rng.uniform(0, 2, 500)
    y, offsets = rng.integers(0, 3, 500), np.array([0, 4, 9, 13])
    counts = loops.level_counts(codes, y, w, 3, offsets)
    x = np.where(codes < 0, np.nan, codes)
    n, total, low = loops.dense_sums(x, y, w, 3)
    _, above, _ = loops.dense_sums(x, y, w, 3, 1.5)
    for c in range(3):
        for j in range(3):
            for level in range(4):
                assert counts[c, offsets[j] + level] == pytest.approx(math.fsum(w[(y == c) & (codes[:, j] == level)]))
            assert n[c, j] == pytest.approx(math.fsum(w[(y == c) & (codes[:, j] >= 0)]))
            assert total[c, j] == pytest.approx(np.nansum(w[y == c] * x[y == c, j]))
            assert above[c, j] == pytest.approx(math.fsum(w[(y == c) & (codes[:, j] > 1.5)]))
    assert low == 0.0
    assert loops.dense_sums(codes, y, None, 3)[2] == -1.0
    assert counts[:, 8].sum() == 0
    np.testing.assert_array_equal(loops.code_range(codes), [codes.min(axis=0), codes.max(axis=0)])


@pytest.mark.parametrize("n_features", [40, 9000])  # the second visits rows class by class
def test_sparse_sums_and_scores_are_matrix_products(loops, n_features):
    rng = np.random.default_rng(6)
    dense = rng.poisson(0.02 if n_features > 40 else 0.3, (60, n_features)).astype(float)
    x, y = scipy.sparse.csr_array(dense), rng.integers(0, 9, 60)
    total, low = loops.csr_sums(x.data, x.indices, x.indptr, y, None, 9, n_features)
    np.testing.assert_allclose(total, np.eye(9)[y].T @ dense, rtol=1e-13)
    assert low == 0
    weights, out = rng.normal(size=(n_features, 5)), np.zeros((60, 5))
    loops.add_linear_csr(x.data, x.indices, x.indptr, weights, out)
    np.testing.assert_allclose(out, dense @ weights, rtol=1e-11, atol=1e-11)


def test_a_word_that_does_not_occur_may_be_impossible(loops):
    out = np.zeros((1, 2))
    weights = np.array([[-np.inf, -1.0], [-2.0, -np.inf]])
    loops.add_linear_csr(np.array([0.0, 3.0]), np.array([0, 1]), np.array([0, 2]), weights, out)
    assert out.tolist() == [[-6.0, -np.inf]]


@pytest.mark.parametrize("n_features", [1, 50, 100_000])
def test_gaussian_scores_are_those_of_scipy(loops, n_features):
    rng = np.random.default_rng(7)
    mean, sd = rng.normal(0, 10, (2, n_features)), rng.uniform(0.5, 3, (2, n_features))
    x, out = rng.normal(0, 10, (3, n_features)), np.zeros((3, 2))
    assert loops.add_gaussian(x, mean, 1 / sd, -0.5 * np.log(2 * np.pi) - np.log(sd), out) == 0
    for r in range(3):
        for c in range(2):
            assert out[r, c] == pytest.approx(math.fsum(scipy.stats.norm.logpdf(x[r], mean[c], sd[c])), rel=1e-12)


@pytest.mark.parametrize("n_features", [1, 50, 100_000])
def test_linear_scores_are_exact_sums(loops, n_features):
    rng = np.random.default_rng(12)
    x, weights, out = rng.poisson(1.0, (7, n_features)), np.log(rng.uniform(0.01, 1, (n_features, 3))), np.zeros((7, 3))
    assert loops.add_linear(x, weights, out) == 0
    for r in range(7):
        for c in range(3):
            assert out[r, c] == pytest.approx(math.fsum(x[r] * weights[:, c]), rel=1e-12)


def test_a_count_of_zero_meets_an_impossible_word(loops):
    x, out = np.array([[0.0, 3.0, np.nan], [1.0, 0.0, 2.0]]), np.zeros((2, 2))
    weights = np.array([[-np.inf, -1.0], [-2.0, -np.inf], [-0.5, -4.0]])
    assert loops.add_linear(x, weights, out) == 1
    assert out.tolist() == [[-6.0, -np.inf], [-np.inf, -9.0]]


def test_decisions_take_the_first_of_equals(loops):
    joint = np.array([[1.0, 3.0, 3.0], [-np.inf, -np.inf, -np.inf], [-5.0, -np.inf, -7.0], [np.nan, -9.0, -8.0]])
    codes = np.empty(4, np.intp)
    loops.first_largest(joint, 2, codes)
    assert codes.tolist() == [1, 2, 0, 2]
    loops.fill_rows(joint, np.array([7.0, 8.0, 9.0]))
    assert joint.tolist() == [[7.0, 8.0, 9.0]] * 4


@pytest.mark.parametrize("df", [1.0, 7.5, 1e6])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e30])  # the last overflows a product of squares
def test_student_scores_are_those_of_scipy(loops, df, spread):
    rng = np.random.default_rng(8)
    loc, scale = rng.normal(0, 1, (2, 50)), rng.uniform(0.5, 3, (2, 50))
    x, out = loc[0] + rng.normal(0, spread, (3, 50)), np.zeros((3, 2))
    norm = scipy.stats.t.logpdf(0, df) - np.log(scale)
    assert loops.add_student(x, loc, 1 / scale, np.full((2, 50), df), norm, out) == 0
    for r in range(3):
        for c in range(2):
            z = (x[r] - loc[c]) / scale[c]
            expected = math.fsum(norm[c]) - (df + 1) / 2 * math.fsum(np.log1p(z * z / df))
            assert out[r, c] == pytest.approx(expected, rel=1e-12)
            if spread == 1.0 and df < 1e6:
                assert out[r, c] == pytest.approx(scipy.stats.t.logpdf(x[r], df, loc[c], scale[c]).sum(), rel=1e-10)


def test_switch_and_levels_agree_with_bernoulli(loops):
    rng = np.random.default_rng(9)
    p, x = rng.uniform(0.05, 0.95, (3, 70)), rng.normal(size=(130, 70))
    low, high, out, other = np.log1p(-p), np.log(p), np.zeros((130, 3)), np.zeros((130, 3))
    assert loops.add_switch(x, 0.25, low, high, out) == 0
    table = np.stack([low, high], axis=2).reshape(3, 140).T
    assert loops.add_levels((x > 0.25).astype(np.int8), np.arange(0, 141, 2), table, np.zeros((70, 3)), other) == 0
    expected = np.stack([scipy.stats.bernoulli.logpmf(x > 0.25, p[c]).sum(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    np.testing.assert_allclose(other, expected, rtol=1e-12)


def test_absent_and_unseen_levels(loops):
    out = np.ones((3, 2))
    table, unseen = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0, 20.0]])
    assert loops.add_levels(np.array([[1], [-1], [2]]), np.array([0, 2]), table, unseen, out) == 1
    assert out.tolist() == [[4.0, 5.0], [1.0, 1.0], [11.0, 21.0]]


def test_level_scores_of_many_features_do_not_lose_digits(loops):
    rng = np.random.default_rng(10)
    table, codes = np.log(rng.uniform(0.01, 1, (200_000, 2))), rng.integers(0, 2, (2, 100_000))
    out, offsets = np.zeros((2, 2)), np.arange(0, 200_001, 2)
    loops.add_levels(codes, offsets, table, np.zeros((100_000, 2)), out)
    for r in range(2):
        for c in range(2):
            assert out[r, c] == pytest.approx(math.fsum(table[offsets[:-1] + codes[r], c]), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 10, 3000])
def test_posteriors_are_a_softmax(loops, k):
    rng = np.random.default_rng(11)
    joint = rng.normal(-500, 30, (40, k))
    joint[3, 0] = joint[5] = -np.inf
    possible = np.arange(40) != 5 if k > 1 else ~np.isin(np.arange(40), [3, 5])
    log_posterior, posterior, otherwise = joint.copy(), joint.copy(), rng.random(k)
    evidence = loops.normalise(log_posterior)
    loops.posterior(posterior, otherwise)
    np.testing.assert_allclose(evidence[possible], scipy.special.logsumexp(joint[possible], axis=1), rtol=1e-14)
    np.testing.assert_allclose(
        log_posterior[possible], scipy.special.log_softmax(joint[possible], axis=1), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(posterior[possible].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(posterior[possible], scipy.special.softmax(joint[possible], axis=1), rtol=1e-12)
    assert evidence[5] == -np.inf
    assert (log_posterior[5] == -np.inf).all()
    assert posterior[5].tolist() == otherwise.tolist()


def test_small_posteriors_are_exact_to_a_few_units(compiled):
    gap = np.linspace(0, 745, 20_001)
    joint = np.stack([np.zeros_like(gap), -gap], axis=1)
    compiled.posterior(joint, np.ones(2))
    odds = np.array([math.exp(-g) for g in gap])
    np.testing.assert_allclose(joint[:, 1], odds / (1 + odds), rtol=1e-15, atol=5e-324)
