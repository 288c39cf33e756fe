"""Poisson and Exponential: default priors, zero rates, and draws that follow scipy's distributions."""

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import candide as cd
from candide.distributions import DirichletMultinomial, StudentT
from candide.errors import CellError, InputError
from candide.events import ESTIMATES, Exponential, Poisson
from candide.priors import Gamma, Jeffreys
from candide.tally import Sums


def count(event, X, y, n_classes=2):
    return Sums.from_rows(np.asarray(X, float), np.asarray(y, np.intp), n_classes=n_classes, spec=event.spec(len(X[0])))


def test_the_default_priors_expect_the_pooled_rate():
    X, y = [[1.0, 0.0], [5.0, 0.0], [6.0, 0.0]], [0, 0, 1]
    poisson = Poisson().estimate(count(Poisson(), X, y, 3)).params  # one row of the pooled mean, 4; 1/2 where it is 0
    np.testing.assert_allclose(poisson["shape"], [[10.0, 0.5], [10.0, 0.5], [4.0, 0.5]])
    np.testing.assert_allclose(poisson["rate"], [[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    times = (
        Exponential().estimate(count(Exponential(), X, y, 3)).params
    )  # two values of the pooled mean, 4; 1 where it is 0
    np.testing.assert_allclose(times["shape"], [[4.0, 4.0], [3.0, 3.0], [2.0, 2.0]])
    np.testing.assert_allclose(times["rate"], [[14.0, 2.0], [14.0, 2.0], [8.0, 2.0]])


def test_half_given_priors_are_filled_so_that_they_expect_the_pooled_rate():
    tally = count(Poisson(), [[2.0], [4.0]], [0, 1], 3)
    for prior, shape, rate in [(Gamma(shape=6), 6, 2), (Gamma(rate=5), 15, 5)]:
        params = Poisson().estimate(tally, prior).params
        assert (params["shape"][2, 0], params["rate"][2, 0]) == (shape, rate)


@pytest.mark.parametrize("how", ESTIMATES[1:])
def test_zeros_and_empty_classes_are_finite_under_the_default_prior(how):
    X, y = [[0.0, 0.0, 3.0], [0.0, 0.0, 4.0], [np.nan, 0.0, 0.0]], [0, 0, 1]
    fit = Exponential().estimate(count(Exponential(), X, y, 3), how=how)
    assert np.isfinite(fit.log_prob(np.array([[0.0, 0.0, 0.0], [1.0, 7.0, 1e6]]))).all()
    counts = Poisson().estimate(count(Poisson(), X, y, 3), how=how).log_prob(np.zeros((1, 3)))
    assert np.isfinite(counts).all()


def test_a_rate_of_zero_allows_only_zero():
    fit = Poisson().estimate(count(Poisson(), [[0.0], [2.0]], [0, 1]), how="mle")
    with np.errstate(all="raise"):
        assert fit.log_prob(np.array([[0.0], [1.0]]))[:, 0].tolist() == [0.0, -np.inf]


def test_a_value_below_zero_has_no_probability():
    for event in (Poisson(), Exponential()):
        tally = count(event, [[1.0], [2.0]], [0, 1])
        for how in ESTIMATES:
            assert (event.estimate(tally, how=how).log_prob(np.array([[-1.0], [-0.5]])) == -np.inf).all()


def test_what_gives_no_rate_is_refused_with_its_place():
    absent, zero = [[1.0], [np.nan]], [[1.0], [0.0]]
    for event, X in ((Poisson(), absent), (Exponential(), absent), (Exponential(), zero)):
        with pytest.raises(CellError) as error:
            event.estimate(count(event, X, [0, 1]), how="mle")
        assert (error.value.class_code, error.value.feature) == (1, 0)
    for event in (Poisson(), Exponential()):
        tally = count(event, [[1.0], [np.nan]], [0, 1])
        with pytest.raises(CellError, match="Jeffreys") as error:
            event.estimate(tally, "jeffreys")
        assert (error.value.class_code, error.value.feature) == (1, 0)
        with pytest.raises(InputError) as error:
            event.evidence(tally, "jeffreys")
        assert error.value.value == Jeffreys()


def test_uniform_makes_map_the_mle_and_jeffreys_is_invariant():
    tally = count(Poisson(), [[3.0], [4.0]], [0, 0], 1)
    rate = lambda event, tally, prior, how: event.estimate(tally, prior, how).rate.item()  # noqa: E731
    assert rate(Poisson(), tally, "uniform", "map") == rate(Poisson(), tally, None, "mle") == 3.5
    assert rate(Poisson(), tally, "jeffreys", "mean") == pytest.approx(7.5 / 2)
    assert rate(Exponential(), tally, "jeffreys", "mean") == pytest.approx(2 / 7)


@pytest.mark.parametrize(
    ("fit", "cdf"),
    [
        (Poisson(), stats.nbinom(9.0, 4 / 5).cdf),
        (Exponential(), stats.lomax(5.0, scale=8.0).cdf),
        (StudentT(np.full((1, 1), 3.0), np.full((1, 1), 2.0), np.full((1, 1), 0.5)), stats.t(3.0, 2.0, 0.5).cdf),
    ],
)
def test_predictive_draws_follow_scipys_distribution(fit, cdf):
    if not isinstance(fit, StudentT):
        fit = fit.estimate(count(fit, [[1.0], [2.0], [4.0]], [0, 0, 0], 1), Gamma(2, 1))
    draws = fit.sample(np.zeros(20_000, np.intp), np.random.default_rng(1))[:, 0]
    at = np.quantile(draws, [0.05, 0.25, 0.5, 0.75, 0.95])
    share = (draws[:, None] <= at).mean(axis=0)
    np.testing.assert_allclose(share, cdf(at), atol=5 * 0.5 / np.sqrt(20_000))


def test_dirichlet_multinomial_draws_are_bursty():
    """Mean N p, and variance N p (1 - p) (N + A) / (1 + A), more than the multinomial's."""
    alpha, length = np.array([[2.0, 1.0, 0.5]]), 10
    X = DirichletMultinomial(alpha, length).sample(np.zeros(40_000, np.intp), np.random.default_rng(2))
    p, total = alpha[0] / 3.5, 3.5
    assert (X.sum(axis=1) == length).all()
    np.testing.assert_allclose(X.mean(axis=0), length * p, rtol=0.03)
    np.testing.assert_allclose(X.var(axis=0), length * p * (1 - p) * (length + total) / (1 + total), rtol=0.04)


@pytest.mark.parametrize("event", ["poisson", "negativebinomial"])
def test_a_class_of_zeros_has_one_mode_however_the_rest_was_rounded(event):
    """The prior expects one event, up to rounding: with no event more the mode is 0, and not next to it."""
    rates = []
    for seed in range(20):
        weight = np.random.default_rng(seed).uniform(0.01, 1.0, 6)
        x = np.array([0.0, 0.0, 0.0, 2.0, 2.0, 2.0])
        weight[3:] *= weight[:3].sum() / weight[3:].sum()  # so that the pooled mean is 1, to the last digits
        model = cd.NaiveBayes(event, estimate="map").fit({"x": x}, [0, 0, 0, 1, 1, 1], sample_weight=weight)
        rates.append(model.predict_joint_log_proba({"x": [1.0]})[0, 0])
    assert set(rates) == {-np.inf}


COUNTS = ["poisson", "negativebinomial", "exponential", "multinomial", "complement"]


@pytest.mark.parametrize("how", ["mean", "map", "mle", "predictive"])
@pytest.mark.parametrize("event", COUNTS)
def test_enormous_counts_have_probabilities(event, how):
    X, y = np.array([[1, 4], [1, 2], [1, 3], [5, 2], [3, 1], [8, 4]], float), [0, 0, 0, 1, 1, 1]
    model = cd.NaiveBayes(event, estimate=how).fit(X, y)
    rows = np.array([[big, other] for big in (1e290, 1e300, 1e307, 1.7e308) for other in (0.0, 1.0, 1.7e308)])
    for some in (rows, csr_array(rows)):
        if event in ("poisson", "multinomial", "complement") or some is rows:  # the others take no sparse rows
            found = model.predict_proba(some)
            np.testing.assert_allclose(found.sum(axis=1), 1.0)
            assert (found >= 0).all()
    assert not np.isnan(model.predict_joint_log_proba(rows)).any()


@pytest.mark.parametrize("kind", [cd.MultinomialNB, cd.ComplementNB, cd.GaussianNB, cd.BernoulliNB])
def test_estimators_answer_for_enormous_counts(kind):
    X, y = np.array([[1, 4], [1, 2], [1, 3], [5, 2], [3, 1], [8, 4]], float), [0, 0, 0, 1, 1, 1]
    found = kind().fit(X, y).predict_proba([[1.7e308, 1.0], [1.7e308, 1.7e308], [1e300, 0.0]])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
