"""Posteriors against numerical quadrature and optimisation of likelihood x prior, which know nothing of conjugacy."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from candide.encoding import LevelEncoding
from candide.events import Bernoulli, Categorical, Exponential, Gaussian, LogNormal, Multinomial, Poisson
from candide.priors import Beta, Dirichlet, Gamma, Jeffreys, NormalInverseGamma
from candide.tally import TALLIES


def count(event, X, y, n_classes, sizes=()):
    return TALLIES[event.kind].from_rows(
        X, y, n_classes=n_classes, spec=event.spec(X.shape[1], tuple(map(LevelEncoding.from_size, sizes)))
    )


def one_class(event, x, sizes=()):
    X = np.asarray(x)[:, None]
    return count(event, X, np.zeros(len(X), np.intp), 1, sizes)


# Families with one parameter: (event, prior, data, new values, likelihood(x, t), prior density(t), range of t)
YES_NO = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
EVENTS_PER_ROW = np.array([3.0, 0.0, 4.0, 1.0])
TIMES = np.array([0.3, 2.2, 0.7])
ONE_PARAMETER = {
    "bernoulli": (
        Bernoulli(),
        Beta(2.5, 0.7),
        YES_NO,
        np.array([0.0, 1.0]),
        lambda x, t: stats.bernoulli.pmf(x, t),
        lambda t: stats.beta.pdf(t, 2.5, 0.7),
        (0.0, 1.0),
        "probability",
    ),
    "poisson": (
        Poisson(),
        Gamma(1.7, 0.6),
        EVENTS_PER_ROW,
        np.array([0.0, 2.0, 7.0]),
        lambda x, t: stats.poisson.pmf(x, t),
        lambda t: stats.gamma.pdf(t, 1.7, scale=1 / 0.6),
        (0.0, 60.0),
        "rate",
    ),
    "exponential": (
        Exponential(),
        Gamma(1.7, 0.6),
        TIMES,
        np.array([0.1, 2.0, 9.0]),
        lambda x, t: stats.expon.pdf(x, scale=1 / t),
        lambda t: stats.gamma.pdf(t, 1.7, scale=1 / 0.6),
        (0.0, 60.0),
        "rate",
    ),
}


@pytest.fixture(params=ONE_PARAMETER)
def one_parameter(request):
    event, prior, data, new, likelihood, density, limits, name = ONE_PARAMETER[request.param]

    def integral(f):
        return integrate.quad(
            lambda t: f(t) * np.prod(likelihood(data, t)) * density(t), *limits, epsabs=0, epsrel=1e-11
        )[0]

    return event, prior, one_class(event, data), new, likelihood, density, integral, name, data, limits


def test_evidence_is_the_integral(one_parameter):
    event, prior, tally, _, _, _, integral, *_ = one_parameter
    assert event.evidence(tally, prior).item() == pytest.approx(np.log(integral(lambda t: 1.0)), rel=1e-8)


def test_predictive_is_the_average_over_the_posterior(one_parameter):
    event, prior, tally, new, likelihood, _, integral, *_ = one_parameter
    law = event.estimate(tally, prior, "predictive")
    expected = [integral(lambda t, x=x: likelihood(x, t)) / integral(lambda t: 1.0) for x in new]
    np.testing.assert_allclose(np.exp(law.log_prob(new[:, None]))[:, 0], expected, rtol=1e-8)


def test_mean_is_the_expected_parameter(one_parameter):
    event, prior, tally, *_, integral, name, _, _ = one_parameter
    found = event.estimate(tally, prior, "mean").parameters()[name].item()
    assert found == pytest.approx(integral(lambda t: t) / integral(lambda t: 1.0), rel=1e-8)


def test_map_and_mle_are_the_tops_of_their_curves(one_parameter):
    event, prior, tally, _, likelihood, density, _, name, data, (low, high) = one_parameter
    for how, weight in [("map", density), ("mle", lambda t: 1.0)]:
        top = optimize.minimize_scalar(
            lambda t, weight=weight: -np.log(np.prod(likelihood(data, t)) * weight(t)),
            bounds=(low + 1e-6, min(high, 8.0) - 1e-6),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert event.estimate(tally, prior, how).parameters()[name].item() == pytest.approx(top.x, rel=1e-6)


LEVELS = [0, 2, 2, 1, 0, 2]
ALPHA = (0.8, 1.5, 2.2)


def simplex(f):
    """The integral over all probabilities of three levels of f(p) * likelihood * prior."""
    constant = math.gamma(sum(ALPHA)) / math.prod(map(math.gamma, ALPHA))

    def inner(p1, p0):
        p = (p0, p1, 1 - p0 - p1)
        return (
            f(p)
            * constant
            * math.prod(p[k] for k in LEVELS)
            * math.prod(q ** (a - 1) for q, a in zip(p, ALPHA, strict=True))
        )

    return integrate.dblquad(inner, 0.0, 1.0, 0.0, lambda p0: 1.0 - p0, epsabs=0, epsrel=1e-7)[0]


def test_categorical_and_multinomial_equal_the_integral_over_the_simplex():
    total = simplex(lambda p: 1.0)
    shares = [simplex(lambda p, k=k: p[k]) / total for k in range(3)]
    levels = one_class(Categorical(), LEVELS, sizes=(3,))
    assert Categorical().evidence(levels, Dirichlet(ALPHA)).item() == pytest.approx(np.log(total), rel=1e-6)
    law = Categorical().estimate(levels, Dirichlet(ALPHA), "predictive")
    np.testing.assert_allclose(np.exp(law.log_prob(np.arange(3)[:, None]))[:, 0], shares, rtol=1e-6)

    bags = np.eye(3)[LEVELS].reshape(2, 3, 3).sum(axis=1)  # the same words, as two documents
    words = count(Multinomial(), bags, np.zeros(2, np.intp), 1)
    assert Multinomial().evidence(words, Dirichlet(ALPHA)).sum() == pytest.approx(np.log(total), rel=1e-6)
    document = np.array([[1.0, 0.0, 2.0]])
    expected = simplex(lambda p: p[0] * p[2] ** 2) / total
    found = Multinomial().estimate(words, Dirichlet(ALPHA), "predictive").log_prob(document)
    assert np.exp(found).item() == pytest.approx(expected, rel=1e-6)


# Gaussian: two classes, two columns, and a prior with every number given.
X = np.array([[1.2, 0.1], [0.4, 2.0], [2.1, -0.5], [3.0, 1.1], [2.2, 0.8]])
y = np.array([0, 0, 0, 1, 1], dtype=np.intp)
PRIOR = NormalInverseGamma(mean=0.5, kappa=0.7, a=2.3, b=1.9)
CELLS = [(c, j) for c in range(2) for j in range(2)]
GROUPS = {
    "diagonal": [[cell] for cell in CELLS],
    "tied-diagonal": [[(c, j) for c in range(2)] for j in range(2)],
    "spherical": [[(c, j) for j in range(2)] for c in range(2)],
}


# On smooth integrands that vanish at both ends the trapezoidal rule is exact to rounding (Trefethen, Weideman 2014).
STEPS = np.linspace(-12.0, 12.0, 481)  # of a mean, in standard deviations
VARIANCES = np.exp(np.linspace(-6.0, 14.0, 2001))


def mean_integral(x, variance):
    """The integral over the mean of one cell, for each variance."""
    sd = np.sqrt(np.atleast_1d(variance))[:, None]
    mean = (x.sum() + PRIOR.kappa * PRIOR.mean) / (len(x) + PRIOR.kappa) + sd * STEPS
    values = stats.norm.pdf(mean, PRIOR.mean, sd / np.sqrt(PRIOR.kappa))
    for value in x:
        values *= stats.norm.pdf(value, mean, sd)
    return integrate.trapezoid(values, mean)


def variance_integral(cells, f=lambda v: 1.0):
    """The integral of f(variance) over the variance that some cells share, and over each one's mean."""
    values = f(VARIANCES) * stats.invgamma.pdf(VARIANCES, PRIOR.a, scale=PRIOR.b)
    for x in cells:
        values *= mean_integral(x, VARIANCES)
    return integrate.trapezoid(values * VARIANCES, np.log(VARIANCES))


