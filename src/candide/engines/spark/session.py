"""Sessions: an address of a cluster, and of a table or of files there, becomes a data frame.

``spark://host:port`` is a standalone cluster, ``spark://local`` this machine, ``spark://`` alone whatever the settings
of Spark name. After ``::``, or as ``--table``, comes a table, a path or a query.

>>> [parse_master(address) for address in ("spark://host:7077", "spark://local", "spark://local[2]", "spark://")]
['spark://host:7077', 'local[*]', 'local[2]', None]
>>> [classify_target(what) for what in ("sales.orders", "/data/rows", "rows.csv", "select 1 as x")]
['table', 'parquet', 'csv', 'query']
"""

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from candide.engines.addresses import split_table
from candide.engines.reading import ReadOptions
from candide.errors import CandideError, InputError, MissingLibraryError, SourceError

SCHEME = "spark://"
_QUERY = re.compile(r"\s*(\(|select\b|with\b|from\b|values\b)", re.IGNORECASE)
_FORMATS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "orc": "orc",
            "parquet": "parquet", "pq": "parquet", "gz": "csv", "delta": "delta"}  # fmt: skip
_CONNECT_SECONDS = 5.0  # seconds until a master answers: Spark itself waits a minute, and then says little


_MODULE = re.compile(r"No module named '(candide|pyarrow|numpy|scipy|sqlglot)[.\w]*'")
_LOST_CLUSTER = re.compile(
    r"(ExecutorLostFailure|Checkpoint block|SparkContext was shut down|Master removed|cancelled because)"
)
_EXCEPTION_LINE = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception)): (.+)$", re.MULTILINE)
_CONDITION = re.compile(r"^\[[A-Z_.]+\]\s*")
_PYTHON_REMEDY = "set PYSPARK_PYTHON to a Python that has it, on every executor, before the session starts"


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Turn Spark's errors into ours."""
    try:
        yield
    except CandideError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise _make_error(name, error) from error


def _make_error(name: str, error: Any) -> InputError:
    text = str(error)
    if found := _MODULE.search(text):
        return SourceError(
            f"the executors have no package {found[1]}", source=name, value=found[1], remedy=_PYTHON_REMEDY
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return SourceError(
            "the executors run another version of Python than this one", source=name, remedy=_PYTHON_REMEDY
        )
    if found := _LOST_CLUSTER.search(text):
        remedy = "look into the logs of its executors, and try again; nothing was written"
        return SourceError(f"the cluster gave up: {_main_message(text)}", source=name, remedy=remedy)
    return SourceError(_main_message(text), source=name)


def _main_message(text: str) -> str:
    """What went wrong, in a line: of a traceback its last, else the first."""
    causes = _EXCEPTION_LINE.findall(text)
    line = causes[-1][1] if "Traceback" in text and causes else text.strip().splitlines()[0]
    return _CONDITION.sub("", line).strip().rstrip(".")


def parse_master(address: str) -> str | None:
    """The master that an address names, in Spark's words; None where it names none."""
    master = address.removeprefix(SCHEME)
    if master.startswith("local"):
        return "local[*]" if master == "local" else master
    return address if master else None


def classify_target(what: str) -> str:
    """Whether some text is a query, a path, by the format of its files, or the name of a table."""
    if _QUERY.match(what):
        return "query"
    ending = PurePosixPath(what.rstrip("/*")).suffix.removeprefix(".").lower()
    return _FORMATS.get(ending, "parquet") if "/" in what or ending in _FORMATS else "table"


def open_frame(address: str, reading: ReadOptions) -> tuple[Any, bool]:
    """The data frame of an address, and whether its session was started for it."""
    cluster, what = split_table(address)
    what = what or reading.table
    if what is None:
        remedy = f"pass --table NAME (table=...), or {address}::NAME, with a table, a path or a query"
        raise SourceError("no table is named", source=address, remedy=remedy)
    session, started = start_session(address, parse_master(cluster))
    try:
        with translate_errors(address):
            return _read_frame(session, what, reading), started
    except BaseException:
        if started:
            session.stop()
        raise


def start_session(address: str, master: str | None) -> tuple[Any, bool]:
    """The session that is there, or a new one; whether it is new."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        remedy = "install it: pip install 'candide[spark]'"
        raise MissingLibraryError(f"{address}: to read from Spark pyspark is needed", remedy=remedy) from None

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    _check_java(address)
    if master and master.startswith(SCHEME):
        _check_master(address, master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("candide").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master:
        builder = builder.master(master)
    with translate_errors(address):
        return builder.getOrCreate(), True


def _check_java(address: str) -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        remedy = "install a JRE (Debian: default-jre-headless), or set JAVA_HOME to one"
        raise MissingLibraryError(f"{address}: Spark needs Java, and none is found", remedy=remedy)


def _check_master(address: str, master: str) -> None:
    """See that someone listens there."""
    for one in master.removeprefix(SCHEME).split(","):
        host, _, port = one.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS):
                return
        except (OSError, ValueError) as error:
            why = error if isinstance(error, OSError) else "it names no port"
    remedy = "pass the address that the master shows, such as spark://host:7077"
    raise SourceError(f"no Spark master answers ({why})", source=address, value=master, remedy=remedy)


def _read_frame(session: Any, what: str, reading: ReadOptions) -> Any:
    kind = classify_target(what)
    if kind == "query":
        return session.sql(what.strip().rstrip(";"))
    if kind == "table":
        return session.table(what)
    if kind == "csv":
        tab = "\t" if ".tsv" in what else ","
        how = {"header": reading.header is not False, "sep": reading.delimiter or tab, "inferSchema": True}
        return session.read.csv(what, encoding=reading.encoding or "UTF-8", **how)
    return session.read.format(kind).load(what)
