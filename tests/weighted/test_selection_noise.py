"""Noise: the default model admits no interactions where there are none, and predicts hardly worse than the prior."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import candide as cd
from candide.weighted.score_test import score_test_p_value
from candide.weighted.terms.interaction import score_sets, select_interactions


def noise(n_rows: int, n_columns: int, kind: str, shares: tuple[float, ...], seed: int):
    """A table without any signal, and the class of each row."""
    rng = np.random.default_rng([n_rows, n_columns, seed])
    if kind == "numbers":
        values = rng.normal(size=(n_rows, n_columns))
    else:
        values = np.array(list("abcde"), object)[rng.integers(0, 5, (n_rows, n_columns))]
    return pd.DataFrame(values).add_prefix("x"), rng.choice(len(shares), n_rows, p=shares)


def interactions(model: cd.BayesClassifier) -> list[tuple[str, ...]]:
    parts = [part for part in model.fitted_.plan.parts if part.event.name == "interaction"]
    return [columns for part in parts for columns in part.event.term_names(part.columns)]


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "kind", "shares", "tables"),
    [
        (100, 20, "numbers", (1 / 3, 1 / 3, 1 / 3), 16),
        (300, 30, "numbers", (0.9, 0.1), 8),
        (100, 20, "levels", (0.5, 0.5), 8),
    ],
)
def test_noise_has_no_interactions(n_rows, n_columns, kind, shares, tables):
    found = [
        bool(interactions(cd.BayesClassifier().fit(*noise(n_rows, n_columns, kind, shares, seed))))
        for seed in range(tables)
    ]
    assert sum(found) <= 1


@pytest.mark.parametrize(("kind", "shares"), [("levels", (1 / 3, 1 / 3, 1 / 3)), ("numbers", (0.5, 0.5))])
def test_noise_of_many_columns_is_predicted_by_the_class_prior(kind, shares):
    excess = []
    for seed in range(4):
        X, y = noise(1100, 200, kind, shares, seed)
        p = cd.BayesClassifier().fit(X[:100], y[:100]).predict_proba(X[100:])
        prior = np.bincount(y[:100]) / 100
        excess.append(float(np.mean(np.log(prior[y[100:]]) - np.log(p[np.arange(1000), y[100:]]))))
    assert np.mean(excess) < 0.01
    assert max(excess) < 0.03


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "kind", "shares", "seed"),
    [
        (100, 20, "levels", (0.9, 0.1), 0),  # a column of noise with a chi-square of 17 on 4 degrees of freedom
        (300, 50, "numbers", (0.5, 0.5), 13),  # two pairs pass the score test
        (100, 200, "numbers", (0.5, 0.5), 18),  # three columns of 200 have a cut
        (100, 200, "numbers", (1 / 3, 1 / 3, 1 / 3), 22),
    ],
)
def test_even_the_worst_of_many_tables_of_noise_is_predicted_about_as_by_the_class_prior(
    n_rows, n_columns, kind, shares, seed
):
    """These tables of `benchmarks/honesty_noise.py` cost .11 to .16 before the score was shrunk."""
    n = n_rows + 4000
    rng = np.random.default_rng([n, n_columns, ("numbers", "levels").index(kind), len(shares), seed])
    if kind == "numbers":
        values = rng.normal(size=(n, n_columns))
    else:
        values = np.array(list("abcde"), object)[rng.integers(0, 5, (n, n_columns))]
    X, y = pd.DataFrame(values).add_prefix("x"), rng.choice(len(shares), n, p=shares)
    p = cd.BayesClassifier().fit(X[:n_rows], y[:n_rows]).predict_proba(X[n_rows:])
    prior = np.bincount(y[:n_rows]) / n_rows
    assert np.mean(np.log(prior[y[n_rows:]]) - np.log(p[np.arange(4000), y[n_rows:]])) < 0.1


def test_weak_but_clear_signal_is_kept():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4300, 100))).add_prefix("x")
    y = (rng.random(4300) < 1 / (1 + np.exp(-X.to_numpy()[:, :3] @ [1.0, -1.0, 1.0]))).astype(int)
    p = cd.BayesClassifier().fit(X[:300], y[:300]).predict_proba(X[300:])[np.arange(4000), y[300:]]
    assert -np.log(p).mean() < 0.605


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_the_tail_of_the_score_test_holds_for_noise(shares):
    rng, sets = np.random.default_rng(0), np.array(list(combinations(range(30), 2)))
    z = []
    for _ in range(10):
        codes, y = rng.integers(0, 8, (300, 30)), rng.choice(len(shares), 300, p=shares)
        p = np.broadcast_to(np.bincount(y) / 300, (300, len(shares))).copy()
        z.append(score_sets(sets, codes, np.full(30, 8), y, p))
    probability = score_test_p_value(np.concatenate(z), np.array(4.0 * 49 * (len(shares) - 1)))
    assert 0.2 < (probability < 0.05).mean() / 0.05 < 1.6
    assert (probability < 0.002).mean() / 0.002 < 2.5  # a normal tail is off by a factor of ten


def test_real_interactions_are_found_among_noise():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (3000, 52)).astype(str)).add_prefix("x")
    y = (X["x7"] != X["x30"]).to_numpy() ^ (rng.random(3000) < 0.1)
    model = cd.BayesClassifier().fit(X[:1000], y[:1000])
    assert ("x7", "x30") in interactions(model)
    p = model.predict_proba(X[1000:])[np.arange(2000), y[1000:].astype(int)]
    assert -np.log(p).mean() < 0.40


def test_frequencies_and_the_order_of_rows_and_columns():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (400, 5))
    y = np.where(rng.random(400) < 0.8, codes[:, 1] == codes[:, 3], rng.random(400) < 0.5).astype(int)
    p, sets, sizes = np.full((400, 2), 0.5), tuple(combinations(range(5), 2)), (3,) * 5
    assert select_interactions(sets, codes, sizes, y, p, max_sets=9) == ((1, 3),)
    assert select_interactions(sets, codes, sizes, y, p, np.ones(400), max_sets=9) == ((1, 3),)
    backwards = codes[::-1, ::-1].copy()
    assert select_interactions(sets, backwards, sizes, y[::-1].copy(), p, max_sets=9) == ((1, 3),)
    assert select_interactions(sets, codes, sizes, 1 - y, p, max_sets=9) == ((1, 3),)
    seldom = np.full(400, 0.02)  # as many rows as eight
    assert select_interactions(sets, codes, sizes, y, p, seldom, max_sets=9) == ()
