"""``python -m benchmarks SUBJECT [--quick] [--save]``: measure and print; --save keeps the result in RESULTS.md."""

import argparse
import importlib

from benchmarks import results

SUBJECTS = (
    "arrays",
    "tables",
    "scale",
    "text",
    "files",
    "corpora",
    "gaussian",
    "accuracy",
    "large",
    "bayes",
    "stability",
    "serve",
    "engines",
    "honesty",
    "compare",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it runs")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/RESULTS.md")
    module = importlib.import_module(f"benchmarks.{parser.parse_known_args()[0].subject}")
    if hasattr(module, "options"):  # of this subject alone
        module.options(parser)
    args = vars(parser.parse_args())
    subject, save = args.pop("subject"), args.pop("save")
    section = module.run(**args)
    if save:
        results.save(f"{subject}, {args['part']}" if args.get("part") else subject, section)


if __name__ == "__main__":
    main()
