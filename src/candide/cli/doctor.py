"""Doctor: versions of Python, the kernels and the libraries of this installation.

>>> inspect_installation().findings["candide"]
'0.1.0'
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from candide import __version__, kernels
from candide.kernels import threads
from candide.report.records import Literal, Section, Summary

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
    "numpy": "numpy (not compiled, slower: install a C compiler and reinstall)",
}


@dataclass(frozen=True, repr=False)
class Installation(Summary):
    """Version, Python, kernels, threads and libraries, as text."""

    findings: Mapping[str, str]

    def to_dict(self) -> dict[str, str]:
        return dict(self.findings)

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the names and versions, in two columns to be copied."""
        width = max(map(len, self.findings))
        yield Literal("\n".join(f"{name:{width}} {value}" for name, value in self.findings.items()))


def inspect_installation() -> Installation:
    """Return what is installed."""
    own = {
        "candide": __version__,
        "python": platform.python_version(),
        "kernels": _KERNEL_NOTES[kernels.NAME],
        "threads": str(threads.thread_count()),
    }
    libraries = {name: _version(name) for name in _LIBRARIES}
    extras = {name: _version(name, f": candide[{extra}]") for extra, names in _EXTRAS.items() for name in names}
    return Installation(own | libraries | extras)


def _version(name: str, remedy: str = "") -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return f"not installed{remedy}"
