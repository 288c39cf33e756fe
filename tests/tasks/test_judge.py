"""Judging a model by rows: its scores, and the rows that surprised it most, of every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from candide import demo, tasks
from candide.report.summary.verdict import of_judged

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


def test_a_policy_judges_and_the_most_frequent_class_stays_what_it_is():
    fitted = tasks.learn(ROWS, "herb", model="naive").fitted.with_policy({"abstain_below": 0.9})
    found = of_judged(fitted, tasks.judge(fitted, ROWS, "herb"))
    assert found.scores.decided.coverage == tasks.evaluate(fitted, ROWS, "herb").coverage < 1
    [right] = (one for one in found.scores.metrics if one.name == "accuracy")
    assert right.value == tasks.evaluate(fitted, ROWS, "herb").accuracy
    assert right.baseline == max(np.mean(np.array(HERBS) == herb) for herb in fitted.labels.values)
    assert "left open if less sure than 0.9" in found.sentences[0]
