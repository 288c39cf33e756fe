"""How far a source is: the shares of a real query grow, and end at 1, whoever counts."""

import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import candide as cd
from candide.data.table import Table
from candide.engines.base import no_progress, open_source
from candide.engines.duckdb.attach import estimate_lines
from candide.engines.duckdb.source import DuckDB, DuckDBSource
from candide.engines.reading import ReadOptions
from candide.fit_source import fit_model
from candide.validation.cross_validation import cross_validate

N = 30_000  # more rows than a query reads at once


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    levels = np.char.add("user", rng.integers(0, 5000, N).astype(str))  # so many take a query of their own
    return pa.table({"x": rng.normal(y).round(2), "word": np.array(["ant", "bee"])[y], "user": levels, "y": y})


@pytest.fixture(params=["csv", "parquet", "frame"])
def data(request, table, tmp_path):
    if request.param == "frame":
        return table
    path = str(tmp_path / f"rows.{request.param}")
    (pyarrow.csv.write_csv if request.param == "csv" else pyarrow.parquet.write_table)(table, path)
    return path


class Noted(DuckDBSource):
    """Notes how far it is whenever it has read rows."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "rows_read" and hasattr(self, "shares"):
            self.shares.append(self.progress())


@contextmanager
def looking(source, what):
    source.start_progress()
    source.shares = [source.progress()]
    yield
    shares = source.shares
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.95 < shares[-1] <= 1  # how many lines a CSV has is known only about


def test_the_share_of_rows_counted_grows_to_one(data):
    with Noted(data, ReadOptions(), DuckDB()) as source:
        fit_model(source, "y", watch=looking, model="naive")
        assert source.passes == 2  # for users are counted apart
        assert len({share for share in source.shares if 0 < share < 1}) > 5


def test_the_share_of_rows_scored_grows_to_one(data, table):
    fitted = fit_model(table, "y", model="naive").fitted
    with Noted(data, ReadOptions(), DuckDB()) as source:
        cd.predict_table(fitted, source, watch=looking)
        cd.evaluate(fitted, source, "y", watch=looking)
        cross_validate(source, "y", folds=3, watch=looking, model="naive")


def test_rows_are_counted_the_same_with_progress(data):
    found = []
    for watch in (no_progress, looking):
        with Noted(data, ReadOptions(), DuckDB()) as source:
            found.append(fit_model(source, "y", watch=watch, model="naive").fitted.counts)
    for a, b in zip(*(census.tallies for census in found), strict=True):
        assert all(np.allclose(a.arrays()[key], b.arrays()[key]) for key in b.arrays())


def test_where_the_number_of_rows_is_not_known_nothing_is_printed(table):
    with open_source("SELECT x, x > 5 AS y FROM range(10) t(x)") as source:
        source.start_progress()
        fit_model(source, "y", model="naive")
        assert source.progress() < 0 < source.rows_read
    with open_source(Table.from_data(table)) as source:
        source.start_progress()
        list(source.batches(["x"], 1000))
        assert source.progress() == 1


NOTEBOOK = """
import sys, types
notebook = types.ModuleType("IPython")
notebook.get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules |= {"IPython": notebook, "ipywidgets": None}
from candide.engines.base import open_source
with open_source({"x": [1, 2]}) as source:
    print(list(source.columns))
"""


def test_rows_are_read_in_a_notebook_that_cannot_show_progress():
    told = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    assert told.stdout.strip() == "['x']", told.stderr


def test_lines_are_estimated_by_the_first_file(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("1234567\n" * 500)
    assert estimate_lines([f"{tmp_path}/*.csv"]) == 1000
    assert estimate_lines(["rows.csv.gz"]) is None
