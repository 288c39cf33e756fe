"""Defects of other naive Bayes packages, each a test that must pass here."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm

import candide as cd
from candide.events import Gaussian
from candide.tally import Moments


@pytest.mark.parametrize("scale", [1.0, 1e5, 1e6, 1e8])
def test_1_a_noise_column_in_large_units_does_not_drown_the_informative_one(scale):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = np.column_stack([4 * y + rng.normal(size=4000), scale * rng.normal(size=4000)])
    model = cd.NaiveBayes().fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) >= 0.97  # no rule can do better than .977 on average
    same = cd.NaiveBayes().fit(X[:2000] / [1, scale], y[:2000])
    np.testing.assert_allclose(
        model.predict_proba(X[2000:]), same.predict_proba(X[2000:] / [1, scale]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("events", ["gaussian", "exponential", "poisson", "bernoulli", "categorical", "multinomial"])
@pytest.mark.parametrize("chunks", [1, 3, 50])
def test_2_partial_fit_in_chunks_equals_fit(events, chunks):
    rng = np.random.default_rng(1)
    X, y = rng.poisson(3, (200, 4)).astype(float) + (events == "exponential") * 0.5, rng.integers(0, 4, 200)
    whole = cd.NaiveBayes(events=events).fit(X, y)
    parts = cd.NaiveBayes(events=events)
    for rows in np.array_split(rng.permutation(200), chunks):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)


def test_3_a_class_seen_once_keeps_its_neighbourhood_and_no_more():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(200, 2)), [[9.0, 9.0]]])
    model = cd.NaiveBayes().fit(X, ["A"] * 200 + ["B"])
    assert model.predict([[8.9, 9.0], [0.1, 0.2], [1.0, -1.0]]).tolist() == ["B", "A", "A"]


def test_4_variance_far_from_zero():
    x = 1e9 + np.random.default_rng(3).normal(size=(10_000, 1))
    tally = Moments.from_rows(x, np.zeros(10_000, np.intp), n_classes=1)
    assert tally.m2[0, 0] / 10_000 == pytest.approx(np.var(x - 1e9), rel=1e-6)


@pytest.mark.parametrize("n_features", [5_000, 100_000])
def test_5_many_features_do_not_underflow(n_features):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, n_features)), np.arange(20) % 2
    model = cd.NaiveBayes(events=Gaussian()).fit(X, y)
    joint = model.predict_joint_log_proba(X)
    assert np.isfinite(joint).all()
    assert (joint < -5000).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    words = cd.MultinomialNB().fit(rng.poisson(1.0, (20, n_features)), y)
    assert np.isfinite(words.predict_log_proba(np.ones((1, n_features)))).all()


def test_6_one_nan_in_a_stream_does_not_poison_a_class():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 2)) + np.repeat([[0], [3]], 150, axis=0), np.repeat([0, 1], 150)
    model = cd.NaiveBayes().partial_fit([[np.nan, 0.5]], [0], classes=[0, 1])
    for row, label in zip(X, y, strict=True):
        model.partial_fit([row], [label])
    assert model.score(X, y) > 0.95


def test_7_far_points_are_decided():
    X, y = [[0.0], [1.0], [0.5], [10.0], [11.0], [10.5]], [0, 0, 0, 1, 1, 1]
    mle = cd.NaiveBayes(estimate="mle").fit(X, y)
    log_p = mle.predict_log_proba([[1e6], [-1e6]])
    assert log_p[0, 1] == pytest.approx(0)
    assert log_p[1, 0] == pytest.approx(0)
    variance = np.var([0.0, 1.0, 0.5])
    expected = norm.logpdf(1e6, 0.5, variance**0.5) - norm.logpdf(1e6, 10.5, variance**0.5)
    assert log_p[0, 0] == pytest.approx(expected, rel=1e-9)


def test_8_an_unseen_category_is_finite_and_a_late_one_is_counted():
    model = cd.NaiveBayes().fit({"c": ["a", "a", "b", "b"]}, ["x", "x", "y", "y"])
    p = model.predict_proba({"c": ["new"]})
    np.testing.assert_allclose(p, [[0.5, 0.5]])
    model.partial_fit({"c": ["late"] * 3}, ["y"] * 3)
    levels, counts = model.counts_.plan.parts[0].levels[0].values, model.counts_.tallies[0].counts
    assert levels == ("a", "b", "late")
    assert counts.tolist() == [[2, 0, 0], [0, 2, 3]]


def test_9_a_feature_always_on_in_a_class():
    X, y = np.array([[1, 0], [1, 1], [0, 1], [0, 0]]), [0, 0, 1, 1]
    with np.errstate(all="raise"):
        for estimate in ("mle", "map", "mean", "predictive"):
            p = cd.NaiveBayes(events="bernoulli", estimate=estimate).fit(X, y).predict_proba(X)
            assert np.isfinite(p).all()
        assert np.isfinite(cd.BernoulliNB(alpha=0.0, force_alpha=True).fit(X, y).predict_proba(X)).all()


def frames():
    columns = {
        "size": [1.5, 2.5, None, 4.0, 5.5, 1.0],
        "colour": ["red", None, "blue", "red", "blue", "green"],
        "n": [1, 2, 3, 4, 5, 6],
    }
    return {
        "mapping": columns,
        "pandas": pd.DataFrame(columns),
        "pandas objects": pd.DataFrame(columns, dtype=object),
        "pandas categories": pd.DataFrame(columns).astype({"colour": "category"}),
        "polars": pl.DataFrame(columns),
        "polars categories": pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical)),
        "pyarrow": pa.table(columns),
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_10_the_same_result_from_any_frame(kind):
    y = ["u", "v", "u", "v", "u", "v"]
    expected = cd.NaiveBayes().fit(frames()["mapping"], y)
    model = cd.NaiveBayes().fit(frames()[kind], y)
    np.testing.assert_allclose(
        model.predict_proba(frames()[kind]), expected.predict_proba(frames()["mapping"]), rtol=1e-12
    )
    assert [p.levels for p in model.counts_.plan.parts] == [p.levels for p in expected.counts_.plan.parts]


def test_10_mixed_numbers_and_text_are_one_column_of_text():
    X = np.array([[1, "a"], ["1", "b"], [None, "a"], [2, "b"]], dtype=object)
    model = cd.NaiveBayes().fit(X, ["p", "q", "p", "q"])
    assert model.counts_.plan.parts[0].levels[0].values == ("1", "2")  # as in a file, which cannot tell them apart
    assert np.ptp(model.predict_proba([[1, None], ["1", None]]), axis=0).tolist() == [0.0, 0.0]
