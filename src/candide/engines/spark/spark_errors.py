"""Spark's errors: what it says of bad input, in one line that names what is wrong and the remedy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candide.errors import CandideError, InputError, SourceError

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
