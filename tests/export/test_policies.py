"""The label of an exported model is what ``predict`` says: by costs, a threshold, other shares, or left open."""

import numpy as np
import pytest
from tests.export.scorers import SCORERS, check, rows_of

import candide as cd

COSTS = {("b", "a"): 5, ("c", "a"): 2.5, ("a", "b"): 0.5, ("c", "c"): -0.25}
POLICIES = {
    "costs": {"costs": COSTS},
    "costs and abstain_cost": {"costs": COSTS, "abstain_cost": 0.3},
    "abstain_cost": {"abstain_cost": 0.4},
    "threshold": {"threshold": 0.2, "positive": "b"},
    "threshold never": {"threshold": 1.0, "positive": "b"},
    "threshold always": {"threshold": 0.0, "positive": "c"},
    "abstain": {"abstain_below": 0.7},
    "abstain never": {"abstain_below": 0.0},
    "threshold and abstain": {"threshold": 0.1, "positive": "c", "abstain_below": 0.5},
    "shares": {"class_prior": {"a": 0.7, "b": 0.3, "c": 0.0}},
    "shares and costs": {"class_prior": "uniform", "costs": COSTS},
}


def rows(classes, n=400):
    rng = np.random.default_rng(3)
    y = rng.integers(0, len(classes), n)
    x = rng.normal(y[:, None], 1.2, (n, 2))
    return {"x": x[:, 0], "y": np.where(rng.random(n) < 0.1, np.nan, x[:, 1])}, np.array(list(classes))[y]


@pytest.fixture(params=SCORERS)
def same(request, tmp_path):
    def of(model, data):
        check(SCORERS[request.param](model.fitted_, rows_of(data, model.fitted_.plan.columns), tmp_path), model, data)

    return of


@pytest.mark.parametrize("name", POLICIES)
def test_the_label_is_what_the_policy_gives(same, name):
    X, y = rows("abc")
    model = cd.NaiveBayes().fit(X, y).with_policy(**POLICIES[name])
    plain = cd.NaiveBayes().fit(X, y).predict(X)
    assert name in ("threshold never", "abstain never") or (model.predict(X) != plain).any()
    same(model, X)


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_calibrated_probabilities_are_adapted_to_another_prior(same, classes):
    X, y = rows(classes)
    model = cd.BayesClassifier(calibration="isotonic").fit(X, y)
    shares = {"a": 0.8, "b": 0.15, "c": 0.05} if "c" in classes else {"a": 0.9, "b": 0.1}
    same(model.with_policy(class_prior=shares), X)
    same(model.with_policy(class_prior="uniform", threshold=0.3, positive="b"), X)
