"""Forgetting, by key and by rows: each row once, where it was learned, and nothing that was never there."""

import sqlite3
import threading
from dataclasses import replace

import pytest
from tests.serve.conftest import table
from tests.serve.test_learned_state import DAY, Time, dies, of, ticked, weighted
from tests.serve.test_learner import labelled, records, same_counts, sliced

import candide as cd
from candide.data.table import Table
from candide.errors import InputError, NotCountedError
from candide.serve import learned_rows
from candide.serve.formats import RequestRows
from candide.serve.http import RequestProblem
from candide.serve.learner import Learner


def many(columns):
    return RequestRows(len(columns["fate"]), columns)


def with_rows(base, columns, at):
    return cd.update_model(
        base, Table.from_data({name: [column[i] for i in at] for name, column in columns.items()})
    ).fitted


def test_rows_go_where_they_were_learned(naive, path):
    """What is forgotten by its rows is not there to be forgotten by its key, and the rest of its request is."""
    new = labelled(10, seed=51)
    new["site"][2] = "nowhere else"
    learner = Learner(path, naive)
    learner.learn(many(new), "ten").result()
    assert learner.forget(of(records(new)[2]), "gone").result().rows == 1
    same_counts(learner.fitted, with_rows(naive, new, [0, 1, 3, 4, 5, 6, 7, 8, 9]))
    assert learner.learn(many(new), "ten").result().is_repeat  # as it came
    assert learner.forget(of(records(new)[2]), "gone").result().is_repeat
    for name in ("state.db", "state.db-wal"):
        assert b"nowhere else" not in path.with_name(name).read_bytes()
    learner.close()
    learner = Learner(path, naive)
    assert learner.forget_key("ten").result().rows == 9
    same_counts(learner.fitted, naive)
    with pytest.raises(NotCountedError):
        learner.forget(of(records(new)[2])).result()  # a site that nothing is left of
    learner.close()


def test_what_was_learned_twice_goes_once(naive, path):
    time, row = Time(), records(labelled(1, seed=52))[0]
    learner = Learner(path, naive, half_life=DAY, **time.both)
    learner.learn(of(row), "early").result()
    time.passes(DAY)
    learner.learn(of(row), "late").result()
    time.passes(DAY)
    assert learner.forget(of(row)).result().rows == 1  # the latest
    same_counts(learner.fitted, weighted(naive, [row], [0.25], 0.25))
    assert learner.forget_key("late").result().is_repeat
    assert learner.forget(of(row)).result().rows == 1
    same_counts(learner.fitted, weighted(naive, [], [], 0.25))
    assert learner.forget_key("early").result().is_repeat
    learner.close()


def test_twice_in_one_request(naive, path):
    new = labelled(3, seed=53)
    twice = {name: column + column[:1] for name, column in new.items()}
    learner = Learner(path, naive)
    learner.learn(many(twice), "a").result()
    assert learner.forget(many({name: [column[0]] * 2 for name, column in new.items()})).result().rows == 2
    same_counts(learner.fitted, with_rows(naive, new, [1, 2]))
    learner.close()


@pytest.mark.parametrize("half_life", [None, 10 * DAY])
def test_rows_of_the_model_that_it_began_with(naive, path, half_life):
    columns, y = table(300, seed=3)
    own, time = {**columns, "fate": y}, Time()
    rest = cd.NaiveBayes().fit({n: c[5:] for n, c in columns.items()}, y[5:]).fitted_
    learner = Learner(path, naive, half_life=half_life, **time.both)
    time.passes(15 * DAY)
    learner.learn(many(sliced(own, 4, 7)), "new").result()
    assert learner.forget(many(sliced(own, 0, 5))).result().rows == 5  # one was learned, and goes; four are the base's
    assert learner.forget_key("new").result().rows == 2
    assert learner.forget(many(sliced(own, 4, 5))).result().rows == 1
    learner.close()
    learner = Learner(path, naive, half_life=half_life, **time.both)
    same_counts(learner.current_model(), rest.scale(1.0 if half_life is None else 2.0**-1.5))
    learner.close()


def test_rows_that_were_never_there(naive, path):
    """All or none: where one row of a request cannot have been counted, none goes."""
    new = labelled(2, seed=54)
    row = records(new)[0]
    learner = Learner(path, naive)
    learner.learn(of(row), "a").result()
    strange = {**row, "site": "never seen"}
    with pytest.raises(InputError, match="never seen"):
        learner.forget(many({name: [row[name], strange[name]] for name in row}), "f").result()
    with pytest.raises(InputError, match="unknown class") as told:
        learner.forget(of({**row, "fate": "burn"})).result()
    assert "start the server" not in told.value.remedy  # which may have been started so
    with pytest.raises(RequestProblem) as told:
        learner.forget_key("never").result()
    assert (told.value.status, told.value.location["value"]) == (404, "never")
    with pytest.raises(RequestProblem):
        learner.forget_key("f").result()  # which forgot nothing, and is no key of rows
    assert learner.forget_key("a", "f").result().rows == 1  # under the key that was refused
    same_counts(learner.fitted, naive)
    learner.close()


def test_learned_rows_do_not_vouch_for_those_of_the_base(naive, path):
    """A level that only learned rows hold is no evidence that the model began with another row of it."""
    row = {**records(labelled(1, seed=55))[0], "site": "only here"}
    learner = Learner(path, naive)
    learner.learn(of(row), "a").result()
    with pytest.raises(InputError, match="only here"):
        learner.forget(of({**row, "age": row["age"] + 1})).result()
    assert learner.forget_key("a").result().rows == 1
    learner.close()


