"""Laws of every family: terms add up, evidence is the chain of predictions, fitting undoes sampling."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.encoding import LevelEncoding
from candide.errors import InputError
from candide.events import (
    ESTIMATES,
    EVENTS,
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    EventModel,
    Exponential,
    Gaussian,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Text,
    Whole,
)
from candide.priors import Beta, Dirichlet, Gamma, NormalInverseGamma, Prior
from candide.tally import TALLIES
from candide.testing import check_event

NIG = NormalInverseGamma(mean=0.5, kappa=0.7, a=2.3, b=1.9)


@dataclass(frozen=True)
class Case:
    event: EventModel
    prior: Prior  # proper, with every number given
    values: st.SearchStrategy  # of one cell
    sizes: tuple[int, ...] = ()
    smooth: Prior | None = None  # one whose MAP has no zero probability; None: the default has none

    def prior_for(self, how):
        return self.smooth if how == "map" else None

    def block(self, rng, n_rows):
        """Rows that every family takes: whole numbers 0, 1, 2, moved off zero where zero is no value."""
        X = rng.integers(0, 3, (n_rows, N_FEATURES))
        return X if self.sizes else X + (0.5 if self.event.name in ("lognormal", "exponential") else 0.0)


REAL = st.floats(-50.0, 50.0, width=32)
POSITIVE = st.floats(2.0**-10, 50.0, width=32)
SMALL_COUNT = st.integers(0, 6).map(float)
CASES = {
    **{
        f"gaussian {v}": Case(Gaussian(covariance=v, fixed=3.0), NIG, REAL)
        for v in ("diagonal", "tied-diagonal", "spherical", "fixed")
    },
    "lognormal": Case(LogNormal(), NIG, POSITIVE),
    "bernoulli": Case(Bernoulli(threshold=0.5), Beta(2.0, 0.6), SMALL_COUNT, smooth=Beta(2, 2)),
    "categorical": Case(Categorical(), Dirichlet(0.7), st.integers(0, 2), (3, 3, 3), Dirichlet(2)),
    "binned": Case(Binned(), Dirichlet(0.7), st.integers(0, 2), (3, 3, 3), Dirichlet(2)),
    "whole": Case(Whole(), Dirichlet(0.7), st.integers(0, 2), (3, 3, 3), Dirichlet(2)),
    "multinomial": Case(Multinomial(), Dirichlet(0.7), SMALL_COUNT, smooth=Dirichlet(2)),
    "complement": Case(Complement(), Dirichlet(0.7), SMALL_COUNT, smooth=Dirichlet(2)),
    "poisson": Case(Poisson(), Gamma(1.5, 0.4), SMALL_COUNT, smooth=Gamma(2, 1)),
    "negativebinomial": Case(NegativeBinomial(), Gamma(1.5, 0.4), SMALL_COUNT, smooth=Gamma(2, 1)),
    "exponential": Case(Exponential(), Gamma(1.5, 0.4), POSITIVE),
}
GENERATIVE = [name for name in CASES if name not in ("complement", "negativebinomial", "binned")]  # these have evidence
N_CLASSES, N_FEATURES = 2, 3


def spec_of(event, n_features, sizes):
    return event.spec(n_features, tuple(map(LevelEncoding.from_size, sizes)))


def count(event, X, y, weight=None, sizes=(), n_classes=N_CLASSES):
    return TALLIES[event.kind].from_rows(X, y, weight, n_classes=n_classes, spec=spec_of(event, X.shape[1], sizes))


def rows(case, n_rows, absent=True):
    """A block of n rows and its class codes, with values absent here and there."""
    none = -1 if case.sizes else np.nan
    cell = st.one_of(case.values, case.values, case.values, st.just(none)) if absent else case.values
    block = st.lists(st.lists(cell, min_size=N_FEATURES, max_size=N_FEATURES), min_size=n_rows, max_size=n_rows)
    classes = st.lists(st.integers(0, N_CLASSES - 1), min_size=n_rows, max_size=n_rows)
    return st.tuples(block.map(np.array), classes.map(lambda y: np.array(y, np.intp)))


def is_absent(X):
    return X < 0 if X.dtype.kind == "i" else np.isnan(X)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


TOGETHER = [Gaussian(covariance="full"), Gaussian(covariance="tied"), LogNormal(covariance="full")]
DOCUMENTS = [Text(), Text(model="bernoulli"), Text(model="complement", norm=True), Text(model="polya"), Text(bits=4)]


def test_every_family_passes_the_published_checks(case):
    check_event(case.event, prior=case.prior)


@pytest.mark.all_cases
@pytest.mark.parametrize("event", [*TOGETHER, *DOCUMENTS], ids=str)
def test_joint_columns_and_documents_pass_the_published_checks(event):
    check_event(event)


def test_every_family_is_a_case():
    documents = {"text"}  # its rows are no numbers: tests/events/test_text.py
    assert {case.event.name for case in CASES.values()} == set(EVENTS) - documents


@pytest.mark.parametrize("how", ESTIMATES[1:])
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_terms_sum_to_log_prob_and_an_absent_value_adds_nothing(name, how, data):
    case = CASES[name]
    X, y = data.draw(rows(case, 6))
    fit = case.event.estimate(count(case.event, X, y, sizes=case.sizes), case.prior_for(how), how)
    terms, log_prob = fit.contributions(X), fit.log_prob(X)
    assert terms.shape == (6, fit.n_classes, fit.n_features) == (6, N_CLASSES, N_FEATURES)
    np.testing.assert_allclose(terms.sum(axis=2), log_prob, rtol=1e-12, atol=1e-12)
    assert (terms.transpose(0, 2, 1)[is_absent(X)] == 0).all()
    assert fit.add_log_prob(X, np.zeros_like(log_prob)) == is_absent(X).sum()
    if "multinomial" not in name or how != "predictive":  # there a word changes what the others add
        X[0, 1] = -1 if case.sizes else np.nan
        np.testing.assert_allclose(fit.log_prob(X)[0], log_prob[0] - terms[0, :, 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GENERATIVE)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_evidence_is_the_product_of_one_step_ahead_predictions(name, data):
    """Without a conjugate formula: predict each row from those before it, and multiply."""
    case = CASES[name]
    X, y = data.draw(rows(case, 6))
    seen = TALLIES[case.event.kind].empty(N_CLASSES, spec_of(case.event, N_FEATURES, case.sizes))
    total = np.zeros(N_CLASSES)
    for i, c in enumerate(y):
        # One feature after another where features share a variance, a document as a whole where they are words.
        steps = np.eye(N_FEATURES, dtype=bool) if name == "gaussian spherical" else np.ones((1, N_FEATURES), bool)
        for step in steps:
            part = np.where(step, X[i : i + 1], -1 if case.sizes else np.nan)
            total[c] += case.event.estimate(seen, case.prior, "predictive").log_prob(part)[0, c]
            seen = seen + count(case.event, part, y[i : i + 1], sizes=case.sizes)
    evidence = case.event.evidence(count(case.event, X, y, sizes=case.sizes), case.prior)
    assert evidence.shape == (N_CLASSES, N_FEATURES)
    if name == "gaussian tied-diagonal":
        assert evidence.sum() == pytest.approx(total.sum(), rel=1e-8, abs=1e-8)
    else:
        np.testing.assert_allclose(evidence.sum(axis=1), total, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("how", ESTIMATES[1:])
def test_a_class_without_rows_is_finite(case, how):
    X = case.block(np.random.default_rng(2), 9)
    tally = count(case.event, X, np.array([0, 0, 0, 0, 0, 2, 2, 2, 2]), sizes=case.sizes, n_classes=3)
    fit = case.event.estimate(tally, case.prior_for(how), how)
    assert np.isfinite(fit.log_prob(X)).all()
    assert all(np.isfinite(p).all() for p in fit.parameters().values())


def test_names_and_priors_that_do_not_fit_are_refused(case):
    X = np.ones((2, N_FEATURES), np.intp if case.sizes else float)
    tally = count(case.event, X, np.array([0, 1]), sizes=case.sizes)
    with pytest.raises(InputError, match="unknown estimate 'predictve'; did you mean 'predictive'"):
        case.event.estimate(tally, how="predictve")
    with pytest.raises(InputError, match="unknown prior"):
        case.event.estimate(tally, prior="dirichle")
    other = Gamma() if not isinstance(case.prior, Gamma) else Beta()
    with pytest.raises(InputError, match=f"the {case.event.name} event model takes the priors"):
        case.event.estimate(tally, prior=other)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.sizes])
def test_an_infinity_to_score_is_named(name):
    case = CASES[name]
    X = np.ones((3, N_FEATURES))
    tally = count(case.event, X + np.arange(3)[:, None], np.array([0, 1, 0]))
    fit = case.event.estimate(tally)
    X[1, 2] = np.inf
    for score in (fit.log_prob, fit.contributions):
        with pytest.raises(InputError) as error:
            score(X)
        assert (error.value.row, error.value.column, error.value.value) == (1, 2, np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.sizes])
def test_number_types_have_the_same_scores(name, dtype):
    case = CASES[name]
    X = np.random.default_rng(5).integers(1, 5, (9, N_FEATURES))
    fit = case.event.estimate(count(case.event, X.astype(float), np.arange(9) % 2))
    np.testing.assert_allclose(fit.log_prob(X.astype(dtype)), fit.log_prob(X.astype(float)), rtol=1e-12)
