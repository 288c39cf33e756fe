"""What was learned fades by its half-life and leaves by its window; requests that are counted together."""

import random
import threading
import warnings
from dataclasses import replace
from time import time as today

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.client import ask
from tests.serve.conftest import table
from tests.serve.test_learner import labelled, records, same_counts, sliced

import candide as cd
from candide import store
from candide.cli import cli
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError
from candide.serve import app, learned_rows
from candide.serve.formats import RequestRows
from candide.serve.learned_state import ExponentialDecay, PendingRequest
from candide.serve.learner import Learner

DAY = 86_400.0
YEAR = 365 * DAY


class Time:
    """A calendar that may be set, and a clock that may not."""

    def __init__(self, calendar=1_000 * DAY):
        self.calendar, self.steady = calendar, 17.0

    def passes(self, seconds):
        self.calendar += seconds
        self.steady += seconds

    @property
    def both(self):
        return {"calendar": lambda: self.calendar, "monotonic": lambda: self.steady}


@pytest.fixture(scope="module", params=[cd.NaiveBayes, cd.BayesClassifier])
def base(request):
    columns, y = table(300, seed=3)
    return replace(request.param().fit(columns, y).fitted_, target="fate")


def ticked(learner):
    """A learner that has seen what time it is, in the thread that writes."""
    assert learner.forget_key("what never came").exception() is not None
    return learner


def dies(learner):
    """Let go of the file as if the server had died: what is kept is as it was, and the entries since."""
    ticked(learner)._rows_since_snapshot = 0
    learner.close()


def of(row):
    return RequestRows(1, {name: [value] for name, value in row.items()})


def weighted(base, rows, weights, all_of_it):
    """A batch of the base's own rows, each weighing so much, and of others with their weights."""
    columns, y = table(300, seed=3)
    new = {name: [row[name] for row in rows] for name in rows[0]} if rows else {name: [] for name in (*columns, "fate")}
    whole = {name: column + new[name] for name, column in columns.items()}
    plan, weight = base.counts.plan, np.array([all_of_it] * 300 + list(weights))
    read = base.parse_table(Table.from_data(whole))
    return base.with_counts(arrays.count_table(read, y + new["fate"], weight, plan=plan.with_levels(read)))


def test_it_is_a_batch_with_weights(base, path):
    """Through groups, epochs, forgetting by key, compaction, a crash and a stop."""
    time, half = Time(), 30 * DAY
    rows = records(labelled(40, seed=41))
    learner = Learner(path, base, half_life=half, **time.both)
    learned = {}
    for i, row in enumerate(rows):
        time.passes(DAY * (1 + i % 7))
        learner.learn(of(row), str(i)).result()
        learned[i] = time.calendar
        if i % 9 == 4:
            assert learner.forget_key(str(i - 3)).result().rows == 1
            del learned[i - 3]
        if i % 13 == 6:
            dies(learner) if i % 2 else learner.close()
            time.passes(3 * DAY)
            learner = Learner(path, base, half_life=half, **time.both)
    time.passes(11 * DAY)
    weights = [2.0 ** ((at - time.calendar) / half) for at in learned.values()]
    whole = 2.0 ** ((1_000 * DAY - time.calendar) / half)
    same_counts(learner.current_model(), weighted(base, [rows[i] for i in learned], weights, whole))
    assert learner.current_model().n_rows == 300 + len(learned)
    for i in learned:
        learner.forget_key(str(i)).result()
    same_counts(learner.current_model(), weighted(base, [], [], whole))
    assert learner.current_model().counts.plan.parts == base.counts.plan.parts  # no level is left of what is forgotten
    learner.close()


