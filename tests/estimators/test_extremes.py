"""Numbers and weights at the ends of what a float holds: a finite answer, which files keep, or a clear error."""

import warnings

import numpy as np
import pytest

import candide as cd
from candide import store
from candide.errors import InputError

N = 200


def rows(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return {
        "a": np.clip(rng.normal(size=N) + y, -1, 2) / 2,
        "b": rng.normal(size=N) - y,
        "c": np.array([*"uvwx"], object)[(rng.integers(0, 3, N) + y) % 4],
    }, y


def checked(model, X):
    """The probabilities of a model, which its files and its explanations have as well."""
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for detail in ("tally", "score"):
        again = store.loads(store.dumps(model.fitted_, detail=detail))
        np.testing.assert_allclose(again.posterior(X), p, rtol=1e-12)
    odds = np.diff(np.sort(model.predict_log_proba(X), axis=1), axis=1).ravel()
    for decision, whole in zip(model.explain(X), odds, strict=True):
        np.testing.assert_allclose(
            decision.class_prior + sum(c.log_odds for c in decision.contributions), whole, atol=1e-9
        )
    return p


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e150, 1e300, -1e300, 1.7e308])
@pytest.mark.parametrize("some", [slice(None), slice(5, 6)], ids=["all", "one"])
def test_numbers_of_any_size(scale, some):
    X, y = rows()
    usual = checked(cd.BayesClassifier().fit(X, y), X)
    X["a"][some] = X["a"][some] * scale if some == slice(None) else scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cd.BayesClassifier().fit(X, y)
        p = checked(model, X)
        model.sample(9, random_state=0)
        assert len(model.terms_)
    if some == slice(None) and 1e-300 <= scale <= 1e300:  # ranks are all that counts of a number
        np.testing.assert_allclose(p, usual, atol=1e-6)


def test_numbers_farther_apart_than_a_float_reaches():
    X, y = rows()
    X["a"] = np.where(y == 0, 1.79e308, -1.79e308)
    X["a"][:20] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (checked(cd.BayesClassifier().fit(X, y), X).argmax(axis=1) == y)[20:].all()


@pytest.mark.parametrize("kind", [cd.NaiveBayes, cd.BayesClassifier])
def test_row_weights_may_be_tiny_or_large(kind):
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heavy = [checked(kind().fit(X, y, np.full(N, weight)), X) for weight in (1e9, 1e12, 1e140)]
        warnings.filterwarnings("ignore", message="row weights have a mean")
        for weight in (1e-9, 1e-300, 5e-324):
            checked(kind().fit(X, y, np.full(N, weight)), X)
    if kind is cd.NaiveBayes:  # the prior has no say beside so many rows, however many
        np.testing.assert_allclose(heavy[1], heavy[0], atol=1e-6)
        np.testing.assert_allclose(heavy[2], heavy[0], atol=1e-6)


@pytest.mark.parametrize("kind", [cd.NaiveBayes, cd.BayesClassifier, cd.CategoricalNB])
@pytest.mark.parametrize("weight", [1e149, 1e300, 1e305])
def test_too_large_row_weights_are_refused(kind, weight):
    X, y = rows()
    X = X if kind is not cd.CategoricalNB else np.unique(X["c"], return_inverse=True)[1][:, None]
    with pytest.raises(InputError) as caught:
        kind().fit(X, y, np.full(N, weight))
    assert caught.value.remedy


def test_whole_numbers_too_long_for_a_float_are_levels():
    long = np.array([10**400, 7, 10**400 + 1, 7] * 30, object)
    y = np.array(["a", "b", "a", "b"] * 30)
    for kind in (cd.NaiveBayes, cd.BayesClassifier):
        model = kind().fit({"x": long}, y)
        assert model.score({"x": long}, y) == 1
        assert (cd.fit({"x": long, "y": y}, "y").predict({"x": long}) == y).all()


@pytest.mark.parametrize("kind", [cd.NaiveBayes, cd.BayesClassifier, cd.GaussianNB, cd.GaussianBayes])
def test_whole_numbers_too_long_for_a_float_are_not_numbers(kind):
    X, y = np.column_stack([rows()[0]["b"], rows()[0]["a"]]), rows()[1]
    model, long = kind().fit(X, y), np.array([[0.5, 10**400]], object)
    with pytest.raises(InputError) as caught:
        model.predict(long)
    assert (caught.value.row, caught.value.value) in ((0, 10**400), (None, None))
    with pytest.raises(InputError):
        kind().fit(X, y, [10**400] * N)


@pytest.mark.parametrize("estimate", ["predictive", "mean", "map", "mle"])
@pytest.mark.parametrize("event", ["negativebinomial", "poisson"])
@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-310, 1e-300, 1e-160])
@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
def test_counts_next_to_nothing_have_probabilities(event, estimate, tiny):
    y = np.array(["a", "b"] * 20)
    for v in (np.tile([0.0, tiny], 20), np.tile([0.0, 0.0, tiny, tiny], 10), np.repeat([0.0, tiny], 20)):
        model = cd.NaiveBayes(events={"v": event}, estimate=estimate).fit({"v": v}, y)
        rows = {"v": np.array([0.0, tiny, 1.0, 3e5])}
        p = model.predict_proba(rows)
        assert np.isfinite(p).all()
        scorer = {}
        exec(model.export("python"), scorer)
        for x, expected in zip(rows["v"].tolist(), p, strict=True):
            assert scorer["score"]({"v": x})["probabilities"] == pytest.approx(expected, abs=1e-9)
