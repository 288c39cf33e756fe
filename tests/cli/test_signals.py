"""Told to stop, at whatever moment, the command ends at once: with a line, its exit status, and nothing left behind."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest

import candide as cd

ENDLESS = "SELECT (range % 97)::DOUBLE AS x, range % 2 AS y FROM range(10000000000000)"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for temporary files, and one to work in, with a model."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    cd.NaiveBayes().fit({"x": [1.0, 2.0, 8.0, 9.0]}, [0, 0, 1, 1]).save("m.candide")
    return tmp_path


def start(*args: str) -> subprocess.Popen:
    heed = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
    return subprocess.Popen([sys.executable, "-m", "candide", *args], stdin=-1, stdout=-1, stderr=-1, preexec_fn=heed)


def ended(process: subprocess.Popen, place, there: str, number: int) -> None:
    """Send a signal once a file is there, and look at the end."""
    while not list(place.glob(there)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    try:
        process.wait(60)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert process.stderr.read() == f"candide: ended by {signal.Signals(number).name}\n".encode()
    assert os.listdir(place / "tmp") == []
    assert os.listdir(place / "work") == ["m.candide"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_standard_input_is_read(place, number):
    process = start("fit", "-", "-t", "y", "-o", "new.candide")
    process.stdin.write(b"x,y\n" + b"1.5,a\n" * 2000)
    process.stdin.flush()  # and it stays open
    ended(process, place, "tmp/candide-*.csv", number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_the_rows_of_a_query_are_kept(place, number):
    ended(start("fit", ENDLESS, "-t", "y", "--folds", "2"), place, "tmp/candide-*.parquet", number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_while_predictions_are_written(place, number, out):
    ended(start("predict", "m.candide", ENDLESS, "-o", out), place, f"work/.{out}.*.tmp", number)


def test_while_predictions_go_into_a_pipe(place):
    ended(start("predict", "m.candide", ENDLESS), place, "tmp/candide-*", signal.SIGTERM)


def test_a_second_signal_does_not_wait(place):
    from candide import __main__ as command

    (place / "held").touch()
    script = (
        "import os, signal, sys; from candide import __main__ as command, files\n"
        "path = files.temporary_file()\n"
        "command._received.append(signal.SIGINT)\n"
        "command._stop(signal.SIGTERM, None)\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 143
    assert os.listdir(place / "tmp") == []
    assert command._received == []


# In Python the same moment is a KeyboardInterrupt. The source itself says stop, so it comes while a query is at work.
SOURCES = {
    "a stream": """
class Endless:
    def __arrow_c_stream__(self, schema=None):
        def batches():
            for i in range(10**9):
                if i == 40:
                    os.kill(os.getpid(), signal.SIGINT)
                yield pa.record_batch({"x": [1.0, 2.0] * 1000, "y": [0, 1] * 1000})
        kinds = pa.schema({"x": pa.float64(), "y": pa.int64()})
        return pa.RecordBatchReader.from_batches(kinds, batches()).__arrow_c_stream__(schema)
source = Endless()
""",
    "a relation": """
con = duckdb.connect()
def told(i):
    if i == 500_000:
        os.kill(os.getpid(), signal.SIGINT)
    return i
con.create_function("told", told, ["BIGINT"], "BIGINT")
source = con.sql("SELECT (told(range) % 97)::DOUBLE AS x, range % 2 AS y FROM range(10000000000000)")
""",
}
ASK = {"fit": 'cd.fit(source, "y")', "predict": 'cd.load("m.candide").predict_table(source, "out.csv")'}


@pytest.mark.parametrize("task", ASK)
@pytest.mark.parametrize("source", SOURCES)
def test_in_python_it_is_a_keyboard_interrupt(place, source, task):
    script = f"import os, signal, duckdb, pyarrow as pa, candide as cd\n{SOURCES[source]}\n"
    script += f"try:\n    {ASK[task]}\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert found.stdout == "stopped\n", found.stderr
    assert os.listdir(place / "work") == ["m.candide"]
