"""Models of every kind for the tests of model files: a name, a fitted estimator, and rows to score."""

from datetime import UTC, date, datetime

import numpy as np

import candide as cd
from candide import events, priors
from candide.data.table import Table
from candide.encoding import Grid, LevelEncoding
from candide.encoding.scores import Indicators, NormalScore, Prototypes
from candide.model.plan import Plan, PlanPart
from candide.weighted.terms.discriminant import Discriminant, PrototypeTerm
from candide.weighted.terms.interaction import Interaction

N = 60
_NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def _rng(seed=0):
    return np.random.default_rng(seed)


def labels_of(kind, n=N):
    y = _rng(1).integers(0, 3, n)
    return {
        "str": np.array(["apple", "bee", "cat"], object)[y],
        "int": np.array([-5, 0, 2**40])[y],
        "bool": y > 0,
        "float": np.array([-2.0, 0.0, 1e300])[y],
        "odd": np.array(["", 'a "quoted"\nline', "🙂\x00é"], object)[y],
        "date": np.array([date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)], object)[y],
        "datetime": np.array([datetime(2024, 2, 29, 23, 59, 1, 7), _NOON, datetime(1, 1, 1)], object)[y],
    }[kind]


def numbers(n=N, positive=False):
    x = _rng(2).normal(3, 2, (n, 3))
    return np.abs(x) + 0.1 if positive else np.where(_rng(3).random((n, 3)) < 0.1, np.nan, x)


def counts(n=N):
    return _rng(4).poisson(2.0, (n, 4)).astype(float)


def mixed(n=N):
    rng = _rng(5)
    jobs = np.array(["cook", "smith", None, "\n", "", 'say "hi"', "日本"], object)
    return {
        "age": rng.normal(40, 9, n),
        "job": jobs[rng.integers(0, len(jobs), n)],
        "zip": rng.integers(10_000, 10_020, n),
        'odd "name"\n🙂': rng.random(n) > 0.5,
        "": rng.poisson(3, n),
    }


EVENTS = {
    "bernoulli": (events.Bernoulli(threshold=3.0), numbers()),
    "binned": (events.Binned(), numbers()),
    "categorical": (events.Categorical(), counts()),
    "whole": (events.Whole(), counts()),
    "complement": (events.Complement(norm=True), counts()),
    "exponential": (events.Exponential(), numbers(positive=True)),
    "gaussian": (events.Gaussian(), numbers()),
    "gaussian-shared": (events.Gaussian(covariance="tied-diagonal"), numbers()),
    "gaussian-fixed": (events.Gaussian(covariance="fixed", fixed=2.5), numbers()),
    "gaussian-spherical": (events.Gaussian(covariance="spherical"), numbers()),
    "gaussian-full": (events.Gaussian(covariance="full"), numbers()),
    "gaussian-full-oas": (events.Gaussian(covariance="full", shrinkage="oas"), numbers()),
    "gaussian-tied": (events.Gaussian(covariance="tied", shrinkage=0.2), numbers()),
    "gaussian-tied-lw": (events.Gaussian(covariance="tied", shrinkage="ledoit-wolf"), numbers()),
    "lognormal": (events.LogNormal(), numbers(positive=True)),
    "lognormal-full": (events.LogNormal(covariance="full"), numbers(positive=True)),
    "multinomial": (events.Multinomial(), counts()),
    "negativebinomial": (events.NegativeBinomial(sharing=4.0), counts()),
    "poisson": (events.Poisson(), counts()),
    "shares": (events.Bernoulli(threshold=None), counts() / 20),
}
PRIORS = {
    "beta": ("bernoulli", priors.Beta((1.0, 2.0, 0.3), 1 / 3)),
    "dirichlet": ("categorical", priors.Dirichlet(0.1)),
    "dirichlet-many": ("multinomial", priors.Dirichlet((0.1, 1 / 3, 2.0, 5.0))),
    "gamma": ("poisson", priors.Gamma(2.0, 1 / 7)),
    "normal_inverse_gamma": ("gaussian", priors.NormalInverseGamma(1 / 3, 0.1, 2.0, 0.7)),
    "normal_inverse_wishart": ("gaussian-full", priors.NormalInverseWishart((1.0, 0.1, 1 / 3), 0.1, 7.0, 2.0)),
    "jeffreys": ("exponential", priors.Jeffreys()),
    "uniform": ("bernoulli", priors.Uniform()),
}


TEXTS = {
    "open": {},
    "hashed": {"bits": 12},
    "signed": {"bits": 12, "signed": True},
    "bernoulli": {"model": "bernoulli"},
    "complement": {"model": "complement", "norm": True},
    "polya": {"model": "polya"},
    "choices": {"idf": True, "sublinear": True, "stop_words": [f"w{i}" for i in range(50)], "ngrams": (1, 2)},
    "pattern": {"pattern": r"\w+", "max_token_length": 9},
}


