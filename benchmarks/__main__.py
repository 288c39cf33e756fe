"""``python -m benchmarks SUBJECT [--quick] [--save]``: measure and print; --save keeps the result in RESULTS.md."""

import argparse
import importlib

from benchmarks import results

SUBJECTS = ("arrays", "tables", "scale", "text", "files", "corpora", "gaussian")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it runs")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/RESULTS.md")
    args = parser.parse_args()
    section = importlib.import_module(f"benchmarks.{args.subject}").run(quick=args.quick)
    if args.save:
        results.save(args.subject, section)


if __name__ == "__main__":
    main()
