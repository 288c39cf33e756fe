"""Models that one process pickles and another reads: ``python -m tests.estimators.pickled write|read PATH...``."""

import pickle
import sys

import numpy as np

import candide as cd


def xor(n=600):
    """Rows that need a pair of columns, a discriminant and prototypes."""
    rng = np.random.default_rng(0)
    a, b, noise = rng.integers(0, 2, (3, n))
    X = np.column_stack([a, b, noise, rng.normal(size=(n, 3)) + (a ^ b)[:, None]])
    return X.astype(float), np.where(a ^ b, "yes", "no")


def documents(n=200):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    return [" ".join(rng.choice(list("abcdef" if c else "efghij"), 6)) for c in y], y


ROWS = {"pairs": xor, "text": documents}
MAKE = {"pairs": cd.BayesClassifier, "text": cd.TextNB}


def write(path):
    """Pickle models that have predicted and explained, with what they predict."""
    models = {name: MAKE[name]().fit(*rows()) for name, rows in ROWS.items()}
    found = predictions(models)
    with open(path, "wb") as file:
        pickle.dump((models, found), file)


def predictions(models):
    out = {name: model.predict_proba(ROWS[name]()[0]) for name, model in models.items()}
    for name, model in models.items():
        model.explain(ROWS[name]()[0][:2])
    return out


def read(path):
    """Check that a pickle predicts here what it predicted where it was written."""
    with open(path, "rb") as file:
        models, known = pickle.load(file)
    for name, found in predictions(models).items():
        np.testing.assert_allclose(found, known[name], rtol=0, atol=1e-9)


if __name__ == "__main__":
    for path in sys.argv[2:]:
        write(path) if sys.argv[1] == "write" else read(path)
