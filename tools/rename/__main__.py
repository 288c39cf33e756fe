"""Run one stage: `python -m tools.rename moves|symbols|members [--root DIR]`."""

import argparse
from pathlib import Path

from . import modules
from .names import Names, load_moves


def main() -> None:
    """Apply one stage to a tree."""
    parser = argparse.ArgumentParser(prog="python -m tools.rename", description=__doc__)
    parser.add_argument("stage", choices=("moves", "symbols", "members"))
    parser.add_argument("--root", type=Path, default=Path(), help="Root of the repository. Default: this folder.")
    options = parser.parse_args()
    root = options.root.resolve()
    if options.stage == "moves":
        modules.rename(root, load_moves(), {})
        return
    names = Names(root)
    if options.stage == "symbols":
        modules.rename(root, {}, names.symbols())
    else:
        from . import members  # mypy is needed for this stage only

        members.rename(root, names.members(), names.params())
    if names.missing:
        print("not found:", *names.missing)


if __name__ == "__main__":
    main()
