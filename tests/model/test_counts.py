"""Census: parts that met other classes and other levels still make one whole, in any order."""

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from candide import encoding
from candide.data.labels import Labels
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError, MergeError, NotCountedError
from candide.model.counts import align_counts
from candide.model.plan import make_plan

EVENTS = {"x": "gaussian", "job": "categorical", "mixed": "categorical", "n": "poisson", "on": "bernoulli"}


@st.composite
def data(draw, max_rows=30):
    """A mixed table, its labels and weights: few rows of many levels, so that chunks seldom hold all of them."""
    n = draw(st.integers(0, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    some = lambda values: np.array([*values, None], object)[rng.integers(0, len(values), n)]  # noqa: E731
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(1e8, 1, n)),
            "job": some(["cook", "smith", "tailor", "", None]),
            "mixed": some([1, 2.5, True, None]),  # text among these would make all of a chunk text
            "n": rng.poisson(2, n).astype(float),
            "on": rng.integers(0, 2, n),
        }
    )
    labels = some(draw(st.sampled_from([["a", "b", "c", "d"], [1, 2, 10], [1, "1", 2], ["only"]])))
    weight = draw(st.sampled_from([None, "some"]))
    return frame, labels, None if weight is None else rng.choice([0.0, 0.5, 2.0], n)


def count(frame, y, weight=None, rows=slice(None), **known):
    table = Table.from_data(frame.iloc[rows] if isinstance(frame, pd.DataFrame) else frame)
    weight = None if weight is None else weight[rows]
    return arrays.count_table(table, y[rows], weight, plan=make_plan(table, EVENTS).with_levels(table), **known)


def cut(frame, y, weight, edges):
    edges = [0, *sorted(int(e * len(y)) for e in edges), len(y)]
    return [count(frame, y, weight, slice(a, b)) for a, b in pairwise(edges)]


def assert_same(got, want):
    """The same census on the united labels and levels: what one of them never met has no weight in the other."""
    got, want = align_counts(got, want)
    assert got.plan == want.plan
    assert got.n_rows == want.n_rows
    np.testing.assert_allclose(got.class_weight, want.class_weight, rtol=1e-12, atol=1e-12)
    for a, b in zip(got.tallies, want.tallies, strict=True):
        for name, state in b.arrays().items():
            # a mean of 1e8 is known to 1e-8 a merge, and a spread to as much
            np.testing.assert_allclose(a.arrays()[name], state, rtol=1e-12, atol=1e-5 if name == "m2" else 1e-11)


@given(data(), st.lists(st.floats(0, 1), max_size=4), st.randoms(use_true_random=False))
def test_chunks_in_any_order_make_the_whole(rows, edges, order):
    frame, y, weight = rows
    whole, parts = count(frame, y, weight), cut(frame, y, weight, edges)
    order.shuffle(parts)
    total = reduce(add, parts)
    assert total.labels == whole.labels
    assert total.plan == whole.plan
    assert_same(total, whole)


