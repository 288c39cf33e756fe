"""Encodings: how a column becomes numbers, codes or documents (:mod:`candide.encoding.tokens`). Labels are not used."""

from candide.encoding.base import CodeMapping, Encoding, Identity, Log, TransformedEncoding
from candide.encoding.codes import Grid, LevelEncoding

__all__ = ["CodeMapping", "Encoding", "Grid", "Identity", "LevelEncoding", "Log", "TransformedEncoding"]
