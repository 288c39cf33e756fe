"""Feature scores from tallies equal what scipy and scikit-learn compute from the rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.feature_selection import chi2, f_classif
from sklearn.metrics import mutual_info_score

import candide as cd
from candide.errors import InputError
from candide.events import Bernoulli, Categorical, Exponential, Gaussian, LogNormal, Multinomial, Poisson
from candide.priors import Dirichlet, NormalInverseGamma
from candide.tally import Moments, Sums, association


def scored(X, y, events="auto", **settings):
    return cd.NaiveBayes(events, **settings).fit(X, y).feature_scores()


def by_column(scores, what):
    return np.array([getattr(scores.for_column(j), what) for j in range(len(scores))])


def numbers(seed, n_classes, n=40, d=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(n_classes), 2), rng.integers(0, n_classes, n - 2 * n_classes)])
    return rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + y[:, None] * rng.normal(size=d), y


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_two_classes_are_compared_by_welchs_t(seed):
    X, y = numbers(seed, 2)
    scores = scored(X, y, "gaussian")
    expected = stats.ttest_ind(X[y == 1], X[y == 0], equal_var=False)
    assert {score.test for score in scores} == {"t"}
    np.testing.assert_allclose(by_column(scores, "statistic"), expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(by_column(scores, "p_value"), expected.pvalue, rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-100, 1e-80, 1e80, 1e100])
def test_the_test_does_not_depend_on_units(unit):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), np.arange(40) % 2
    X[y == 1] += 1.5
    [score] = cd.NaiveBayes("gaussian").fit(X * unit, y).feature_scores()
    expected = stats.ttest_ind(X[y == 1], X[y == 0], equal_var=False)
    assert (score.statistic, score.p_value) == pytest.approx((expected.statistic[0], expected.pvalue[0]), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(3, 5))
def test_more_classes_by_the_f_of_the_one_way_analysis_of_variance(seed, n_classes):
    X, y = numbers(seed, n_classes)
    scores = scored(X, y, "gaussian")
    f, p = f_classif(X, y)
    np.testing.assert_allclose(by_column(scores, "statistic"), f, rtol=1e-9)
    np.testing.assert_allclose(by_column(scores, "p_value"), p, rtol=1e-7)


def test_absent_values_and_weights_count_as_rows():
    X, y = numbers(0, 3, n=60)
    X[::7, 1] = np.nan
    weight = np.random.default_rng(0).integers(1, 4, 60)
    scores = cd.NaiveBayes("gaussian").fit(X, y, sample_weight=weight).feature_scores()
    rows = np.repeat(np.arange(60), weight)
    for j in range(3):
        there = rows[~np.isnan(X[rows, j])]
        expected = stats.f_oneway(*(X[there[y[there] == c], j] for c in range(3)))
        assert scores.for_column(j).statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert scores.for_column(j).p_value == pytest.approx(expected.pvalue, rel=1e-7)


def levels(seed, n=80):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, n - 3)])
    made = {f"c{k}": np.where(rng.random(n) < 0.5, y, rng.integers(0, k + 2, n)).astype(str) for k in range(3)}
    return made, y


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_levels_have_the_chi_squared_and_the_information_of_their_table(seed):
    X, y = levels(seed)
    scores = scored(X, y)
    for name, values in X.items():
        table = pd.crosstab(y, values).to_numpy()
        expected = stats.chi2_contingency(table, correction=False)
        assert (scores.for_column(name).test, scores.for_column(name).event) == ("chi2", "categorical")
        assert scores.for_column(name).statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert scores.for_column(name).p_value == pytest.approx(expected.pvalue, rel=1e-7)
        assert scores.for_column(name).information == pytest.approx(mutual_info_score(y, values), rel=1e-9, abs=1e-12)


def test_counts_have_scikit_learns_chi_squared():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 50)
    X = rng.poisson(1.0 + y[:, None] * [0.0, 0.5, 2.0, 0.1])
    statistic, p = chi2(X, y)
    for events in (Multinomial(), Poisson(), cd.events.Complement()):
        scores = scored(X, y, events)
        np.testing.assert_allclose(by_column(scores, "statistic"), statistic, rtol=1e-9)
        np.testing.assert_allclose(by_column(scores, "p_value"), p, rtol=1e-7)


def test_amounts_have_the_likelihood_ratio():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 60)
    x = rng.exponential(1.0 + y)

    def fit(values):
        return stats.expon.logpdf(values, scale=values.mean()).sum()

    expected = 2 * (fit(x[y == 0]) + fit(x[y == 1]) - fit(x))
    score = scored(x[:, None], y, Exponential())[0]
    assert (score.test, score.statistic) == ("G", pytest.approx(expected, rel=1e-9))
    assert score.p_value == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-9)


def integral(share, density, low, high, points):
    """Mutual information of a mixture, by adaptive quadrature of share_c p(x|c) log(p(x|c) / p(x))."""

    def term(x):
        p = density(x)
        mix = share @ p
        return sum(s * q * np.log(q / mix) for s, q in zip(share, p, strict=True) if q > 0)

    return integrate.quad(term, low, high, points=points, limit=1000, epsabs=1e-12)[0]


@pytest.mark.parametrize(
    ("mean", "sd", "share"),
    [
        ([0.0, 0.0], [1.0, 1.0], [0.5, 0.5]),
        ([0.0, 1.0], [1.0, 1.0], [0.3, 0.7]),
        ([0.0, 5.0], [1.0, 2.0], [0.5, 0.5]),
        ([0.0, 0.5], [3.0, 0.3], [0.8, 0.2]),
        ([-1.0, 0.0, 4.0], [1.0, 0.5, 2.0], [0.2, 0.5, 0.3]),
    ],
)
def test_information_of_normals_against_quadrature(mean, sd, share):
    n = 1000 * np.array(share)[:, None]
    tally = Moments(n, np.array(mean)[:, None], n * np.array(sd)[:, None] ** 2)
    expected = integral(np.array(share), lambda x: stats.norm.pdf(x, mean, sd), -40, 40, [*mean, 0.1])
    assert association.normal_information(tally)[0] == pytest.approx(expected, abs=1e-7)


def test_information_has_no_units_and_a_class_without_spread_is_a_point():
    X, y = numbers(5, 2)
    nats = [association.normal_information(Moments.from_rows(X * u, y, n_classes=2)) for u in (1.0, 1e-6, 1e9)]
    np.testing.assert_allclose(nats[1:], [nats[0], nats[0]], rtol=1e-9)
    n = np.array([[6.0], [4.0]])
    point = Moments(n, np.array([[0.0], [0.0]]), np.array([[6.0], [0.0]]))
    assert association.normal_information(point)[0] == pytest.approx(stats.entropy([0.6, 0.4]), rel=1e-9)
    same = Moments(n, np.zeros((2, 1)), np.zeros((2, 1)))
    assert association.normal_information(same)[0] == 0.0


def test_information_of_rates_against_sums_and_quadrature():
    n, rate, share = np.array([[30.0], [70.0]]), np.array([2.0, 5.0]), np.array([0.3, 0.7])
    counts = Sums(n, n * rate[:, None], np.zeros_like(n))
    x = np.arange(200)[:, None]
    p = stats.poisson.pmf(x, rate)
    expected = (share * stats.entropy(p, (p @ share)[:, None] + np.zeros((1, 2)))).sum()
    assert association.poisson_information(counts)[0] == pytest.approx(expected, rel=1e-9)
    times = Sums(n, n / rate[:, None], np.zeros_like(n))
    expected = integral(share, lambda t: rate * np.exp(-rate * t), 0, 60, [0.1, 1.0])
    assert association.exponential_information(times)[0] == pytest.approx(expected, abs=1e-8)


def test_information_of_words_is_that_of_the_next_word():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 6, (12, 4)), np.arange(12) % 3
    scores = scored(X, y, Multinomial())
    words = np.repeat(np.tile(np.arange(4), 12), X.ravel())
    classes = np.repeat(np.repeat(y, 4), X.ravel())
    for j in range(4):
        assert scores.for_column(j).information == pytest.approx(
            mutual_info_score(classes, words == j), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("events", [Gaussian(), LogNormal(), Exponential(), Poisson(), Bernoulli(4.0), Categorical()])
def test_evidence_is_the_predictive_of_the_rows_one_after_another(events):
    """log p(x | y) - log p(x), each the product of predictives of a row given those before it, under a proper prior."""
    rng = np.random.default_rng(4)
    y = np.arange(9) % 2
    x = rng.poisson(3.0 + 4 * y).astype(float) + 1.0
    proper = {
        "gaussian": NormalInverseGamma(mean=2.0, kappa=0.5, a=2.0, b=3.0),
        "lognormal": NormalInverseGamma(mean=1.0, kappa=0.5, a=2.0, b=1.0),
        "exponential": cd.priors.Gamma(2.0, 3.0),
        "poisson": cd.priors.Gamma(2.0, 0.5),
        "bernoulli": cd.priors.Beta(1.0, 2.0),
        "categorical": Dirichlet(1.0),
    }
    event = replace(events, prior=proper[events.name])
    score = scored(x[:, None], y, event)[0]
    assert score.evidence == pytest.approx(chained(event, x, y) - chained(event, x, np.zeros_like(y)), rel=1e-8)
    assert score.evidence_per_row == pytest.approx(score.evidence / 9)


def chained(event, x, classes):
    from candide.data.table import Table
    from candide.model.plan import PlanPart
    from candide.tally import TALLIES

    table = Table.from_data(x[:, None])
    part = PlanPart(event, (0,)).with_levels(table)
    block, found = part.block(table), 0.0
    for i in range(len(x)):
        before = np.flatnonzero((classes == classes[i]) & (np.arange(len(x)) < i))
        tally = TALLIES[part.spec.kind].from_rows(
            np.ascontiguousarray(block[before]), np.zeros(len(before), np.intp), n_classes=1, spec=part.spec
        )
        found += event.estimate(tally, how="predictive").log_prob(block[i : i + 1])[0, 0]
    return found


def test_noise_has_negative_evidence_and_a_signal_positive():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 400)
    X = {"noise": rng.normal(size=400), "coin": rng.integers(0, 5, 400).astype(str), "signal": rng.normal(y)}
    scores = scored(X, y)
    assert scores[0].column == "signal"
    assert (
        scores.for_column("signal").evidence
        > 0
        > max(scores.for_column("noise").evidence, scores.for_column("coin").evidence)
    )


def test_an_improper_prior_leaves_the_choice_of_prior_to_the_event_model():
    X, y = numbers(7, 2)
    assert scored(X, y, "gaussian", param_priors="jeffreys").to_dict() == scored(X, y, "gaussian").to_dict()
    kept = scored(X, y, "gaussian", param_priors=NormalInverseGamma(kappa=1.0))
    assert kept.for_column(0).evidence != scored(X, y, "gaussian").for_column(0).evidence


def test_columns_modelled_together_are_one_unit():
    X, y = numbers(8, 2, n=80)
    table = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    scores = scored(table, y, {("a", "b"): Gaussian(covariance="full")})
    assert {score.column for score in scores} == {("a", "b"), "c"}
    assert scores.for_column(("a", "b")).evidence is not None
    assert scores.for_column(("a", "b")).information is None


def test_scores_print_make_frames_and_say_what_is_missing():
    X, y = numbers(9, 2, d=30)
    scores = scored(X, y, "gaussian", select=2)
    text = str(scores)
    assert text.splitlines()[0].split() == [
        "column",
        "event",
        "evidence",
        "per",
        "row",
        "information",
        "test",
        "p",
    ]
    assert text.splitlines()[-1] == "... and 10 more"
    frame = pd.DataFrame(scores.to_dict())
    assert list(frame["evidence"]) == sorted(frame["evidence"], reverse=True)
    assert frame["is_selected"].sum() == 2
    assert frame["is_selected"][:2].all()
    assert len(scores[:3]) == 3
    with pytest.raises(InputError) as error:
        scores.for_column("age")
    assert error.value.value == "age"


def test_columns_are_ordered_by_information():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    right = {name: np.where(rng.random(2000) < share, y, 1 - y) for name, share in (("weak", 0.6), ("strong", 0.95))}
    X = {"weak": np.array(["no", "yes"])[right["weak"]], "number": y + rng.normal(0, 0.7, 2000)}
    X |= {"noise": rng.normal(size=2000), "strong": np.array(["low", "high"])[right["strong"]]}
    scores = cd.BayesClassifier().fit(X, y).feature_scores()
    assert [score.column for score in scores] == ["strong", "number", "weak", "noise"]
    assert [score.evidence is None for score in scores] == [False, True, False, True]  # of bins there is none
    assert "< 1e-300" in str(scores)  # a p-value that is too small for a number is not nothing


def test_too_few_values_for_a_test():
    scores = scored([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]], [0, 0, 1], "gaussian")
    assert (scores.for_column(0).statistic, scores.for_column(0).p_value) == (None, None)
    flat = scored([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0], [5.0, 5.0]], [0, 0, 1, 1], "gaussian").for_column(1)
    assert (flat.statistic, flat.p_value, flat.information) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "model", [cd.GaussianNB(), cd.MultinomialNB(), cd.BernoulliNB(), cd.BernoulliNB(binarize=None)]
)
def test_drop_ins_score_their_columns(model):
    rng = np.random.default_rng(10)
    y = np.arange(60) % 2
    X = np.column_stack([rng.random(60) < 0.2 + 0.6 * y, rng.random(60) < 0.5]).astype(float)
    scores = model.fit(X, y).feature_scores()
    assert scores[0].column == 0
    assert scores[0].evidence > 0
