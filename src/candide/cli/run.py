"""Running the command line: an error is one line, and says so by its exit status."""

import sys
import traceback

from candide.cli import (  # noqa: F401  each adds its commands
    changes,
    compare,
    completion,
    exports,
    learning,
    models,
    pages,
    pictures,
    rows,
    server,
    sql,
)
from candide.cli.group import cli
from candide.engines.addresses import told
from candide.errors import CandideError

completion.attach(cli)


def main() -> None:
    """Run; exit status 1 for what Candide says, 2 for wrong usage."""
    debug = "--debug" in sys.argv
    try:
        cli(prog_name="candide")
    except (CandideError, OSError) as error:
        said = told(traceback.format_exc() if debug else str(error), sys.argv)
        print(said if debug else f"candide: {' '.join(said.split())}", file=sys.stderr)
        sys.exit(1)
