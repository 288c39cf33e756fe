"""Formats of files and of text in them, and errors of DuckDB in one line with place and remedy.

First bytes and the ending of a name show the format of a file; others are refused with a remedy. SQL casts the text of
columns to numbers, dates and times.
"""

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import duckdb

from candide.data.text_columns import KIND_NAMES, temporal_remedy
from candide.data.text_formats import PLAIN_FORMAT, TextFormat, parse_plain_numbers
from candide.engines.reading import redact_address
from candide.engines.sql.dialect import quote_identifier, quote_text, quote_tuple
from candide.errors import InputError, SourceError

_FORMAT_ENDINGS = {
    "csv": "csv tsv txt tab data",
    "parquet": "parquet pq",
    "json": "jsonl ndjson json",
    "arrow": "arrow feather ipc arrows",
    "duckdb": "duckdb ddb",
}
_SINGLE_FILE_ENDINGS = {"sheets": "xlsx xlsm xlsb xls ods", "sqlite": "sqlite sqlite3", "arff": "arff"}
FORMATS = {ending: kind for kind, endings in _FORMAT_ENDINGS.items() for ending in endings.split()}
SINGLE_FILE_FORMATS = {  # those of which one file is read at a time
    ending: kind for kind, endings in _SINGLE_FILE_ENDINGS.items() for ending in endings.split()
}
MULTI_TABLE_FORMATS = ("duckdb", "sqlite", "sheets")  # formats that may hold several
_SIGNATURES = (  # offset and bytes of a format
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "arrow"),
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "sheets"),
)
_UNPACK = "unpack it first{}, and pass the file in it"
_FRAME = "read it with {}, and pass the frame, or write it as Parquet"
_UNSUPPORTED = (  # offset and bytes of a signature, endings, what it is, and what to do
    (0, b"Rar!", "", "a RAR archive", _UNPACK.format("")),
    (0, b"7z\xbc\xaf", "", "a 7-Zip archive", _UNPACK.format("")),
    (257, b"ustar", "tar tgz", "a tar archive", _UNPACK.format(" (tar -xf)")),
    (0, b"%PDF", "", "a PDF document", "export its table as CSV"),
    (0, b"\x89HDF", "", "an HDF5 file", _FRAME.format("pandas or h5py")),
    (0, b"\x93NUMPY", "npz", "an array of NumPy", "load it, and pass it to NaiveBayes().fit(X, y)"),
    (0, b"ORC", "", "an ORC file", "read it with pyarrow.orc, and pass the table, or write it as Parquet"),
    (0, b"Obj\x01", "", "an Avro file", "write it as Parquet or JSON lines"),
    (0, None, "pkl pickle", "a pickle", "load it, and pass the frame, or write it as Parquet"),
    (0, None, "dta", "a file of Stata", _FRAME.format("pandas.read_stata")),
    (0, None, "sav", "a file of SPSS", _FRAME.format("pandas.read_spss")),
    (0, None, "sas7bdat", "a file of SAS", _FRAME.format("pandas.read_sas")),
    (0, None, "rds rdata", "a file of R", "write it there as CSV (write.csv) or Parquet"),
    (0, None, "mat", "a file of MATLAB", "load it with scipy.io.loadmat, and pass the arrays"),
    (0, None, "html", "a web page", _FRAME.format("pandas.read_html")),
)
_COMPRESSED_ENDINGS = ("gz", "zst", "bz2", "xz")
_TABLE_ENDINGS = (FORMATS.keys() | SINGLE_FILE_FORMATS.keys()) - {"txt", "data"}  # endings that documents may have
_OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "r2", "hdfs", "hf", "oss")
_BATCH_CHARACTERS, _BATCH_FILES = 1 << 23, 1 << 12  # characters and files read at a time


def refuse_address(path: str) -> None:
    scheme, mark, rest = path.partition("://")
    if not mark or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme):
        return
    scheme = scheme.lower()
    if scheme in ("http", "https", "ftp", "ftps", "sftp"):
        what = f"an address on the web ({scheme})"
        remedy = "download it first, for example with curl -LO, and pass the file"
    elif scheme in _OBJECT_STORES:
        copy = {"s3": "aws s3 cp", "gs": "gcloud storage cp"}.get(scheme, "the tool of the store")
        what = f"an address in an object store ({scheme})"
        remedy = f"copy it here first, with {copy}, or from Python pass a pyarrow dataset that reads it"
    elif scheme == "file":
        what, remedy = "an address of a file", f"pass its path: {rest}"
    else:
        what = f"an address of a database ({scheme})"
        remedy = "pass postgresql://, or from Python a frame or an Arrow table that a query returns"
    raise SourceError(what, source=redact_address(path), value=scheme, remedy=remedy)


