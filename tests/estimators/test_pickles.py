"""Every estimator is pickled and copied in every state, and a pickle is read under any kernels."""

import copy
import os
import pickle
import subprocess
import sys
from functools import cache

import joblib
import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.estimators.pickled import MAKE, ROWS, xor
from tests.model_cases import MODELS

import candide as cd
from candide import kernels

COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
KERNELS = ["numpy", "baseline", *(["avx2"] if kernels.NAME == "avx2" else [])]


NAMES = ("pairs", "text", "GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB")


@cache
def fitted(name):
    if name in MAKE:
        X, y = ROWS[name]()
        return MAKE[name]().fit(X, y), X, y
    X, y = xor()
    amounts = np.abs(X).astype(int)
    return getattr(cd, name)().fit(amounts, y), amounts, y


def check_copies(model, X):
    wanted = model.predict_proba(X)
    for how, again in COPIES.items():
        np.testing.assert_array_equal(again(model).predict_proba(X), wanted, err_msg=how)


@pytest.mark.parametrize("name", NAMES)
def test_every_state_is_copied(name, tmp_path):
    model, X, y = fitted(name)
    check_copies(model, X)  # after fit; and after predict, for it compares predictions
    model.explain(X[:3])
    check_copies(model, X)
    for detail in ("tally", "explain", "score"):
        model.save(tmp_path / detail, detail=detail)
        loaded = cd.load(tmp_path / detail)
        pickle.loads(pickle.dumps(loaded)).predict(X)
        check_copies(loaded, X)
    check_copies(copy.deepcopy(model).partial_fit(X[:50], y[:50]), X)
    check_copies(model + model, X)
    joblib.dump(model, tmp_path / "m.joblib", compress=1)
    np.testing.assert_array_equal(joblib.load(tmp_path / "m.joblib").predict_proba(X), model.predict_proba(X))


def test_the_pair_is_there():
    """Else the first case shows nothing."""
    model, _, _ = fitted("pairs")
    assert any(part.event.name == "interaction" for part in model.fitted_.plan.parts)


@pytest.mark.parametrize("name", MODELS)
def test_every_event_model_is_copied_after_predict(name):
    model, X = MODELS[name]
    model.predict(X)
    check_copies(model, X)


def test_other_processes_take_a_model_that_has_predicted():
    model, X, y = fitted("pairs")
    model.predict(X)
    one, two = (permutation_importance(model, X, y, n_repeats=2, n_jobs=n, random_state=0) for n in (1, 2))
    np.testing.assert_allclose(one.importances, two.importances)
    pipeline = make_pipeline(FunctionTransformer(), cd.BayesClassifier()).fit(X, y)
    assert (pipeline.predict(X) == y).mean() > 0.9
    np.testing.assert_array_equal(COPIES["pickle"](pipeline).predict_proba(X), pipeline.predict_proba(X))


@pytest.mark.all_cases
def test_a_pickle_is_read_under_other_kernels(tmp_path):
    paths = [str(tmp_path / name) for name in KERNELS]

    def run(name, *words):
        env = os.environ | {"CANDIDE_KERNELS": name}
        subprocess.run([sys.executable, "-m", "tests.estimators.pickled", *words], env=env, check=True)

    for name, path in zip(KERNELS, paths, strict=True):
        run(name, "write", path)
    for name in KERNELS:
        run(name, "read", *paths)
