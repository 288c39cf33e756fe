"""Running the command line: an error is one line, and says so by its exit status."""

import sys
import traceback

from candide.cli import (  # noqa: F401  each adds its commands
    compare,
    completion,
    exports,
    fit,
    inspect,
    plot,
    predict,
    report,
    server,
    sql,
    update,
)
from candide.cli.group import cli
from candide.engines.addresses import redact_passwords
from candide.errors import CandideError

completion.attach_completion(cli)
_NO_THREAD = "can't start new thread"
_MEMORY = "not enough memory; pass --memory-limit or --threads 1, or give it more"


def main() -> None:
    """Run; exit status 1 for what Candide says, 2 for wrong usage."""
    debug = "--debug" in sys.argv
    try:
        cli(prog_name="candide")
    except (CandideError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        said = redact_passwords(traceback.format_exc() if debug else _message(error), sys.argv)
        print(said if debug else f"candide: {' '.join(said.split())}", file=sys.stderr)
        sys.exit(1)


def _message(error: BaseException) -> str:
    """Return what to tell of an error; one of Python or of a library says only that memory could not be had."""
    if isinstance(error, CandideError | OSError):
        return str(error)
    return (
        f"not enough memory ({error}); pass --memory-limit or --threads 1, or give it more" if str(error) else _MEMORY
    )
