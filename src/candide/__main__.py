"""``python -m candide`` is the command ``candide``. Told to stop, it removes its temporary files and says so in a line.

Signals are looked after before anything else is imported, so that a stop at any moment ends in the same way.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from candide.files import remove_temporaries

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_received: list[int] = []
_AGAIN = 1.0  # seconds


class Stopped(BaseException):
    """A signal to stop has come. No error, so that nobody who handles errors holds it up."""


def main() -> None:
    """Run the command; ended by a signal, the exit status is 128 and the signal's number, as a shell has it."""
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        from candide.cli import main as run

        run()
    except BaseException as error:
        _remind(0.0)
        if not _received or (isinstance(error, SystemExit) and error.code in (None, 0)):
            raise  # what was asked for is done
        remove_temporaries()
        print(f"candide: ended by {signal.Signals(_received[0]).name}", file=sys.stderr, flush=True)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(128 + _received[0])  # at once: a query that was not heard of it may be running still


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if len(_received) > 1:  # whoever says it again will not wait
        remove_temporaries()
        os._exit(128 + number)
    _remind(_AGAIN)
    raise Stopped


def _again(number: int, frame: FrameType | None) -> None:
    raise Stopped


def _remind(seconds: float) -> None:
    """Have the stop said again after a while, and again: where it came in somebody's callback it was not heard."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


if __name__ == "__main__":
    main()
