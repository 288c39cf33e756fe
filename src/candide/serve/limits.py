"""Limits: how much of the server one request may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a request may be at most; more is refused by a problem that says so."""

    body: int = 16 << 20  # bytes: 100,000 rows of 14 columns as JSON
    rows: int = 100_000
    explained: int = 1000  # rows of which one request may ask why
    seconds: float = 30.0  # to send a body, and to wait for an answer
