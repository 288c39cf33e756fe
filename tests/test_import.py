"""``import candide`` is quick because it imports next to nothing."""

import subprocess
import sys

HEAVY = {"sklearn", "pyarrow", "duckdb", "matplotlib", "pandas", "polars", "scipy.stats", "narwhals", "sqlglot", "rich"}


def modules_after(statement):
    """What a fresh interpreter has loaded after one statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_heavy_library():
    loaded = modules_after("import candide")
    assert "candide" in loaded
    assert not loaded & HEAVY


def test_the_probe_would_notice():
    assert "scipy.stats" in modules_after("import scipy.stats")
