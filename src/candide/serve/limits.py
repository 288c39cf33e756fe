"""Limits: how much of the server one request may take.

>>> Limits(max_rows=10).check(10, 3)
>>> Limits(max_rows=10).check(11, 3)
Traceback (most recent call last):
candide.serve.problem.RequestProblem: 11 rows in one request
"""

from dataclasses import dataclass

from candide.serve.problem import RequestProblem


@dataclass(frozen=True)
class Limits:
    """What a request may be at most; more is refused by a problem that says so."""

    max_body_bytes: int = (
        16 << 20
    )  # bytes: 100,000 rows of 14 columns as JSON; also those of text that Arrow says but once
    max_rows: int = 100_000
    max_explained_rows: int = 1000  # rows of which one request may ask why
    max_columns: int = (
        100_000  # one of CSV takes 50 microseconds however few its rows: all of them a sixth of the seconds
    )
    max_cells: int = 16 << 20  # rows times names: a body that says each of them, in a byte or more, has no more
    timeout_seconds: float = 30.0  # to send a body, and to wait for an answer

    def check(self, rows: int, columns: int) -> None:
        """Refuse a table that is too large; before it is made, as that of a short body could fill the memory."""
        if rows > self.max_rows:
            raise _too_many_error("rows", rows, self.max_rows)
        if columns > self.max_columns:
            raise _too_many_error("columns", columns, self.max_columns)
        if rows * columns > self.max_cells:
            raise _too_many_error("cells, rows times names,", rows * columns, self.max_cells)


DEFAULT_LIMITS = Limits()


def _too_many_error(what: str, found: int, most: int) -> RequestProblem:
    return RequestProblem(
        413, f"{found:,} {what} in one request", value=found, remedy=f"send at most {most:,} at a time"
    )
