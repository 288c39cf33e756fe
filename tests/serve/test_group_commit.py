"""Requests that are counted and committed together."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from tests.serve.client import ask
from tests.serve.conftest import table

import candide as cd
from candide.errors import InputError
from candide.serve import app, learned_rows
from candide.serve.formats import RequestRows
from candide.serve.group_commit import PendingRequest
from candide.serve.learner import Learner


def labelled(n, seed):
    columns, y = table(n, seed)
    return {**columns, "fate": y}


def records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def sliced(columns, start, stop):
    return {name: column[start:stop] for name, column in columns.items()}


def same_counts(one, other):
    assert one.labels.values == other.labels.values
    np.testing.assert_allclose(one.counts.class_weight, other.counts.class_weight)
    for a, b in zip(one.counts.tallies, other.counts.tallies, strict=True):
        for name, state in a.arrays().items():
            np.testing.assert_allclose(state, b.arrays()[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_key_counts_once(naive, path):
    served = app(naive, journal_path=path)
    row, other = records(labelled(2, seed=6))
    assert not ask(served, "/learn?key=a", row).json["repeated"]
    assert ask(served, "/learn?key=a", row).json == {"key": "a", "rows": 0, "repeated": True, "model_rows": 301}
    assert ask(served, "/learn?key=a", other).status == 409
    assert ask(served, "/forget?key=a", row).status == 409
    assert ask(served, "/forget?key=b&of=a", method="POST").json["rows"] == 1
    assert ask(served, "/learn?key=a", row).json["repeated"]
    assert ask(served, "/learn?key=a", other).status == 409  # its rows are gone, and it is still another
    assert ask(served, "/learn?key=c", other).json["rows"] == 1
    assert ask(served, "/forget?key=b&of=a", method="POST").json["repeated"]
    assert ask(served, "/forget?key=b&of=c", method="POST").status == 409
    assert ask(served, "/forget?key=d", other).json["rows"] == 1
    assert ask(served, "/forget?key=d", other).json["repeated"]
    assert ask(served, "/forget?key=d", row).status == 409
    assert ask(served, "/learn?key=" + "x" * 201, row).status == 422
    assert len(ask(served, "/learn", row).json["key"]) == 32
    served.close()


def test_a_request_that_fails_changes_nothing(naive, path):
    served = app(naive, journal_path=path)
    row, other = records(labelled(2, seed=7))
    for change, column, value in [
        ({"fate": "burn"}, "fate", "burn"),
        ({"fate": None}, "fate", None),
        ({"height": "tall"}, "height", "tall"),
        ({"height": [1]}, "height", ["1"]),
    ]:
        answer = ask(served, "/learn", [other, {**row, **change}])
        assert answer.status == 422
        assert answer.json["column"] == column
        assert answer.json.get("value") in (value, [1])
    for name in ("fate", "soil"):
        answer = ask(served, "/learn", {n: v for n, v in row.items() if n != name})
        assert (answer.status, answer.json["column"]) == (422, name)
    assert ask(served, "/learn", []).status == 422
    same_counts(served.scorer.fitted, naive)
    served.close()


def test_a_bad_request_among_good_ones(naive, path):
    """Requests that fall into one group: those that can be counted are, and each is told its own outcome."""
    learner = Learner(path, naive)
    good = [RequestRows(1, {n: [v] for n, v in row.items()}) for row in records(labelled(6, seed=8))]
    bad = RequestRows(1, {**good[0].columns, "height": ["tall"]})
    hold, go = threading.Event(), threading.Event()
    learner.prepare_model = lambda fitted: (hold.set(), go.wait(20), lambda: None)[2]
    first = learner.learn(good[0], "0")
    hold.wait(20)
    waiting = [learner.learn(rows, key) for rows, key in [(good[1], "1"), (bad, "2"), (good[2], "3"), (good[1], "1")]]
    waiting += [learner.forget_key("0"), learner.learn(bad, "2"), learner.learn(good[3], "2")]
    go.set()
    assert first.result().rows == 1
    assert [one.exception() is None for one in waiting] == [True, False, True, True, True, False, True]
    assert [one.result().is_repeat for one in waiting if one.exception() is None] == [False, False, True, False, False]
    assert learner.fitted.n_rows == 300 + 1 + 3 - 1
    learner.close()


def test_a_request_that_leaves_no_estimate_fails_alone(path):
    """A class of one row has no variance to be estimated; those that are written with it have done nothing."""
    columns, y = table(300, seed=3)
    fitted = cd.NaiveBayes(events={"height": "gaussian"}, estimate="mle").fit(columns, y).fitted_
    learner = Learner(path, replace(fitted, target="fate"), allow_new_classes=True)
    learner.prepare_model = lambda fitted: lambda model=fitted.model: None
    rows = [RequestRows(1, sliced(labelled(9, seed=1), i, i + 1)) for i in range(9)]
    rows[4].columns["fate"][0] = "burn"
    learner._answer(
        [
            PendingRequest(str(i), 1, 1, learned_rows.encode_rows(one, fitted, "fate", True))
            for i, one in enumerate(rows)
        ]
    )
    found = [learner.learn(one, str(i)) for i, one in enumerate(rows)]
    assert [one.result().is_repeat for i, one in enumerate(found) if i != 4] == [True] * 8
    with pytest.raises(InputError, match="burn"):
        found[4].result()
    assert learner.fitted.n_rows == 308
    learner.close()
