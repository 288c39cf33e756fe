"""scikit-learn's executable contract, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import candide

# Estimator -> check -> why it cannot hold. Empty is the aim.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}

ESTIMATORS = [
    candide.BayesClassifier(),
    candide.BernoulliNB(),
    candide.CategoricalNB(),
    candide.ComplementNB(),
    candide.GaussianBayes(),
    candide.GaussianBayes("tied", "ledoit-wolf"),
    candide.GaussianNB(),
    candide.MultinomialNB(),
    candide.NaiveBayes(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {})
)
def test_contract(estimator, check):
    check(estimator)
