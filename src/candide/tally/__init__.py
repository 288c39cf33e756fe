"""Tallies: sufficient statistics of rows, before any prior is chosen. They add."""

from typing import TYPE_CHECKING

from candide.tally.base import TALLIES, Tally, TallySpec
from candide.tally.base import get_class as __getattr__  # noqa: F401  (a kind, imported at its first use)

if TYPE_CHECKING:
    from candide.tally.comoments import CoMoments
    from candide.tally.levels import CellTally, LevelTally
    from candide.tally.moments import Moments
    from candide.tally.sums import Sums
    from candide.tally.token_counts import TokenCounts

__all__ = [
    "TALLIES",
    "CellTally",
    "CoMoments",
    "LevelTally",
    "Moments",
    "Sums",
    "Tally",
    "TallySpec",
    "TokenCounts",
]
