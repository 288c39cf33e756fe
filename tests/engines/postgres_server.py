"""A PostgreSQL server for tests: in a temporary folder, on a socket there, by a user who is not root, as it demands."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import glob
from itertools import count
from typing import Any
from urllib.parse import quote

import pyarrow as pa

_QUICK = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off -c shared_buffers=32MB"
PASSWORD = "s3cret:w@rd/"  # of the user locked, from whom alone one is asked
_OTHERS = ("postgres", "nobody")  # who runs it where we are root


def programs() -> str | None:
    """The folder of the newest server that is installed."""
    found = shutil.which("initdb")
    return (
        os.path.dirname(found) if found else next(iter(sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)), None)
    )


@dataclass
class Server:
    """A running server: the address of its database, and tables made on demand."""

    folder: str
    con: Any = None
    numbers: Iterator[int] = field(default_factory=count)

    def address(self, user: str = "candide", password: str = "", database: str = "postgres") -> str:
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def run(self, *statements: str) -> list[tuple]:
        """Run statements; the rows of the last."""
        with self.con.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def make(self, table: pa.Table, name: str = "") -> str:
        """A table of the database that holds the rows of an Arrow table; its address."""
        name = name or f"t{next(self.numbers)}"
        with self.con.cursor() as cursor:
            cursor.adbc_ingest(name, table.combine_chunks(), mode="create")
        return f"{self.address()}::{name}"


@contextmanager
def server() -> Iterator[Server]:
    """Start a server, and stop it."""
    folder = tempfile.mkdtemp(prefix="candide-pg-")
    bin, as_user = programs(), []
    if os.getuid() == 0:
        user = next(name for name in _OTHERS if _is_user(name))
        shutil.chown(folder, user)
        as_user = ["runuser", "-u", user, "--"]
    data, quiet = f"{folder}/data", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    initdb = [f"{bin}/initdb", "-D", data, "-A", "trust", "-U", "candide", "-N", "-E", "UTF8", "--locale=C.UTF-8"]
    options = f"{_QUICK} -k {folder} -c listen_addresses=''"
    control = [*as_user, f"{bin}/pg_ctl", "-D", data, "-w"]
    try:
        subprocess.run([*as_user, *initdb], check=True, **quiet)
        with open(f"{data}/pg_hba.conf", "w") as rules:
            rules.write("local all locked scram-sha-256\nlocal all all trust\n")
        subprocess.run([*control, "-l", f"{folder}/log", "-o", options, "start"], check=True, **quiet)
        try:
            from adbc_driver_postgresql import dbapi

            made = Server(folder)
            with dbapi.connect(made.address(), autocommit=True) as made.con:
                made.run(f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'", "GRANT pg_read_all_data TO locked")
                yield made
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_user(name: str) -> bool:
    with suppress(KeyError):
        return pwd.getpwnam(name) is not None
    return False
