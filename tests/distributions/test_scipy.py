"""Every distribution against scipy.stats: the same log-probabilities, and mass one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from candide import numerics
from candide.distributions import (
    Bernoulli,
    Categorical,
    DirichletMultinomial,
    Exponential,
    LogScale,
    Lomax,
    Multinomial,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
)

CLOSE = {"rtol": 1e-12, "atol": 0}

# (class, feature) parameters that reach from tiny to huge, and values to score under them.
LOC = np.array([[0.0, 1e3, -2.0], [5.0, -1e-3, 1e8]])
SCALE = np.array([[1.0, 1e-2, 30.0], [1e4, 0.3, 1.0]])
DF = np.array([[0.7, 3.0, 10.0], [31.0, 40.0, 2.5]])
SHAPE = np.array([[0.3, 2.0, 12.5], [1.0, 15.0, 7.0]])
RATE = np.array([[0.01, 1.0, 3.0], [250.0, 0.5, 20.0]])
MILD = np.array([[0.2, -1.0, 3.0], [1.0, 0.0, -0.5]])
REAL = np.array([[0.3, 999.0, 4.0], [-7.0, 0.2, 1e8 + 3.0], [0.0, 0.0, 0.0]])
POSITIVE = np.array([[0.3, 9.0, 4.0], [1e-9, 0.2, 1e3]])
COUNTS = np.array([[0.0, 1.0, 2.0], [3.0, 40.0, 0.0], [500.0, 7.0, 11.0]])

ELEMENTWISE = {
    "normal": (Normal(LOC, SCALE**2), lambda x: stats.norm.logpdf(x, LOC, SCALE), REAL),
    "student": (StudentT(DF, LOC, SCALE), lambda x: stats.t.logpdf(x, DF, LOC, SCALE), REAL),
    "lognormal": (
        LogScale(Normal(MILD, SCALE**2)),
        lambda x: stats.lognorm.logpdf(x, SCALE, scale=np.exp(MILD)),
        POSITIVE,
    ),
    "poisson": (Poisson(RATE), lambda x: stats.poisson.logpmf(x, RATE), COUNTS),
    "negative binomial": (
        NegativeBinomial(SHAPE, RATE),
        lambda x: stats.nbinom.logpmf(x, SHAPE, RATE / (RATE + 1.0)),
        COUNTS,
    ),
    "exponential": (
        Exponential(RATE),
        lambda x: stats.expon.logpdf(x, scale=1 / RATE),
        POSITIVE,
    ),
    "lomax": (
        Lomax(SHAPE, RATE),
        lambda x: stats.lomax.logpdf(x, SHAPE, scale=RATE),
        POSITIVE,
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_log_prob_equals_scipy(name):
    law, oracle, x = ELEMENTWISE[name]
    expected = np.stack([oracle(row) for row in x])  # (row, class, feature)
    np.testing.assert_allclose(law.contributions(x), expected, **CLOSE)
    np.testing.assert_allclose(law.log_prob(x), expected.sum(axis=2), **CLOSE)


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [
        (Normal(np.array([[2.0]]), np.array([[9.0]])), -np.inf, np.inf),
        (StudentT(np.array([[1.5]]), np.array([[2.0]]), np.array([[3.0]])), -np.inf, np.inf),
        (LogScale(StudentT(np.array([[6.0]]), np.array([[0.1]]), np.array([[0.4]]))), 0.0, np.inf),
        (Exponential(np.array([[0.7]])), 0.0, np.inf),
        (Lomax(np.array([[2.5]]), np.array([[4.0]])), 0.0, np.inf),
    ],
)
def test_continuous_densities_integrate_to_one(law, low, high):
    mass, _ = integrate.quad(lambda x: np.exp(law.log_prob(np.array([[x]]))[0, 0]), low, high, epsabs=1e-11)
    assert mass == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(
    "law",
    [
        Poisson(np.array([[3.5]])),
        NegativeBinomial(np.array([[2.5]]), np.array([[0.5]])),
    ],
)
def test_count_distributions_sum_to_one(law):
    assert np.exp(law.log_prob(np.arange(400.0)[:, None])).sum() == pytest.approx(1.0, abs=1e-13)


def test_level_tables_and_switches_sum_to_one_and_score_their_probabilities():
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.25, 0.75]])
    with np.errstate(divide="ignore"):
        table = Categorical(np.log(p).T, np.array([0, 3]), np.zeros((1, 2)))
        switch = Bernoulli(np.log(p[:, :1]), np.log1p(-p[:, :1]), threshold=0.5)
    np.testing.assert_allclose(np.exp(table.log_prob(np.arange(3)[:, None])), p.T, rtol=1e-15)
    np.testing.assert_allclose(np.exp(switch.log_prob(np.array([[0.5], [0.6]]))).sum(axis=0), 1.0, rtol=1e-15)


DOCUMENTS = np.array([[2.0, 0.0, 1.0, 4.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 3.0]])


def coefficient(x):
    """log of the number of orders of a document's words: what a bag has and a sequence has not."""
    return numerics.gammaln(x.sum(axis=1) + 1) - numerics.gammaln(x + 1).sum(axis=1)


