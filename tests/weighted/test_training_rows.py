"""The rows that weights are learned from: what is left out, and what further rows contribute."""

import numpy as np
import pytest

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.model.plan import make_plan
from candide.model.settings import Settings
from candide.weighted import learning, training_rows
from candide.weighted.training_rows import FurtherRows, TrainingRows

N = 50


def counted():
    rng = np.random.default_rng(0)
    table, y = Table.from_data({"a": rng.choice(["x", "y"], N), "b": rng.choice(["p", "q", "r"], N)}), np.arange(N) % 2
    plan = make_plan(table, "categorical").with_levels(table)
    return arrays.count_table(table, y, plan=plan, labels=Labels((0, 1))), TrainingRows(plan.blocks(table), y)


def test_rows_of_a_sample_are_pooled_with_their_weights():
    table = Table.from_data({"a": ["x", "x", "y", "y"]})
    sample = Sample.from_table(table, np.array([0, 0, 1, 0]), Labels((0, 1))).pool_rows()
    plan = make_plan(table, "categorical").with_levels(table)
    rows = TrainingRows.from_sample(sample, plan)
    assert len(rows) == len(sample) == len(rows.blocks[0])
    assert rows.fold is sample.bin_fold
    assert rows.removed_weight is (sample.weight if sample.left_out_weight is None else sample.left_out_weight)


@pytest.mark.parametrize(
    ("y", "expected"), [([0, 1, 2, 2, 2], None), ([0, 1, 2, 2], [0.0, 0.0, 1.0, 1.0]), ([0, 1, 2], [0.0, 0.0, 0.0])]
)
def test_rows_alone_in_their_class_do_not_count_where_they_are_most(y, expected):
    weight = TrainingRows([], np.array(y)).learning_weight(np.bincount(y).astype(float))
    assert (None if weight is None else weight.tolist()) == expected


def test_some_of_the_rows():
    counts, rows = counted()
    part = rows.take(slice(10, 20))
    assert len(part) == 10
    np.testing.assert_array_equal(part.y, rows.y[10:20])
    np.testing.assert_array_equal(part.blocks[0], rows.blocks[0][10:20])
    assert counts.n_rows == N


def test_further_rows_are_scored_in_chunks(monkeypatch):
    counts, rows = counted()
    monkeypatch.setattr(training_rows, "_CHUNK_ROWS", 7)
    weight = [np.array([0.5, 2.0])]
    further = FurtherRows(rows, np.arange(N))
    further.score_terms(counts, Settings(), weight, learning._held_out_contributions)
    [contributions] = learning.training_contributions(counts, Settings(), rows)
    np.testing.assert_allclose(further.offset, contributions @ weight[0], atol=1e-12)
