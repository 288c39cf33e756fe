"""Updates that are killed at random moments: the file must always be the old model or the new one, whole.

python tests/store/kills.py [KILLS] [SEED]: kills ``candide update`` itself, then processes that update in a loop.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

from candide import store
from candide.demo import garden
from candide.model.fitted import FittedModel

# Adds the garden to the file again and again, and says so after each time.
UPDATER = """
import sys
from candide import store
part = store.load(sys.argv[3])
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    store.update_file(sys.argv[1], lambda fitted: fitted + part)
    print("done", flush=True)
"""


@cache
def _part() -> str:
    """The garden as a file: quicker to load than to make."""
    path = Path(tempfile.mkdtemp()) / "garden.candide"
    store.save(FittedModel(garden()), path)
    return str(path)


def updater(path: Path, times: int) -> subprocess.Popen:
    """A process that updates a file so many times; it has started when this returns."""
    command = [sys.executable, "-c", UPDATER, str(path), str(times), _part()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def run(kills: int, seed: int, folder: Path) -> Counter:
    """Kill so many updaters; an AssertionError if a file is not a sum of whole updates, or lacks one that was told."""
    rng, path, found, expected = random.Random(seed), folder / "m.candide", Counter(), 1
    store.save(FittedModel(garden()), path)
    process, start = updater(path, 10), time.monotonic()
    process.communicate()
    expected, takes = 11, (time.monotonic() - start) / 10
    for _ in range(kills):
        process = updater(path, 1000)
        time.sleep(rng.random() * 4 * takes)
        process.send_signal(signal.SIGKILL)
        told, _ = process.communicate()
        fitted = store.load(path)
        updates, rest = divmod(fitted.counts.n_rows, 300)
        said = told.count("done\n")
        assert rest == 0, "half an update"
        assert expected + said <= updates <= expected + said + 1, "an update was lost, or came from nowhere"
        assert (fitted.counts.class_weight == 100.0 * updates).all()
        found["killed before it could say so" if updates > expected + said else "killed between"] += 1
        expected = updates
    found["updates"] = expected - 11
    store.update_file(path, lambda fitted: fitted)  # no lock is left that would hold it up
    return found


def run_commands(kills: int, seed: int, folder: Path) -> Counter:
    """Kill ``candide update`` so many times, at moments from all of it and, every other time, from its end."""
    rng, path, rows, found = random.Random(seed), folder / "m.candide", folder / "rows.csv", Counter()
    rows.write_text("x,y\n" + "".join(f"{i % 17 / 4},{'ab'[i % 2]}\n" for i in range(300)))
    command = [sys.executable, "-m", "candide"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, "fit", rows, "--target", "y", "-o", path], check=True, **quiet)
    expected, takes = 1, 0.0
    for _ in range(2):
        start = time.monotonic()
        subprocess.run([*command, "update", path, rows], check=True, **quiet)
        expected, takes = expected + 1, time.monotonic() - start
    turn = 0
    while turn < kills:
        process, start = subprocess.Popen([*command, "update", str(path), str(rows)], **quiet), time.monotonic()
        try:
            process.wait(takes * (rng.random() if turn % 2 else 0.8 + 0.2 * rng.random()))
            takes = time.monotonic() - start  # the machine is quicker now
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        ended = process.wait() == 0
        fitted = store.load(path, verify=True)
        updates, rest = divmod(fitted.counts.n_rows, 300)
        assert rest == 0, "half an update"
        assert updates == expected + 1 if ended else expected <= updates <= expected + 1, "an update was lost"
        assert (fitted.counts.class_weight == 150.0 * updates).all()
        found[
            "ended before" if ended else "killed, the new model" if updates > expected else "killed, the old model"
        ] += 1
        expected, turn = updates, turn + (not ended)
    subprocess.run([*command, "update", path, rows, "--wait", "1"], check=True, **quiet)  # no lock is left
    assert store.load(path).counts.n_rows == 300 * (expected + 1)
    return found


if __name__ == "__main__":
    n, first = (int(text) for text in [*sys.argv[1:], *["200", "0"][len(sys.argv) - 1 :]])
    for sort in (run_commands, run):
        with tempfile.TemporaryDirectory() as place:
            print(sort.__name__, dict(sort(n, first, Path(place))), flush=True)
