"""Commands that run out of memory say so in one line."""

import resource
import subprocess
import sys

import pytest

from candide.cli import group
from candide.engines import base
from candide.errors import MemoryLimitError


@pytest.fixture
def path(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "1.5,x,p\n2.5,z,q\n" * 50)
    return str(tmp_path / "rows.csv")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("command", ["fit", "check"])
def test_a_limit_of_the_address_space(path, command):
    """OpenBLAS retried for ever in it, and no signal was seen."""

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))

    done = subprocess.run(
        [sys.executable, "-m", "candide", command, path, "--target", "y"],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limited,
    )
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("candide: virtual memory is limited to 1,500 MiB (ulimit -v); allow at least")


@pytest.mark.parametrize("limit", [1800 << 20, None])
def test_a_limit_is_compared_with_what_is_used(limit, monkeypatch):
    monkeypatch.setattr(base.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(base, "_address_space", lambda: (limit, 300 << 20))
    base.check_address_space.__wrapped__()
    monkeypatch.setattr(base, "_address_space", lambda: (1799 << 20, 300 << 20))
    with pytest.raises(MemoryLimitError) as error:
        base.check_address_space.__wrapped__()
    assert error.value.value == 1799 << 20


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "candide: not enough memory; pass --memory-limit"),
        (MemoryError("unable to allocate 9 MiB"), "candide: not enough memory (unable to allocate 9 MiB); pass"),
        (RuntimeError("can't start new thread"), "candide: not enough memory (can't start new thread); pass"),
    ],
)
def test_errors_of_memory_are_one_line(monkeypatch, capsys, error, line):
    def fail(**_):
        raise error

    monkeypatch.setattr(group, "cli", fail)
    monkeypatch.setattr(sys, "argv", ["candide", "fit"])
    with pytest.raises(SystemExit) as ended:
        group.main()
    assert ended.value.code == 1
    [found] = capsys.readouterr().err.splitlines()
    assert found.startswith(line)


def test_other_errors_are_raised(monkeypatch):
    def fail(**_):
        raise RuntimeError("a defect")

    monkeypatch.setattr(group, "cli", fail)
    with pytest.raises(RuntimeError):
        group.main()
