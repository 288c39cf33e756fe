"""Rows held out: the terms of a row under the fit that was estimated without it, as if fitted without it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.data.blocks import Csr
from candide.data.documents import Documents
from candide.encoding import LevelEncoding
from candide.errors import CellError, InputError, NotCountedError
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
from candide.events import base as events_base
from candide.events.normal import COVARIANCES
from candide.priors import (
    AddedVariance,
    Beta,
    Dirichlet,
    Gamma,
    Jeffreys,
    NormalInverseGamma,
    NormalInverseWishart,
    Unbiased,
    Uniform,
)
from candide.tally import TALLIES

N_CLASSES, N_FEATURES = 3, 3


class Waiting(EventModel):
    """An own event model: nothing but a tally kind, parameters and a log-density."""

    name, kind = "waiting", "sums"

    def parameters(self, tally, prior, how):
        return {"rate": (tally.n + 1.0) / (tally.total + 1.0)}

    def log_density(self, x, rate):
        return np.log(rate) - rate * x


# Steps of a quarter: sums of squares keep their digits when a row is taken away again.
REAL = st.integers(-24, 24).map(lambda v: v / 4)
POSITIVE = st.integers(1, 40).map(lambda v: v / 8)
COUNT = st.integers(0, 5).map(float)
LEVEL = st.integers(0, 2)
CASES = {
    **{f"gaussian {v}": (Gaussian(covariance=v, fixed=2.0), REAL) for v in COVARIANCES},
    **{f"lognormal {v}": (LogNormal(covariance=v), POSITIVE) for v in COVARIANCES},
    "gaussian full shrunk": (Gaussian(covariance="full", shrinkage=0.3), REAL),
    "gaussian full oas": (Gaussian(covariance="full", shrinkage="oas"), REAL),
    "gaussian tied ledoit-wolf": (Gaussian(covariance="tied", shrinkage="ledoit-wolf"), REAL),
    "bernoulli": (Bernoulli(threshold=0.5), COUNT),
    "bernoulli shares": (Bernoulli(threshold=None), st.integers(0, 8).map(lambda v: v / 8)),
    "categorical": (Categorical(), LEVEL),
    "whole": (Whole(), LEVEL),
    "binned": (Binned(), LEVEL),
    "multinomial": (Multinomial(), COUNT),
    "complement": (Complement(), COUNT),
    "complement norm": (Complement(norm=True), COUNT),
    "poisson": (Poisson(), COUNT),
    "negativebinomial": (NegativeBinomial(), COUNT),
    "exponential": (Exponential(), POSITIVE),
    "own": (Waiting(), POSITIVE),
}
NIG, NIW = NormalInverseGamma(mean=0.5, kappa=0.7, a=2.3, b=1.9), NormalInverseWishart(mean=0.5, df=6.0, scale=2.0)
PRIORS = {
    Gaussian: [None, NIG, NormalInverseGamma(mean=1.0), NIW, Jeffreys(), Uniform(), AddedVariance(0.1), Unbiased()],
    Bernoulli: [None, Beta(2.0, 0.6), Beta((1, 2, 3), 2.0), Jeffreys()],
    Categorical: [None, Dirichlet(0.3), Dirichlet((0.5, 1.0, 2.5)), Uniform()],
    Multinomial: [None, Dirichlet((0.5, 1.0, 2.5))],
    Poisson: [None, Gamma(1.5, 0.4), Gamma(shape=2.0), Gamma(rate=2.0), Jeffreys()],
}
PRIORS |= {LogNormal: PRIORS[Gaussian], Exponential: PRIORS[Poisson], Complement: PRIORS[Multinomial], Waiting: [None]}
PRIORS |= {
    Whole: PRIORS[Categorical],
    Binned: [None, Dirichlet(0.3), Uniform()],
    NegativeBinomial: [*PRIORS[Poisson][:4], Uniform()],
}


def count(event, X, y, weight=None):
    sizes = (3,) * X.shape[1] if event.kind == "levels" and X.dtype.kind == "i" else ()
    spec = event.spec(X.shape[1], tuple(map(LevelEncoding.from_size, sizes)))
    return TALLIES[event.kind].from_rows(X, np.asarray(y, np.intp), weight, n_classes=N_CLASSES, spec=spec)


def refitted(event, prior, how, X, y, weight, i):
    """The terms of row i, fitted without it, in the bins of all rows; None where that fails."""
    rest = np.arange(len(X)) != i
    try:
        tally = count(event, X[rest], y[rest], None if weight is None else weight[rest])
        chosen = event.freeze_structure(count(event, X, y, weight))
        return chosen.estimate(tally, prior, how).contributions(X[i : i + 1])
    except InputError:
        return None


def check(event, prior, how, X, y, weight):
    tally = count(event, X, y, weight)
    expected = [refitted(event, prior, how, X, y, weight, i) for i in range(len(X))]
    works = [i for i, one in enumerate(expected) if one is not None]
    for i in set(range(len(X))) - set(works):
        with pytest.raises(InputError):
            event.held_out_contributions(tally, prior, how, X[[i]], y[[i]], None if weight is None else weight[[i]])
    if works:
        held = event.held_out_contributions(
            tally, prior, how, X[works], y[works], None if weight is None else weight[works]
        )
        wanted = np.concatenate([expected[i] for i in works])
        assert held.shape == (len(works), N_CLASSES, X.shape[1])
        np.testing.assert_allclose(held, wanted, rtol=1e-9, atol=1e-9)
        absent = X[works] < 0 if X.dtype.kind == "i" else np.isnan(X[works])
        assert (held.transpose(0, 2, 1)[absent] == 0).all()
    return len(works)


def rows(values, n_rows):
    cell = st.one_of(values, values, values, values, st.just(None))
    block = st.lists(st.lists(cell, min_size=N_FEATURES, max_size=N_FEATURES), min_size=n_rows, max_size=n_rows)
    classes = st.lists(st.integers(0, N_CLASSES - 1), min_size=n_rows, max_size=n_rows)
    weights = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n_rows, max_size=n_rows)
    return st.tuples(block, classes, st.one_of(st.none(), weights))


def test_every_family_is_a_case():
    assert {event.name for event, _ in CASES.values()} == set(EVENTS) - {"text"} | {"waiting"}


@pytest.mark.parametrize("how", ESTIMATES)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_held_out_is_fitted_without_the_row(name, how, data):
    event, values = CASES[name]
    block, y, weight = data.draw(rows(values, data.draw(st.integers(2, 9))))
    prior = data.draw(st.sampled_from(PRIORS[type(event)]))
    if event.kind == "levels" and not name.startswith("bernoulli"):
        X = np.array([[-1 if v is None else v for v in row] for row in block], np.int32)
    else:
        X = np.array([[np.nan if v is None else v for v in row] for row in block], float)
    check(event, prior, how, X, np.array(y, np.intp), None if weight is None else np.array(weight))


@pytest.mark.parametrize("how", ["map", "mean", "predictive"])
@pytest.mark.parametrize("name", CASES)
def test_a_class_of_one_row_is_left_with_the_prior(name, how):
    event, _ = CASES[name]
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (12, N_FEATURES)).astype(np.int32)
    X = X if name in ("categorical", "whole", "binned") else X + rng.integers(1, 8, X.shape) / 8
    X = X / 4 if name == "bernoulli shares" else X
    y = np.array([0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    prior = Dirichlet(2) if how == "map" and event.kind == "sums" and Dirichlet in event.accepted_priors else None
    assert check(event, prior, how, X, y, None) == len(X)


@pytest.mark.parametrize("covariance", ["tied-diagonal", "fixed", "tied"])
def test_under_mle_the_class_of_one_row_is_an_error_that_names_the_row(covariance):
    event = Gaussian(covariance=covariance)
    X, y = np.random.default_rng(1).normal(size=(13, 2)), np.array([1] * 6 + [2] * 6 + [0])
    X[2, 1] = np.nan
    with pytest.raises(CellError) as error:
        event.held_out_contributions(count(event, X, y), "uniform", "mle", X, y)
    assert (error.value.row, error.value.class_code) == (12, 0)


def test_a_row_that_makes_a_column_vary_leaves_it_flat():
    X = np.random.default_rng(2).normal(size=(8, 3))
    X[:, 1] = 5.0
    X[3, 1] = 7.0
    y = np.arange(8) % 3
    for covariance in COVARIANCES:
        assert check(Gaussian(covariance=covariance), None, "predictive", X, y, None) == 8


@pytest.mark.parametrize("event", [event for event, _ in CASES.values() if event.accepts_sparse])
def test_sparse_rows_are_held_out_as_dense_ones(event):
    X, y = np.random.default_rng(3).poisson(0.8, (12, N_FEATURES)).astype(float), np.arange(12) % N_CLASSES
    X = np.minimum(X, event.support.high)
    row, column = np.nonzero(X)
    packed = Csr(X[row, column], column.astype(np.int32), np.searchsorted(row, np.arange(13)), N_FEATURES)
    tally = count(event, X, y)
    a, b = (event.held_out_contributions(tally, None, "mean", block, y) for block in (X, packed))
    np.testing.assert_allclose(a, b, rtol=1e-12)


TEXTS = {
    **{model: Text(model=model) for model in ("multinomial", "bernoulli", "complement", "polya")},
    "pairs of words": Text(sublinear=True, ngrams=(1, 2), prior=Dirichlet(0.3)),
    "hashed": Text(bits=8),
    "characters within words": Text(analyzer="char_wb"),
    "idf": Text(idf=True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_documents_are_held_out_one_by_one(name):
    texts = ["free prize now", "see you", "free call", "you see me now", "prize prize call", None, "now"]
    y, weight, event = np.array([0, 1, 0, 1, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 1.0, 0.5, 1.0, 1.0]), TEXTS[name]

    def counted(keep):
        documents = Documents.from_column([t for t, k in zip(texts, keep, strict=True) if k])
        return TALLIES["token_counts"].from_rows(documents, y[keep], weight[keep], n_classes=3, spec=event.spec(1))

    held = event.held_out_contributions(
        counted(np.ones(7, bool)), None, "mean", Documents.from_column(texts), y, weight
    )
    for i, text in enumerate(texts):
        fit = event.estimate(counted(np.arange(7) != i), None, "mean")
        np.testing.assert_allclose(held[i], fit.contributions(Documents.from_column([text]))[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian full", "gaussian diagonal", "categorical", "multinomial"])
def test_many_rows_are_held_out_some_at_a_time(name, monkeypatch):
    event, _ = CASES[name]
    X, y = np.random.default_rng(4).integers(0, 3, (40, N_FEATURES)), np.arange(40) % N_CLASSES
    X = X.astype(np.int32 if name == "categorical" else float)
    whole = event.held_out_contributions(count(event, X, y), None, "predictive", X, y)
    monkeypatch.setattr(events_base, "_CHUNK_CELLS", 60)
    np.testing.assert_allclose(
        event.held_out_contributions(count(event, X, y), None, "predictive", X, y), whole, rtol=1e-12
    )


@pytest.mark.parametrize("name", ["gaussian diagonal", "gaussian full", "multinomial", "poisson"])
def test_a_row_that_was_never_counted_is_named(name):
    event, _ = CASES[name]
    X, y = np.random.default_rng(5).integers(0, 4, (20, N_FEATURES)).astype(float), np.arange(20) % N_CLASSES
    tally = count(event, X, y)
    X[13] = 1e4
    with pytest.raises(NotCountedError) as error:
        event.held_out_contributions(tally, None, "mean", X, y)
    assert error.value.row == 13


def test_what_does_not_fit_is_refused():
    X, y = np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 2])
    tally = count(Poisson(), X, y)
    with pytest.raises(InputError) as error:
        Poisson().held_out_contributions(tally, None, "predictve", X, y)
    assert error.value.value == "predictve"
    with pytest.raises(InputError):
        Poisson().held_out_contributions(tally, Beta(), "mean", X, y)
