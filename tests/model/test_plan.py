"""Plan: which event model counts which column."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError, InputTypeError, UnknownNameError
from candide.events import Bernoulli, Categorical, EventModel, Gaussian, Multinomial
from candide.model.plan import make_plan
from candide.priors import Dirichlet

TABLE = {"age": [30.0, 41.5], "job": ["cook", "smith"], "smokes": [0, 1], "pay": [1.5, 2.5]}


def events_by_column(plan):
    return {name: part.event.name for part in plan.parts for name in part.columns}


def test_auto_groups_columns_of_one_kind_in_table_order():
    plan = make_plan(Table.from_data(TABLE))
    assert plan.columns == tuple(TABLE)
    assert [(part.event.name, part.columns) for part in plan.parts] == [
        ("gaussian", ("age", "pay")),
        ("categorical", ("job", "smokes")),
    ]


def test_a_mapping_names_some_and_the_rest_is_inferred():
    plan = make_plan(Table.from_data(TABLE), {"pay": "exponential", "smokes": Bernoulli()})
    assert events_by_column(plan) == {
        "age": "gaussian", "job": "categorical", "smokes": "bernoulli", "pay": "exponential",
    }  # fmt: skip


def test_one_event_for_all():
    for events in ("categorical", Categorical(), Categorical):
        assert set(events_by_column(make_plan(Table.from_data(TABLE), events)).values()) == {"categorical"}


def test_settings_divide_columns_of_one_family():
    plan = make_plan(Table.from_data(TABLE), {"age": Gaussian(), "pay": Gaussian(covariance="tied-diagonal")})
    assert ("age",) in [part.columns for part in plan.parts]
    assert ("pay",) in [part.columns for part in plan.parts]


def test_priors_with_sequences_can_be_planned():
    plan = make_plan(Table.from_data(TABLE), {"job": Categorical(prior=Dirichlet([1.0, 2.0]))})
    assert events_by_column(plan)["job"] == "categorical"


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownNameError, match=r"'agee'; did you mean 'age'\?"):
        make_plan(Table.from_data(TABLE), {"agee": "gaussian"})
    with pytest.raises(UnknownNameError, match=r"'gausian'; did you mean 'gaussian'\?"):
        make_plan(Table.from_data(TABLE), "gausian")


def test_levels_grow_to_what_a_table_holds():
    plan = make_plan(Table.from_data(TABLE), {"smokes": "categorical"})
    grown = plan.with_levels(Table.from_data({**TABLE, "job": [None, "baker"]}))
    part = next(p for p in grown.parts if "job" in p.columns)
    assert [labels.values for labels in part.levels] == [("baker",), (0, 1)]
    assert part.block(Table.from_data(TABLE)).tolist() == [[1, 0], [1, 1]]  # 'cook' and 'smith' lie past its levels
    assert (
        plan.with_levels(Table.from_data(TABLE)).union(grown)[0]
        == grown.union(plan.with_levels(Table.from_data(TABLE)))[0]
    )


def test_sparse_rows_take_one_event_that_bears_them():
    table = Table.from_data(sp.csr_array(np.eye(3)))
    assert events_by_column(make_plan(table)) == dict.fromkeys(range(3), "multinomial")
    assert make_plan(table, "bernoulli").parts[0].event == Bernoulli()
    with pytest.raises(InputTypeError, match="one event model"):
        make_plan(table, {0: "bernoulli"})
    for event in ("gaussian", "categorical", "lognormal"):
        with pytest.raises(InputTypeError, match="sparse"):
            make_plan(table, event)


def test_nothing_to_model():
    with pytest.raises(InputError, match="none of the columns"):
        make_plan(Table.from_data({"who": [f"u{i}" for i in range(50)]}))


def test_the_same_counts_merge_under_other_priors():
    table = Table.from_data({"a": ["x", "y"]})
    one, other = (make_plan(table, Categorical(prior=Dirichlet(a))).with_levels(table) for a in (1.0, 2.0))
    assert one.union(other)[0] == one
    sums = Table.from_data([[1.0, 2.0]])
    assert make_plan(sums, "multinomial").union(make_plan(sums, Multinomial(prior=Dirichlet(0.1))))[0]


@dataclass(frozen=True)
class Rooted(EventModel):
    """An own family: tallies square roots."""

    name: ClassVar[str] = "rooted"
    kind: ClassVar[str] = "moments"

    def transform(self, x):
        return np.sqrt(x)


def test_own_event_models_merge_with_their_equals():
    table = Table.from_data([[4.0], [9.0]])
    a, b = (arrays.count_table(table, ["a", "b"], plan=make_plan(table, Rooted())) for _ in range(2))
    assert (a + b).tallies[0].mean.tolist() == [[2.0], [3.0]]
    with pytest.raises(InputError, match="no finite transform") as error:
        arrays.count_table(Table.from_data([[4.0], [-1.0]]), ["a", "b"], plan=make_plan(table, Rooted()))
    assert (error.value.column, error.value.row, error.value.value) == (0, 1, -1.0)
