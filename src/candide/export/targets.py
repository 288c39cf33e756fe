"""Targets: what a model can be exported to, one line each.

>>> list(TARGETS), TARGETS["python"].description
(['js', 'onnx', 'python', 'sql'], 'a Python module')
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from candide import files
from candide.errors import InputError, unknown_name_error
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


def export_model(
    fitted: FittedModel,
    target: str,
    out: str | os.PathLike | None = None,
    *,
    force: bool = False,
    dialect: str | None = None,
    table: str | None = None,
    keep: str | Sequence[str] = (),
) -> str | bytes:
    """Return a model as a program of a target, text or bytes, and write it into ``out`` if given.

    An existing file is replaced only if it was exported before, unless ``force`` is set. ``dialect``, ``table`` and
    ``keep`` are options of "sql". A model that cannot be exported is an error that names the column.
    """
    chosen = find_target(target)
    files.check_output(out, is_own_file=is_exported_file, force=force)
    given = {"dialect": dialect, "table": table, "keep": [keep] if isinstance(keep, str) else list(keep)}
    options = {name: value for name, value in given.items() if value}
    for name in options:
        if name not in chosen.options:
            what = f"{name} is an option of sql, and not of {target}"
            raise InputError(what, value=options[name], remedy="leave it out")
    program = chosen.write(fitted, **options)
    if out is not None:
        files.write_atomically(out, [program.encode("utf-8") if isinstance(program, str) else program])
    return program