def test_word_sequences_equal_scipys_bags_without_the_coefficient():
    p, alpha = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.3, 1.0, 2.0, 5.5])
    sure, unsure = Multinomial(np.log(p)[:, None]), DirichletMultinomial(alpha[None, :])
    n = DOCUMENTS.sum(axis=1).astype(int)
    for law, oracle in [
        (sure, stats.multinomial.logpmf(DOCUMENTS, n, p)),
        (unsure, stats.dirichlet_multinomial.logpmf(DOCUMENTS.astype(int), alpha, n)),
    ]:
        np.testing.assert_allclose(law.log_prob(DOCUMENTS)[:, 0], oracle - coefficient(DOCUMENTS), rtol=1e-12)
        np.testing.assert_allclose(law.contributions(DOCUMENTS).sum(axis=2), law.log_prob(DOCUMENTS), rtol=1e-12)


def test_word_sequences_of_one_length_sum_to_one():
    law = DirichletMultinomial(np.array([[0.3, 2.0, 1.1]]))
    words = np.stack(np.meshgrid(*[range(3)] * 4), axis=-1).reshape(-1, 4)  # every sequence of four words
    bags = np.stack([(words == j).sum(axis=1) for j in range(3)], axis=1).astype(float)
    assert np.exp(law.log_prob(bags)).sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 100, 1000])
def test_half_steps_of_gamma_equal_the_central_binomial(n):
    """Gamma(n + 1/2) / Gamma(n) = sqrt(pi) n C(2n, n) / 4**n, in whole numbers."""
    exact = math.log(float(Fraction(n * math.comb(2 * n, n), 4**n))) + math.log(math.pi) / 2
    assert numerics.log_rising_factorial(n, 0.5) == pytest.approx(exact, rel=2e-15, abs=2e-15)


@pytest.mark.parametrize("a", [1e-8, 0.5, 3.0, 15.99, 16.0, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("x", [0, 1, 2, 30])
def test_rising_factorial_equals_its_product(a, x):
    exact = math.fsum(math.log(a + i) for i in range(x))
    assert numerics.log_rising_factorial(a, float(x)) == pytest.approx(exact, rel=1e-14, abs=1e-14)


def test_rising_factorial_at_zero():
    assert numerics.log_rising_factorial(0.0, 0.0) == 0.0
    assert numerics.log_rising_factorial(0.0, 2.0) == -np.inf


def test_student_with_many_degrees_of_freedom_is_the_normal():
    one = np.ones((1, 1))
    x = np.array([[-3.0], [0.0], [1.5]])
    student = StudentT(1e13 * one, 2.0 * one, 3.0 * one).log_prob(x)
    np.testing.assert_allclose(student, stats.norm.logpdf(x, 2.0, 3.0), rtol=1e-11)