def test_time_passes_though_nothing_comes(naive, path):
    time, heard = Time(), []
    learner = Learner(path, naive, half_life=100.0, **time.both)
    learner.prepare_model = lambda fitted: lambda: heard.append(fitted)
    time.passes(200.0)
    ticked(learner)
    learner.close()
    assert heard[-1].counts.class_weight.sum() == pytest.approx(75.0)
    time.passes(50.0)
    learner = Learner(path, naive, half_life=100.0, **time.both)
    assert learner.current_model().counts.class_weight.sum() == pytest.approx(300 / 2**2.5)
    learner.close()


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4))
def test_weights_of_epochs(learned, later, span):
    """A weight is 2^-(age / half-life) in whatever units, and to turn these rounds nothing."""
    fading, at = ExponentialDecay(3.0, 0.0), sorted([learned, learned + later])
    one, other = fading.epoch_at(at[1]), fading.epoch_at(at[1] + span)
    assert fading.row_weight(at[0], one) * 2.0 ** max(one - other, -1000) in (
        fading.row_weight(at[0], other),
        pytest.approx(0.0, abs=1e-290),
    )
    age = (at[1] - at[0]) / 3.0
    if age < 900:
        assert fading.row_weight(at[0], one) * fading.unit_weight(at[1], one) == pytest.approx(2.0**-age, rel=1e-9)


def test_a_window(naive, path):
    time, rows = Time(), records(labelled(4, seed=12))
    learner = Learner(path, naive, window=30 * DAY, **time.both)
    for i, row in enumerate(rows[:3]):
        learner.learn(of(row), str(i)).result()
        time.passes(10 * DAY)
    assert learner.fitted.n_rows == 303
    time.passes(1.0)
    learner.learn(of(rows[3]), "3").result()
    same_counts(learner.fitted, weighted(naive, rows[1:], [1.0] * 3, 1.0))
    assert learner.forget_key("0").result().is_repeat  # it is gone already
    assert learner.learn(of(rows[0]), "0").result().is_repeat
    learner.close()


def test_a_window_and_a_half_life(naive, path):
    time, rows = Time(), records(labelled(4, seed=12))
    both = {"window": 30 * DAY, "half_life": 10 * DAY}
    learner = Learner(path, naive, **both, **time.both)
    for i, row in enumerate(rows):
        learner.learn(of(row), str(i)).result()
        time.passes(9 * DAY)
    ticked(learner)  # 36, 27, 18, 9 days old
    wanted = weighted(naive, rows[1:], [2.0**-2.7, 2.0**-1.8, 2.0**-0.9], 2.0**-3.6)
    same_counts(learner.current_model(), wanted)
    learner.close()
    learner = Learner(path, naive, **both, **time.both)
    same_counts(learner.current_model(), wanted)
    learner.close()


@pytest.mark.parametrize("jump", [-YEAR, YEAR])
@pytest.mark.parametrize("span", ["window", "half_life"])
def test_clock_jumps(naive, path, jump, span):
    """While it runs, and between two runs, with and without entries after the jump."""
    time, rows = Time(), records(labelled(3, seed=13))
    how = {span: 30 * DAY}
    learner = Learner(path, naive, **how, **time.both)
    learner.learn(of(rows[0]), "0").result()
    time.passes(10 * DAY)
    time.calendar += jump
    learner.learn(of(rows[1]), "1").result()
    learner.close()

    def again():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            learner = Learner(path, naive, **how, **time.both)
        assert ["no time is assumed to have passed" in str(one.message) for one in told] == [True] * (jump > 0)
        return learner

    for key in ("2", "3"):
        learner = again()
        time.passes(5 * DAY)
        learner.learn(of(rows[2]), key).result()
        time.calendar += 0.0 if jump > 0 else jump
        learner.close()
    ages = [20, 10, 5, 0]
    weights = [1.0] * 4 if span == "window" else [2.0 ** (-age / 30) for age in ages]
    wanted = weighted(naive, [rows[0], rows[1], rows[2], rows[2]], weights, weights[0])
    learner = again()
    same_counts(learner.current_model(), wanted)
    time.passes(15 * DAY)
    ticked(learner)  # and time goes on as before
    if span == "window":
        same_counts(learner.current_model(), weighted(naive, [rows[1], rows[2], rows[2]], [1.0] * 3, 1.0))
    else:
        same_counts(learner.current_model(), wanted.scale(2.0**-0.5))
    learner.close()


