"""Store: a model file."""

from candide.files import lock_file
from candide.store.container import is_model_file
from candide.store.file import DETAILS, FORMAT, ModelFileError, dumps, load, loads, model_digest, save, update_file

__all__ = [
    "DETAILS", "FORMAT", "ModelFileError", "dumps", "is_model_file", "load", "loads", "lock_file", "model_digest",
    "save", "update_file",
]  # fmt: skip
