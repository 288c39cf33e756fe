"""Formats: what a path names, by the first bytes of a file and by the ending of its name.

What cannot be read says what it is, and what to do.

>>> detect_format("rows-*.csv.gz"), detect_format("rows-*.parquet"), detect_format("rows-*")
('csv', 'parquet', 'csv')
>>> refuse_address("https://example.org/rows.csv")
Traceback (most recent call last):
    ...
candide.errors.SourceError: https://example.org/rows.csv: an address on the web (https); download it first, with \
curl -LO say, and pass the file
"""

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from candide.engines.addresses import redact_address
from candide.errors import InputError, SourceError

FORMATS = {
    "csv": "csv", "tsv": "csv", "txt": "csv", "tab": "csv", "data": "csv",
    "parquet": "parquet", "pq": "parquet",
    "jsonl": "json", "ndjson": "json", "json": "json",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow", "arrows": "arrow",
    "duckdb": "duckdb", "ddb": "duckdb",
}  # fmt: skip
SINGLE_FILE_FORMATS = {  # those of which one file is read at a time
    "xlsx": "sheets", "xlsm": "sheets", "xlsb": "sheets", "xls": "sheets", "ods": "sheets",
    "sqlite": "sqlite", "sqlite3": "sqlite", "arff": "arff",
}  # fmt: skip
_DATABASES = ("db", "sqlite", "sqlite3")
MULTI_TABLE_FORMATS = ("duckdb", "sqlite", "sheets")  # formats that may hold several
_SIGNATURES = (  # where, what stands there, and the format that it means
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "arrow"),
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "sheets"),
)
_UNSUPPORTED_SIGNATURES = (  # the same, of what is not read: what it is, and what to do
    (0, b"Rar!", "a RAR archive", "unpack it first, and pass the file in it"),
    (0, b"7z\xbc\xaf", "a 7-Zip archive", "unpack it first, and pass the file in it"),
    (257, b"ustar", "a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    (0, b"%PDF", "a PDF document", "export its table as CSV"),
    (0, b"\x89HDF", "an HDF5 file", "read it with pandas or h5py, and pass the frame, or write it as Parquet"),
    (0, b"\x93NUMPY", "an array of NumPy", "load it, and pass it to NaiveBayes().fit(X, y)"),
    (0, b"ORC", "an ORC file", "read it with pyarrow.orc, and pass the table, or write it as Parquet"),
    (0, b"Obj\x01", "an Avro file", "write it as Parquet or JSON lines"),
)
_FRAME_REMEDY = "read it with pandas.{}, and pass the frame, or write it as Parquet"
_ENDINGS = {
    "tgz": ("a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    "tar": ("a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    "pkl": ("a pickle", "load it, and pass the frame, or write it as Parquet"),
    "pickle": ("a pickle", "load it, and pass the frame, or write it as Parquet"),
    "dta": ("a file of Stata", _FRAME_REMEDY.format("read_stata")),
    "sav": ("a file of SPSS", _FRAME_REMEDY.format("read_spss")),
    "sas7bdat": ("a file of SAS", _FRAME_REMEDY.format("read_sas")),
    "rds": ("a file of R", "write it there as CSV (write.csv) or Parquet"),
    "rdata": ("a file of R", "write it there as CSV (write.csv) or Parquet"),
    "mat": ("a file of MATLAB", "load it with scipy.io.loadmat, and pass the arrays"),
    "npz": ("arrays of NumPy", "load them, and pass them to NaiveBayes().fit(X, y)"),
    "html": ("a web page", _FRAME_REMEDY.format("read_html")),
}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "r2", "hdfs", "hf", "oss")


def refuse_address(path: str) -> None:
    """Refuse an address: only files are read."""
    if not (found := _ADDRESS.match(path)):
        return
    scheme = found[1].lower()
    if scheme in ("http", "https", "ftp", "ftps", "sftp"):
        what, remedy = f"an address on the web ({scheme})", "download it first, with curl -LO say, and pass the file"
    elif scheme in _OBJECT_STORES:
        copy = {"s3": "aws s3 cp", "gs": "gcloud storage cp"}.get(scheme, "the store's own tool")
        what = f"an address in an object store ({scheme})"
        remedy = f"copy it here first, with {copy}, or from Python pass a pyarrow dataset that reads it"
    elif scheme == "file":
        what, remedy = "an address of a file", f"pass its path: {path[len(found[0]) :]}"
    else:
        what = f"an address of a database ({scheme})"
        remedy = "pass postgresql://, or from Python a frame or an Arrow table that a query returns"
    raise SourceError(what, source=redact_address(path), value=scheme, remedy=remedy)


def detect_format(path: str) -> str:
    """The format of a file, or of a glob by its ending."""
    ending = file_suffix(path)
    if os.path.isfile(path) and os.path.getsize(path):
        with open(path, "rb") as file:
            head = file.read(262)
        if kind := next((kind for at, mark, kind in _SIGNATURES if head[at:].startswith(mark)), None):
            return kind
        if head.startswith(b"PK\x03\x04"):
            return _zip_format(path)
        for at, mark, what, remedy in _UNSUPPORTED_SIGNATURES:
            if head[at:].startswith(mark):
                raise SourceError(what, source=path, remedy=remedy)
        if head[8:9] == b"{" and b'"data_offsets"' in head:
            raise SourceError("a model, not data", source=path, remedy="pass data; candide show tells what is in it")
        if head.startswith(b"\x1f\x8b") and not path.lower().endswith(".gz"):
            raise SourceError("packed by gzip", source=path, remedy="let its name end in .gz")
        if ending in _DATABASES:
            raise SourceError("no database of SQLite or DuckDB", source=path, remedy="let its name tell what it is")
    elif ending in SINGLE_FILE_FORMATS:
        raise SourceError(f"several files (.{ending})", source=path, remedy="pass one at a time")
    if ending in _ENDINGS:
        what, remedy = _ENDINGS[ending]
        raise SourceError(what, source=path, remedy=remedy)
    return SINGLE_FILE_FORMATS.get(ending) or FORMATS.get(ending, "csv")


def _zip_format(path: str) -> str:
    """Sheets are zip archives; of others it is said what they hold."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
    except zipfile.BadZipFile:
        raise SourceError("a zip archive that is damaged", source=path, remedy="fetch it again") from None
    if any(name.startswith("xl/workbook") for name in names) or "content.xml" in names:
        return "sheets"
    holds = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    remedy = f"unpack it first (unzip {os.path.basename(path)}), and pass the file in it"
    raise SourceError(f"a zip archive that holds {holds or 'nothing'}", source=path, value=names, remedy=remedy)


def file_suffix(path: str) -> str:
    """The ending of a name, but for how it is packed."""
    name = path.lower()
    for packed in (".gz", ".zst", ".bz2", ".xz"):
        name = name.removesuffix(packed)
    return name.rpartition(".")[2]


def list_files(path: str) -> tuple[str, ...]:
    """The path or glob itself; of a folder, all files in it, at any depth, whose format is known."""
    if not os.path.isdir(path):
        return (path,)
    return tuple(sorted(str(p) for p in Path(path).rglob("*") if p.is_file() and file_suffix(str(p)) in FORMATS))


def detect_folder_format(path: str) -> str:
    """The one format of the files in a folder."""
    found = sorted({file_suffix(name) for name in list_files(path)})
    kinds = {FORMATS[ending] for ending in found}
    alone = sorted({file_suffix(str(p)) for p in Path(path).rglob("*") if file_suffix(str(p)) in SINGLE_FILE_FORMATS})
    if not found and alone:
        raise SourceError(f"a folder of files (.{', .'.join(alone)})", source=path, value=alone, remedy="pass one file")
    if len(kinds) != 1 or (kinds == {"csv"} and len(found) > 1):  # a .tsv is no .csv
        what = f"a folder must hold files of one known format, found {found or 'none'}"
        raise SourceError(what, source=path, value=found)
    return kinds.pop()


def split_path_table(path: str) -> tuple[str, str | None]:
    """A path, and the table in it that ``file::table`` names.

    >>> split_path_table("shop.db::orders"), split_path_table("shop.db")
    (('shop.db', 'orders'), ('shop.db', None))
    """
    file, colons, table = path.rpartition("::")
    return (file, table) if colons and table and not os.path.exists(path) else (path, None)


def choose_table(requested: str | None, available: Sequence[str], where: str, what: str = "tables") -> str:
    """The table that is asked for, or the only one."""
    name = requested or (available[0] if len(available) == 1 else None)
    if name is None or name not in available:
        remedy = f"name one: {where}::{available[0]} (or --table, table=)" if available else ""
        holds = f"its {what} are {sorted(available)}" if available else f"it holds no {what}"
        raise SourceError(holds, source=where, value=name, remedy=remedy)
    return name


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
