"""The command line: a thin face over the library. Each command reads its options, calls one function, prints."""

import sys

from candide.cli import changes, learning, models, pictures, rows  # noqa: F401  they add their commands to the group
from candide.cli.group import cli
from candide.errors import CandideError

__all__ = ["cli", "main"]


def main() -> None:
    """Run; an error is one line: exit status 1 for what Candide says, 2 for wrong usage."""
    debug = "--debug" in sys.argv
    try:
        cli(prog_name="candide")
    except (CandideError, OSError) as error:
        if debug:
            raise
        print(f"candide: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
