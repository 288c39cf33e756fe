"""Drawn tables are the same each time, and their labels follow the probabilities that are given as true."""

import numpy as np
import pytest
from benchmarks.accuracy import split_tenth
from benchmarks.large import drift, linear_model, random_tree


@pytest.mark.parametrize("draw", [random_tree, linear_model, drift])
def test_a_drawn_table_is_the_same_each_time(draw):
    first, second = draw(quick=True), draw(quick=True)
    assert first.X.equals(second.X)
    assert (first.y == second.y).all()
    assert first.X_test.equals(second.X_test)


@pytest.mark.parametrize("draw", [random_tree, linear_model, drift])
def test_labels_follow_the_true_probabilities(draw):
    split = draw(quick=True)
    classes, codes = np.unique(split.y_test, return_inverse=True)
    assert np.allclose(split.true.sum(axis=1), 1)
    for c in range(len(classes)):
        p = split.true[:, c]
        z = ((codes == c) - p).sum() / np.sqrt((p * (1 - p)).sum())
        assert abs(z) < 4


def test_a_third_of_the_rows_is_tested():
    split = drift(quick=True)
    assert len(split.y_test) == (len(split.y) + len(split.y_test)) // 3
    assert split.X["time"].iloc[-1] > 0.99  # test rows lie between training rows
    assert split.X_test["time"].iloc[0] < 0.01


@pytest.mark.parametrize("sizes", [(100, 40), (95, 12, 2), (60, 1)])
def test_a_held_out_tenth_has_no_class_that_the_training_rows_lack(sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    train, held_out = split_tenth(y)
    assert sorted([*train, *held_out]) == list(range(len(y)))
    assert 0.05 < len(held_out) / len(y) < 0.15
    assert set(y[held_out]) <= set(y[train])
