"""Clock: the time of a journal, which never runs backwards and cannot be set.

While a server runs time passes as it does on a clock that nobody sets. Between two runs it passes as the calendar says,
unless that lies before the journal's last time, or so far behind it that all would be forgotten: then nothing is known
of the time between, and it counts as none.

>>> def clock(calendar, last): return Clock(last, 100.0, lambda: calendar, lambda: 7.0)
>>> clock(1050.0, 1000.0)(), clock(3.0, 1000.0)(), clock(9e9, 1000.0)(), clock(9e9, None)()
(1050.0, 1000.0, 1000.0, 9000000000.0)
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Seconds = Callable[[], float]


class Clock:
    """Seconds since 1970, going on from the last that a journal knows of."""

    def __init__(
        self, last: float | None, most: float | None, calendar: Seconds = time.time, steady: Seconds = time.monotonic
    ):
        said = calendar()
        self.unbelieved = said if last is not None and most is not None and said - last > most else None
        start = said if last is None else last if self.unbelieved is not None else max(said, last)
        self._steady, self._ahead = steady, start - steady()

    def __call__(self) -> float:
        return self._ahead + self._steady()


def day(at: float) -> str:
    """A time in words.

    >>> day(0.0), day(1e15)
    ('1970-01-01 00:00 UTC', '1000000000000000 seconds after 1970')
    """
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # no calendar goes so far
        return f"{at:.0f} seconds after 1970"
