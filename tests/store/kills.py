"""Updates that are killed at random moments: the file must always be the old model or the new one, whole.

python tests/store/kills.py [KILLS] [SEED]
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
from candide.fitted import Fitted

# Adds the garden to the file again and again, and says so after each time.
UPDATER = """
import sys
from candide import store
part = store.load(sys.argv[3])
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    store.update(sys.argv[1], lambda fitted: fitted + part)
    print("done", flush=True)
"""


@cache
def _part() -> str:
    """The garden as a file: quicker to load than to make."""
    path = Path(tempfile.mkdtemp()) / "garden.candide"
    store.save(Fitted(garden()), path)
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
    store.save(Fitted(garden()), path)
    for _ in range(kills):
        process = updater(path, 1000)
        time.sleep(rng.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        told, _ = process.communicate()
        fitted = store.load(path)
        updates, rest = divmod(fitted.census.n_rows, 300)
        said = told.count("done\n")
        assert rest == 0, "half an update"
        assert expected + said <= updates <= expected + said + 1, "an update was lost, or came from nowhere"
        assert (fitted.census.class_weight == 100.0 * updates).all()
        found["killed before it could say so" if updates > expected + said else "killed between"] += 1
        expected = updates
    found["updates"] = expected - 1
    store.update(path, lambda fitted: fitted)  # no lock is left that would hold it up
    return found


if __name__ == "__main__":
    n, first = (int(text) for text in [*sys.argv[1:], *["200", "0"][len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory() as place:
        print(dict(run(n, first, Path(place))))
