"""Models to serve: of every kind of block, made once."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.serve import app

LAWS = {"height": "binned", "age": "negativebinomial", "wet": "bernoulli", "site": "categorical", "soil": "categorical"}


def table(n=400, seed=0):
    """A mixed table with gaps, whose columns tell the class together and alone."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["oak", "elm", "yew"], n)
    height = rng.normal(10, 3, n) + 4 * (kind == "oak")
    rows = {"height": height.round(2), "age": rng.integers(1, 90, n), "soil": rng.choice(["clay", "sand"], n)}
    rows |= {"wet": rng.integers(0, 2, n), "site": rng.choice([f"s{i}" for i in range(9)], n), "kind": kind}
    columns = {name: column.tolist() for name, column in rows.items()}
    for name in ("height", "soil", "wet"):
        columns[name] = [None if rng.random() < 0.05 else value for value in columns[name]]
    y = np.where(height + 6 * (rows["soil"] == "clay") + 3 * (rows["wet"] == 1) > 13, "cut", "stay").tolist()
    return columns, y


def documents():
    texts = ["the rain in spring", "rain and wind", "sun over sand", "warm sun and sand"] * 6
    return {"text": texts, "year": [1.0, 2.0, 8.0, 9.0] * 6}, ["wet", "wet", "dry", "dry"] * 6


@pytest.fixture(scope="session")
def models():
    X, y = table()
    numbers = np.random.default_rng(1).normal(size=(200, 3))
    texts, labels = documents()
    naive = cd.NaiveBayes().fit(X, y).fitted_
    return {
        "naive": naive,
        "bayes": cd.BayesClassifier().fit(X, y).fitted_,
        "laws": cd.NaiveBayes(events=LAWS).fit(X, y).fitted_,
        "decides": naive.with_policy(cd.Policy(abstain_below=0.9)),
        "numbers": cd.GaussianBayes().fit(numbers, (numbers.sum(axis=1) > 0).astype(int)).fitted_,
        "documents": cd.NaiveBayes(events={"text": "text"}).fit(texts, labels).fitted_,
    }


@pytest.fixture
def served(models):
    return app(models["naive"], name="trees")


@pytest.fixture(scope="session")
def naive():
    """A model that is to learn, of 300 rows of :func:`table`."""
    columns, y = table(300, seed=3)
    return replace(cd.NaiveBayes().fit(columns, y).fitted_, target="fate")


@pytest.fixture
def path(tmp_path):
    """Where its journal goes."""
    return tmp_path / "state.db"
