"""Pictures are drawn without a screen, and closed after each test."""

import matplotlib
import pytest

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
