"""Tallies: what the rows say before any prior is chosen. They add.

>>> sorted(KINDS)
['cells', 'comoments', 'levels', 'moments', 'sums', 'terms']
"""

from typing import TYPE_CHECKING

from candide.rows.blocks import Block, Csr
from candide.tally.base import Spec, Tally
from candide.tally.table import KINDS
from candide.tally.table import attribute as __getattr__  # noqa: F401  (a kind, when it is first asked for)

if TYPE_CHECKING:
    from candide.tally.cells import Cells
    from candide.tally.comoments import CoMoments
    from candide.tally.levels import Levels
    from candide.tally.moments import Moments
    from candide.tally.sums import Sums
    from candide.tally.terms import Terms

__all__ = ["KINDS", "Block", "Cells", "CoMoments", "Csr", "Levels", "Moments", "Spec", "Sums", "Tally", "Terms"]
