"""Encodings: how a column becomes numbers, codes or documents. No label is ever looked at here.

That of documents is ``candide.encode.tokens``, imported by those who count text.
"""

from candide.encode.base import Coded, Encoding, Move
from candide.encode.grid import Grid
from candide.encode.identity import Identity
from candide.encode.levels import Levels
from candide.encode.log import Log, Transformed

__all__ = ["Coded", "Encoding", "Grid", "Identity", "Levels", "Log", "Move", "Transformed"]
