"""Inputs: the files that are read where some data are opened, so that no result is written over one of them.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> for name in ("a.csv", "b.csv"):
...     open(os.path.join(folder, name), "w").close()
>>> [sorted(map(os.path.basename, input_files(f"{folder}{rest}"))) for rest in ("", "/*.csv", "/a.csv", "/none.csv")]
[['a.csv', 'b.csv'], ['a.csv', 'b.csv'], ['a.csv'], []]
>>> [os.path.basename(name) for name in input_files(f"SELECT * FROM '{folder}/b.csv'")]
['b.csv']
"""

import glob
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

_QUOTED_TEXT = re.compile(r"""(['"])((?:(?!\1).|\1\1)+)\1""", re.DOTALL)


def input_files(*data: Any) -> Iterator[Any]:
    """The files behind whatever stands for a model or for rows: a path, a folder, a glob, a query, standard input.

    Standard input is a descriptor; what is in memory already has no file.
    """
    for one in data:
        if isinstance(one, str) and one == "-":
            yield from _standard_input()
        elif isinstance(one, str | os.PathLike):
            yield from _files_in_name(os.fspath(one))
        else:
            yield from getattr(one, "files", ())  # of an Arrow dataset


def _files_in_name(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        yield from (os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files)
    elif os.path.exists(name):
        yield name
    else:  # a glob, a table within a file, or a query with names in quotes
        for text in {name, name.partition("::")[0], *(found[2] for found in _QUOTED_TEXT.finditer(name))}:
            yield from glob.glob(text, recursive=True)


def _standard_input() -> Iterator[int]:
    try:
        yield sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # none, or one that is no file
        return
