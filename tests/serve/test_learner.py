"""A served model learns and forgets: exactly, durably, once for every key, and nothing that cannot be counted."""

import json
import resource
import sqlite3
import threading
from dataclasses import replace

import numpy as np
import pytest
from tests.serve.client import ask
from tests.serve.conftest import table

import candide as cd
from candide import store
from candide.data.table import Table
from candide.errors import BusyError, InputError
from candide.serve import Limits, app, learned_rows
from candide.serve.formats import RequestRows
from candide.serve.learner import Learner

KINDS = {"naive": cd.NaiveBayes, "bayes": cd.BayesClassifier}


def labelled(n, seed):
    columns, y = table(n, seed)
    return {**columns, "fate": y}


def records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def sliced(columns, start, stop):
    return {name: column[start:stop] for name, column in columns.items()}


@pytest.fixture(scope="module", params=list(KINDS))
def base(request):
    columns, y = table(300, seed=3)
    fitted = KINDS[request.param]().fit(columns, y).fitted_
    return replace(fitted, target="fate")


def same_counts(one, other):
    assert one.labels.values == other.labels.values
    np.testing.assert_allclose(one.counts.class_weight, other.counts.class_weight)
    for a, b in zip(one.counts.tallies, other.counts.tallies, strict=True):
        for name, state in a.arrays().items():
            np.testing.assert_allclose(state, b.arrays()[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_rows_learned_one_by_one_equal_one_batch(base, path):
    new = labelled(60, seed=4)
    new["site"][5], new["soil"][6] = "s77", None  # a level that it has not met, and a gap
    served = app(base, journal_path=path)
    rows = records(new)
    before = ask(served, "/predict", rows).json
    for i, row in enumerate(rows[:30]):
        assert ask(served, f"/learn?key=k{i}", row).json == {
            "key": f"k{i}",
            "rows": 1,
            "repeated": False,
            "model_rows": 301 + i,
        }
    assert ask(served, "/learn", rows[30:], idempotency_key="rest").json["rows"] == 30
    assert ask(served, "/predict", rows).json != before
    wanted = cd.update_model(base, Table.from_data(new)).fitted
    same_counts(store.loads(ask(served, "/state").body), wanted)
    kept = served.scorer.fitted
    served.close()
    again = app(base, journal_path=path)  # from the model that was kept
    same_counts(again.scorer.fitted, wanted)
    same_counts(kept, wanted)
    for i in range(0, 30, 3):  # and by their keys they go again, though they are compacted
        assert ask(again, f"/forget?of=k{i}", b"", media="").json["rows"] == 1
    stay = [i for i in range(60) if i >= 30 or i % 3]
    same_counts(
        again.scorer.fitted,
        cd.update_model(base, Table.from_data({n: [c[i] for i in stay] for n, c in new.items()})).fitted,
    )
    again.close()


def test_forgotten_rows_leave_no_trace(naive, path):
    new = labelled(20, seed=5)
    new["site"][0] = "somewhere else"
    served = app(naive, journal_path=path)
    ask(served, "/learn?key=all", records(new))
    assert b"somewhere else" in path.read_bytes() + path.with_name("state.db-wal").read_bytes()
    assert ask(served, "/forget?key=gone", records(new)).json["rows"] == 20
    same_counts(served.scorer.fitted, naive)
    answer = ask(served, "/forget", records(new))
    assert answer.status == 422  # they are not there any more
    ask(served, "/learn?key=once", records(sliced(new, 0, 1)))
    assert ask(served, "/forget?of=once", b"", media="").json["rows"] == 1
    assert ask(served, "/forget?of=once", b"", media="").json["repeated"]
    assert ask(served, "/forget?of=never", b"", media="").status == 404
    same_counts(served.scorer.fitted, naive)
    served.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT rows FROM entry WHERE key IN ('gone', 'once')").fetchall() == [(None,), (None,)]


def test_new_classes(naive, path):
    row = {**records(labelled(1, seed=9))[0], "fate": "burn"}
    served = app(naive, journal_path=path, allow_new_classes=True)
    assert ask(served, "/learn?key=b", row).status == 200
    assert "p_burn" in ask(served, "/predict", row).json
    ask(served, "/forget?of=b", b"", media="")
    assert "p_burn" not in ask(served, "/predict", row).json
    served.close()


@pytest.mark.parametrize("where", ["/learn", "/forget"])
def test_ignored_columns_are_named(naive, path, where):
    row = records(labelled(1, seed=9))[0]
    served = app(naive, journal_path=path)
    assert "warnings" not in ask(served, "/learn", row).json
    [note] = ask(served, where, {**row, "weight": 5, "sites": "b"}).json["warnings"]
    assert (note["code"], note["columns"]) == ("column-unknown", ["weight", "sites"])
    assert "columns 'weight', 'sites' are ignored" in note["text"]
    assert "'site' for 'sites'" in note["text"]
    served.close()


@pytest.mark.parametrize("label", ["", "  "])
def test_an_empty_label_is_missing(naive, path, label):
    row = {**records(labelled(1, seed=9))[0], "fate": label}
    served = app(naive, journal_path=path, allow_new_classes=True)
    answer = ask(served, "/learn", row)
    assert answer.status == 422
    assert "the label is missing" in str(answer.json)
    served.close()


def test_nothing_left(path):
    columns = labelled(4, seed=1)
    fitted = cd.NaiveBayes(class_prior="uniform").fit({"age": columns["age"]}, ["a", "a", "b", "b"]).fitted_
    served = app(fitted, journal_path=path, target="y")
    rows = [{"age": age, "y": y} for age, y in zip(columns["age"], "aabb", strict=True)]
    assert ask(served, "/forget", rows).status == 200
    assert ask(served, "/predict", {"age": 3}).status == 503
    assert ask(served, "/learn", rows).status in (200, 422)
    served.close()


def test_a_full_disk(naive, path):
    """Learning is refused, nothing of it is kept, and predicting goes on."""
    served = app(naive, journal_path=path)
    db = served._learner.journal._db
    rows = records(labelled(200, seed=10))
    assert ask(served, "/learn?key=first", rows[:1]).status == 200
    db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count').fetchone()[0]}")
    answer = ask(served, "/learn?key=more", rows)
    assert answer.status == 503
    assert "same key" in answer.json["remedy"]
    assert ask(served, "/predict", rows[0]).status == 200
    assert served.scorer.fitted.n_rows == 301
    db.execute("PRAGMA max_page_count=100000")
    assert ask(served, "/learn?key=more", rows).json["rows"] == 200
    served.close()


def test_a_disk_that_takes_no_more(naive, path):
    """As where no file may grow: nothing of a request is kept, and it is taken once there is room."""
    served = app(naive, journal_path=path)
    rows = records(labelled(400, seed=10))
    assert ask(served, "/learn?key=first", rows[0]).status == 200
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("state.db-wal").stat().st_size + 10_000, before[1]))
    try:
        answers = [ask(served, "/learn?key=more", rows), ask(served, "/forget?of=first", b"", media="")]
        assert [answer.status for answer in answers] == [503, 503]
        assert "same key" in answers[0].json["remedy"]
        assert ask(served, "/predict", rows[0]).status == 200
        assert served.scorer.fitted.n_rows == 301
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ask(served, "/learn?key=more", rows).json["rows"] == 400
    assert ask(served, "/forget?of=first", b"", media="").json["rows"] == 1
    served.close()
    learner = Learner(path, naive)
    same_counts(learner.fitted, cd.update_model(naive, Table.from_data(labelled(400, seed=10))).fitted)
    learner.close()


