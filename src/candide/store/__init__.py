"""Store: a model file."""

from candide.files import locked
from candide.store.container import is_model
from candide.store.file import DETAILS, FORMAT, ModelFileError, digest, dumps, load, loads, save, update

__all__ = [
    "DETAILS",
    "FORMAT",
    "ModelFileError",
    "digest",
    "dumps",
    "is_model",
    "load",
    "loads",
    "locked",
    "save",
    "update",
]
