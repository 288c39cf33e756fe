"""Encodings: how a column becomes numbers, codes or documents. No label is ever looked at here.

That of documents is ``candide.encoding.tokens``, imported by those who count text.
"""

from candide.encoding.base import CodeMapping, EncodedColumn, Encoding
from candide.encoding.grid import Grid
from candide.encoding.identity import Identity
from candide.encoding.levels import LevelEncoding
from candide.encoding.log import Log, TransformedEncoding

__all__ = [
    "CodeMapping",
    "EncodedColumn",
    "Encoding",
    "Grid",
    "Identity",
    "LevelEncoding",
    "Log",
    "TransformedEncoding",
]