def test_a_row_however_it_is_written(naive, path):
    new = {**records(labelled(1, seed=56))[0], "height": 12.0, "age": 30, "wet": 1}
    learner = Learner(path, naive)
    learner.learn(of({**new, "height": "12.0", "age": "30", "wet": "1"}), "text").result()
    learner.forget(of({**new, "height": 12, "age": 30.0})).result()
    assert learner.forget_key("text").result().is_repeat
    learner.learn(of({**new, "site": "01"}), "one").result()
    with pytest.raises(InputError):
        learner.forget(of({**new, "site": "1"})).result()  # another level
    learner.close()


def test_in_one_group(naive, path):
    """Learned and forgotten by key and by rows before any of it is written."""
    rows = records(labelled(4, seed=57))
    learner = Learner(path, naive)
    hold, go = threading.Event(), threading.Event()
    learner.prepare_model = lambda fitted: (hold.set(), go.wait(20), lambda: None)[2]
    first = learner.learn(of(rows[0]), "0")
    hold.wait(20)
    asked = [learner.learn(of(rows[1]), "1"), learner.learn(of(rows[2]), "2"), learner.forget_key("1", "f1")]
    asked += [
        learner.forget(of(rows[2]), "f2"),
        learner.forget_key("2"),
        learner.forget_key("0"),
        learner.forget_key("1"),
    ]
    asked += [learner.learn(of(rows[1]), "1"), learner.forget_key("1", "f1"), learner.learn(of(rows[3]), "3")]
    go.set()
    assert first.result().rows == 1
    assert [one.result().rows for one in asked] == [1, 1, 1, 1, 0, 1, 0, 0, 0, 1]
    same_counts(learner.fitted, with_rows(naive, {n: [v] for n, v in rows[3].items()}, [0]))
    dies(learner)
    learner = Learner(path, naive)
    same_counts(learner.fitted, with_rows(naive, {n: [v] for n, v in rows[3].items()}, [0]))
    learner.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM entry WHERE rows IS NOT NULL").fetchone() == (1,)


def test_what_is_forgotten_and_would_leave_anyway(naive, path):
    """The window takes what is left of a request of which a row was forgotten, once."""
    time, new = Time(), labelled(3, seed=58)
    learner = Learner(path, naive, window=30 * DAY, **time.both)
    learner.learn(many(new), "three").result()
    learner.forget(of(records(new)[1])).result()
    same_counts(learner.fitted, with_rows(naive, new, [0, 2]))
    time.passes(31 * DAY)
    ticked(learner)
    same_counts(learner.fitted, naive)
    learner.close()


def test_a_row_is_compared_once_for_each_spelling(path, monkeypatch):
    """However many rows look alike: "01" and "1" are two levels, and 1 and 1.0 one number."""
    columns = {"zip": ["01", "1", "10"] * 20, "size": [1.0, 2.0, 3.0] * 20}
    base = replace(cd.NaiveBayes().fit(columns, ["a", "b"] * 30).fitted_, target="fate")
    learner, asked = Learner(path, base), []
    learner.learn(many({"zip": ["01"] * 50, "size": [1] * 50, "fate": ["a"] * 50})).result()
    real = learned_rows._count_row
    monkeypatch.setattr(learned_rows, "_count_row", lambda *given: asked.append(given) or real(*given))
    with pytest.raises(NotCountedError):
        learner.forget(many({"zip": ["1"] * 40, "size": [1.0] * 40, "fate": ["a"] * 40})).result()
    assert len(asked) == 2
    assert learner.forget(many({"zip": ["01"] * 50, "size": [1.0] * 50, "fate": ["a"] * 50})).result().rows == 50
    assert len(asked) == 4
    same_counts(learner.fitted, base)
    learner.close()


def test_a_window_of_many_requests(naive, path, monkeypatch):
    """What is old goes at once, though no request comes and not all of it is taken out together."""
    monkeypatch.setattr("candide.serve.learner._MAX_GROUP", 4)
    monkeypatch.setattr("candide.serve.learner._MAX_TICK_SECONDS", 0.01)
    time, rows = Time(), labelled(18, seed=12)
    learner = Learner(path, naive, window=DAY, **time.both)
    for row in records(rows):
        learner.learn(of(row)).result()
    time.passes(2 * DAY)
    ticked(learner)
    for _ in range(4):  # groups that are already on their way
        ticked(learner)
    same_counts(learner.fitted, naive)
    learner.close()


def test_what_was_lost_beside_a_number_is_counted_again(naive, path):
    """One so large that no spread is left beside it; but rows that only the model knew are nowhere to be counted."""
    time, rows = Time(), labelled(6, seed=14)
    wrong = {**records(rows)[5], "height": 1e25}
    learner = Learner(path, naive, half_life=DAY, **time.both)
    learner.learn(many(sliced(rows, 0, 3)), "before").result()
    learner.learn(of(wrong), "wrong").result()
    time.passes(DAY)
    learner.learn(many(sliced(rows, 3, 5)), "after").result()
    assert learner.forget_key("wrong").result().rows == 1
    same_counts(learner.fitted, weighted(naive, records(rows)[:5], [0.5] * 3 + [1.0] * 2, 0.5))
    learner.learn(of({**wrong, "height": 1e30}), "larger").result()
    learner.learn(of({**wrong, "height": 1e15}), "smaller").result()
    learner.forget_key("larger").result()  # beside the smaller one nothing seems to be lost
    learner.forget_key("smaller").result()
    same_counts(learner.fitted, weighted(naive, records(rows)[:5], [0.5] * 3 + [1.0] * 2, 0.5))
    columns, y = table(300, seed=3)
    own = {**records(columns)[0], "fate": y[0]}
    assert learner.forget(of(own)).result().rows == 1
    learner.learn(of(wrong), "wrong again").result()
    with pytest.raises(NotCountedError, match="so large"):
        learner.forget_key("wrong again").result()
    learner.close()
