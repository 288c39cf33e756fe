"""Where the real data sets are: ``CANDIDE_DATA``, else beside the repository; tests that need them skip without."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def table(name: str) -> str:
    """The path of a real table."""
    path = FOLDER / "tables" / name
    if not path.exists():
        pytest.skip(f"{name} is not at hand; set CANDIDE_DATA to the folder of real data")
    return str(path)


def corpus(name: str) -> str:
    """The path of a real collection of documents: columns text, class, split."""
    return table(f"../text/{name}.parquet")
