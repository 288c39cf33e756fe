"""Sources: whatever holds rows, opened as one DuckDB view that may be read again and again.

A path, a glob or a folder (CSV, TSV, Parquet, JSON lines, Arrow, Feather; compressed or not), ``-`` for
standard input, a DuckDB file, an SQL query, a data frame, an Arrow table, a DuckDB relation; a folder of folders of
documents (:mod:`candide.engines.folders`).

>>> import pyarrow as pa
>>> with Source.open(pa.table({"age": [30, 41], "job": ["cook", None]})) as source:
...     source.columns, source.rows("SELECT count(*) FROM source")
({'age': 'BIGINT', 'job': 'VARCHAR'}, [(2,)])
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import duckdb

from candide.engines.duckdb import folders
from candide.engines.duckdb.csv_form import PLAIN, CsvForm, CsvHints, NumberFormat, form_of
from candide.engines.duckdb.duckdb_errors import explained
from candide.engines.reading import Reading
from candide.engines.sql.text import identifier, literal, literals
from candide.errors import InputError, InputTypeError

VIEW = "source"
_QUERY = re.compile(r"\s*(\(|--|/\*|select\b|with\b|from\b|values\b)", re.IGNORECASE)
_FORMATS = {
    "csv": "csv", "tsv": "csv", "txt": "csv", "tab": "csv", "data": "csv",
    "parquet": "parquet", "pq": "parquet",
    "jsonl": "json", "ndjson": "json", "json": "json",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow", "arrows": "arrow",
    "duckdb": "duckdb", "ddb": "duckdb",
}  # fmt: skip


@dataclass(frozen=True)
class Batches:
    """A schema and record batches, to be read once."""

    schema: Any
    stream: Iterator[Any]

    def __iter__(self) -> Iterator[Any]:
        return self.stream


@dataclass
class Source:
    """An open source: the view ``source`` on a DuckDB connection."""

    name: str  # what to call it in messages
    con: Any
    reading: Reading
    csv: CsvForm | None = None  # of a CSV every column comes as text until `typed` says better
    relation: Any = None  # a DuckDB relation answers on its own connection
    keep: list[Any] = field(default_factory=list)  # what must live, or be removed, with the source
    columns: dict[str, str] = field(default_factory=dict)  # name -> SQL type
    documents: tuple[str, ...] = ()  # columns known to be free text, however short
    rows_read: int = 0  # in batches, so far
    is_query: bool = False  # whose rows may come in another order each time

    @classmethod
    def open(cls, data: Any, reading: Reading | None = None) -> Self:
        """Open anything that holds rows."""
        reading = reading or Reading()
        con = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        con.execute("SET enable_progress_bar = false")
        con.execute("SET enable_external_file_cache = false")  # memory must not grow with the file
        # The least and largest values that Parquet files note leave NaN out, and with them isnan() is taken for false.
        con.execute("SET disabled_optimizers = 'statistics_propagation'")
        if reading.memory_limit:
            con.execute(f"SET memory_limit = {literal(reading.memory_limit)}")
        if reading.threads:
            con.execute(f"SET threads = {int(reading.threads)}")
        source = cls("the data", con, reading)
        try:
            source._attach(data)
            source._describe()
        except BaseException:
            source.close()
            raise
        return source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove what was spooled."""
        self.relation = None
        self.con.close()
        for thing in self.keep:
            if isinstance(thing, Path):
                thing.unlink(missing_ok=True)
        self.keep.clear()

    def rows(self, sql: str) -> list[tuple]:
        """Run a query over the view ``source`` and fetch its rows."""
        with explained(self.name):
            return self._query(sql).fetchall()

    def batches(self, sql: str, size: int) -> Batches:
        """Run a query and read its result as Arrow record batches."""
        with explained(self.name):
            reader = self._query(sql).to_arrow_reader(size)
        return Batches(reader.schema, self._counted(reader))

    def _counted(self, reader: Any) -> Iterator[Any]:
        with explained(self.name):
            for batch in reader:
                self.rows_read += batch.num_rows
                yield batch

    def arrow(self, sql: str) -> Any:
        """Run a query and fetch its result as one Arrow table."""
        with explained(self.name):
            return self._query(sql).to_arrow_table()

    def read_as(self, head: Any, types: Mapping[str, str], formats: Mapping[str, NumberFormat]) -> Any:
        """Columns of text, read with SQL types; what does not fit is missing."""
        self.con.register("head", head)
        reads = ", ".join(
            f"TRY_CAST({formats.get(name, PLAIN).mended(name)} AS {kind}) AS {identifier(name)}"
            for name, kind in types.items()
        )
        return self.con.sql(f"SELECT {reads} FROM head").to_arrow_table()

    def progress(self) -> float:
        """How far the running query is, from 0 to 1; negative where that is not known."""
        return max(-1.0, self.con.query_progress() / 100) if self.relation is None else -1.0

    def materialise(self) -> None:
        """Have rows come in the same order each time: those of a query are written to a temporary file, once."""
        if not self.is_query:
            return
        path = self._temporary("parquet")
        with explained(self.name):
            self._query(f"SELECT * FROM {VIEW}").write_parquet(str(path))
        self.relation, self.is_query = None, False
        self._create_view(f"read_parquet({literal(str(path))})")
        self._describe()

    def typed(self, types: Mapping[str, str], formats: Mapping[str, NumberFormat]) -> None:
        """Read the columns of a CSV with these SQL types."""
        if self.csv is not None:
            with explained(self.name):
                self._create_view(self.csv.reader(types, formats))
            self.columns |= types

    def _query(self, sql: str) -> Any:
        return self.con.sql(sql) if self.relation is None else self.relation.query(VIEW, sql)

    def _describe(self) -> None:
        if self.csv is not None:
            self.columns = dict.fromkeys(self.csv.names, "VARCHAR")
        elif self.relation is not None:
            self.columns = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        else:
            self.columns = {row[0]: row[1] for row in self.rows(f"DESCRIBE {VIEW}")}
        if not self.columns:
            raise InputError(f"{self.name} has no columns")

    def _create_view(self, reader: str) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS SELECT * FROM {reader}")

    def _attach(self, data: Any) -> None:
        if isinstance(data, duckdb.DuckDBPyRelation):
            self.relation, self.name, self.is_query = data, "the relation", True
        elif isinstance(data, str) and _QUERY.match(data) and not os.path.exists(data):
            self.name, self.is_query = "the query", True
            with explained(self.name):
                self._create_view(f"({data.rstrip().rstrip(';')})")
        elif isinstance(data, str | os.PathLike):
            self._attach_path(os.fspath(data))
        else:
            self._attach_frame(data)

    def _attach_path(self, path: str) -> None:
        self.name = path
        if path == "-":
            path, self.name = str(self._spool()), "standard input"
        if os.path.isdir(path) and folders.holds_documents(path):
            self._attach_frame(folders.Files(path, self.reading.encoding or "utf-8", self.reading.errors))
            self.documents = ("text",)
            return
        kind = _format(path)
        with explained(self.name):
            if kind == "csv":
                if not _bytes_in(path):
                    raise InputError(f"{self.name} is empty")
                said = self.reading
                hints = CsvHints(said.delimiter, said.header, said.missing, said.encoding)
                self.csv = form_of(self.con, _files(path), hints)
                self._create_view(self.csv.reader({}))
            elif kind == "parquet":
                self._create_view(f"read_parquet({literals(_files(path))}, union_by_name = true)")
            elif kind == "json":
                self._create_view(f"read_json_auto({literals(_files(path))}, format = 'newline_delimited')")
            elif kind == "duckdb":
                self._attach_database(path)
            else:
                self._attach_frame(_arrow_dataset(path))

    def _attach_database(self, path: str) -> None:
        if not os.path.exists(path):
            raise InputError(f"{path}: no such file")
        self.con.execute(f"ATTACH {literal(path)} AS db (READ_ONLY)")
        tables = [
            row[0]
            for row in self.con.sql("SELECT table_name FROM duckdb_tables() WHERE database_name = 'db'").fetchall()
        ]
        views = [
            row[0]
            for row in self.con.sql(
                "SELECT view_name FROM duckdb_views() WHERE database_name = 'db' AND NOT internal"
            ).fetchall()
        ]
        both = tables + views
        name = self.reading.table or (both[0] if len(both) == 1 else None)
        if name is None or name not in both:
            raise InputError(f"{path}: name one of its tables {sorted(both)} with table= (or --table)")
        self.is_query = name in views
        self._create_view(f"db.{identifier(name)}")

    def _attach_frame(self, data: Any) -> None:
        import pyarrow as pa

        if isinstance(data, pa.RecordBatchReader):
            data = data.read_all()  # a reader can be read once only
        elif isinstance(data, Mapping):
            data = pa.table({str(k): _arrow_column(k, v) for k, v in data.items()})
        elif isinstance(data, pa.RecordBatch):
            data = pa.table(data)
        _check_case(getattr(data, "column_names", None) or list(getattr(data, "columns", ())))
        self.keep.append(data)
        try:
            self.con.register(VIEW, data)
        except (duckdb.Error, RuntimeError, TypeError):
            if not hasattr(data, "__arrow_c_stream__"):
                raise InputTypeError(
                    f"cannot read rows from {type(data).__name__}; pass a file name, a query, a data frame, "
                    "an Arrow table, a mapping of columns or a DuckDB relation"
                ) from None
            data = pa.table(data)
            self.keep[-1] = data
            self.con.register(VIEW, data)

    def _spool(self) -> Path:
        """Standard input can be read once; a temporary file can be read twice."""
        stream = sys.stdin.buffer
        head = stream.read(4096)
        start = head.lstrip()[:1]
        kind = "parquet" if head[:4] == b"PAR1" else "jsonl" if start == b"{" else "csv"
        path = self._temporary(kind)
        with open(path, "wb") as spool:
            spool.write(head)
            shutil.copyfileobj(stream, spool, 1 << 20)
        return path

    def _temporary(self, kind: str) -> Path:
        """A file that is removed with the source."""
        handle, name = tempfile.mkstemp(prefix="candide-", suffix=f".{kind}")
        os.close(handle)
        self.keep.append(Path(name))
        return Path(name)


