"""scikit-learn's own tests of its naive Bayes classes, run on the drop-ins.

The installed ``sklearn/tests/test_naive_bayes.py`` is executed with the five names replaced, and its tests are
collected here. What is left out is named below with the reason, which docs/explanation/differences-from-scikit-learn.md
gives at length; a test named there that no longer exists is an error.
"""

import importlib.util

import numpy as np
import pytest
import sklearn.naive_bayes

import candide

NAMES = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
EXCLUDED = {
    "test_gnb_check_update_with_no_data": "calls the private GaussianNB._update_mean_variance, which tallies replace",
    "test_gnb_array_api_compliance": "NumPy arrays only: no array API namespaces, devices or float32 results",
}
FLOAT64_ONLY = "test_gnb_partial_fit"  # with float32 rows it asks for float32 attributes; the state here is float64


def _suite() -> dict:
    """The namespace of scikit-learn's test module with the drop-ins in it."""
    spec = importlib.util.find_spec("sklearn.tests.test_naive_bayes")
    if spec is None:
        pytest.skip("the installed scikit-learn ships no tests", allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            patch.setattr(sklearn.naive_bayes, name, getattr(candide, name))
        spec.loader.exec_module(module)
    return vars(module)


_NAMESPACE = _suite()
_TESTS = {name: test for name, test in _NAMESPACE.items() if name.startswith("test_") and callable(test)}
globals().update({name: test for name, test in _TESTS.items() if name not in EXCLUDED})


@pytest.fixture(params=[0, 42])
def global_random_seed(request):
    return request.param


@pytest.fixture
def global_dtype():
    return np.float64


def test_drop_ins_are_what_is_tested():
    assert all(_NAMESPACE[name] is getattr(candide, name) for name in NAMES)


def test_exclusions_exist_and_are_few():
    assert {*EXCLUDED, FLOAT64_ONLY} <= _TESTS.keys()
    assert len(EXCLUDED) + 1 <= 5
    assert len(_TESTS) >= 30