def test_what_is_new_of_what_fades(naive, path, tmp_path):
    """Told to peers while it serves, and exported with and without what it began with."""
    time, rows = Time(today() - 4_000 * DAY), records(labelled(3, seed=15))
    store.save(naive, tmp_path / "base.candide")
    learner = Learner(path, naive, half_life=10_000 * DAY, **time.both)
    for i, row in enumerate(rows):
        time.passes(1_000 * DAY)
        learner.learn(of(row), str(i)).result()
    weights = [2.0**-0.2, 2.0**-0.1, 1.0]
    assert learner.learned_model().counts.class_weight.sum() == pytest.approx(sum(weights))
    same_counts(
        naive.scale(2.0**-0.3).add_counts(learner.learned_model().counts), weighted(naive, rows, weights, 2.0**-0.3)
    )
    learner.close()
    for options, out in (([], "all"), (["--subtract", str(tmp_path / "base.candide")], "new")):
        command = ["export-state", str(path), *options, "-o", str(tmp_path / f"{out}.candide")]
        assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    whole, new = (store.load(tmp_path / f"{name}.candide").counts for name in ("all", "new"))
    assert (whole.n_rows, new.n_rows) == (303, 3)
    since = whole.class_weight.sum() / (sum(weights) + 300 * 2.0**-0.3)  # what has faded until it was exported
    assert since == pytest.approx(2.0**-0.1, rel=1e-3)
    assert new.class_weight.sum() == pytest.approx(since * sum(weights))


def test_the_half_life_is_that_of_the_file(naive, path):
    Learner(path, naive, half_life=DAY).close()
    for other in (None, 2 * DAY):
        with pytest.raises(InputError, match="has a half-life of 86400 seconds"):
            Learner(path, naive, half_life=other)
    Learner(path, naive, half_life=DAY).close()


def test_all_that_fades(naive, path):
    """Off for thousands of half-lives: next to nothing is left, which is no error, and it learns again."""
    time, row = Time(), records(labelled(1, seed=14))[0]
    learner = Learner(path, naive, half_life=60.0, **time.both)
    learner.learn(of(row), "0").result()
    time.passes(YEAR)
    learner.learn(of(row), "1").result()
    assert learner.fitted.labels.values == naive.labels.values
    assert learner.fitted.counts.class_weight.sum() == pytest.approx(1.0)
    assert np.isfinite(learner.fitted.posterior({name: [value] for name, value in row.items() if name != "fate"})).all()
    assert learner.forget_key("0").result().rows == 1
    learner.close()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes(naive, path, seed):
    """Learn, forget by key and by rows, wait, stop and die in any order: the model is a batch of what is left."""
    rng, time = random.Random(seed), Time()
    how = {"window": [None, 20 * DAY][seed % 2], "half_life": [None, 5 * DAY][seed // 2 % 2]}
    rows = records(labelled(12, seed=81))  # few, so that most are learned several times
    learner, live, n = Learner(path, naive, **how, **time.both), [], 0

    def old():
        return how["window"] is not None and time.calendar - how["window"] > live[0][2]

    for _ in range(60):
        what = rng.choice(["learn", "learn", "learn", "key", "rows", "wait", "stop", "die"])
        time.passes(rng.choice([0.0, 3600.0]))
        if what == "learn":
            some, n = [rng.choice(rows) for _ in range(rng.choice([1, 1, 3]))], n + 1
            learner.learn(RequestRows(len(some), {k: [row[k] for row in some] for k in rows[0]}), str(n)).result()
            live += [(str(n), row, time.calendar) for row in some]
        elif what == "key" and live:
            key = rng.choice(live)[0]
            learner.forget_key(key).result()
            live = [one for one in live if one[0] != key]
        elif what == "rows" and live:
            row = rng.choice(live)[1]
            learner.forget(of(row)).result()
            live.pop(max((one[2], int(one[0]), -i) for i, one in enumerate(live) if one[1] == row)[2] * -1)
        elif what == "wait":
            time.passes(rng.uniform(0, 6) * DAY)
            ticked(learner)
        elif what in ("stop", "die"):
            dies(learner) if what == "die" else learner.close()
            learner = Learner(path, naive, **how, **time.both)
        while live and old():
            live.pop(0)
    ticked(learner)
    fades = [2.0 ** (-(time.calendar - at) / how["half_life"]) if how["half_life"] else 1.0 for _, _, at in live]
    whole = 2.0 ** (-(time.calendar - 1_000 * DAY) / how["half_life"]) if how["half_life"] else 1.0
    same_counts(learner.current_model(), weighted(naive, [row for _, row, _ in live], fades, whole))
    learner.close()


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
