"""Folders: documents as files, one folder a class, as 20 newsgroups is shipped. Read as a table of text and class.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> for name, text in (("ham/1", "see you"), ("spam/1", "free prize"), ("spam/2", "free call")):
...     (root / name).parent.mkdir(exist_ok=True)
...     _ = (root / name).write_text(text)
>>> import pyarrow as pa
>>> has_document_folders(root), pa.table(DocumentFolder(root)).to_pylist()[0]
(True, {'text': 'see you', 'class': 'ham'})
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from candide.engines.duckdb.formats import FORMATS, SINGLE_FILE_FORMATS
from candide.errors import InputError, SourceError

_TABLE_SUFFIXES = (FORMATS.keys() | SINGLE_FILE_FORMATS.keys()) - {"txt", "data"}  # endings that documents may have
_COMPRESSED_SUFFIXES = {"gz", "zst", "bz2", "xz"}
_BATCH_CHARACTERS, _BATCH_FILES = 1 << 23, 1 << 12  # characters and files read at a time


def has_document_folders(path: str | os.PathLike) -> bool:
    """Whether a folder holds two or more folders, and these files that are no tables."""
    folders = _folders(Path(path))
    if len(folders) < 2 or any("=" in folder.name for folder in folders):  # year=2024 divides a table
        return False
    first = [next(iter(_files(folder)), None) for folder in folders]
    return all(file is not None and not (_suffixes(file) & (_TABLE_SUFFIXES | _COMPRESSED_SUFFIXES)) for file in first)


@dataclass(frozen=True)
class DocumentFolder:
    """The files of a folder of folders as rows of ``text`` and ``class``, the name of the folder.

    Whoever asks for the rows (by the Arrow C stream interface) gets them from the disk, some files at a time, as often
    as they are asked for. ``errors`` is the rule for bytes that are not of the encoding: "strict" (an error that names
    the file), "replace" or "ignore".
    """

    path: str | os.PathLike
    encoding: str = "utf-8"
    errors: str = "strict"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        schema = pa.schema([("text", pa.large_string()), ("class", pa.string())])
        batches = (pa.record_batch(list(columns), schema=schema) for columns in self._batches())
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[tuple[list[str], list[str]]]:
        texts, classes, size = [], [], 0
        for folder in _folders(Path(self.path)):
            for file in _files(folder):
                texts.append(self._read_text(file))
                classes.append(folder.name)
                size += len(texts[-1])
                if size > _BATCH_CHARACTERS or len(texts) >= _BATCH_FILES:
                    yield texts, classes
                    texts, classes, size = [], [], 0
        yield texts, classes

    def _read_text(self, file: Path) -> str:
        try:
            return file.read_bytes().decode(self.encoding, self.errors)
        except UnicodeDecodeError as error:
            what = f"{error.reason} at byte {error.start}, read as {self.encoding}"
            remedy = "pass another encoding, such as latin-1, or errors='replace'"
            raise SourceError(what, source=str(file), remedy=remedy) from None
        except LookupError as error:
            raise InputError(str(error), value=self.encoding) from None


def _folders(path: Path) -> list[Path]:
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    return [entry for entry in entries if entry.is_dir()] if all(entry.is_dir() for entry in entries) else []


def _files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")]


def _suffixes(file: Path) -> set[str]:
    return {ending.lstrip(".").lower() for ending in file.suffixes[-2:]}