@pytest.mark.parametrize("variance", GROUPS)
def test_gaussian_evidence_and_predictive_are_the_integrals(variance):
    event = Gaussian(covariance=variance)
    tally = count(event, X, y, 2)
    evidence, law = event.evidence(tally, PRIOR), event.estimate(tally, PRIOR, "predictive")
    for group in GROUPS[variance]:
        cells = [X[y == c, j] for c, j in group]
        total = variance_integral(cells)
        assert sum(evidence[cell] for cell in group) == pytest.approx(np.log(total), rel=1e-10)
        for i, (c, j) in enumerate(group):
            more = [np.append(x, 2.7) if i == k else x for k, x in enumerate(cells)]
            found = np.exp(law.contributions(np.full((1, 2), 2.7))[0, c, j])
            assert found == pytest.approx(variance_integral(more) / total, rel=1e-10)


def test_fixed_variance_is_the_integral_over_the_mean():
    event = Gaussian(covariance="fixed", fixed=1.44)
    tally = count(event, X, y, 2)
    evidence, law = event.evidence(tally, PRIOR), event.estimate(tally, PRIOR, "predictive")
    for c, j in CELLS:
        x = X[y == c, j]
        assert evidence[c, j] == pytest.approx(np.log(mean_integral(x, 1.44).item()), rel=1e-10)
        ratio = (mean_integral(np.append(x, 0.9), 1.44) / mean_integral(x, 1.44)).item()
        assert np.exp(law.contributions(np.array([[0.9, 0.9]]))[0, c, j]) == pytest.approx(ratio, rel=1e-10)


