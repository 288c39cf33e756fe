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
        self,
        last_time: float | None,
        max_gap: float | None,
        calendar: Seconds = time.time,
        monotonic: Seconds = time.monotonic,
    ):
        said = calendar()
        self.rejected_time = (
            said if last_time is not None and max_gap is not None and said - last_time > max_gap else None
        )
        start = said if last_time is None else last_time if self.rejected_time is not None else max(said, last_time)
        self._monotonic, self._offset = monotonic, start - monotonic()

    def __call__(self) -> float:
        return self._offset + self._monotonic()


def format_time(at: float) -> str:
    """A time in words.

    >>> format_time(0.0), format_time(1e15)
    ('1970-01-01 00:00 UTC', '1000000000000000 seconds after 1970')
    """
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # no calendar goes so far
        return f"{at:.0f} seconds after 1970"
