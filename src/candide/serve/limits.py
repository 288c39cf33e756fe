"""Limits: how much of the server one request may take.

>>> Limits(rows=10).check(10, 3)
>>> Limits(rows=10).check(11, 3)
Traceback (most recent call last):
candide.serve.problem.Problem: 11 rows in one request
"""

from dataclasses import dataclass

from candide.serve.problem import Problem


@dataclass(frozen=True)
class Limits:
    """What a request may be at most; more is refused by a problem that says so."""

    body: int = 16 << 20  # bytes: 100,000 rows of 14 columns as JSON; also those of text that Arrow says but once
    rows: int = 100_000
    explained: int = 1000  # rows of which one request may ask why
    columns: int = 100_000  # one of CSV takes 50 microseconds however few its rows: all of them a sixth of the seconds
    cells: int = 16 << 20  # rows times names: a body that says each of them, in a byte or more, has no more
    seconds: float = 30.0  # to send a body, and to wait for an answer

    def check(self, rows: int, columns: int) -> None:
        """Refuse a table that is too large; before it is made, as that of a short body could fill the memory."""
        if rows > self.rows:
            raise _too_many("rows", rows, self.rows)
        if columns > self.columns:
            raise _too_many("columns", columns, self.columns)
        if rows * columns > self.cells:
            raise _too_many("cells, rows times names,", rows * columns, self.cells)


USUAL = Limits()


def _too_many(what: str, found: int, most: int) -> Problem:
    return Problem(413, f"{found:,} {what} in one request", value=found, remedy=f"send at most {most:,} at a time")