def _classifier(event, **settings):
    """The classifier that loading gives back."""
    if event.is_joint and event.name == "gaussian":
        return cd.GaussianBayes(event.covariance, event.shrinkage, **settings)
    return cd.NaiveBayes(event, **settings)


def plan_with_terms(X):
    """A plan in which voices of every sort speak: columns, pairs, triples, numbers together and beside levels."""
    table = Table.from_data(X)
    cells = Grid(cells=4).learn(X["age"]), LevelEncoding().learn(X["job"]), LevelEncoding().learn(X["zip"])
    scores = NormalScore().learn(X["age"]), NormalScore().learn(X[""])
    like = Prototypes.from_scores(PlanPart(Discriminant(), ("age", ""), scores).block(table), 9)
    parts = (
        PlanPart(events.Binned(), ("age", "")),
        PlanPart(events.Categorical(), ("job", "zip")),
        PlanPart(Discriminant(), ("age", ""), scores),
        PlanPart(Discriminant(quadratic=False), ("age", "job"), (scores[0], Indicators.from_column(X["job"], 9))),
        PlanPart(Interaction(((0, 1), (1, 2))), ("age", "job", "zip"), cells),
        PlanPart(Interaction(((0, 1, 2),)), ("age", "job", "zip"), cells),
        PlanPart(PrototypeTerm(), ("age", ""), scores, like),
    )
    return Plan(("age", "job", "zip", ""), parts).with_levels(table)


def models():
    """(name, fitted estimator, rows) of every sort."""
    for name, (event, X) in EVENTS.items():
        for how in ("predictive", "mean"):
            yield f"{name}-{how}", _classifier(event, estimate=how).fit(X, labels_of("str")), X
    for name, (event, prior) in PRIORS.items():
        event, X = EVENTS[event]
        yield f"prior-{name}", _classifier(event, param_priors=prior).fit(X, labels_of("int")), X
    unbiased = cd.GaussianBayes("tied", estimate="mle", param_priors=priors.Unbiased())
    yield "prior-unbiased", unbiased.fit(numbers(), labels_of("str")), numbers()
    with_group = cd.NaiveBayes({("age", "zip"): events.Gaussian(covariance="full")})
    yield "group-and-more", with_group.fit(mixed(), labels_of("str")), mixed()
    X = numbers()
    smoothed = cd.NaiveBayes(events.Gaussian(prior=priors.AddedVariance(1e-3)), estimate="mle")
    yield "prior-added_variance", smoothed.fit(X, labels_of("str")), X
    for kind in ("str", "int", "bool", "float", "odd", "date", "datetime"):
        yield f"labels-{kind}", cd.NaiveBayes().fit(X, labels_of(kind)), X
        yield f"mixed-{kind}", cd.NaiveBayes().fit(mixed(), labels_of(kind)), mixed()
    y = labels_of("str")
    yield "voices", cd.BayesClassifier(like=plan_with_terms(mixed())).fit(mixed(), y), mixed()
    prior = {"apple": 0.2, "bee": 0.3, "cat": 0.5}
    yield "class-shares", cd.NaiveBayes(class_prior=prior).fit(X, y), X
    yield "class-list", cd.NaiveBayes(class_prior=[0.2, 0.3, 0.5]).fit(X, y), X
    yield "class-dirichlet", cd.NaiveBayes(class_prior=priors.Dirichlet(2.0), estimate="map").fit(X, y), X
    by_name = cd.NaiveBayes(
        estimate={"gaussian": "mean"}, param_priors={"gaussian": "jeffreys", "categorical": priors.Dirichlet(0.3)}
    )
    yield "by-name", by_name.fit(mixed(), y), mixed()
    spam = ["Free prize, call now", "See you at five", "free CALL é", "", None, "🙂 five words"] * 10
    for name, settings in TEXTS.items():
        yield f"text-{name}", cd.TextNB(**settings, weights=None).fit(spam, y), spam
    yield "text-weights", cd.TextNB().fit(spam, y), spam
    both = {**mixed(), "words": np.array(spam, object)}
    yield "text-and-more", cd.NaiveBayes({"words": events.Text()}).fit(both, y), both
    wide = _rng(6).poisson(0.2, (N, 100)).astype(float)
    long = tuple(np.linspace(0.1, 2.0, 100))
    yield "long-prior", cd.NaiveBayes("multinomial", param_priors=priors.Dirichlet(long)).fit(wide, y), wide


MODELS = {name: (model, X) for name, model, X in models()}
