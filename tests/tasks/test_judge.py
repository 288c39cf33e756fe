"""Judging a model by rows: its scores, and the rows that surprised it most, of every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from candide import demo, tasks

PLANTS, HERBS = demo.rows(120, seed=3)
ROWS = {**PLANTS, "herb": HERBS}
TABLES = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_any_kind_are_judged_alike(kind):
    fitted = tasks.learn(ROWS, "herb", model="naive").fitted
    found, same = tasks.judge(fitted, TABLES[kind](ROWS), "herb"), tasks.judge(fitted, ROWS, "herb")
    assert [one.row for one in found.surprises] == [one.row for one in same.surprises]
    p = fitted.posterior(PLANTS)[np.arange(120), fitted.labels.encode(HERBS)]
    assert found.surprises[0].row == int(np.argmin(p)) + 1
    assert len(found.explained) == len(found.surprises)