def detect_format(path: str) -> str:
    """The format of a file, or of a glob by its ending."""
    ending, head = file_suffix(path), b""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(262)
    if kind := next((kind for at, mark, kind in _SIGNATURES if head[at:].startswith(mark)), None):
        return kind
    if head.startswith(b"PK\x03\x04"):
        return _zip_format(path)
    for at, signature, endings, what, remedy in _UNSUPPORTED:
        if ending in endings.split() or (signature and head[at:].startswith(signature)):
            raise SourceError(what, source=path, remedy=remedy)
    if head[8:9] == b"{" and b'"data_offsets"' in head:
        raise SourceError("a model, not data", source=path, remedy="pass data; candide show describes a model")
    if head.startswith(b"\x1f\x8b") and not path.lower().endswith(".gz"):
        raise SourceError("packed by gzip", source=path, remedy="let its name end in .gz")
    if head and ending in ("db", "sqlite", "sqlite3"):
        raise SourceError("not a database of SQLite or DuckDB", source=path, remedy="rename it by its format")
    if not head and ending in SINGLE_FILE_FORMATS:
        raise SourceError(f"several files (.{ending})", source=path, remedy="pass one at a time")
    return SINGLE_FILE_FORMATS.get(ending) or FORMATS.get(ending, "csv")


def _zip_format(path: str) -> str:
    """Sheets are zip archives; the error on other archives lists their files."""
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
    """The ending of a name, without that of a compression."""
    name = path.lower()
    for ending in _COMPRESSED_ENDINGS:
        name = name.removesuffix(f".{ending}")
    return name.rpartition(".")[2]


def list_files(path: str) -> tuple[str, ...]:
    """The path or glob itself; of a folder, all files in it, at any depth, whose format is known."""
    if not os.path.isdir(path):
        return (path,)
    return tuple(sorted(str(p) for p in Path(path).rglob("*") if p.is_file() and file_suffix(str(p)) in FORMATS))


def detect_folder_format(path: str) -> str:
    endings = sorted({file_suffix(name) for name in list_files(path)})
    kinds = {FORMATS[ending] for ending in endings}
    single = sorted({file_suffix(str(p)) for p in Path(path).rglob("*")} & SINGLE_FILE_FORMATS.keys())
    if not endings and single:
        what = f"a folder of files (.{', .'.join(single)})"
        raise SourceError(what, source=path, value=single, remedy="pass one file")
    if len(kinds) != 1 or (kinds == {"csv"} and len(endings) > 1):  # .tsv and .csv differ
        what = f"a folder must hold files of one known format, found {endings or 'none'}"
        raise SourceError(what, source=path, value=endings)
    return kinds.pop()


def split_path_table(path: str) -> tuple[str, str | None]:
    """A path, and the table in it that ``file::table`` names."""
    file, colons, table = path.rpartition("::")
    return (file, table) if colons and table and not os.path.exists(path) else (path, None)


def choose_table(requested: str | None, available: Sequence[str], where: str, what: str = "tables") -> str:
    """The requested table, or the only one."""
    name = requested or (available[0] if len(available) == 1 else None)
    if name is None or name not in available:
        remedy = f"name one: {where}::{available[0]} (or --table, table=)" if available else ""
        holds = f"its {what} are {sorted(available)}" if available else f"it holds no {what}"
        raise SourceError(holds, source=where, value=name, remedy=remedy)
    return name


def has_document_folders(path: str | os.PathLike) -> bool:
    """Whether a folder holds two or more folders of files that are not tables."""
    folders = _folders(Path(path))
    if len(folders) < 2 or any("=" in folder.name for folder in folders):  # year=2024 divides a table
        return False
    first = [next(iter(_files(folder)), None) for folder in folders]
    return all(file and _TABLE_ENDINGS.union(_COMPRESSED_ENDINGS).isdisjoint(_endings(file)) for file in first)


