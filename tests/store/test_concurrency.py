"""Several processes may change one file: one at a time, none undoing another, and none half done."""

import os
import subprocess
import sys
import threading
import time

import kills
import pytest

from candide import files, store
from candide.demo import garden
from candide.errors import BusyError, InputError, ModelFileError
from candide.model.fitted import FittedModel


@pytest.fixture
def path(tmp_path):
    store.save(FittedModel(garden()), tmp_path / "m.candide")
    return tmp_path / "m.candide"


@pytest.mark.all_cases
def test_two_processes_updating_a_hundred_times_each_lose_nothing(path):
    processes = [kills.updater(path, 100) for _ in range(2)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert store.load(path).counts.n_rows == 300 * 201
    assert [p.name for p in path.parent.iterdir()] == ["m.candide"]


@pytest.mark.all_cases
def test_killed_at_random_moments_the_file_is_whole(tmp_path):
    found = kills.run(12, 1, tmp_path)
    assert found["updates"] > 0


@pytest.mark.all_cases
def test_the_command_killed_at_random_moments_leaves_the_file_whole(tmp_path):
    assert kills.run_commands(3, 2, tmp_path).total() >= 3


def test_threads_take_turns_too(path):
    def work():
        for _ in range(10):
            store.update_file(path, lambda fitted: fitted + FittedModel(garden()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load(path).counts.n_rows == 300 * 41


def test_a_request_that_waits_too_long_is_refused(path):
    with files.lock_file(path):
        start = time.monotonic()
        with pytest.raises(BusyError, match=r"is being changed by another process; waited 0\.2 s"):
            store.update_file(path, lambda fitted: fitted, wait=0.2)
        assert time.monotonic() - start < 5
    store.update_file(path, lambda fitted: fitted, wait=0)


def test_the_lock_of_a_process_that_was_killed_is_free(path):
    code = (
        "import sys, time; from candide import files\n"
        "with files.lock_file(sys.argv[1]):\n print(1, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    assert process.stdout.readline()
    with pytest.raises(BusyError):
        store.update_file(path, lambda fitted: fitted, wait=0)
    process.kill()
    process.communicate()
    assert (path.parent / ".m.candide.lock").exists()
    store.update_file(path, lambda fitted: fitted, wait=1)
    assert not (path.parent / ".m.candide.lock").exists()


def test_a_change_that_fails_leaves_the_file_and_no_lock(path):
    before = path.read_bytes()
    with pytest.raises(InputError):
        store.update_file(path, lambda fitted: fitted - (fitted + fitted))
    with pytest.raises(RuntimeError):
        store.update_file(path, lambda fitted: (_ for _ in ()).throw(RuntimeError()))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["m.candide"]


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space"):
        store.save(FittedModel(garden()), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["m.candide"]


def test_the_file_and_then_its_folder_reach_the_disk(path, monkeypatch):
    synced, replaced = [], []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda h: (synced.append(os.path.isdir(f"/proc/self/fd/{h}")), fsync(h)))
    monkeypatch.setattr(os, "replace", lambda a, b: (replaced.append(len(synced)), replace(a, b)))
    store.save(FittedModel(garden()), path)
    assert synced == [False, True]
    assert replaced == [1]


def test_temporary_files_left_long_ago_are_swept(path):
    old, new = path.parent / ".m.candide.1.a.tmp", path.parent / ".m.candide.2.b.tmp"
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    store.update_file(path, lambda fitted: fitted)
    assert not old.exists()
    assert new.exists()


def test_updating_what_is_not_there_makes_nothing(tmp_path):
    with pytest.raises(ModelFileError, match=r"no such file$"):
        store.update_file(tmp_path / "absent.candide", lambda fitted: fitted)
    assert not list(tmp_path.iterdir())
