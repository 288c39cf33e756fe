"""Spark sessions and plans: an address of a cluster and of a table or files there becomes a data frame.

``spark://host:port`` is a standalone cluster, ``spark://local`` this machine, ``spark://`` alone the master of Spark's
settings. After ``::``, or as ``--table``, comes a table, a path or a query.
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

from candide.engines.reading import ReadOptions, split_table
from candide.errors import CandideError, InputError, MissingLibraryError, SourceError

SCHEME = "spark://"
_QUERY = re.compile(r"\s*(\(|select\b|with\b|from\b|values\b)", re.IGNORECASE)
_FORMATS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "orc": "orc",
            "parquet": "parquet", "pq": "parquet", "gz": "csv", "delta": "delta"}  # fmt: skip
_CONNECT_SECONDS = 5.0  # seconds until a master answers: Spark itself waits a minute
_MODULE = re.compile(r"No module named '(candide|pyarrow|numpy|scipy|sqlglot)[.\w]*'")
_LOST_CLUSTER = re.compile(
    r"(ExecutorLostFailure|Checkpoint block|SparkContext was shut down|Master removed|cancelled because)"
)
_EXCEPTION_LINE = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception)): (.+)$", re.MULTILINE)
_CONDITION = re.compile(r"^\[[A-Z_.]+\]\s*")
_SHUFFLE_NODES = re.compile(r"(?<!Broadcast)Exchange|JDBC")  # in a plan whose rows may come in another order each time
_NODE = re.compile(r"(?m)^(?P<above>[ :|+\-]*)(?:\*\(\d+\) )?(?P<node>(?:(?:File|Batch)Scan )?\w+)(?P<rest>.*)")
_CACHED_SCAN = "InMemoryTableScan"  # of cached rows, however they were made
_READ_NODES = {
    *("AdaptiveSparkPlan", "Project", "Filter", "ColumnarToRow", "Union", "Coalesce", "Range"),
    *("LocalTableScan", _CACHED_SCAN, "FileScan parquet", "FileScan orc", "BatchScan parquet", "BatchScan orc"),
}
# Where Spark itself cannot be asked, and for encryption, which it takes for deterministic
_NONDETERMINISTIC = re.compile(r"(?i)\b(rand\w*|uuid|shuffle|reflect|java_method|input_file_\w+|\w+_id|aesEncrypt)\(")
_CLOCK_FUNCTIONS = re.compile(r"\b(now|current_date|(current_|local)time(stamp)?)\(")
_PYTHON_REMEDY = "set PYSPARK_PYTHON to a Python that has it, on every executor, before the session starts"


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
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
    if module := _MODULE.search(text):
        what = f"the executors have no package {module[1]}"
        return SourceError(what, source=name, value=module[1], remedy=_PYTHON_REMEDY)
    if "PYTHON_VERSION_MISMATCH" in text:
        what = "the executors run another version of Python than this one"
        return SourceError(what, source=name, remedy=_PYTHON_REMEDY)
    # The last line of a traceback, else the first line
    causes = _EXCEPTION_LINE.findall(text)
    line = causes[-1][1] if "Traceback" in text and causes else text.strip().splitlines()[0]
    message = _CONDITION.sub("", line).strip().rstrip(".")
    if _LOST_CLUSTER.search(text):
        remedy = "check the logs of its executors, and try again; nothing was written"
        return SourceError(f"the cluster gave up: {message}", source=name, remedy=remedy)
    return SourceError(message, source=name)


def parse_master(address: str) -> str | None:
    """The master of an address as Spark names it; None where it has none.

    >>> [parse_master(address) for address in ("spark://host:7077", "spark://local", "spark://local[2]", "spark://")]
    ['spark://host:7077', 'local[*]', 'local[2]', None]
    """
    master = address.removeprefix(SCHEME)
    if master.startswith("local"):
        return "local[*]" if master == "local" else master
    return address if master else None


def classify_target(what: str) -> str:
    """ "query", "table", or for a path the format of its files.

    >>> [classify_target(what) for what in ("sales.orders", "/data/rows", "rows.csv", "select 1 as x")]
    ['table', 'parquet', 'csv', 'query']
    """
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
    """The active session, or a new one; whether it is new."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        remedy = "install it: pip install 'candide[spark]'"
        raise MissingLibraryError(f"{address}: to read from Spark pyspark is needed", remedy=remedy) from None

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        remedy = "install a JRE (Debian: default-jre-headless), or set JAVA_HOME to one"
        raise MissingLibraryError(f"{address}: Spark needs Java, and none is found", remedy=remedy)
    if master and master.startswith(SCHEME):
        _check_master(address, master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("candide").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master:
        builder = builder.master(master)
    with translate_errors(address):
        return builder.getOrCreate(), True


def _check_master(address: str, master: str) -> None:
    for server in master.removeprefix(SCHEME).split(","):
        host, _, port = server.rpartition(":")
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


def find_shuffle(plan: str) -> str | None:
    """What in a plan has rows come in another order each time."""
    match = _SHUFFLE_NODES.search(plan)
    return match[0] if match else None


def is_only_read(plan: str) -> bool:
    """Whether rows are read from where they are stored, and at most chosen and changed one by one."""
    nodes, cached = [], None
    for match in _NODE.finditer(plan):
        depth = len(match["above"])
        if cached is None or depth <= cached:  # below are the nodes that made the cached rows
            cached = depth if match["node"] == _CACHED_SCAN else None
            nodes.append(match)
    return bool(nodes) and all(n["node"] in _READ_NODES and not _NONDETERMINISTIC.search(n["rest"]) for n in nodes)


def has_clock(analyzed: str) -> bool:
    """Whether a plan reads the clock, as it is before each query puts its own time there."""
    return _CLOCK_FUNCTIONS.search(analyzed) is not None
