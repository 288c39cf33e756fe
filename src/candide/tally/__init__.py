"""Tallies: what the rows say before any prior is chosen. They add.

>>> sorted(KINDS)
['levels', 'moments', 'sums', 'terms']
"""

from candide.tally.base import Block, Csr, Spec, Tally
from candide.tally.levels import Levels
from candide.tally.moments import Moments
from candide.tally.sums import Sums
from candide.tally.terms import Terms

KINDS: dict[str, type[Tally]] = {"moments": Moments, "levels": Levels, "sums": Sums, "terms": Terms}

__all__ = ["KINDS", "Block", "Csr", "Levels", "Moments", "Spec", "Sums", "Tally", "Terms"]
