"""Run the command line: an error is one line, and an exit status."""

import sys
import traceback

from candide.cli import completion, evaluate, fit, inspect, output, predict, server, update  # noqa: F401  commands
from candide.cli.group import cli
from candide.engines.addresses import redact_passwords
from candide.errors import CandideError

completion.attach_completion(cli)
_NO_THREAD = "can't start new thread"
_MEMORY_REMEDY = "pass --memory-limit or --threads 1, or give it more"


def main() -> None:
    """Run a command; exit status 1 and one line for an error, 2 for wrong usage."""
    debug = "--debug" in sys.argv
    try:
        cli(prog_name="candide")
    except (CandideError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        text = redact_passwords(traceback.format_exc() if debug else _message(error), sys.argv)
        print(text if debug else f"candide: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(1)


def _message(error: BaseException) -> str:
    if isinstance(error, CandideError | OSError):
        return str(error)
    return f"not enough memory{f' ({error})' if str(error) else ''}; {_MEMORY_REMEDY}"
