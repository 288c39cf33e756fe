"""Labels that are a quantity or an identifier: one rule and one message for cd.fit and the estimators."""

import numpy as np
import pytest

import candide as cd
from candide.data.notes import DataWarning
from candide.errors import InputError
from candide.fit_source import fit_model

N = 1500
X = {"a": np.random.default_rng(0).normal(size=N)}
Y = np.arange(N) * 7 % 1201  # 1,201 different whole numbers
MESSAGE = "1,201 different values in the first 1,500 rows: an identifier or a quantity, not a class"
LABELS = {"integers": Y, "floats": Y.astype(float), "text": Y.astype(str), "objects": Y.astype(object)}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("make", [cd.BayesClassifier, cd.NaiveBayes, cd.GaussianBayes])
def test_estimators_refuse_a_quantity(make, y):
    for verb in (make().fit, make().partial_fit):
        with pytest.raises(InputError, match=MESSAGE) as caught:
            verb(np.column_stack([X["a"], X["a"] ** 2]), y)
        assert caught.value.value == 1201
        assert "partial_fit(X, y, classes=...)" in caught.value.remedy


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_fit_of_a_table_refuses_the_same(model, y):
    with pytest.raises(InputError, match=MESSAGE) as caught:
        cd.fit({**X, "y": y}, target="y", model=model)
    assert (caught.value.column, caught.value.value) == ("y", 1201)


def test_text_refuses_the_same():
    with pytest.raises(InputError, match=MESSAGE):
        cd.TextNB().fit([f"word {i % 9}" for i in range(N)], Y)


def test_dropins_warn_and_stay_as_scikit_learn_is():
    from sklearn.naive_bayes import GaussianNB

    rows = X["a"][:, None]
    with pytest.warns(DataWarning, match=MESSAGE):
        ours = cd.GaussianNB().fit(rows, Y)
    np.testing.assert_allclose(ours.predict_proba(rows[:9]), GaussianNB().fit(rows, Y).predict_proba(rows[:9]))


def test_declared_classes_are_taken():
    model = cd.NaiveBayes().partial_fit(X, Y, classes=np.arange(1201)).partial_fit(X, Y)
    assert len(model.classes_) == 1201


def test_whole_numbers_are_classes_however_they_are_held():
    y = np.arange(300) % 26  # more than the fractions that may be classes
    for values in (y, y.astype(float), y.astype(str)):
        learned = fit_model({"a": X["a"][:300], "y": values}, "y", model="naive")
        assert len(learned.fitted.labels) == 26
        assert not [one for one in learned.notes if one.code == "label-measurement"]


def test_fractions_are_a_quantity_from_fewer_on():
    with pytest.raises(InputError, match="not a class"):
        cd.fit({**X, "y": np.round(np.arange(N) % 30 / 7, 3)}, target="y")


@pytest.mark.parametrize("make", [cd.NaiveBayes, cd.BayesClassifier, cd.GaussianBayes, cd.TextNB])
def test_weights_that_leave_one_class_are_an_error(make):
    X = ["a word", "more words", "a text"] * 20 if make is cd.TextNB else np.arange(120.0).reshape(60, 2) % 7
    y, weight = np.array(["a", "b", "c"] * 20), np.tile([1.0, 0.0, 0.0], 20)
    with pytest.raises(InputError, match="one class only, 'a'"):
        make().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_a_weight_column_that_leaves_one_class_is_an_error(model):
    rows = {"x": np.arange(60.0) % 7, "w": np.tile([0.0, 1.0], 30), "y": ["a", "b"] * 30}
    with pytest.raises(InputError, match="one class only, 'b', with a weight above 0"):
        cd.fit(rows, target="y", weight="w", model=model)
