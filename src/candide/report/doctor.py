"""Doctor: what this installation runs on.

>>> inspect_installation().findings["candide"]
'0.1.0'
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from candide import __version__, kernels
from candide.kernels import threads
from candide.report.records import Summary

_LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "narwhals", "pyarrow", "duckdb", "sqlglot", "threadpoolctl", "rich"),
    *("rich-click", "jinja2", "pandas", "polars"),
)
_EXTRAS = {
    "plot": ("matplotlib",),
    "excel": ("python-calamine",),
    "postgres": ("adbc-driver-manager", "adbc-driver-postgresql"),
    "spark": ("pyspark",),
    "onnx": ("onnx",),
    "serve": ("msgspec", "uvicorn", "httptools", "uvloop"),
    "mlflow": ("mlflow-skinny",),
}
_KERNEL_NOTES = {
    "avx2": "avx2 (compiled, for this processor)",
    "baseline": "baseline (compiled, for any processor)",
    "numpy": "numpy (not compiled: all works, slower; install a C compiler and reinstall for the fast loops)",
}


@dataclass(frozen=True, repr=False)
class Installation(Summary):
    """Version, Python, kernels, threads and libraries, as text."""

    findings: Mapping[str, str]


def inspect_installation() -> Installation:
    """Look at this installation."""
    known = {
        "candide": __version__,
        "python": platform.python_version(),
        "kernels": _KERNEL_NOTES[kernels.NAME],
        "threads": str(threads.thread_count()),
    }
    needed = {name: _version(name) for name in _LIBRARIES}
    extra = {name: _version(name, f": candide[{extra}]") for extra, names in _EXTRAS.items() for name in names}
    return Installation(known | needed | extra)


def _version(name: str, remedy: str = "") -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return f"not installed{remedy}"
