"""Targets: what a model can be exported to, one line each.

>>> list(TARGETS), TARGETS["python"].what
(['js', 'onnx', 'python', 'sql'], 'a Python module')
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from candide.errors import unknown
from candide.export.javascript import javascript
from candide.export.joined import MARK
from candide.export.onnx import onnx
from candide.export.python import python
from candide.model.fitted import Fitted


@dataclass(frozen=True)
class Target:
    """What writes a model, and what that is called."""

    write: Callable[..., str | bytes]
    what: str
    binary: bool = False  # whether it is no text, and cannot be printed
    options: tuple[str, ...] = ()  # that it takes beside the model


def _select(fitted: Fitted, **options: Any) -> str:
    from candide.export.sql.query import select  # SQL is parsed for it, which takes a while to import

    return select(fitted, **options)


TARGETS = {
    "js": Target(javascript, "a JavaScript module"),
    "onnx": Target(onnx, "a graph of ONNX", binary=True),
    "python": Target(python, "a Python module"),
    "sql": Target(_select, "a query", options=("dialect", "table", "keep")),
}


def target(name: str) -> Target:
    """The target of a name; an error that lists those known."""
    if name not in TARGETS:
        raise unknown("target of an export", name, TARGETS)
    return TARGETS[name]


def is_exported(path: str) -> bool:
    """Whether a file is a model that Candide exported, by how it begins."""
    with open(path, "rb") as file:
        return MARK.encode() in file.read(200)