@given(data(), st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_addition_associates_and_commutes(rows, edges):
    a, b, c = cut(*rows, edges)
    assert_same((a + b) + c, a + (b + c))
    assert_same(a + b, b + a)


@given(data(), st.floats(0, 1))
def test_subtraction_undoes_addition_and_leaves_no_name_behind(rows, edge):
    a, b = cut(*rows, [edge])
    for left, alone in (((a + b) - b, a.prune()), ((a + b) - a, b.prune())):
        assert_same(left, alone)
        assert left.labels == alone.labels
        assert left.plan == alone.plan
    nothing = (a + b) - (a + b)
    assert nothing.n_rows == 0
    assert not nothing.class_weight.any()


def test_what_was_declared_stays_known():
    frame, y = pd.DataFrame({"job": ["cook", "smith"]}), np.array(["a", "b"])
    counted = count_jobs(frame, y)
    assert (counted - counted).labels.values == ()
    assert (counted.declare_classes() - counted).labels.values == ("a", "b")
    assert (counted + counted.declare_classes() - counted - counted).labels.values == ("a", "b")
    [part] = counted.plan.parts
    declared = replace(part, encodings=(encoding.LevelEncoding(part.levels[0].declare(["smith"])),))
    kept = replace(counted, plan=replace(counted.plan, parts=(declared,)))
    assert [levels.values for levels in (kept - counted).plan.parts[0].levels] == [("smith",)]


def count_jobs(frame, y):
    table = Table.from_data(frame)
    return arrays.count_table(table, y, plan=make_plan(table, "categorical").with_levels(table))


@given(data(), st.floats(0, 1))
def test_rows_never_counted_cannot_be_removed(rows, edge):
    a, b = cut(*rows, [edge])
    assume(b.n_rows)
    with pytest.raises(NotCountedError, match="remove"):
        a - (a + b)


@given(data(), st.floats(0, 1))
def test_no_operation_changes_its_operands(rows, edge):
    a, b = cut(*rows, [edge])
    before = [
        (c.class_weight.copy(), [{k: v.copy() for k, v in t.arrays().items()} for t in c.tallies]) for c in (a, b)
    ]
    _ = (a + b) - b, a.scale(0.5)
    for census, (weight, states) in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(census.class_weight, weight)
        for tally, state in zip(census.tallies, states, strict=True):
            for name, array in tally.arrays().items():
                np.testing.assert_array_equal(array, state[name])


@given(data())
def test_scaling_is_weighing(rows):
    frame, y, weight = rows
    weight = np.ones(len(y)) if weight is None else weight
    assert_same(count(frame, y, weight).scale(0.25), count(frame, y, weight * 0.25))


def test_weights_of_classes_and_levels_by_hand():
    a = count(
        pd.DataFrame({"x": [1.0, 3.0], "job": ["cook", "smith"], "mixed": [1, 1], "n": [1.0, 2], "on": [0, 1]}),
        ["+", "+"],
    )
    b = count(pd.DataFrame({"x": [5.0], "job": ["baker"], "mixed": ["1"], "n": [0.0], "on": [1]}), ["-"])
    whole = a + b
    assert whole.labels.values == ("+", "-")
    assert whole.class_weight.tolist() == [2.0, 1.0]
    parts = {part.event.name: (part, tally) for part, tally in zip(whole.plan.parts, whole.tallies, strict=True)}
    part, levels = parts["categorical"]
    assert [labels.values for labels in part.levels] == [("baker", "cook", "smith"), (1, "1")]
    assert levels.counts.tolist() == [[0, 1, 1, 2, 0], [1, 0, 0, 0, 1]]
    assert parts["gaussian"][1].mean.tolist() == [[2.0], [5.0]]
    assert parts["gaussian"][1].m2.tolist() == [[2.0], [0.0]]
    assert parts["poisson"][1].total.tolist() == [[3.0], [0.0]]
    assert parts["bernoulli"][1].counts.tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert whole.class_tally.counts.tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_a_factor_that_is_not_a_weight(factor):
    census = arrays.count_table(Table.from_data([[1.0]]), ["a"], plan=make_plan(Table.from_data([[1.0]]), "gaussian"))
    with pytest.raises(InputError, match="factor"):
        census.scale(factor)


def test_other_columns_and_other_events_do_not_merge():
    def gaussian(names, events="gaussian"):
        table = Table.from_data({name: [1.0, 2.0] for name in names})
        return arrays.count_table(table, ["a", "b"], plan=make_plan(table, events).with_levels(table))

    with pytest.raises(MergeError, match=r"only left \['b'\], only right \['c'\]"):
        gaussian("ab") + gaussian("ac")
    with pytest.raises(MergeError, match="another order"):
        gaussian("ab") + gaussian("ba")
    with pytest.raises(MergeError, match=r"Gaussian.*Poisson"):
        gaussian("ab") + gaussian("ab", "poisson")
    with pytest.raises(MergeError, match="same events"):
        gaussian("ab") + gaussian("ab", {"a": "gaussian", "b": "poisson"})
    with pytest.raises(MergeError, match="same events"):
        gaussian("ab", {"a": "gaussian", "b": "lognormal"}) - gaussian("ab")


def test_known_labels_keep_their_codes():
    table = Table.from_data([[1.0], [2.0]])
    plan = make_plan(table, "gaussian")
    census = arrays.count_table(table, ["b", "b"], plan=plan, labels=Labels.from_values(["a", "b", "c"]))
    assert census.class_weight.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(InputError, match=r"row 1: the label 'z' is not among the classes \['a', 'b'\]"):
        arrays.count_table(table, ["b", "z"], plan=plan, labels=Labels.from_values(["a", "b"]))
