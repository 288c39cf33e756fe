"""A column may serve several parts of a plan: counted, merged, removed, narrowed and scored with each of them."""

import numpy as np
import pyarrow as pa
import pytest

from candide.data.table import EncodedColumn, Table
from candide.encoding import Grid
from candide.engines import arrays
from candide.engines.batches import make_blocks
from candide.errors import MergeError, NotCountedError
from candide.events import Bernoulli, Categorical, Gaussian
from candide.model.counts import join_counts
from candide.model.model import estimate_model
from candide.model.plan import Plan, PlanPart
from candide.weighted.terms.interaction import Interaction

RNG = np.random.default_rng(0)
ROWS = {"a": RNG.normal(size=60), "b": RNG.normal(size=60)}
ROWS["b"] += ROWS["a"]
Y = np.array(["no", "yes"])[(ROWS["a"] + RNG.normal(size=60) > 0).astype(int)]
ALONE, TOGETHER = Gaussian(), Gaussian(covariance="full")
PLAN = Plan(("a", "b"), (PlanPart(ALONE, ("a",)), PlanPart(ALONE, ("b",)), PlanPart(TOGETHER, ("a", "b"))))
SEVERAL = Plan(  # one column as a number, as above or not, and as cells of a grid
    ("a",),
    (
        PlanPart(ALONE, ("a",)),
        PlanPart(Bernoulli(), ("a",)),
        PlanPart(Categorical(), ("a",), (Grid((-1.0, 0.0, 1.0)),)),
    ),
)


def some(rows):
    return Table.from_data({name: column[rows] for name, column in ROWS.items()}), Y[rows]


def counted(plan, rows=slice(None)):
    table, y = some(rows)
    return arrays.count_table(table, y, plan=plan.with_levels(table))


def assert_same(got, want):
    for a, b in zip(got.tallies, want.tallies, strict=True):
        for name, state in b.arrays().items():
            np.testing.assert_allclose(a.arrays()[name], state, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("plan", [PLAN, SEVERAL])
def test_parts_that_share_columns_add_and_go(plan):
    whole, first, rest = (counted(plan, rows) for rows in (slice(None), slice(0, 25), slice(25, None)))
    assert_same(first + rest, whole)
    assert_same(whole - first, rest)
    assert_same(whole.scale(0.5) + whole.scale(0.5), whole)
    with pytest.raises(NotCountedError) as error:
        first - rest
    assert error.value.column in ("a", None)


@pytest.mark.parametrize("plan", [PLAN, SEVERAL])
def test_each_part_scores_its_columns(plan):
    census, table = counted(plan), some(slice(None))[0]
    model = estimate_model(census)
    alone = [estimate_model(counted(Plan(part.columns, (part,)))) for part in plan.parts]
    read = plan.blocks(table)
    scores = [m.joint_log_likelihood([block]) - m.log_prior for m, block in zip(alone, read, strict=True)]
    np.testing.assert_allclose(model.joint_log_likelihood(read), sum(scores) + model.log_prior)


def test_a_batch_becomes_the_same_blocks():
    """What an engine has coded already passes."""
    part = SEVERAL.parts[2]
    codes = part.encodings[0].apply(ROWS["a"])
    coded = Table.from_data({"a": EncodedColumn(codes)})
    np.testing.assert_array_equal(part.block(coded), part.block(Table.from_data(ROWS)))
    columns = [pa.array(ROWS["a"]), pa.array(ROWS["a"]), pa.array(codes)]
    batch = pa.RecordBatch.from_arrays(columns, names=["f0", "f1", "code2"])
    for got, want in zip(make_blocks(SEVERAL, batch), SEVERAL.blocks(Table.from_data(ROWS)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_two_halves_of_a_plan_join_though_they_share_columns():
    alone, together = Plan(PLAN.columns, PLAN.parts[::2]), Plan(PLAN.columns, PLAN.parts[1:2])
    joined = join_counts(counted(alone), counted(together), PLAN)
    assert [part.columns for part in joined.plan.parts] == [part.columns for part in PLAN.parts]
    assert_same(joined, counted(PLAN))
    both = Plan(("a", "b"), (PlanPart(ALONE, ("a", "b")), PlanPart(TOGETHER, ("a", "b"))))
    halves = [counted(Plan(both.columns, (part,))) for part in both.parts]
    assert_same(join_counts(halves[1], halves[0], both), counted(both))


def test_some_columns_of_shared_parts():
    chosen = counted(PLAN).select_columns(["b"])
    assert [part.columns for part in chosen.plan.parts] == [("b",), ("b",)]


def test_grids_with_other_edges_name_their_column():
    other = Plan(("a",), (*SEVERAL.parts[:2], PlanPart(Categorical(), ("a",), (Grid((0.0, 2.0)),))))
    with pytest.raises(MergeError) as error:
        counted(SEVERAL) + counted(other)
    assert error.value.column == "a"


def test_a_level_seen_in_one_part_stays_in_all():
    """A pair meets no row in which one of its columns is absent; what is left after a removal is what was counted."""
    shape, size = np.array(["round", "square", "star", "oval"] * 5, object), np.array(["big", "small"] * 10, object)
    size[shape == "star"] = None
    rows, y = {"shape": shape, "size": size}, np.arange(20) % 3
    plan = Plan(
        ("shape", "size"),
        (PlanPart(Categorical(), ("shape", "size")), PlanPart(Interaction(((0, 1),)), ("shape", "size"))),
    )

    def count(some):
        table = Table.from_data({name: column[some] for name, column in rows.items()})
        return arrays.count_table(table, y[some], plan=plan.with_levels(table))

    keep = shape != "oval"
    left, want = count(slice(None)) - count(~keep), count(keep)
    assert left.plan == want.plan
    assert [s.values for s in left.plan.parts[1].levels] == [("round", "square", "star"), ("big", "small")]
    assert_same(left, want)
