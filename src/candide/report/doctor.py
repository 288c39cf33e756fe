"""Doctor: what this installation runs on.

>>> findings()["candide"]
'0.1.0'
"""

import platform
from importlib.metadata import PackageNotFoundError, version

from candide import __version__, kernels
from candide.kernels import threads

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "narwhals", "duckdb", "pyarrow", "pandas", "polars", "matplotlib")
_REMARK = {
    "avx2": "avx2 (compiled, for this processor)",
    "baseline": "baseline (compiled, for any processor)",
    "numpy": "numpy (not compiled: all works, slower; install a C compiler and reinstall for the fast loops)",
}


def findings() -> dict[str, str]:
    """Version, Python, kernels, threads and libraries, as text."""
    facts = {
        "candide": __version__,
        "python": platform.python_version(),
        "kernels": _REMARK[kernels.NAME],
        "threads": str(threads.count()),
    }
    return facts | {name: _version(name) for name in _LIBRARIES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
