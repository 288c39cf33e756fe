"""Targets: what a model can be exported to, one line each.

>>> list(TARGETS), TARGETS["python"].description
(['js', 'onnx', 'python', 'sql'], 'a Python module')
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from candide.errors import unknown_name_error
from candide.export.modules import EXPORT_MARKER, to_javascript, to_python
from candide.export.onnx import to_onnx_bytes
from candide.model.fitted import FittedModel


@dataclass(frozen=True)
class Target:
    """A function that writes a model, and its description."""

    write: Callable[..., str | bytes]
    description: str
    is_binary: bool = False  # not text: cannot be printed
    options: tuple[str, ...] = ()  # beside the model


def _select(fitted: FittedModel, *, keep: Sequence[str] = (), **options: Any) -> str:
    from candide.export.sql.query import write_select  # imports sqlglot, which is slow

    return write_select(fitted, kept_columns=keep, **options)


TARGETS = {
    "js": Target(to_javascript, "a JavaScript module"),
    "onnx": Target(to_onnx_bytes, "an ONNX graph", is_binary=True),
    "python": Target(to_python, "a Python module"),
    "sql": Target(_select, "a query", options=("dialect", "table", "keep")),
}


def find_target(name: str) -> Target:
    """The target of a name; the error lists all."""
    if name not in TARGETS:
        raise unknown_name_error("target of an export", name, TARGETS)
    return TARGETS[name]


def is_exported_file(path: str) -> bool:
    """Whether a file is a model that Candide exported, by how it begins."""
    with open(path, "rb") as file:
        return EXPORT_MARKER.encode() in file.read(200)
