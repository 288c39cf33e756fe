"""A disk that is full: one line that names the file, nothing left under its name, and an end in any case.

A limit on the size of files stands in for the disk.
"""

import resource
import signal
import subprocess
import sys

import pytest

from candide import store
from candide.fit_source import fit_model

_LIMIT = 50_000  # bytes


def limited():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, _LIMIT))


def run(*arguments):
    command = [sys.executable, "-m", "candide", *arguments]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and so many rows that they are scored and written in several pieces."""
    folder = tmp_path_factory.mktemp("disk")
    learned = fit_model({"a": [1.5, 2.5, 3.5, 4.5] * 5, "y": ["p", "q"] * 10}, "y", model="naive")
    store.save(learned.fitted, folder / "m.candide")
    (folder / "rows.csv").write_text("a\n" + "1.25\n2.75\n" * 150_000)
    return folder


@pytest.mark.all_cases
@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.parquet"])
def test_predictions(folder, name):
    done = run("predict", str(folder / "m.candide"), str(folder / "rows.csv"), "-o", str(folder / name))
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"candide: cannot write {folder / name}: ")
    assert line.endswith("; free some space, or write elsewhere")
    assert sorted(path.name for path in folder.iterdir()) == ["m.candide", "rows.csv"]


def test_a_report(folder):
    done = run("report", str(folder / "m.candide"), "-o", str(folder / "report.html"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"candide: cannot write {folder / 'report.html'}: ")


def test_a_bad_value_amid_the_rows(folder, tmp_path):
    """An error of the rows ends the writing too, in one line."""
    (tmp_path / "bad.jsonl").write_text('{"a": 1.5}\n' * 200_000 + '{"a": 1e999}\n')
    names = [str(folder / "m.candide"), str(tmp_path / "bad.jsonl"), "-o", str(tmp_path / "out.csv")]
    command = [sys.executable, "-m", "candide", "predict", *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("candide: ")
    assert not (tmp_path / "out.csv").exists()
