"""A model scored on labelled rows: its scores and its largest errors, for every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import candide as cd
from candide import demo
from candide.fit_source import fit_model
from candide.report.summary.page import assess_model
from candide.validation.evaluation import evaluate_rows

PLANTS, HERBS = demo.garden_rows(120, seed=3)
ROWS = {**PLANTS, "herb": HERBS}
TABLES = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_any_kind_are_scored_equally(kind):
    fitted = fit_model(ROWS, "herb", model="naive").fitted
    found, same = (
        evaluate_rows(fitted, TABLES[kind](ROWS), "herb"),
        evaluate_rows(fitted, ROWS, "herb"),
    )
    assert [one.row for one in found.largest_errors] == [one.row for one in same.largest_errors]
    p = fitted.posterior(PLANTS)[np.arange(120), fitted.labels.encode(HERBS)]
    assert found.largest_errors[0].row == int(np.argmin(p)) + 1
    assert len(found.explanations) == len(found.largest_errors)


def test_a_policy_changes_scores_and_not_the_baseline():
    fitted = fit_model(ROWS, "herb", model="naive").fitted.with_policy({"abstain_below": 0.9})
    found = assess_model(fitted, evaluate_rows(fitted, ROWS, "herb"))
    assert found.scores.policy_result.coverage == cd.evaluate(fitted, ROWS, "herb").coverage < 1
    right = found.scores.metrics["accuracy"]
    assert right.value == cd.evaluate(fitted, ROWS, "herb").accuracy
    assert right.baseline == max(np.mean(np.array(HERBS) == herb) for herb in fitted.labels.values)
    assert "abstain if the largest probability is below 0.9" in found.sentences[0]
