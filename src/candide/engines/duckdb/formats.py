"""Formats: what a path names, by the first bytes of a file and by the ending of its name.

What cannot be read says what it is, and what to do.

>>> format_of("rows-*.csv.gz"), format_of("rows-*.parquet"), format_of("rows-*")
('csv', 'parquet', 'csv')
>>> refuse("https://example.org/rows.csv")
Traceback (most recent call last):
    ...
candide.errors.SourceError: https://example.org/rows.csv: an address on the web (https); download it first, with \
curl -LO say, and pass the file
"""

import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from candide.engines.addresses import shown
from candide.errors import SourceError

FORMATS = {
    "csv": "csv", "tsv": "csv", "txt": "csv", "tab": "csv", "data": "csv",
    "parquet": "parquet", "pq": "parquet",
    "jsonl": "json", "ndjson": "json", "json": "json",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow", "arrows": "arrow",
    "duckdb": "duckdb", "ddb": "duckdb",
}  # fmt: skip
ALONE = {  # those of which one file is read at a time
    "xlsx": "sheets", "xlsm": "sheets", "xlsb": "sheets", "xls": "sheets", "ods": "sheets",
    "sqlite": "sqlite", "sqlite3": "sqlite", "arff": "arff",
}  # fmt: skip
_DATABASES = ("db", "sqlite", "sqlite3")
TABLES = ("duckdb", "sqlite", "sheets")  # formats that may hold several
_BYTES = (  # where, what stands there, and the format that it means
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "arrow"),
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "sheets"),
)
_NOT_READ = (  # the same, of what is not read: what it is, and what to do
    (0, b"Rar!", "a RAR archive", "unpack it first, and pass the file in it"),
    (0, b"7z\xbc\xaf", "a 7-Zip archive", "unpack it first, and pass the file in it"),
    (257, b"ustar", "a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    (0, b"%PDF", "a PDF document", "export its table as CSV"),
    (0, b"\x89HDF", "an HDF5 file", "read it with pandas or h5py, and pass the frame, or write it as Parquet"),
    (0, b"\x93NUMPY", "an array of NumPy", "load it, and pass it to NaiveBayes().fit(X, y)"),
    (0, b"ORC", "an ORC file", "read it with pyarrow.orc, and pass the table, or write it as Parquet"),
    (0, b"Obj\x01", "an Avro file", "write it as Parquet or JSON lines"),
)
_FRAME = "read it with pandas.{}, and pass the frame, or write it as Parquet"
_ENDINGS = {
    "tgz": ("a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    "tar": ("a tar archive", "unpack it first (tar -xf), and pass the file in it"),
    "pkl": ("a pickle", "load it, and pass the frame, or write it as Parquet"),
    "pickle": ("a pickle", "load it, and pass the frame, or write it as Parquet"),
    "dta": ("a file of Stata", _FRAME.format("read_stata")),
    "sav": ("a file of SPSS", _FRAME.format("read_spss")),
    "sas7bdat": ("a file of SAS", _FRAME.format("read_sas")),
    "rds": ("a file of R", "write it there as CSV (write.csv) or Parquet"),
    "rdata": ("a file of R", "write it there as CSV (write.csv) or Parquet"),
    "mat": ("a file of MATLAB", "load it with scipy.io.loadmat, and pass the arrays"),
    "npz": ("arrays of NumPy", "load them, and pass them to NaiveBayes().fit(X, y)"),
    "html": ("a web page", _FRAME.format("read_html")),
}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "r2", "hdfs", "hf", "oss")


def refuse(path: str) -> None:
    """Refuse an address: only files are read."""
    if not (found := _ADDRESS.match(path)):
        return
    scheme = found[1].lower()
    if scheme in ("http", "https", "ftp", "ftps", "sftp"):
        what, remedy = f"an address on the web ({scheme})", "download it first, with curl -LO say, and pass the file"
    elif scheme in _STORES:
        copy = {"s3": "aws s3 cp", "gs": "gcloud storage cp"}.get(scheme, "the store's own tool")
        what = f"an address in an object store ({scheme})"
        remedy = f"copy it here first, with {copy}, or from Python pass a pyarrow dataset that reads it"
    elif scheme == "file":
        what, remedy = "an address of a file", f"pass its path: {path[len(found[0]) :]}"
    else:
        what = f"an address of a database ({scheme})"
        remedy = "pass postgresql://, or from Python a frame or an Arrow table that a query returns"
    raise SourceError(what, where=shown(path), value=scheme, remedy=remedy)


def format_of(path: str) -> str:
    """The format of a file, or of a glob by its ending."""
    ending = ending_of(path)
    if os.path.isfile(path) and os.path.getsize(path):
        with open(path, "rb") as file:
            head = file.read(262)
        if kind := next((kind for at, mark, kind in _BYTES if head[at:].startswith(mark)), None):
            return kind
        if head.startswith(b"PK\x03\x04"):
            return _zipped(path)
        for at, mark, what, remedy in _NOT_READ:
            if head[at:].startswith(mark):
                raise SourceError(what, where=path, remedy=remedy)
        if head[8:9] == b"{" and b'"data_offsets"' in head:
            raise SourceError("a model, not data", where=path, remedy="pass data; candide show tells what is in it")
        if head.startswith(b"\x1f\x8b") and not path.lower().endswith(".gz"):
            raise SourceError("packed by gzip", where=path, remedy="let its name end in .gz")
        if ending in _DATABASES:
            raise SourceError("no database of SQLite or DuckDB", where=path, remedy="let its name tell what it is")
    elif ending in ALONE:
        raise SourceError(f"several files (.{ending})", where=path, remedy="pass one at a time")
    if ending in _ENDINGS:
        what, remedy = _ENDINGS[ending]
        raise SourceError(what, where=path, remedy=remedy)
    return ALONE.get(ending) or FORMATS.get(ending, "csv")


def _zipped(path: str) -> str:
    """Sheets are zip archives; of others it is said what they hold."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
    except zipfile.BadZipFile:
        raise SourceError("a zip archive that is damaged", where=path, remedy="fetch it again") from None
    if any(name.startswith("xl/workbook") for name in names) or "content.xml" in names:
        return "sheets"
    holds = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    remedy = f"unpack it first (unzip {os.path.basename(path)}), and pass the file in it"
    raise SourceError(f"a zip archive that holds {holds or 'nothing'}", where=path, value=names, remedy=remedy)


def ending_of(path: str) -> str:
    """The ending of a name, but for how it is packed."""
    name = path.lower()
    for packed in (".gz", ".zst", ".bz2", ".xz"):
        name = name.removesuffix(packed)
    return name.rpartition(".")[2]


def files_of(path: str) -> tuple[str, ...]:
    """The path or glob itself; of a folder, all files in it, at any depth, whose format is known."""
    if not os.path.isdir(path):
        return (path,)
    return tuple(sorted(str(p) for p in Path(path).rglob("*") if p.is_file() and ending_of(str(p)) in FORMATS))


def format_of_folder(path: str) -> str:
    """The one format of the files in a folder."""
    found = sorted({ending_of(name) for name in files_of(path)})
    kinds = {FORMATS[ending] for ending in found}
    alone = sorted({ending_of(str(p)) for p in Path(path).rglob("*") if ending_of(str(p)) in ALONE})
    if not found and alone:
        raise SourceError(f"a folder of files (.{', .'.join(alone)})", where=path, value=alone, remedy="pass one file")
    if len(kinds) != 1 or (kinds == {"csv"} and len(found) > 1):  # a .tsv is no .csv
        what = f"a folder must hold files of one known format, found {found or 'none'}"
        raise SourceError(what, where=path, value=found)
    return kinds.pop()


def parted(path: str) -> tuple[str, str | None]:
    """A path, and the table in it that ``file::table`` names.

    >>> parted("shop.db::orders"), parted("shop.db")
    (('shop.db', 'orders'), ('shop.db', None))
    """
    file, colons, table = path.rpartition("::")
    return (file, table) if colons and table and not os.path.exists(path) else (path, None)


def chosen_table(asked: str | None, there: Sequence[str], where: str, what: str = "tables") -> str:
    """The table that is asked for, or the only one."""
    name = asked or (there[0] if len(there) == 1 else None)
    if name is None or name not in there:
        remedy = f"name one: {where}::{there[0]} (or --table, table=)" if there else ""
        holds = f"its {what} are {sorted(there)}" if there else f"it holds no {what}"
        raise SourceError(holds, where=where, value=name, remedy=remedy)
    return name
