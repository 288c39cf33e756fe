"""Which files a command crosses: ``python -m tests.trace fit`` runs it on 300 rows and prints them.

A file counts if one of its functions is called; what is executed while modules are imported does not count.
"""

import contextlib
import io
import sys
import tempfile
import threading
from pathlib import Path

import candide
from candide.__main__ import main

ROOT = Path(candide.__file__).parent
COMMANDS = {
    "fit": ["fit", "garden.csv", "--target", "herb", "-o", "new.candide"],
    "predict": ["predict", "garden.candide", "garden.csv", "-o", "predicted.csv"],
}


def trace_calls(function) -> list[str]:
    """Call a function and return the files of the package it crosses, in the order they are first reached."""
    files: dict[str, None] = {}

    def record(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path not in files and path.startswith(str(ROOT)) and not is_importing(frame):
            files[path] = None

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [Path(path).relative_to(ROOT).as_posix() for path in files]


def is_importing(frame) -> bool:
    """Whether a frame is, or is called by, the body of a module of the package."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(ROOT)):
            return True
        frame = frame.f_back
    return False


def run_command(arguments: list[str]) -> None:
    """Run the command line without output."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        sys.argv = ["candide", *arguments]
        main()


def trace_command(name: str) -> list[str]:
    """Return the files that a command crosses on the 300 rows of the demonstration table."""
    import pyarrow as pa
    from pyarrow import csv

    from candide.demo import garden_rows

    rows, labels = garden_rows(300, seed=0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        csv.write_csv(pa.table({**rows, "herb": labels}), "garden.csv")
        if name != "fit":
            run_command(["fit", "garden.csv", "--target", "herb", "-o", "garden.candide"])
        return trace_calls(lambda: run_command(COMMANDS[name]))


if __name__ == "__main__":
    crossed = trace_command(sys.argv[1])
    print(*crossed, f"{len(crossed)} files", sep="\n")
