"""Tables of very many columns: all doors count the same, and no query grows with the width."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import candide as cd
from candide.engines.base import open_source
from candide.fit_source import fit_model
from candide.validation.cross_validation import cross_validate

WIDE, N = 60, 90  # columns of each kind: more than one query asks for


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    words = {f"word{j}": np.array(["ant", "bee", "cat"])[rng.integers(0, 2, N) + y] for j in range(WIDE)}
    digits = {f"digit{j}": rng.integers(0, 2, N).astype(str) for j in range(WIDE)}
    numbers = {f"x{j}": rng.normal(y, 1.0) for j in range(WIDE)}
    return pa.table({**words, **digits, **numbers, "y": np.array(["no", "yes"])[y]})


@pytest.fixture(params=["csv", "parquet", "frame"])
def data(request, table, tmp_path):
    if request.param == "frame":
        return table
    path = str(tmp_path / f"wide.{request.param}")
    (pyarrow.csv.write_csv if request.param == "csv" else pyarrow.parquet.write_table)(table, path)
    return path


class Overheard:
    """The queries that a source is asked."""

    def __init__(self, source):
        self.queries, ask = [], source._query
        source._query = lambda sql: self.queries.append(sql) or ask(sql)


def test_no_query_counts_the_levels_of_very_many_columns(data):
    with open_source(data) as source:
        asked = Overheard(source)
        census = fit_model(source, "y", model="naive").fitted.counts
    assert len(census.plan.columns) == 3 * WIDE
    assert max(sql.lower().count("histogram(") for sql in asked.queries) <= source.engine.max_levels


def test_columns_too_many_for_a_query_are_counted_as_few_are(data, table):
    """Text of a CSV that spells whole numbers is those in either way."""
    names = ["word7", "digit7", "x7"]
    many = fit_model(data, "y", model="naive").fitted.counts.select_columns(names)
    few = fit_model(
        data, "y", drop=[name for name in table.column_names if name not in {*names, "y"}], model="naive"
    ).fitted.counts
    assert [part.levels for part in many.plan.parts] == [part.levels for part in few.plan.parts]
    for a, b in zip(many.tallies, few.tallies, strict=True):
        assert all(np.allclose(a.arrays()[key], b.arrays()[key]) for key in b.arrays())


@pytest.mark.all_cases
def test_wide_tables_are_predicted_and_validated(data):
    scored = cd.predict_table(fit_model(data, "y", model="naive").fitted, data, keep=["y"]).to_pydict()
    right = np.mean([a == b for a, b in zip(scored["prediction"], scored["y"], strict=True)])
    assert right > 0.9
    assert cross_validate(data, "y", folds=3, model="naive").total.n == N
