"""Selection: no interactions in noise, those that there are, and predictions of noise close to the class prior."""

import numpy as np
import pandas as pd
import pytest

import candide as cd


def noise(n_rows: int, n_columns: int, kind: str, proportions: tuple[float, ...], seed: int):
    """A table without any signal, and the class of each row."""
    rng = np.random.default_rng([n_rows, n_columns, seed])
    if kind == "numbers":
        values = rng.normal(size=(n_rows, n_columns))
    else:
        values = np.array(list("abcde"), object)[rng.integers(0, 5, (n_rows, n_columns))]
    return pd.DataFrame(values).add_prefix("x"), rng.choice(len(proportions), n_rows, p=proportions)


def interactions(model: cd.BayesClassifier) -> list[tuple[str, ...]]:
    parts = [part for part in model.fitted_.plan.parts if part.event.name == "interaction"]
    return [columns for part in parts for columns in part.event.term_names(part.columns)]


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "kind", "proportions", "tables"),
    [
        (100, 20, "numbers", (1 / 3, 1 / 3, 1 / 3), 16),
        (300, 30, "numbers", (0.9, 0.1), 8),
        (100, 20, "levels", (0.5, 0.5), 8),
    ],
)
def test_noise_has_no_interactions(n_rows, n_columns, kind, proportions, tables):
    found = [
        bool(interactions(cd.BayesClassifier().fit(*noise(n_rows, n_columns, kind, proportions, seed))))
        for seed in range(tables)
    ]
    assert sum(found) <= 1


@pytest.mark.all_cases
@pytest.mark.parametrize(("kind", "proportions"), [("levels", (1 / 3, 1 / 3, 1 / 3)), ("numbers", (0.5, 0.5))])
def test_noise_of_many_columns_is_predicted_by_the_class_prior(kind, proportions):
    excess = []
    for seed in range(4):
        X, y = noise(1100, 200, kind, proportions, seed)
        p = cd.BayesClassifier().fit(X[:100], y[:100]).predict_proba(X[100:])
        prior = np.bincount(y[:100]) / 100
        excess.append(float(np.mean(np.log(prior[y[100:]]) - np.log(p[np.arange(1000), y[100:]]))))
    assert np.mean(excess) < 0.01
    assert max(excess) < 0.03


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "kind", "proportions", "seed"),
    [
        (100, 20, "levels", (0.9, 0.1), 0),  # a column of noise with a chi-square of 17 on 4 degrees of freedom
        (300, 50, "numbers", (0.5, 0.5), 13),  # two pairs pass the score test
        (100, 200, "numbers", (0.5, 0.5), 18),  # three columns of 200 have a cut
        (100, 200, "numbers", (1 / 3, 1 / 3, 1 / 3), 22),
    ],
)
def test_even_the_worst_of_many_tables_of_noise_is_predicted_about_as_by_the_class_prior(
    n_rows, n_columns, kind, proportions, seed
):
    """These tables of `benchmarks/honesty_noise.py` cost .11 to .16 before the score was shrunk."""
    n = n_rows + 4000
    rng = np.random.default_rng([n, n_columns, ("numbers", "levels").index(kind), len(proportions), seed])
    if kind == "numbers":
        values = rng.normal(size=(n, n_columns))
    else:
        values = np.array(list("abcde"), object)[rng.integers(0, 5, (n, n_columns))]
    X, y = pd.DataFrame(values).add_prefix("x"), rng.choice(len(proportions), n, p=proportions)
    p = cd.BayesClassifier().fit(X[:n_rows], y[:n_rows]).predict_proba(X[n_rows:])
    prior = np.bincount(y[:n_rows]) / n_rows
    assert np.mean(np.log(prior[y[n_rows:]]) - np.log(p[np.arange(4000), y[n_rows:]])) < 0.1


def test_weak_but_clear_signal_is_kept():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4300, 100))).add_prefix("x")
    y = (rng.random(4300) < 1 / (1 + np.exp(-X.to_numpy()[:, :3] @ [1.0, -1.0, 1.0]))).astype(int)
    p = cd.BayesClassifier().fit(X[:300], y[:300]).predict_proba(X[300:])[np.arange(4000), y[300:]]
    assert -np.log(p).mean() < 0.605


def test_real_interactions_are_found_among_noise():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (3000, 52)).astype(str)).add_prefix("x")
    y = (X["x7"] != X["x30"]).to_numpy() ^ (rng.random(3000) < 0.1)
    model = cd.BayesClassifier().fit(X[:1000], y[:1000])
    assert ("x7", "x30") in interactions(model)
    p = model.predict_proba(X[1000:])[np.arange(2000), y[1000:].astype(int)]
    assert -np.log(p).mean() < 0.40
