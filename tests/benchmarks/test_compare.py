"""Two commits are called different only if their ratio is beyond what repetitions vary by."""

import numpy as np
import pytest
from benchmarks.compare import Comparison


def draw_comparison(slowdown, noise, seed, repeat=7):
    rng = np.random.default_rng(seed)
    base, head = rng.normal(1.0, noise, (2, repeat))
    return Comparison("work", base.tolist(), (slowdown * head).tolist())


def test_the_ratio_is_that_of_head_to_base():
    comparison = Comparison("work", [1.0, 2.0, 4.0], [2.0, 4.0, 4.0])
    assert comparison.ratio == 2.0
    assert comparison.bound == 0.0
    assert comparison.is_slower


@pytest.mark.parametrize(("slowdown", "low", "high"), [(1.0, 0.0, 0.02), (1.3, 0.95, 1.0)])
def test_false_alarms_are_rare_and_slow_commits_are_found(slowdown, low, high):
    share = np.mean([draw_comparison(slowdown, 0.04, seed).is_slower for seed in range(300)])
    assert low <= share <= high
