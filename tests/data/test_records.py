"""A list of dictionaries is a table; names of several levels, complex numbers and no event model have clear errors."""

import numpy as np
import pandas as pd
import pytest

import candide as cd
from candide.errors import InputTypeError

N = 40
Y = ["a", "b"] * (N // 2)
ROWS = [{"x": float(i * i % 7), "job": "uv"[i % 2]} for i in range(N)]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
ESTIMATORS = [cd.NaiveBayes, cd.BayesClassifier]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_dictionaries_are_rows(estimator):
    model, expected = estimator().fit(ROWS, Y), estimator().fit(COLUMNS, Y)
    assert (model.predict_proba(ROWS) == expected.predict_proba(COLUMNS)).all()
    assert list(model.feature_names_in_) == ["x", "job"]
    gaps = {"x": [None, 2.0], "job": ["u", None]}
    assert (model.predict_proba([{"job": "u"}, {"x": 2.0}]) == expected.predict_proba(gaps)).all()


@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_dictionaries_are_a_source(model):
    rows = [{**row, "y": label} for row, label in zip(ROWS, Y, strict=True)]
    found, expected = (cd.fit(data, target="y", model=model) for data in (rows, {**COLUMNS, "y": Y}))
    assert (found.predict_proba(ROWS) == expected.predict_proba(COLUMNS)).all()
    assert found.predict_table(ROWS).equals(expected.predict_table(COLUMNS))


def test_a_row_that_is_not_a_dictionary_is_named():
    with pytest.raises(InputTypeError) as error:
        cd.NaiveBayes().fit([*ROWS[:-1], [1.0, "u"]], Y)
    assert error.value.row == N - 1


def of_frame(frame):
    cd.fit(frame.assign(y=Y), target="y")


WAYS = [lambda frame: cd.NaiveBayes().fit(frame, Y), lambda frame: cd.BayesClassifier().fit(frame, Y), of_frame]


@pytest.mark.parametrize("fit", WAYS)
def test_columns_of_several_levels_are_refused(fit):
    columns = pd.MultiIndex.from_tuples([("size", "x"), ("size", "y")])
    with pytest.raises(InputTypeError, match="one name") as error:
        fit(pd.DataFrame(np.arange(2.0 * N).reshape(N, 2), columns=columns))
    assert error.value.value == ("size", "x")


@pytest.mark.parametrize("fit", WAYS)
@pytest.mark.parametrize("held", [np.array, list], ids=["complex128", "objects"])
def test_complex_numbers_are_refused(fit, held):
    column = held([1j, 2.0] * (N // 2))
    if held is list and fit is of_frame:
        column = np.array(column)
    for data in (pd.DataFrame({"x": range(N), "c": column}),):
        with pytest.raises(InputTypeError, match="complex") as error:
            fit(data)
        assert error.value.column == "c"


def test_complex_numbers_in_memory_are_refused():
    for column in (np.full(N, 1j), [1j] * N, np.array([1j] * N, object)):
        with pytest.raises(InputTypeError, match="complex") as error:
            cd.NaiveBayes().fit({"x": ROWS[0]["x"] + np.arange(N), "c": column}, Y)
        assert error.value.column == "c"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_event_model_is_named_in_the_error(estimator):
    for events in (None, {"x": None}):
        with pytest.raises(InputTypeError, match=r"got None; .*'auto'"):
            estimator(events=events).fit(COLUMNS, Y)
    with pytest.raises(InputTypeError, match="got None"):
        cd.fit({**COLUMNS, "y": Y}, target="y", events=None)
