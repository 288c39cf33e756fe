"""Remarks as warnings: once for a line of the user's, in words of Python."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import candide as cd
from candide.data import notes
from candide.data.notes import DataWarning, Note, issue_warnings, replace_options_with_parameters


@pytest.fixture(autouse=True)
def nothing_warned_of(monkeypatch):
    monkeypatch.setattr(notes, "_issued_warnings", set())


def _frame(n=300):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], n)
    return pd.DataFrame({"size": rng.normal(size=n) + (y == "yes"), "code": [f"k{i}" for i in range(n)], "y": y})


def _recorded(action, work):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action, DataWarning)
        work()
    return [one for one in found if one.category is DataWarning]


@pytest.mark.parametrize("make", [cd.NaiveBayes, cd.BayesClassifier])
def test_cross_validation_warns_once_at_the_line_that_asked_for_it(make):
    frame = _frame()

    def work():
        cross_val_score(make(), frame[["size", "code"]], frame["y"], cv=3)

    [one] = _recorded("default", work)
    assert one.filename == __file__
    assert one.message.note.column == "code"
    assert len(_recorded("always", work)) == 3


def test_a_loop_warns_once_and_another_column_again():
    def work():
        for i in range(5):
            with warnings.catch_warnings():  # by which Python forgets what was warned of
                issue_warnings([Note("left-out", f"column {i % 2}: {i} values", column=str(i % 2))], stacklevel=1)

    found = _recorded("default", work)
    assert [one.message.note.column for one in found] == ["0", "1"]
    assert not _recorded("default", work)


def test_a_cell_of_a_notebook_warns_again_when_it_is_run_again():
    names = {"__name__": "__main__", "In": [""], "warn": issue_warnings, "Remark": Note}
    cell = compile("for _ in range(3):\n    warn([Remark('a', 'b')], stacklevel=1)", "cell.py", "exec")
    for _ in range(2):
        names["In"].append("")
        assert len(_recorded("default", lambda: exec(cell, names))) == 1


def test_errors_are_raised_if_they_are_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        for _ in range(2):
            with pytest.raises(DataWarning):
                issue_warnings([Note("left-out", "column 'a' is left out", "a")])


def test_warnings_name_parameters_of_python():
    frame = _frame().assign(const=1, city=["n/a", "x", "y"] * 100)
    found = _recorded("always", lambda: cd.fit(frame, target="y"))
    texts = [str(one.message) for one in found]
    assert any("drop=['const']" in text for text in texts)
    assert any("na=['n/a']" in text for text in texts)
    assert not [text for text in texts if "--" in text]
    assert any("--drop 'const'" in str(one.message.note) for one in found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pass --event my col=text (events={...}) if it holds text", "pass events={'my col': 'text'} if it holds text"),
        ("pass --decimal , (decimal=',')", "pass decimal=','"),
        ("nothing of it", "nothing of it"),
        ("pass --na '-' (na=[...]); or --drop 'a' (drop=[...])", "pass na=['-']; or drop=['a']"),
    ],
)
def test_options_become_parameters(text, told):
    assert replace_options_with_parameters(text) == told
