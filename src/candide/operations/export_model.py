"""Export a model: one file of another language that scores rows without Candide.

>>> from candide.demo import garden
>>> text = export_model(FittedModel(garden()), "js")
>>> "export default model;" in text
True
"""

import os
from collections.abc import Sequence

from candide import files
from candide.errors import InputError
from candide.export.targets import find_target, is_exported_file
from candide.model.fitted import FittedModel
from candide.store import outputs
from candide.store.models import ModelLike, load_fitted

__all__ = ["FittedModel", "export_model"]


def export_model(
    model: ModelLike,
    output_format: str,
    out: str | os.PathLike | None = None,
    *,
    force: bool = False,
    dialect: str | None = None,
    table: str | None = None,
    keep: Sequence[str] = (),
) -> str | bytes:
    """What scores rows, ``to`` "js" or "python" (text) or "onnx" (bytes); ``out`` is the file to write it into.

    ``to`` "sql" gives one SELECT in a ``dialect`` for the rows of a ``table``, of which it may ``keep`` some columns.

    A file that is there is replaced if it was exported; another one by ``force`` only. What cannot be exported, such
    as an own event model of which nothing but a Python function is known, is an error that names its column.
    """
    chosen = find_target(output_format)
    inputs = [model] if isinstance(model, str | os.PathLike) else []
    outputs.check_destination(out, *inputs, ours=is_exported_file, force=force)
    given = {"dialect": dialect, "table": table, "keep": [keep] if isinstance(keep, str) else list(keep)}
    options = {name: value for name, value in given.items() if value}
    for name in options:
        if name not in chosen.options:
            raise InputError(
                f"{name} is an option of sql, and not of {output_format}", value=options[name], remedy="leave it out"
            )
    found = chosen.write(load_fitted(model), **options)
    if out is not None:
        files.write_atomically(out, [found.encode("utf-8") if isinstance(found, str) else found])
    return found
