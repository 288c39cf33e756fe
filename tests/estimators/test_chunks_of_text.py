"""Numbers and dates written as text: partial_fit in chunks reads them as fit does."""

import pickle

import numpy as np
import pandas as pd
import pytest

import candide as cd

pytestmark = pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
N = 154


def _german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def _frame(seed=0):
    """Columns that write numbers and dates as people do; in the first rows some could be read in another way."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(7, 0.8, N)
    days = pd.to_datetime("2021-01-01") + pd.to_timedelta((x % 900).astype(int), "D")
    early = pd.to_datetime("2021-02-01") + pd.to_timedelta(np.where(np.arange(N) < 80, x % 9, x % 900).astype(int), "D")
    columns = {
        "money": [f"$ {v:,.2f}" for v in x],
        "percent": [f"{v / 100:.1f}%" for v in x],
        "comma": [_german(v) for v in x],
        "day_first": days.strftime("%d/%m/%Y"),
        "late_day": early.strftime("%d/%m/%Y"),  # a day after the 12th comes after the first chunks
        "iso": days.strftime("%Y-%m-%d"),
        "plain": [f"{v:.2f}" for v in x],
        "gaps": ["n/a" if i % 50 == 49 else f"{v:,.1f}" for i, v in enumerate(x)],
        "late_start": [None if i < 80 else f"{v:.1f}%" for i, v in enumerate(x)],
        "late_words": [f"{v:.1f}" if i < 80 else f"about {v // 900:.0f}" for i, v in enumerate(x)],
        "code": [f"{v % 40:05.0f}" for v in x],
    }
    return pd.DataFrame(columns), np.where(x + rng.normal(0, 300, N) > 1100, "high", "low")


def _in_chunks(model, frame, y, size):
    for start in range(0, len(y), size):
        model.partial_fit(frame[start : start + size], y[start : start + size])
    return model


def _assert_equal(model, fitted, frame):
    assert (model.fitted_.text_formats, model.fitted_.dates) == (fitted.fitted_.text_formats, fitted.fitted_.dates)
    events = [{c: part.event for part in m.counts_.plan.parts for c in part.columns} for m in (model, fitted)]
    assert events[0] == events[1]
    scores = model.predict_joint_log_proba(frame), fitted.predict_joint_log_proba(frame)
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("size", "dtype"), [(1, object), (7, object), (7, "string[pyarrow]"), (77, object)])
def test_formats_of_chunks_are_those_of_fit(size, dtype):
    frame, y = _frame()
    frame = frame.astype(dtype)
    fitted = cd.NaiveBayes().fit(frame, y)
    assert {"money", "percent", "comma", "day_first", "late_day", "gaps", "late_start"} == set(
        fitted.fitted_.text_formats
    )
    _assert_equal(_in_chunks(cd.NaiveBayes(), frame, y, size), fitted, frame)


@pytest.mark.parametrize("size", [1, 7, 77])
def test_formats_of_declared_numbers_are_those_of_fit(size):
    frame, y = _frame()
    frame = frame[["money", "comma", "late_day", "gaps", "late_start"]]
    for events in ("gaussian", dict.fromkeys(frame, "gaussian")):
        fitted = cd.NaiveBayes(events).fit(frame, y)
        _assert_equal(_in_chunks(cd.NaiveBayes(events), frame, y, size), fitted, frame)


def test_categories_are_not_read_as_numbers_in_later_chunks():
    frame, y = _frame()
    frame = pd.DataFrame({"price": pd.Categorical(frame["money"].str[:4]), "percent": frame["percent"]})
    events = {"percent": "categorical"}
    model, fitted = _in_chunks(cd.NaiveBayes(events), frame, y, 50), cd.NaiveBayes(events).fit(frame, y)
    assert not fitted.fitted_.text_formats
    _assert_equal(model, fitted, frame)


def test_formats_stay_when_the_first_rows_are_gone():
    frame, y = _frame()
    frame = frame[["money", "day_first"]]
    first = cd.NaiveBayes().partial_fit(frame[:100], y[:100])
    model = pickle.loads(pickle.dumps(first)).partial_fit(frame[100:], y[100:])
    _assert_equal(model, cd.NaiveBayes().fit(frame, y), frame)


def test_weighted_models_read_later_chunks_as_the_first():
    frame, y = _frame()
    frame = frame[["money", "percent", "comma", "day_first", "plain"]]
    first = cd.BayesClassifier(terms="columns").fit(frame[:77], y[:77])
    whole = cd.BayesClassifier(terms="columns", like=first).fit(frame, y)
    for size in (7, 77):
        model = cd.BayesClassifier(terms="columns").partial_fit(frame[:77], y[:77])
        _in_chunks(model, frame[77:], y[77:], size)
        assert model.fitted_.text_formats == whole.fitted_.text_formats
        for mine, other in zip(model.counts_.tallies, whole.counts_.tallies, strict=True):
            for name, array in mine.arrays().items():
                np.testing.assert_allclose(array, other.arrays()[name], rtol=1e-9, atol=1e-9)


def test_text_is_read_where_the_first_value_is_missing():
    frame, y = _frame()
    model = cd.NaiveBayes().fit(frame[["money"]], y)
    rows = pd.DataFrame({"money": [None, *frame["money"][1:]]}, dtype=object)
    np.testing.assert_array_equal(model.predict_proba(rows)[1:], model.predict_proba(frame[["money"]])[1:])