def test_a_late_response(naive, path):
    """Whoever hears nothing in time is told the key by which it may be sent again, and counts once."""
    served = app(naive, journal_path=path, limits=Limits(timeout_seconds=0.2))
    held, go = served._learner.prepare_model, threading.Event()
    served._learner.prepare_model = lambda fitted: (go.wait(20), held(fitted))[1]
    row = records(labelled(1, seed=15))[0]
    late = ask(served, "/learn", row)
    assert (late.status, late.headers["retry-after"]) == (503, "1")
    assert "no response within 0.2 seconds" in late.json["detail"]
    assert "counts once" in late.json["remedy"]
    waits = ask(served, f"/learn?key={late.json['key']}", row)  # while the first is still at work
    assert (waits.status, waits.json["key"]) == (503, late.json["key"])
    go.set()
    served.limits = Limits()
    assert ask(served, f"/learn?key={late.json['key']}", row).json["repeated"]
    assert served.scorer.fitted.n_rows == 301
    served.close()


def test_one_server_and_one_model_per_file(naive, path, monkeypatch):
    monkeypatch.setattr("candide.serve.journal._LOCK_TIMEOUT", 0.05)
    learner = Learner(path, naive)
    with pytest.raises(BusyError):
        Learner(path, naive)
    learner.close()
    moved = replace(naive.counts, tallies=[tally + tally - tally.scale(1.5) for tally in naive.counts.tallies])
    others = [
        naive.add_counts(naive.counts),
        naive.with_counts(moved),  # of the same classes and as many rows
        replace(naive, settings=replace(naive.settings, class_prior=(0.9, 0.1))),
    ]
    for other in others:
        with pytest.raises(InputError, match="another model"):
            Learner(path, other)
    columns, y = table(300, seed=3)
    cd.NaiveBayes().fit(columns, y).save(path.with_name("m.candide"), provenance={"when": "later"})
    Learner(path, replace(store.load(path.with_name("m.candide")), target="fate")).close()  # the same, from a file


