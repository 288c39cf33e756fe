"""``python -m candide`` is the command ``candide``. A signal ends it in one line, without its temporary files.

Signals are handled before anything else is imported, so that a stop at any moment ends in the same way.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from candide.files import remove_temporaries

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_received: list[int] = []
_REPEAT_SECONDS = 1.0


class Stopped(BaseException):
    """A signal to stop was received. Not an Exception, so that no handler of errors catches it."""


def main() -> None:
    """Run the command; after a signal the exit status is 128 plus its number, as in a shell."""
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        from candide.cli import main as run

        run()
    except BaseException as error:
        _repeat(0.0)
        if not _received or (isinstance(error, SystemExit) and error.code in (None, 0)):
            raise
        remove_temporaries()
        print(f"candide: ended by {signal.Signals(_received[0]).name}", file=sys.stderr, flush=True)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(128 + _received[0])  # at once: a query may still be running


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if len(_received) > 1:  # a second signal does not wait
        remove_temporaries()
        os._exit(128 + number)
    _repeat(_REPEAT_SECONDS)
    raise Stopped


def _stop_again(number: int, frame: FrameType | None) -> None:
    raise Stopped


def _repeat(seconds: float) -> None:
    """Raise ``Stopped`` again at intervals: an exception in the callback of a library may be lost; 0 ends this."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _stop_again)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


if __name__ == "__main__":
    main()
