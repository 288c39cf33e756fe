"""The compiled modules that this machine can run, and the helper module beside the tests."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

MODULES = ("_baseline", "_avx2")


def _load(name):
    baseline = importlib.import_module("candide.kernels._baseline")
    if name == "_avx2" and not baseline.cpu_has_avx2():
        raise ImportError("this processor has no AVX2")
    return importlib.import_module(f"candide.kernels.{name}")


@pytest.fixture(scope="session", params=MODULES)
def compiled(request):
    """One compiled module."""
    try:
        return _load(request.param)
    except ImportError as reason:
        pytest.skip(f"{request.param} is not built or cannot run here: {reason}")


@pytest.fixture(scope="session", params=("_numpy", *MODULES))
def loops(request):
    """One module of kernels: the reference or a compiled one."""
    if request.param == "_numpy":
        return importlib.import_module("candide.kernels._numpy")
    try:
        return _load(request.param)
    except ImportError as reason:
        pytest.skip(f"{request.param} is not built or cannot run here: {reason}")
