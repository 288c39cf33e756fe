"""Fading: what was learned weighs half as much after each half-life, exactly.

Counts are kept in units that double with each half-life: a row that is learned q half-lives after the beginning adds
2^q, over 2^epoch. To go on by an epoch is to divide all by 2, which no number is rounded by; so a row that is forgotten
takes away the very weight that it brought, whenever that is.

>>> fading = ExponentialDecay(10.0, start_time=100.0)
>>> fading.epoch_at(125.0), fading.row_weight(120.0, 2), fading.row_weight(125.0, 2) / fading.row_weight(120.0, 2)
(2, 1.0, 1.4142135623730951)
>>> fading.unit_weight(120.0, 2), fading.unit_weight(130.0, 2)  # what a unit weighs
(1.0, 0.5)
"""

from dataclasses import dataclass
from math import ldexp

from candide.model.fitted import FittedModel

_MIN_EXPONENT = -1000  # powers of two: what has faded so far weighs nothing beside a row, and is a number still


@dataclass(frozen=True)
class ExponentialDecay:
    """A half-life in seconds, and when the counts began to fade; without one nothing does."""

    half_life: float | None
    start_time: float

    def epoch_at(self, time: float) -> int:
        """Whole half-lives since the beginning."""
        return int(self._half_lives(time))

    def row_weight(self, at: float, epoch: int) -> float:
        """The weight of a row that was learned at a time, in units of an epoch."""
        lives = self._half_lives(at)
        return ldexp(2.0 ** (lives % 1.0), max(int(lives) - epoch, _MIN_EXPONENT))

    def unit_weight(self, at: float, epoch: int) -> float:
        """What a unit of an epoch weighs at a time."""
        return 2.0 ** max(epoch - self._half_lives(at), _MIN_EXPONENT)

    def convert_epoch(self, counts: FittedModel, epoch: int, to: int) -> FittedModel:
        """Counts in units of a later epoch."""
        return counts if epoch == to else counts.scale(ldexp(1.0, max(epoch - to, _MIN_EXPONENT)))

    def decay_counts(self, counts: FittedModel, epoch: int, at: float) -> FittedModel:
        """Counts of an epoch as they weigh at a time."""
        return counts if self.half_life is None else counts.scale(self.unit_weight(at, epoch))

    def _half_lives(self, at: float) -> float:
        return 0.0 if self.half_life is None else max(at - self.start_time, 0.0) / self.half_life
