"""Why a row was given its class: what the columns say adds up, also where one speaks in several parts of a plan."""

import numpy as np
import pytest

import candide as cd
from candide import store
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError
from candide.events import Bernoulli, Gaussian, Poisson
from candide.explain.columns import iterate_conditionals
from candide.explain.rows import explain_table
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.monitoring.model_diff import compare_models

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b"], 20)
ROWS = {"x": RNG.poisson(np.repeat([2.0, 5.0], 20)).astype(float), "z": RNG.normal(size=40)}


@pytest.fixture
def twice():
    """A model in which one column has its own voice, is above a threshold or not, and belongs to a group."""
    parts = (
        PlanPart(Poisson(), ("x",)),
        PlanPart(Bernoulli(3.5), ("x",)),
        PlanPart(Gaussian(covariance="full"), ("x", "z")),
    )
    table = Table.from_data(ROWS)
    return FittedModel(arrays.count_table(table, Y, plan=Plan(("x", "z"), parts)))


def test_a_column_contributes_in_each_of_its_parts(twice):
    decisions = explain_table(twice, ROWS)
    assert sorted(str(one.column) for one in decisions[0].contributions) == ["('x', 'z')", "x", "x"]
    for decision in decisions:
        odds = np.log(decision.probability) - np.log(decision.runner_up_probability)
        assert decision.log_odds == pytest.approx(odds, rel=1e-9)


def test_a_column_of_several_parts_is_kept_shown_and_compared(twice):
    for detail in store.DETAILS:
        again = store.loads(store.dumps(twice, detail=detail))
        assert again.plan == twice.plan
        np.testing.assert_array_equal(again.posterior(ROWS), twice.posterior(ROWS))
    assert [one.column for one in iterate_conditionals(twice)] == ["x", "x", "x", "z"]
    assert compare_models(twice, twice).columns == []


def test_one_class_decides_nothing(twice):
    alone = FittedModel(arrays.count_table(Table.from_data(ROWS), ["a"] * 40, plan=twice.plan))
    with pytest.raises(InputError) as error:
        explain_table(alone, ROWS)
    assert error.value.value == "a"


def test_values_of_a_csv_come_in_the_types_of_the_levels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("flag,size,y\n" + "True,1.5,a\nFalse,2.5,b\nTrue,3,a\nFalse,1,b\nTrue,2,b\n" * 3)
    [found] = cd.explain_rows(cd.fit(path, "y", model="naive"), path, [2])
    values = {one.column: one.value for one in found.decision.contributions}
    assert (found.row, found.label, values) == (2, "b", {"flag": False, "size": 2.5})
