"""Export a model: one file of another language that scores rows without Candide.

>>> from candide.demo import garden
>>> text = export(Fitted(garden()), "js")
>>> "export default model;" in text
True
"""

import os
from collections.abc import Sequence

from candide import files
from candide.errors import InputError
from candide.export.targets import is_exported, target
from candide.model.fitted import Fitted
from candide.tasks import outputs
from candide.tasks.models import Model, fitted_of

__all__ = ["Fitted", "export"]


def export(
    model: Model,
    to: str,
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
    chosen = target(to)
    inputs = [model] if isinstance(model, str | os.PathLike) else []
    outputs.check(out, *inputs, ours=is_exported, force=force)
    given = {"dialect": dialect, "table": table, "keep": [keep] if isinstance(keep, str) else list(keep)}
    options = {name: value for name, value in given.items() if value}
    for name in options:
        if name not in chosen.options:
            raise InputError(f"{name} is an option of sql, and not of {to}", value=options[name], remedy="leave it out")
    found = chosen.write(fitted_of(model), **options)
    if out is not None:
        files.write_whole(out, [found.encode("utf-8") if isinstance(found, str) else found])
    return found
