"""Why a row was given its class: what the columns say adds up, also where one speaks in several parts of a plan."""

import numpy as np
import pytest

from candide import store
from candide.engines import arrays
from candide.errors import InputError
from candide.events import Bernoulli, Gaussian, Poisson
from candide.explain.columns import conditionals
from candide.explain.compare import compare
from candide.explain.rows import explain
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.rows.table import Table

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b"], 20)
ROWS = {"x": RNG.poisson(np.repeat([2.0, 5.0], 20)).astype(float), "z": RNG.normal(size=40)}


@pytest.fixture
def twice():
    """A model in which one column has its own voice, is above a threshold or not, and belongs to a group."""
    parts = Part(Poisson(), ("x",)), Part(Bernoulli(3.5), ("x",)), Part(Gaussian(covariance="full"), ("x", "z"))
    table = Table.of(ROWS)
    return Fitted(arrays.count(table, Y, plan=Plan(("x", "z"), parts)))


def test_a_column_speaks_in_each_of_its_parts(twice):
    decisions = explain(twice, ROWS)
    assert sorted(str(one.column) for one in decisions[0].contributions) == ["('x', 'z')", "x", "x"]
    for decision in decisions:
        odds = np.log(decision.probability) - np.log(decision.runner_up_probability)
        assert decision.log_odds == pytest.approx(odds, rel=1e-9)


def test_a_column_of_several_parts_is_kept_shown_and_compared(twice):
    for detail in store.DETAILS:
        again = store.loads(store.dumps(twice, detail=detail))
        assert again.plan == twice.plan
        np.testing.assert_array_equal(again.posterior(ROWS), twice.posterior(ROWS))
    assert [one.column for one in conditionals(twice)] == ["x", "x", "x", "z"]
    assert compare(twice, twice).columns == []


def test_one_class_decides_nothing(twice):
    alone = Fitted(arrays.count(Table.of(ROWS), ["a"] * 40, plan=twice.plan))
    with pytest.raises(InputError) as error:
        explain(alone, ROWS)
    assert error.value.value == "a"
