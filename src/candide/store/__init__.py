"""Store: a model file."""

from candide.files import locked
from candide.store.file import DETAILS, FORMAT, ModelFileError, load, save, update

__all__ = ["DETAILS", "FORMAT", "ModelFileError", "load", "locked", "save", "update"]