def _check_case(names: Sequence[object]) -> None:
    """Refuse names that SQL does not tell apart: one of the columns would silently get another name."""
    seen: dict[str, object] = {}
    for name in names:
        other = seen.setdefault(str(name).lower(), name)
        if other is not name:
            raise InputError(f"columns {other!r} and {name!r} differ in case only, or not at all; rename one of them")


def _format(path: str) -> str:
    """The format of a path, a glob or a folder, by the ending of its name."""
    if os.path.isdir(path):
        found = sorted({_ending(name) for name in _files(path)})
        kinds = {_FORMATS[ending] for ending in found}
        if len(kinds) != 1 or (kinds == {"csv"} and len(found) > 1):  # a .tsv is no .csv
            raise InputError(f"{path}: a folder must hold files of one known format, found {found or 'none'}")
        return kinds.pop()
    if not any(c in path for c in "*?[") and not os.path.exists(path):
        raise InputError(f"{path}: no such file")
    return _FORMATS.get(_ending(path), "csv")


def _files(path: str) -> tuple[str, ...]:
    """The path or glob itself; of a folder, all files in it, at any depth, whose format is known."""
    if not os.path.isdir(path):
        return (path,)
    return tuple(sorted(str(p) for p in Path(path).rglob("*") if p.is_file() and _ending(str(p)) in _FORMATS))


def _ending(path: str) -> str:
    name = path.lower()
    for packed in (".gz", ".zst", ".bz2"):
        name = name.removesuffix(packed)
    return name.rpartition(".")[2]


def _bytes_in(path: str) -> bool:
    return not os.path.isfile(path) or os.path.getsize(path) > 0


def _arrow_dataset(path: str) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(path, format="ipc", partitioning="hive")


def _arrow_column(name: object, values: Sequence[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        try:
            return pa.array([None if v is None else str(v) for v in values])
        except pa.ArrowInvalid as error:
            raise InputError(f"column {name!r}: {error}") from None
