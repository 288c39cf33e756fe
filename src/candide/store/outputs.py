"""Outputs: whether a result may be written where it is wanted, asked before any work is done for it.

>>> import tempfile
>>> from candide.errors import InputError
>>> path = os.path.join(tempfile.mkdtemp(), "rows.csv")
>>> check_destination(path)
>>> with open(path, "w") as file:
...     _ = file.write("age,job")
>>> try:
...     check_destination(path, {"age": [30]}, path)
... except InputError as error:
...     print(error.problem.removeprefix(path), "|", error.remedy)
 is one of the inputs, which would be lost | name another file, or pass --force (force=True) to write there all the same
"""

import os
from collections.abc import Callable
from typing import Any

from candide.errors import InputTypeError
from candide.files import check_output, input_files
from candide.store import is_model_file


def check_destination(
    path: str | os.PathLike | None, *inputs: Any, ours: Callable[[str], bool] = is_model_file, force: bool = False
) -> None:
    """Refuse to write a result, a model if nothing else is said, where something would be lost by it.

    ``inputs`` are what it is made of: models, and data. None of them may be written over, nor a file that was not made
    by Candide, as ``ours`` tells, but by ``force``.
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        remedy = (
            "pass a path; labels are a column of the data that target names, as in {**X, 'label': y}, target='label'"
        )
        raise InputTypeError(f"expected the path of an output file, got {type(path).__name__}", remedy=remedy)
    if path is not None:
        check_output(path, input_files(*inputs), is_own_file=ours, force=force)
