"""Gaussian and LogNormal: units, columns that do not vary, classes seen once, and what MLE refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from candide.errors import CellError, InputError, UnknownNameError
from candide.events import Gaussian, LogNormal
from candide.priors import AddedVariance, NormalInverseGamma, resolve_prior
from candide.tally import Moments

HOWS = ("map", "mean", "predictive")
VARIANCES = ("diagonal", "tied-diagonal", "spherical", "fixed")


def count(X, y, n_classes=2, event=None):
    return Moments.from_rows(
        X, np.asarray(y, np.intp), n_classes=n_classes, spec=(event or Gaussian()).spec(X.shape[1])
    )


def odds(event, X, y, query, how):
    """log p(query | class 1) - log p(query | class 0)."""
    fit = event.estimate(count(X, y, event=event), how=how)
    return fit.log_prob(query) @ [-1.0, 1.0]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("variance", ["diagonal", "tied-diagonal"])
@settings(max_examples=30, deadline=None)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-100, 100), seed=st.integers(0, 10_000))
def test_the_default_prior_has_no_units(variance, how, scale, shift, seed):
    rng = np.random.default_rng(seed)
    X, y, query = rng.normal(size=(12, 2)), np.arange(12) % 2, rng.normal(size=(5, 2))
    units = np.array([scale, 1.0])
    event = Gaussian(covariance=variance)
    before = odds(event, X, y, query, how)
    after = odds(event, (X + shift) * units, y, (query + shift) * units, how)
    np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("how", HOWS)
def test_the_lognormal_has_no_units_either(how):
    rng = np.random.default_rng(0)
    X, y, query = rng.lognormal(size=(12, 2)), np.arange(12) % 2, rng.lognormal(size=(5, 2))
    before, after = (odds(LogNormal(), X * unit, y, query * unit, how) for unit in (1.0, 2.54e-3))
    np.testing.assert_allclose(after, before, rtol=1e-9)


@pytest.mark.parametrize("how", ["mle", *HOWS])
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.0, 1e100])
def test_a_column_that_does_not_vary_changes_no_posterior(constant, variance, how):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(11, 2)), np.array([0] * 8 + [1] * 3)
    wide = np.column_stack([X, np.full(11, constant)])
    event = Gaussian(covariance=variance)
    query = rng.normal(size=(4, 2))
    for value in (constant, constant + 0.5, np.nan):
        found = odds(event, wide, y, np.column_stack([query, np.full(4, value)]), how)
        np.testing.assert_allclose(found, odds(event, X, y, query, how), rtol=1e-9)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("variance", VARIANCES)
def test_columns_without_a_value_and_constant_classes_are_finite(variance, how):
    X = np.array([[1.0, np.nan, 5.0], [1.0, np.nan, 6.0], [2.0, np.nan, np.nan], [4.0, np.nan, np.nan]])
    event = Gaussian(covariance=variance)
    tally = count(X, [0, 0, 1, 1], n_classes=3, event=event)  # column 1: none; class 1, column 2: none; class 2: none
    assert np.isfinite(event.estimate(tally, how=how).log_prob(np.array([[1.0, 2.0, 3.0], [1e6, -1e6, 0.0]]))).all()
    assert np.isfinite(event.evidence(tally)).all()


def test_mle_names_the_class_and_the_column_of_a_point_mass():
    X = np.array([[1.0, 0.1], [2.0, 0.1], [3.0, 5.0], [4.0, 6.0]])
    with pytest.raises(CellError, match=r"class 0, column 1: all values are the same.*estimate='predictive'"):
        Gaussian().estimate(count(X, [0, 0, 1, 1]), how="mle")
    with pytest.raises(CellError) as error:
        Gaussian(covariance="tied-diagonal").estimate(count(X, [0, 0, 1, 1], n_classes=3), how="mle")
    assert (error.value.class_code, error.value.feature) == (2, 0)
    shared = Gaussian(covariance="tied-diagonal").estimate(count(X, [0, 0, 1, 1]), how="mle")
    assert np.isfinite(shared.log_prob(X)).all()


@pytest.mark.parametrize("prior", ["jeffreys", "uniform"])
@pytest.mark.parametrize("how", HOWS)
def test_too_few_rows_for_an_improper_prior_are_refused(prior, how):
    X = np.arange(9.0)[:, None]
    with pytest.raises(CellError) as error:
        Gaussian().estimate(count(X, [0] * 8 + [1]), prior, how)
    assert (error.value.class_code, error.value.feature) == (1, 0)


def test_the_predictive_under_jeffreys_is_the_textbook_t():
    """mean + t(n-1) * s * sqrt(1 + 1/n), with s**2 the unbiased variance."""
    x = np.array([1.0, 2.5, 2.0, 4.0, 3.2])
    fit = Gaussian().estimate(count(x[:, None], [0] * 5, n_classes=1), "jeffreys", "predictive")
    expected = stats.t.logpdf(1.7, 4, x.mean(), x.std(ddof=1) * np.sqrt(1 + 1 / 5))
    assert fit.log_prob(np.array([[1.7]])).item() == pytest.approx(expected, rel=1e-12)


def test_added_variance_is_scikit_learns_smoothing():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)) * [1.0, 10.0, 0.0] + [0, 0, 4.0], np.arange(30) % 3
    ours = Gaussian().estimate(count(X, y, n_classes=3), AddedVariance(1e-3), "mle")
    theirs = GaussianNB(var_smoothing=1e-3).fit(X, y)
    np.testing.assert_allclose(ours.loc, theirs.theta_, rtol=1e-12)
    np.testing.assert_allclose(ours.variance, theirs.var_, rtol=1e-12)
    np.testing.assert_allclose(ours.log_prob(X) - np.log(3), theirs.predict_joint_log_proba(X), rtol=1e-11)
    for call in (
        lambda: Gaussian().estimate(count(X, y, 3), AddedVariance(), "map"),
        lambda: Gaussian().evidence(count(X, y, 3), AddedVariance()),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.value == AddedVariance()


def test_a_class_seen_once_keeps_its_neighbourhood():
    rng = np.random.default_rng(3)
    X, y = np.vstack([rng.normal(size=(200, 2)), [[9.0, 9.0]]]), np.array([0] * 200 + [1])
    query = np.array([[8.9, 9.0], [0.5, -0.5]])
    for how in HOWS:
        assert (odds(Gaussian(), X, y, query, how) + np.log(1 / 200) > 0).tolist() == [True, False]


def test_noise_in_large_units_does_not_drown_the_signal():
    rng = np.random.default_rng(4)
    y = np.arange(4000) % 2
    signal, noise = rng.normal(4.0 * y), rng.normal(size=4000)
    for unit in (1.0, 1e5, 1e6, 1e8):
        X = np.column_stack([signal, noise * unit])
        assert ((odds(Gaussian(), X, y, X, "predictive") > 0) == y).mean() > 0.97


def test_a_large_offset_keeps_the_variance():
    x = np.random.default_rng(5).normal(1e9, 1.0, (2000, 1))
    fit = Gaussian().estimate(count(x, np.zeros(2000), n_classes=1), how="mle")
    assert fit.variance.item() == pytest.approx((x - 1e9).var(), rel=1e-6)


@pytest.mark.parametrize("prior", [AddedVariance(), "jeffreys", "uniform", NormalInverseGamma(kappa=0.0)])
def test_evidence_needs_a_proper_prior(prior):
    with pytest.raises(InputError) as error:
        Gaussian().evidence(count(np.array([[1.0], [2.0]]), [0, 1]), prior)
    assert error.value.value == resolve_prior(prior)


def test_settings_are_checked():
    with pytest.raises(UnknownNameError) as error:
        Gaussian(covariance="tied-diagnal")
    assert error.value.value == "tied-diagnal"
    with pytest.raises(InputError) as error:
        Gaussian(covariance="fixed", fixed=0.0)
    assert error.value.value == 0


def test_the_lognormal_refuses_to_count_what_has_no_logarithm_and_gives_it_density_zero():
    event = LogNormal()
    with pytest.raises(InputError, match="value -2"):
        count(np.array([[1.0], [-2.0]]), [0, 1], event=event)
    fit = event.estimate(count(np.array([[1.0], [2.0], [np.nan]]), [0, 1, 1], event=event))
    assert fit.log_prob(np.array([[0.0], [-1.0]])).tolist() == [[-np.inf] * 2] * 2
    assert fit.add_log_prob(np.array([[0.0], [np.nan]]), np.zeros((2, 2))) == 1
