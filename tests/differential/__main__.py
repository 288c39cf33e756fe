"""Compare predictions of random tables across all entry points: python -m tests.differential --tables 2000."""

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tests.differential.compare import Found, compare
from tests.differential.entry_points import ESTIMATORS
from tests.engines.postgres_server import programs, server


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100, help="Number of tables. Default: 100.")
    parser.add_argument("--first", type=int, default=0, help="Seed of the first table. Default: 0.")
    parser.add_argument("--estimator", choices=list(ESTIMATORS), default="bayes", help="Default: bayes.")
    parser.add_argument("--fits", type=int, help="Ways to fit each table, chosen at random. Default: all.")
    parser.add_argument("--minutes", type=float, help="Stop after this time.")
    asked = parser.parse_args()
    found, start, done = Found(), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder, server() if programs() else nullcontext() as postgres:
        for seed in itertools.islice(itertools.count(asked.first), asked.tables):
            if asked.minutes is not None and time.monotonic() - start > 60 * asked.minutes:
                break
            compare(seed, asked.estimator, Path(folder), found, postgres, asked.fits)
            done += 1
    print(f"{done} tables, estimator {asked.estimator}, {time.monotonic() - start:.0f} s")
    for (name, what), times in sorted(found.refused.items()):
        print(f"refused {times:5} {name}: {what}")
    for name, times in Counter(name for _, name, *_ in found.differences).most_common():
        examples = [one for one in found.differences if one[1] == name]
        print(f"DIFFERENT {times:5} of {found.answered[name]} {name}")
        for seed, _, what, kinds in examples[:4]:
            print(f"    seed {seed}: {what} {kinds}")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
