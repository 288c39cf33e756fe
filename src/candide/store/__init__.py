"""Store: a model file."""

from candide.files import locked
from candide.store.file import DETAILS, FORMAT, ModelFileError, dumps, load, loads, save, update

__all__ = ["DETAILS", "FORMAT", "ModelFileError", "dumps", "load", "loads", "locked", "save", "update"]