def log_joint(theta, group, prior):
    """log likelihood x prior of a group's means and log variance, up to a constant."""
    means, v = theta[:-1], np.exp(theta[-1])
    data = sum(stats.norm.logpdf(X[y == c, j], m, np.sqrt(v)).sum() for m, (c, j) in zip(means, group, strict=True))
    if prior == "flat":
        return data
    if prior == "jeffreys":
        return data - theta[-1]
    given = stats.norm.logpdf(means, PRIOR.mean, np.sqrt(v / PRIOR.kappa)).sum()
    return data + given + stats.invgamma.logpdf(v, PRIOR.a, scale=PRIOR.b)


@pytest.mark.parametrize("variance", GROUPS)
@pytest.mark.parametrize(
    ("kind", "prior", "how"),
    [("nig", PRIOR, "map"), ("flat", "uniform", "map"), ("flat", None, "mle"), ("jeffreys", Jeffreys(), "map")],
)
def test_gaussian_modes_are_the_tops(variance, kind, prior, how):
    event = Gaussian(covariance=variance)
    law = event.estimate(count(event, X, y, 2), prior, how)
    for group in GROUPS[variance]:
        start = np.array([*(X[y == c, j].mean() for c, j in group), 0.0])
        top = optimize.minimize(
            lambda t, g=group: -log_joint(t, g, kind),
            start,
            tol=1e-12,
            method="Nelder-Mead",
            options={"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-9, "fatol": 1e-13},
        ).x
        np.testing.assert_allclose([law.loc[cell] for cell in group], top[:-1], rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose([law.variance[cell] for cell in group], np.exp(top[-1]), rtol=2e-6)


@pytest.mark.parametrize("variance", GROUPS)
def test_expected_variance_is_its_average_over_the_posterior(variance):
    event = Gaussian(covariance=variance)
    law = event.estimate(count(event, X, y, 2), PRIOR, "mean")
    for group in GROUPS[variance]:
        cells = [X[y == c, j] for c, j in group]
        expected = variance_integral(cells, lambda v: v) / variance_integral(cells)
        np.testing.assert_allclose([law.variance[cell] for cell in group], expected, rtol=1e-10)


def test_lognormal_evidence_is_that_of_the_logs_with_the_jacobian():
    x = np.array([0.5, 2.0, 1.3])
    expected = np.log(variance_integral([np.log(x)]) / x.prod())
    assert LogNormal().evidence(one_class(LogNormal(), x), PRIOR).item() == pytest.approx(expected, rel=1e-10)