def test_a_file_of_another_program(naive, path):
    """It is refused as it is, whatever its tables are called."""
    for names in (["bookmarks"], ["state"], ["state", "clock"]):
        with sqlite3.connect(path) as db:
            for name in names:
                db.execute(f"CREATE TABLE {name} (url TEXT)")
        db.close()
        before = path.read_bytes()
        with pytest.raises(InputError, match="not a journal of a server"):
            Learner(path, naive)
        assert path.read_bytes() == before
        assert not path.with_name("state.db-wal").exists()
        path.unlink()


def test_a_file_of_another_program_that_died(naive, path):
    """Its log is not carried into it."""
    path = path.with_name("100% its? own#.db")
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE bookmarks (url TEXT)")
        files = {file: file.read_bytes() for file in (path, path.with_name(f"{path.name}-wal"))}
    db.close()
    for file, raw in files.items():
        file.write_bytes(raw)
    with pytest.raises(InputError, match="it holds 'bookmarks'; name another file; nothing was changed"):
        Learner(path, naive)
    assert {file: file.read_bytes() for file in files} == files


@pytest.mark.parametrize("mark", ["user_version", "application_id"])
def test_a_file_that_another_program_has_marked(naive, path, mark):
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA {mark} = 7")
    db.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="the mark of another program"):
        Learner(path, naive)
    assert path.read_bytes() == before


def test_keys_of_any_characters(naive, path):
    served = app(naive, journal_path=path)
    row = records(labelled(1, seed=6))[0]
    assert ask(served, "/learn", row, idempotency_key="é").json["key"] == "é"
    assert ask(served, "/forget?of=%C3%A9", method="POST").json["rows"] == 1
    assert ask(served, "/learn?key=a%FF", row).status == 422
    served.close()


def test_learning_needs_the_token(naive, path):
    served = app(naive, journal_path=path, token="secret")
    row = records(labelled(1, seed=13))[0]
    assert ask(served, "/learn", row).status == 401
    assert ask(served, "/state").status == 401
    assert ask(served, "/forget?of=a", b"", media="").status == 401
    assert ask(served, "/predict", row).status == 200
    assert ask(served, "/learn", row, authorization="Bearer secret").status == 200
    told = ask(served, "/openapi.json").json["paths"]
    assert [path for path, methods in told.items() if any("security" in m for m in methods.values())] == [
        "/learn",
        "/forget",
        "/state",
        "/learned",
    ]
    served.close()
    refused = ask(app(naive), "/learn", row)
    assert (refused.status, refused.json["remedy"]) == (404, "start it with --learn STATE (journal_path=...)")


def test_the_state_exported(naive, path, tmp_path):
    from click.testing import CliRunner

    from candide.cli import cli

    served = app(naive, journal_path=path)
    ask(served, "/learn", records(labelled(7, seed=14)))
    served.close()
    out = str(tmp_path / "out.candide")
    told = CliRunner().invoke(cli, ["export-state", str(path), "-o", out, "--json"], catch_exceptions=False)
    assert json.loads(told.output) == {"state": str(path), "rows": 307, "output": out}
    same_counts(store.load(out), served.scorer.fitted)


def test_rows_with_gaps_are_counted_with_the_others(base):
    """What is missing is so beside text and beside numbers: one count, and the same as one for each row."""
    columns = labelled(40, seed=6)
    columns["soil"][:3], columns["age"][3:5], columns["kind"][5] = [None] * 3, [None] * 2, None
    rows = [RequestRows(1, sliced(columns, i, i + 1)) for i in range(40)]
    kept = [(learned_rows.encode_rows(one, base, "fate", False), 1.0) for one in rows]
    assert len(list(learned_rows._count_rows(base, kept, "fate"))) == 1
    apart = base
    for one in kept:
        apart = learned_rows.add_rows(apart, [one], "fate")
    same_counts(learned_rows.add_rows(base, kept, "fate"), apart)
