"""Folders: documents as files, one folder a class, as 20 newsgroups is shipped. Read as a table of text and class.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> for name, text in (("ham/1", "see you"), ("spam/1", "free prize"), ("spam/2", "free call")):
...     (root / name).parent.mkdir(exist_ok=True)
...     _ = (root / name).write_text(text)
>>> holds_documents(root), read(root).to_pylist()[0]
(True, {'text': 'see you', 'class': 'ham'})
"""

import os
from pathlib import Path
from typing import Any

from candide.errors import InputError

_TABLES = {"csv", "tsv", "tab", "parquet", "pq", "jsonl", "ndjson", "json", "arrow", "feather", "ipc", "arrows"}
_PACKED = {"gz", "zst", "bz2"}


def holds_documents(path: str | os.PathLike) -> bool:
    """Whether a folder holds two or more folders, and these files that are no tables."""
    folders = _folders(Path(path))
    if len(folders) < 2 or any("=" in folder.name for folder in folders):  # year=2024 divides a table
        return False
    first = [next(iter(_files(folder)), None) for folder in folders]
    return all(file is not None and not (_endings(file) & (_TABLES | _PACKED)) for file in first)


def read(path: str | os.PathLike, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """An Arrow table of the files of a folder of folders: ``text``, and ``class``, the name of the folder.

    ``errors`` is the rule for bytes that are not of the encoding: "strict" (an error that names the file), "replace"
    or "ignore".
    """
    import pyarrow as pa

    texts, classes = [], []
    for folder in _folders(Path(path)):
        for file in _files(folder):
            try:
                texts.append(file.read_bytes().decode(encoding, errors))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{file}: {error.reason} at byte {error.start}, read as {encoding}; "
                    "pass another encoding, such as latin-1, or errors='replace'"
                ) from None
            except LookupError as error:
                raise InputError(str(error)) from None
            classes.append(folder.name)
    return pa.table({"text": pa.array(texts, pa.large_string()), "class": pa.array(classes, pa.string())})


def _folders(path: Path) -> list[Path]:
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    return [entry for entry in entries if entry.is_dir()] if all(entry.is_dir() for entry in entries) else []


def _files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")]


def _endings(file: Path) -> set[str]:
    return {ending.lstrip(".").lower() for ending in file.suffixes[-2:]}
