"""Pictures are drawn without a screen, and closed after each test; examples import each other."""

import sys
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("agg")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
