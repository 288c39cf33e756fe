"""A journal that is damaged: what of its end is lost is told of, and no damage makes a wrong model."""

import os
import random
import shutil
import sqlite3
import warnings

import numpy as np
import pytest
from tests.serve.test_learned_state import Time, of, ticked
from tests.serve.test_learner import labelled, records, same_counts

import candide as cd
from candide.data.table import Table
from candide.errors import InputError
from candide.serve.journal import Journal
from candide.serve.learner import Learner

N = 40
COMPACTED = 15  # entries that are in the counts that are kept


@pytest.fixture(scope="module")
def rows():
    return records(labelled(N, seed=61))


@pytest.fixture(scope="module")
def dead(naive, rows, tmp_path_factory):
    """The files of a server that was killed: one entry of its log after the other, none checkpointed."""
    path = tmp_path_factory.mktemp("dead") / "state.db"
    learner = Learner(path, naive)
    for i, row in enumerate(rows):
        learner.learn(of(row), str(i)).result()
        if i == COMPACTED - 1:
            ticked(learner)._write_snapshot()
    out = path.parent / "copy"
    out.mkdir()
    for name in ("state.db", "state.db-wal", "state.db-last"):
        shutil.copy(path.parent / name, out / name)
    learner.close()
    assert sorted(os.listdir(path.parent)) == ["copy", "state.db"]
    return out


@pytest.fixture
def path(dead, tmp_path):
    shutil.copytree(dead, tmp_path / "it")
    return tmp_path / "it" / "state.db"


@pytest.fixture(scope="module")
def after(naive, rows):
    """The model after the first n rows, for every n."""
    return [naive] + [
        cd.update_model(naive, Table.from_data({name: [row[name] for row in rows[: n + 1]] for name in rows[0]})).fitted
        for n in range(N)
    ]


def opened(path, naive):
    """The model that a journal comes to, and how many entries it says were cut; None where it is refused."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        learner, error = None, None
        try:
            learner = Learner(path, naive)
        except InputError as found:
            error = found
    if learner is None:
        assert error.remedy
        assert "\n" not in str(error)
        return None
    learner.close()
    cut = [int(str(one.message).split(": ")[1].split()[0]) for one in told]
    return learner.fitted, sum(cut)


def is_whole_or_said(found, naive, after, rows):
    """All rows, or as many fewer as was said: those before a place in the log."""
    if found is not None:
        fitted, cut = found
        assert fitted.n_rows == 300 + N - cut
        same_counts(fitted, after[N - cut])


def test_nothing_is_printed_after_a_kill(path, naive, after):
    fitted, cut = opened(path, naive)
    assert cut == 0
    same_counts(fitted, after[N])
    assert opened(path, naive)[1] == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_log_that_is_cut_short(path, naive, after, rows, seed):
    wal = path.with_name("state.db-wal")
    size = wal.stat().st_size
    os.truncate(wal, random.Random(seed).randrange(size) if seed else 0)
    found = opened(path, naive)
    assert found is not None
    assert 0 < found[1] <= N - COMPACTED
    is_whole_or_said(found, naive, after, rows)
    assert opened(path, naive)[1] == 0  # it is said once
    learner = Learner(path, naive)
    for i, row in enumerate(rows):  # sent again with their keys, all count once
        learner.learn(of(row), str(i)).result()
    same_counts(learner.fitted, after[N])
    learner.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_log_with_a_bit_that_has_turned(path, naive, after, rows, seed):
    wal, rng = path.with_name("state.db-wal"), random.Random(seed)
    _turn(wal, rng.randrange(wal.stat().st_size), rng)
    is_whole_or_said(opened(path, naive), naive, after, rows)


def test_a_file_with_a_bit_that_has_turned(dead, tmp_path, naive, after, rows):
    """In each part of the file, before and after the log is gone: it is as it was, or refused, or said."""
    refused = 0
    for seed in range(24):
        it = tmp_path / str(seed)
        shutil.copytree(dead, it)
        path, rng = it / "state.db", random.Random(seed)
        if seed % 2:
            Journal(path).close()  # which leaves one file, with 25 entries after the model
        _turn(path, rng.randrange(path.stat().st_size), rng)
        found = opened(path, naive)
        refused += found is None
        if found is not None and found[1]:
            missing = found[0].counts.class_weight.sum() - 300
            assert missing == N - found[1]
        elif found is not None:
            same_counts(found[0], after[N])
    assert refused


def test_a_damaged_entry_is_left_out(path, naive, after, rows):
    Journal(path).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entry SET rows = CAST(replace(rows, 's', 't') AS BLOB) WHERE seq IN (3, ?)", (N - 1,))
    db.close()
    fitted, cut = opened(path, naive)
    assert (fitted.n_rows, cut) == (300 + N - 1, 1)  # what is in the model is not asked for
    learner = Learner(path, naive)
    assert learner.learn(of(rows[N - 2]), str(N - 2)).result().rows == 1
    same_counts(learner.fitted, after[N])
    with pytest.raises(InputError, match="the checksum of entry 3 is wrong"):
        learner.forget_key("2").result()
    assert learner.learn(of(rows[0]), "more").result().rows == 1
    learner.close()
    time = Time(3e9)
    with pytest.warns(UserWarning, match="no time is assumed to have passed"):
        learner = Learner(path, naive, window=4e8, **time.both)
    time.passes(4e8 + 10)
    with pytest.warns(UserWarning, match="entry 3 cannot be forgotten"):
        ticked(learner)  # all else is
    assert learner.fitted.n_rows == 301
    learner.close()


def test_a_file_that_is_gone(path, naive):
    for size in (0, 100, 5000):
        it = path.parent.with_name(f"of {size}")
        shutil.copytree(path.parent, it)
        os.truncate(it / "state.db", size)
        assert opened(it / "state.db", naive) is None
    it = path.parent.with_name("without a model")
    shutil.copytree(path.parent, it)
    with sqlite3.connect(it / "state.db") as db:
        db.execute("DELETE FROM state")
    db.close()
    assert opened(it / "state.db", naive) is None
    log = path.with_name("state.db-wal").read_bytes()
    path.write_bytes(b"nothing" * 1000)
    with pytest.raises(InputError, match="not a journal"):
        Journal(path)
    assert path.with_name("state.db-wal").read_bytes() == log  # nothing is touched
    path.unlink()
    path.with_name("state.db-wal").unlink()
    assert opened(path, naive)[0].n_rows == 300  # a file that is not there is a new one


def _turn(path, at, rng):
    raw = np.fromfile(path, np.uint8)
    raw[at] ^= 1 << rng.randrange(8)
    raw.tofile(path)