@dataclass(frozen=True)
class DocumentFolder:
    """The files of a folder of folders as rows of ``text`` and ``class``, the name of the folder.

    The Arrow C stream interface reads them from the disk, some files at a time, as often as it is called. ``errors`` is
    the rule for bytes that are not of the encoding: "strict" (an error that names the file), "replace" or "ignore".
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


def _endings(file: Path) -> set[str]:
    return {ending.lstrip(".").lower() for ending in file.suffixes[-2:]}


# Text columns as numbers, dates and times

_INVALID_MARK = "\x1f"  # after text in another format than that of its column, so that no cast reads it
_DURATION = r"\s*[-+]?\d+ days?(,? [-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?)?\s*|\s*[-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?\s*"
IS_NUMBER = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|DECIMAL")  # a type of DuckDB


def castable_sql(name: str, text_format: TextFormat) -> str:
    """SQL for a column in the format that a cast reads; text in another format is marked so that no cast reads it."""
    value = quote_identifier(name)
    if text_format.date:
        out = f"COALESCE(try_strptime(trim({value}), {quote_text(text_format.date)}), CAST({value} AS TIMESTAMP))"
    elif not text_format.is_plain:
        parsed = value
        for old, new in text_format.replacements.items():
            parsed = f"replace({parsed}, {quote_text(old)}, {quote_text(new)})"
        out = _marked_sql(value, text_format.pattern, f"{parsed} || 'e-2'" if text_format.unit == "%" else parsed)
    else:
        out = value
    if not text_format.missing:
        return out
    return f"CASE WHEN lower(trim({value})) IN {quote_tuple(text_format.missing)} THEN NULL ELSE {out} END"


def _marked_sql(value: str, pattern: str, parsed: str) -> str:
    fits = f"regexp_full_match({value}, {quote_text(pattern)})"
    return f"CASE WHEN {fits} THEN {parsed} ELSE {value} || {quote_text(_INVALID_MARK)} END"


def typed_table_sql(
    table: str,
    types: Mapping[str, str],
    text_formats: Mapping[str, TextFormat],
    original_names: Mapping[str, str] = {},
    missing_sql: Mapping[str, str] = {},
) -> str:
    """A table with columns of text read in other types; ``missing_sql`` replaces columns before that."""
    castable = {name: castable_sql(name, fmt) for name, fmt in text_formats.items() if fmt != PLAIN_FORMAT}
    for name in (name for name, kind in types.items() if kind == "INTERVAL"):  # a cast reads a number as seconds
        text = castable.get(name, quote_identifier(name))
        castable[name] = _marked_sql(text, _DURATION, text)
    casts = {name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in types.items()}
    table = replace_columns_sql(table, missing_sql, original_names)  # one by one, so that an error names the column
    return replace_columns_sql(replace_columns_sql(table, castable), casts)


def replace_columns_sql(table: str, columns: Mapping[str, str], copies: Mapping[str, str] = {}) -> str:
    """A table with expressions in the place of columns, and with copies of columns under second names."""
    if not columns and not copies:
        return table
    by = ", ".join(f"{sql} AS {quote_identifier(name)}" for name, sql in columns.items())
    extra = [f"{quote_identifier(name)} AS {quote_identifier(other)}" for name, other in copies.items()]
    return f"(SELECT {', '.join([f'* REPLACE ({by})' if by else '*', *extra])} FROM {table})"


def missing_sql(types: Mapping[str, str], na: Sequence[str], with_text: bool) -> dict[str, str]:
    """SQL for columns without missing-value markers: numbers by value, and text as it is written."""
    numbers = ", ".join(f"CAST({number!r} AS DOUBLE)" for number in parse_plain_numbers(na))
    texts = ", ".join(map(quote_text, na)) if with_text else ""
    out = {}
    for name, kind in types.items():
        column, is_number = quote_identifier(name), bool(IS_NUMBER.match(kind))
        if markers := numbers if is_number else texts if kind.startswith(("VARCHAR", "ENUM")) else "":
            value = f"CAST({column} AS {'DOUBLE' if is_number else 'VARCHAR'})"
            out[name] = f"CASE WHEN {value} IN ({markers}) THEN NULL ELSE {column} END"
    return out


# Errors

_INTERRUPTED = re.compile(r"^Query interrupted$|Python exception.*: KeyboardInterrupt", re.DOTALL)
_LINE = re.compile(r"Line: (\d+)")
_CONVERT = re.compile(r'converting column "(?P<column>.*?)"\. Could not convert string "(?P<value>.*?)"', re.DOTALL)
_CAST = re.compile(
    r"(?:convert string|field format:|out of range:) ['\"](?P<value>.*?)['\"](?: to|,|(?= when))"
    r".* when casting from source column (?P<column>.*)"
)
_IS_DATE = re.compile(r"'(DATE|TIMESTAMP)|\b(date|timestamp) field", re.IGNORECASE)
_IS_TIME = re.compile(r"'(TIME|INTERVAL)|to INTERVAL|\btime field", re.IGNORECASE)
_STREAM = re.compile(r"failed: Invalid: (.*?)\. Detail: Python exception", re.DOTALL)  # an error in Python batches
_TOO_LONG = re.compile(r"Maximum line size of (\d+) bytes exceeded\. Actual Size: ?(\d+)")
_COLUMNS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_FILE = re.compile(r"^  file = (.*)$", re.MULTILINE)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, RuntimeError, OSError) as error:
        if isinstance(error, duckdb.InterruptException) or _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from None
        is_of_stream = type(error) is OSError and error.errno is None  # how Arrow reports an error of DuckDB's stream
        if not isinstance(error, duckdb.Error) and not is_of_stream:
            raise
        raise _make_error(name, str(error)) from error


def _make_error(name: str, text: str) -> InputError:
    if match := _STREAM.search(text):
        return InputError(match[1])
    match, name = _LINE.search(text), _find_file(name, text)
    where: dict[str, Any] = {"source": name, "line": int(match[1]) if match else None}
    if match := _TOO_LONG.search(text):
        where["line"] = _long_line(name, int(match[1])) or (where["line"] if where["line"] != 1 else None)
        remedy = "shorten its fields, or store the table as Parquet; an open quote may join lines, too"
        return SourceError(f"a row is longer than {int(match[1]):,} bytes", value=int(match[2]), remedy=remedy, **where)
    if match := _CONVERT.search(text) or _CAST.search(text):
        column, value = match["column"], match["value"].removesuffix(_INVALID_MARK)
        value = value if len(value) <= 40 else value[:37] + "..."
        kind = "date" if _IS_DATE.search(text) else "time" if _IS_TIME.search(text) else ""
        what = f"{value!r} is not a {KIND_NAMES.get(kind, 'number')}"
        remedy = (
            f"{temporal_remedy(kind) + ', or ' if kind else ''}pass --na {value!r} (na=[...]) if it means a missing "
            f"value; a model fitted with --event {column}=categorical (events={{...}}) takes it for a category"
        )
        if value == column:
            remedy = "if the line repeats the header, delete it"
        elif not kind and match["value"].endswith(_INVALID_MARK):  # a number, perhaps, in another unit
            what += " in the format of the other rows, or of the rows fitted"
            remedy = f"write it in that format; {remedy}"
        return SourceError(what, column=column, value=value, remedy=remedy, **where)
    if match := _COLUMNS.search(text):
        what, remedy = f"{match[2]} fields where {match[1]} are expected", "fix the line, or pass the delimiter"
        return SourceError(what, value=int(match[2]), remedy=remedy, **where)
    if "unterminated quote" in text:
        return SourceError("a quote is opened there, and not closed", remedy="fix the line", **where)
    if "invalid state" in text:
        remedy = "give all lines the same ending, for example with dos2unix"
        return SourceError("some lines end in \\r\\n, and some in \\n or \\r alone", remedy=remedy, **where)
    if "not utf-8" in text or "unicode" in text.lower():
        remedy = "pass the encoding, such as --encoding cp1252 (encoding='cp1252')"
        return SourceError("not UTF-8 text", remedy=remedy, **where)
    if "No files found" in text:
        return SourceError("no such file", source=name)
    return SourceError(text.strip().splitlines()[0], **where)


def _find_file(name: str, text: str) -> str:
    """The file of a folder or a glob that an error is about; else the name itself."""
    match = _FILE.search(text)
    if match and (Path(match[1]).is_relative_to(name) or fnmatch(match[1], name)):
        return match[1]
    return name


def _long_line(path: str, max_bytes: int) -> int | None:
    """The first line of a file that is too long: while it sniffs, DuckDB names line 1."""
    try:
        with open(path, "rb") as file:
            return next((number for number, line in enumerate(file, 1) if len(line) > max_bytes), None)
    except (OSError, ValueError):  # a name that is not a path, such as "standard input"
        return None
