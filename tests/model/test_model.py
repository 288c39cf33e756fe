"""Term weights: sums are means by rows, removed rows do not count, and stale weights are noticed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.model.model import TermWeights

WEIGHTS = st.builds(
    lambda seed, rows, gone: TermWeights(
        (np.random.default_rng(seed).normal(size=3), np.random.default_rng(seed + 1).normal(size=2)),
        np.random.default_rng(seed + 2).normal(size=2),
        rows,
        np.random.default_rng(seed + 3).uniform(0.1, 9, 2),
        rows,
        gone,
    ),
    st.integers(0, 10**6),
    st.integers(0, 1000),
    st.sampled_from([0, 0, 3, 2000]),
)


def assert_equal(a, b):
    for name in ("weight", "bias", "strength"):
        mine, theirs = (np.concatenate([np.atleast_1d(one) for one in getattr(v, name)]) for v in (a, b))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert (a.n_learned_rows, a.n_counted_rows, a.n_removed_rows) == (
        b.n_learned_rows,
        b.n_counted_rows,
        b.n_removed_rows,
    )


@given(WEIGHTS, WEIGHTS)
def test_addition_commutes(a, b):
    if a.n_remaining_rows or b.n_remaining_rows:
        assert_equal(a + b, b + a)


@given(st.lists(WEIGHTS.filter(lambda v: v.n_removed_rows == 0 and v.n_learned_rows), min_size=3, max_size=3))
def test_addition_is_associative(three):
    a, b, c = three
    assert_equal((a + b) + c, a + (b + c))


def test_weights_of_removed_rows_do_not_count():
    a = TermWeights((np.ones(2),), np.zeros(2), 100, np.ones(1), 100)
    b = TermWeights((np.full(2, 9.0),), np.zeros(2), 300, np.ones(1), 300).with_removed_rows(300)
    assert (a + b) is a
    assert (b + a) is a


@pytest.mark.parametrize(("counted", "at_hand", "due"), [(199, 100, False), (200, 100, True), (200, 99, False)])
def test_weights_are_learned_again_when_rows_have_doubled(counted, at_hand, due):
    known = TermWeights((np.ones(2),), np.zeros(2), 100, np.ones(1), 100)
    assert known.is_relearning_due(counted, at_hand) is due
    assert known.with_removed_rows(1).is_relearning_due(counted, at_hand) is (at_hand >= 100)


def test_weights_need_as_many_rows_as_there_are_weights():
    known = TermWeights((np.ones(6), np.ones(2)), np.zeros(2), 0, np.ones(1), 0)
    assert not known.is_relearning_due(40, 9)
    assert known.is_relearning_due(40, 10)


def test_a_sum_is_a_mean_by_rows_and_is_summarised():
    north = TermWeights((np.array([1.0, 0.0]),), np.zeros(2), 300, strength=np.ones(1), n_counted_rows=300)
    south = TermWeights((np.array([0.0, 1.0]),), np.zeros(2), 100, strength=np.ones(1), n_counted_rows=5000)
    assert (north + south).weight[0].tolist() == [0.75, 0.25]
    assert (north + south).training_summary(5300) == "weights averaged over 2 models, learned on 400 of 5,300 rows"
    assert [south.is_stale(n) for n in (9000, 10_000)] == [False, True]
    forgotten = "weights learned on 100 rows, before 7 rows were forgotten; the counts now hold 4,993 rows"
    assert south.with_removed_rows(7).training_summary(4993) == forgotten
    uncounted = replace(north, n_uncounted_rows=300).training_summary(900)
    assert uncounted == "weights learned on 300 rows that were not counted"
