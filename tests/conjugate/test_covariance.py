"""Columns modelled together: estimates, priors, evidence, missing values, and what must be refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.covariance import OAS, ledoit_wolf, shrunk_covariance

from candide.conjugate.covariance import shrink_scatter
from candide.distributions import MultivariateNormal, MultivariateT
from candide.errors import CellError, InputError, UnknownNameError
from candide.events import Gaussian, LogNormal
from candide.priors import AddedVariance, NormalInverseGamma, NormalInverseWishart, Unbiased, resolve_prior
from candide.tally import CoMoments, Moments

HOWS = ("map", "mean", "predictive")
PRIOR = NormalInverseWishart(mean=(0.5, -1.0, 0.2), kappa=0.7, df=6.5, scale=(1.9, 0.8, 3.0))


def count(X, y=None, n_classes=1, fourth=False, weight=None):
    y = np.zeros(len(X), np.intp) if y is None else np.asarray(y, np.intp)
    spec = Gaussian(covariance="full", shrinkage="ledoit-wolf" if fourth else None).spec(X.shape[1])
    return CoMoments.from_rows(X, y, weight, n_classes=n_classes, spec=spec)


def made(n=30, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + rng.normal(size=p)


# Distributions -------------------------------------------------------------------------------------------------------


def a_normal():
    roots = np.random.default_rng(1).normal(size=(2, 3, 3))
    return MultivariateNormal(
        np.array([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]]), roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(3)
    )


def a_t():
    normal = a_normal()
    return MultivariateT(np.array([3.0, 7.5]), normal.loc, normal.covariance, np.array([1.0, 1.7]))


def scipy_log_prob(law, x, c, at):
    at = np.flatnonzero(at)
    if isinstance(law, MultivariateNormal):
        return stats.multivariate_normal.logpdf(x[at], law.loc[c, at], law.covariance[c][np.ix_(at, at)])
    shape = law.scale[c][np.ix_(at, at)] * law.factor[c]
    return stats.multivariate_t.logpdf(x[at], law.loc[c, at], shape, df=law.df[c])


@pytest.mark.parametrize("law", [a_normal(), a_t()], ids=["normal", "t"])
def test_a_row_has_the_density_of_the_values_it_has(law):
    X = np.random.default_rng(2).normal(0, 3, (64, 3))
    X[np.arange(64)[:, None] // 8 % 8 >> np.arange(3) & 1 == 1] = np.nan  # every pattern of absent values
    found = law.log_prob(X)
    for i, x in enumerate(X):
        for c in range(2):
            want = scipy_log_prob(law, x, c, ~np.isnan(x)) if not np.isnan(x).all() else 0.0
            assert found[i, c] == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert law.add_log_prob(X, np.zeros((64, 2))) == np.isnan(X).sum()


@pytest.mark.parametrize("law", [a_normal(), a_t()], ids=["normal", "t"])
def test_a_term_is_what_a_column_adds_given_those_before_it(law):
    x = np.array([0.3, -1.0, 4.0])
    terms = law.contributions(x[None])[0]
    for c in range(2):
        chain = [scipy_log_prob(law, x, c, np.arange(3) < j) if j else 0.0 for j in range(4)]
        np.testing.assert_allclose(terms[c], np.diff(chain), rtol=1e-11)
    X = np.array([[0.3, np.nan, 4.0]])
    np.testing.assert_allclose(law.contributions(X).sum(axis=2), law.log_prob(X), rtol=1e-12)
    assert not law.contributions(X)[0, :, 1].any()


@pytest.mark.parametrize("law", [a_normal(), a_t()], ids=["normal", "t"])
def test_samples_have_the_moments_of_the_distribution(law):
    """200,000 rows: the bounds are more than five standard errors."""
    X = law.sample(np.repeat([0, 1], 100_000), np.random.default_rng(3))
    second = X[100_000:]
    shape = law.covariance[1] if isinstance(law, MultivariateNormal) else law.scale[1] * 1.7 * 7.5 / 5.5
    centre = law.loc[1]
    size = np.sqrt(np.diagonal(shape))
    assert (np.abs(second.mean(axis=0) - centre) / size < 0.02).all()
    assert (np.abs(np.cov(second.T) - shape) / np.outer(size, size) < 0.06).all()


def test_one_matrix_for_all_classes_scores_as_its_copies_do():
    law = a_normal()
    tied = MultivariateNormal(law.loc, law.covariance[:1])
    apart = MultivariateNormal(law.loc, np.repeat(law.covariance[:1], 2, axis=0))
    X = np.random.default_rng(4).normal(0, 5, (50, 3))
    np.testing.assert_allclose(tied.log_prob(X), apart.log_prob(X), rtol=1e-12)


def test_columns_that_no_covariance_ties_are_scored_as_the_rest():
    covariance = np.array([[[2.0, 0.0, 0.9], [0.0, 3.0, 0.0], [0.9, 0.0, 1.0]]])
    law = MultivariateNormal(np.array([[1.0, 2.0, 3.0]]), covariance)
    X = np.random.default_rng(5).normal(0, 5, (20, 3))
    want = stats.multivariate_normal.logpdf(X, [1.0, 2.0, 3.0], covariance[0])
    np.testing.assert_allclose(law.log_prob(X)[:, 0], want, rtol=1e-13)


# Estimates -----------------------------------------------------------------------------------------------------------


def test_mle_and_unbiased_are_numpys_covariances():
    X, y = made(40), np.arange(40) % 2
    tally = count(X, y, 2)
    for prior, ddof in ((None, 0), (Unbiased(), 1)):
        law = Gaussian(covariance="full").estimate(tally, prior, "mle")
        for c in range(2):
            np.testing.assert_allclose(law.covariance[c], np.cov(X[y == c].T, ddof=ddof), rtol=1e-12)
        within = sum(sum(y == c) * np.cov(X[y == c].T, ddof=0) for c in range(2)) / (40 - 2 * ddof)
        tied = Gaussian(covariance="tied").estimate(tally, prior, "mle")
        np.testing.assert_allclose(tied.covariance[0], within, rtol=1e-12)
        plain = Gaussian(covariance="diagonal").estimate(tally.to_moments(), prior, "mle")
        np.testing.assert_allclose(plain.variance[1], X[y == 1].var(axis=0, ddof=ddof), rtol=1e-12)


def test_an_added_variance_is_added_to_the_diagonal():
    X = made(20)
    law = Gaussian(covariance="full").estimate(count(X), AddedVariance(0.1), "mle")
    np.testing.assert_allclose(
        law.covariance[0] - np.cov(X.T, ddof=0), 0.1 * X.var(axis=0).max() * np.eye(3), atol=1e-12
    )


@pytest.mark.parametrize("how", ["mle", *HOWS])
@pytest.mark.parametrize("pair", [("full", "diagonal"), ("tied", "tied-diagonal")])
@pytest.mark.parametrize("prior", [None, NormalInverseGamma(0.3, 0.2, 2.1, 0.7), "jeffreys", "uniform"])
def test_of_one_column_together_and_apart_are_the_same(pair, how, prior):
    rng = np.random.default_rng(6)
    X, y, query = rng.normal(2.0, 3.0, (25, 1)), np.arange(25) % 3, rng.normal(0, 6, (9, 1))
    tally = count(X, y, 3)
    together = Gaussian(covariance=pair[0]).estimate(tally, prior, how).log_prob(query)
    apart = Gaussian(covariance=pair[1]).estimate(tally.to_moments(), prior, how).log_prob(query)
    np.testing.assert_allclose(together, apart, rtol=1e-11)
    if prior is None or isinstance(prior, NormalInverseGamma):
        one = Gaussian(covariance=pair[0]).evidence(tally, prior)
        np.testing.assert_allclose(one, Gaussian(covariance=pair[1]).evidence(tally.to_moments(), prior), rtol=1e-11)


def test_map_under_a_flat_prior_is_the_mle():
    X, y = made(30), np.arange(30) % 2
    for covariance in ("full", "tied"):
        event = Gaussian(covariance=covariance)
        found = [event.estimate(count(X, y, 2), *choice) for choice in (("uniform", "map"), (None, "mle"))]
        np.testing.assert_allclose(found[0].covariance, found[1].covariance, rtol=1e-12)


def log_joint(theta, X, prior):
    """log likelihood x prior of a mean and a covariance, the latter by its Cholesky root."""
    mean, root = theta[:2], np.array([[np.exp(theta[2]), 0.0], [theta[3], np.exp(theta[4])]])
    covariance = root @ root.T
    found = stats.multivariate_normal.logpdf(X, mean, covariance).sum()
    found += stats.multivariate_normal.logpdf(mean, prior.mean, covariance / prior.kappa)
    return found + stats.invwishart.logpdf(covariance, prior.df, np.diag(prior.scale))


def test_map_is_the_top_of_likelihood_times_prior():
    from scipy import optimize

    X = made(12, 2)
    prior = NormalInverseWishart(mean=(0.5, -1.0), kappa=0.7, df=5.5, scale=(1.9, 0.8))
    top = optimize.minimize(lambda t: -log_joint(t, X, prior), np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    law = Gaussian(covariance="full").estimate(count(X), prior, "map")
    root = np.array([[np.exp(top[2]), 0.0], [top[3], np.exp(top[4])]])
    np.testing.assert_allclose(law.loc[0], top[:2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(law.covariance[0], root @ root.T, rtol=1e-5)


def test_mean_and_predictive_are_averages_over_the_posterior():
    """Drawn from scipy's inverse Wishart with the textbook's parameters (Gelman et al., section 3.6)."""
    X = made(8, 2)
    prior = NormalInverseWishart(mean=(0.5, -1.0), kappa=0.7, df=9.5, scale=(1.9, 0.8))
    n, mean = len(X), X.mean(axis=0)
    gap = mean - np.array(prior.mean)
    scale = np.diag(prior.scale) + n * np.cov(X.T, ddof=0) + prior.kappa * n / (prior.kappa + n) * np.outer(gap, gap)
    rng = np.random.default_rng(7)
    draws = stats.invwishart.rvs(prior.df + n, scale, size=100_000, random_state=rng)
    expected = Gaussian(covariance="full").estimate(count(X), prior, "mean").covariance[0]
    np.testing.assert_allclose(draws.mean(axis=0), expected, rtol=0.02, atol=0.01)
    centre = (prior.kappa * np.array(prior.mean) + n * mean) / (prior.kappa + n)
    query = np.array([1.0, 0.3])
    # The mean integrated out by hand: x given the covariance is normal about the centre.
    wider = draws * (1 + 1 / (prior.kappa + n))
    away = np.linalg.solve(wider, (query - centre)[None, :, None])[:, :, 0] @ (query - centre)
    density = np.exp(-0.5 * away) / (2 * np.pi * np.sqrt(np.linalg.det(wider)))
    law = Gaussian(covariance="full").estimate(count(X), prior, "predictive")
    assert np.exp(law.log_prob(query[None])).item() == pytest.approx(density.mean(), rel=0.02)


# Evidence ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "tied"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_evidence_is_the_product_of_one_step_ahead_predictions(covariance, seed):
    event, rng = Gaussian(covariance=covariance), np.random.default_rng(seed)
    X, y = rng.normal(0, 3, (7, 3)), rng.integers(0, 2, 7)
    X[rng.random(7) < 0.2, 1] = np.nan  # a row that is not complete is left out
    seen, total = count(X[:0], y[:0], 2), np.zeros(2)
    for x, c in zip(X, y, strict=True):
        if not np.isnan(x).any():
            total[c] += event.estimate(seen, PRIOR, "predictive").log_prob(x[None])[0, c]
        seen = seen + count(x[None], [c], 2)
    evidence = event.evidence(count(X, y, 2), PRIOR)
    assert evidence.shape == (2, 3)
    assert evidence.sum() == pytest.approx(total.sum(), rel=1e-9, abs=1e-9)
    if covariance == "full":
        np.testing.assert_allclose(evidence.sum(axis=1), total, rtol=1e-9, atol=1e-9)


def test_the_evidence_of_a_column_is_that_given_the_columns_before_it():
    X = made(9)
    event, tally = Gaussian(covariance="full"), count(X)
    whole = event.evidence(tally, PRIOR)[0]
    for j in (1, 2):
        prior = NormalInverseWishart(PRIOR.mean[:j], PRIOR.kappa, PRIOR.df - (3 - j), PRIOR.scale[:j])
        assert whole[:j].sum() == pytest.approx(event.evidence(count(X[:, :j]), prior).sum(), rel=1e-12)


@pytest.mark.parametrize("prior", [Unbiased(), AddedVariance(), "jeffreys", "uniform"])
def test_evidence_needs_a_proper_prior(prior):
    with pytest.raises(InputError) as error:
        Gaussian(covariance="full").evidence(count(made()), prior)
    assert error.value.value == resolve_prior(prior)


# Shrinkage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 6])
def test_shrinkage_is_scikit_learns(p):
    X = made(25, p, seed=p) * np.geomspace(1, 100, p)
    tally = count(X, fourth=True)
    covariance = np.cov(X.T, ddof=0).reshape(p, p)
    np.testing.assert_allclose(
        shrink_scatter(tally, 0.3)[0] / 25, shrunk_covariance(covariance, 0.3), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(shrink_scatter(tally, "oas")[0] / 25, OAS().fit(X).covariance_, rtol=1e-10, atol=1e-10)
    sd = X.std(axis=0)
    want = ledoit_wolf(X / sd)[0] * np.outer(sd, sd)
    np.testing.assert_allclose(shrink_scatter(tally, "ledoit-wolf")[0] / 25, want, rtol=1e-10, atol=1e-10)


def test_ledoit_wolf_of_parts_is_that_of_the_whole():
    X = made(60, 5) + 100.0
    parts = count(X[:7], fourth=True) + count(X[7:30], fourth=True) + count(X[30:], fourth=True)
    whole = count(X, fourth=True)
    np.testing.assert_allclose(shrink_scatter(parts, "ledoit-wolf"), shrink_scatter(whole, "ledoit-wolf"), rtol=1e-9)
    rest = whole - count(X[:7], fourth=True)
    np.testing.assert_allclose(
        shrink_scatter(rest, "ledoit-wolf"), shrink_scatter(count(X[7:], fourth=True), "ledoit-wolf"), rtol=1e-8
    )


def test_shrinkage_comes_before_the_prior():
    X = made(20)
    for how in HOWS:
        one = Gaussian(covariance="full", shrinkage=1.0).estimate(count(X), PRIOR, how)
        matrix = one.scale[0] if how == "predictive" else one.covariance[0]
        gap = X.mean(axis=0) - np.array(PRIOR.mean)
        pull = np.outer(gap, gap) * 0.7 * 20 / 20.7
        rest = matrix * {"map": 26.5 + 5, "mean": 26.5 - 4, "predictive": 26.5 - 2}[how] - pull - np.diag(PRIOR.scale)
        np.testing.assert_allclose(rest, 20 * X.var(axis=0).mean() * np.eye(3), rtol=1e-9, atol=1e-9)


# Trouble that the prior takes on -------------------------------------------------------------------------------------


def troubles():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 4))
    yield "twice the same column", np.column_stack([X, X[:, 0]]), np.arange(30) % 2
    yield "a sum of columns", np.column_stack([X, X.sum(axis=1)]), np.arange(30) % 2
    yield "fewer rows than columns", rng.normal(size=(6, 40)), np.arange(6) % 2
    yield "one row a class", rng.normal(size=(2, 3)), np.arange(2)
    yield "a class constant", np.where(np.arange(30)[:, None] % 2 == 0, 1.0, X), np.arange(30) % 2
    yield "a constant column", np.column_stack([X, np.full(30, 7.0)]), np.arange(30) % 2
    yield "a class without rows", X, np.zeros(30, int)
    yield "no row complete", np.where(np.eye(30, 4) + np.eye(30, 4)[::-1] > 0, X, np.nan), np.arange(30) % 2


TROUBLES = {name: (X, y) for name, X, y in troubles()}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("covariance", ["full", "tied"])
@pytest.mark.parametrize("name", TROUBLES)
def test_the_prior_makes_it_finite(name, covariance, how):
    X, y = TROUBLES[name]
    event = Gaussian(covariance=covariance)
    law = event.estimate(count(X, y, 2), how=how)
    query = np.vstack([np.nan_to_num(X), np.zeros(X.shape[1]), np.full(X.shape[1], 1e6)])
    assert np.isfinite(law.log_prob(query)).all()
    assert np.isfinite(law.contributions(query)).all()
    assert np.isfinite(event.evidence(count(X, y, 2))).all()
    assert np.isfinite(law.sample(np.array([0, 1]), np.random.default_rng(9))).all()


@pytest.mark.parametrize("how", ["mle", *HOWS])
@pytest.mark.parametrize("covariance", ["full", "tied"])
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.0])
def test_a_column_that_does_not_vary_changes_no_posterior(constant, covariance, how):
    X, y, query = made(31), np.arange(31) % 4 // 3, made(5, seed=10)
    wide = np.column_stack([X[:, :1], np.full(31, constant), X[:, 1:]])
    event = Gaussian(covariance=covariance, shrinkage=0.1)
    want = event.estimate(count(X, y, 2), how=how).log_prob(query) @ [-1.0, 1.0]
    for value in (constant, constant + 0.5, np.nan):
        asked = np.column_stack([query[:, :1], np.full(5, value), query[:, 1:]])
        law = event.estimate(count(wide, y, 2), how=how)
        np.testing.assert_allclose(law.log_prob(asked) @ [-1.0, 1.0], want, rtol=1e-9)
        np.testing.assert_allclose(law.contributions(asked).sum(axis=2), law.log_prob(asked), rtol=1e-11)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("covariance", ["full", "tied"])
@settings(max_examples=20, deadline=None)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-100, 100), seed=st.integers(0, 10_000))
def test_the_default_prior_has_no_units(covariance, how, scale, shift, seed):
    rng = np.random.default_rng(seed)
    X, y, query = rng.normal(size=(14, 3)), np.arange(14) % 2, rng.normal(size=(5, 3))
    units = np.array([scale, 1.0, 1.0 / scale])
    odds = [
        Gaussian(covariance=covariance).estimate(count(rows, y, 2), how=how).log_prob(asked) @ [-1.0, 1.0]
        for rows, asked in ((X, query), ((X + shift) * units, (query + shift) * units))
    ]
    np.testing.assert_allclose(odds[1], odds[0], rtol=1e-7, atol=1e-7)


def test_ledoit_wolf_has_no_units_either():
    X, y, query = made(40), np.arange(40) % 2, made(6, seed=11)
    units = np.array([1e-3, 1.0, 1e4])
    event = Gaussian(covariance="tied", shrinkage="ledoit-wolf")
    odds = [event.estimate(count(a * u, y, 2, True), how="mle").log_prob(b * u) @ [-1.0, 1.0] for a, b, u in
            ((X, query, 1.0), (X, query, units))]  # fmt: skip
    np.testing.assert_allclose(odds[1], odds[0], rtol=1e-9)


# What must be refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["twice the same column", "fewer rows than columns", "one row a class", "a class constant"]
)
def test_mle_of_a_singular_covariance_says_what_to_do(name):
    X, y = TROUBLES[name]
    with pytest.raises(CellError, match="singular; use estimate='predictive', shrinkage='oas'"):
        Gaussian(covariance="full").estimate(count(X, y, 2), how="mle")
    if name != "one row a class":  # which has no spread to shrink to
        law = Gaussian(covariance="tied", shrinkage=0.5).estimate(count(X, y, 2), how="mle")
        assert np.isfinite(law.log_prob(X)).all()


def test_the_column_to_blame_is_named():
    X, y = TROUBLES["twice the same column"]
    with pytest.raises(CellError) as error:
        Gaussian(covariance="full").estimate(count(X, y, 2), how="mle")
    assert (error.value.class_code, error.value.feature) == (0, 4)


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="unknown covariance 'ful'; did you mean 'full'"):
        Gaussian(covariance="ful")
    for wrong in (-0.1, 1.5, np.nan, True, [0.1]):
        with pytest.raises(InputError) as error:
            Gaussian(covariance="full", shrinkage=wrong)
        assert error.value.value is wrong
    with pytest.raises(UnknownNameError) as error:
        Gaussian(covariance="full", shrinkage="ledoit-wolff")
    assert error.value.value == "ledoit-wolff"
    with pytest.raises(InputError) as error:
        Gaussian(shrinkage=0.1)
    assert (error.value.value, error.value.remedy) == (0.1, "pass covariance='full' or 'tied'")
    with pytest.raises(InputError) as error:
        Gaussian(covariance="full", shrinkage="ledoit-wolf").estimate(count(made()))
    assert error.value.value == "ledoit-wolf"


def test_priors_that_do_not_fit_are_refused():
    tally = count(made())
    one = Moments(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    for event, wrong, value, remedy in (
        (Gaussian(), NormalInverseWishart(), NormalInverseWishart(), "NormalInverseGamma()"),
        (Gaussian(covariance="full"), Unbiased(), Unbiased(), "estimate='mle'"),
        (Gaussian(covariance="full"), NormalInverseWishart(df=4.0), 4.0, "df=5"),
        (Gaussian(covariance="full"), NormalInverseWishart(scale=(1.0, 2.0)), (1.0, 2.0), "one a column"),
    ):
        with pytest.raises(InputError) as error:
            event.estimate(tally if event.is_joint else one, wrong, "mean")
        assert error.value.value == value
        assert remedy in error.value.remedy
    with pytest.raises(CellError, match="too few rows"):
        Gaussian(covariance="full").estimate(count(made(3)), "jeffreys", "mean")


def test_the_log_normal_is_the_normal_of_the_logs():
    X = np.exp(made(20))
    event = LogNormal(covariance="full")
    spec = event.spec(3)
    law = event.estimate(CoMoments.from_rows(X, np.zeros(20, np.intp), n_classes=1, spec=spec), how="mle")
    logs = np.log(X)
    want = stats.multivariate_normal.logpdf(logs, logs.mean(axis=0), np.cov(logs.T, ddof=0)) - logs.sum(axis=1)
    np.testing.assert_allclose(law.log_prob(X)[:, 0], want, rtol=1e-10)


@pytest.mark.parametrize("how", ["mean", "map", "predictive"])
@pytest.mark.parametrize("value", [1.0, 1e5, 1e10, 1e100])
def test_a_column_that_never_varied_does_not_hide_the_others(how, value):
    X, y = made(60, 2), np.arange(60) % 2
    X[y == 1] += 3.0
    event = Gaussian(covariance="full")
    with_constant = event.estimate(count(np.column_stack([X, np.zeros(60)]), y, 2), None, how)
    found = with_constant.log_prob(np.column_stack([X, np.full(60, value)]))
    want = with_constant.log_prob(np.column_stack([X, np.zeros(60)]))
    np.testing.assert_allclose(found[:, 1] - found[:, 0], want[:, 1] - want[:, 0], atol=1e-5)
