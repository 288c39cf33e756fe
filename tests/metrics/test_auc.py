"""The area under the ROC curve is exact while rows are few, and as close as it says beyond."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from candide.metrics.auc import DEFAULT_LIMITS, RankLimits, Ranks
from candide.metrics.scores import Scores

SMALL = RankLimits(max_rows=1000, max_values=4000, max_bins=1 << 13)  # as of a million rows, a thousand times smaller


def two_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(np.intp)
    return rng.normal(y * 0.8, 1.0), y


def in_parts(odds, y, weight=None, *, size, room=DEFAULT_LIMITS):
    parts = [slice(start, start + size) for start in range(0, len(y), size)]
    return [Ranks.from_log_odds(odds[p, None], y[p], None if weight is None else weight[p], limits=room) for p in parts]


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
@pytest.mark.parametrize("shift", [0.0, 850.0])
def test_a_small_table_is_exact_at_any_log_odds(scale, shift):
    odds, y = two_classes(500)
    odds = odds * scale + shift
    log_posterior = np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)
    seen = log_posterior[:, 1] - log_posterior[:, 0]  # what is left of the odds in the posterior
    assert Scores.from_log_posterior(log_posterior, y).auc == pytest.approx(roc_auc_score(y, seen), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_ties_count_half_and_rows_by_their_weight(seed):
    odds, y = two_classes(3000, seed)
    odds, weight = odds.round(1), np.random.default_rng(seed).choice([0.0, 0.5, 3.0], 3000)
    whole = reduce(add, in_parts(odds, y, weight, size=700))
    assert whole.areas[0] == pytest.approx(roc_auc_score(y, odds, sample_weight=weight), abs=1e-12)
    assert whole.area_errors[0] == 0.0


def test_more_classes_are_averaged_and_those_left_out_that_do_not_occur():
    rng = np.random.default_rng(1)
    y = rng.choice([0, 1, 3], 400)
    joint = rng.normal(0, 1, (400, 4)) + np.eye(4)[y]
    log_posterior = joint - np.log(np.exp(joint).sum(axis=1, keepdims=True))
    areas = [roc_auc_score(y == c, log_posterior[:, c]) for c in (0, 1, 3)]
    assert Scores.from_log_posterior(log_posterior, y).auc == pytest.approx(np.mean(areas), abs=1e-12)
    assert np.isnan(Scores.from_log_posterior(log_posterior, np.zeros(400, np.intp)).auc)


def test_a_million_rows_are_exact():
    odds, y = two_classes(1_000_000)
    whole = reduce(add, in_parts(odds, y, size=1 << 17))
    assert whole.areas[0] == pytest.approx(roc_auc_score(y, odds), abs=1e-12)
    assert whole.area_errors[0] == 0.0


@pytest.mark.parametrize("order", ["any", "by odds", "by class"])
@pytest.mark.parametrize("shape", ["narrow", "wide"])
def test_beyond_it_is_within_its_bound_and_the_bound_is_close(order, shape):
    odds, y = two_classes(60_000)
    odds = odds * 1e-7 + 3.0 if shape == "narrow" else np.sinh(5 * odds)
    by = {"any": np.arange(len(y)), "by odds": np.argsort(odds), "by class": np.argsort(y, kind="stable")}[order]
    exact, parts = roc_auc_score(y, odds), in_parts(odds[by], y[by], size=900, room=SMALL)
    thirds = [reduce(add, parts[:10]), reduce(add, parts[10:40]), reduce(add, parts[40:])]
    for found in (reduce(add, parts), reduce(add, thirds)):
        assert 0 < found.area_errors[0] < 2 / SMALL.bins_per_curve(1)
        assert abs(found.areas[0] - exact) <= found.area_errors[0]
        assert len(found.bins[0].start) <= SMALL.bins_per_curve(1)
        assert sum(len(chunk.y) for chunk in found.chunks) <= SMALL.rows_per_curve(1)


def test_the_memory_available_keeps_the_bound_below_a_millionth():
    assert DEFAULT_LIMITS.rows_per_curve(1) >= DEFAULT_LIMITS.rows_per_curve(16) >= 10**6
    assert 2 / DEFAULT_LIMITS.bins_per_curve(1) < 1e-6


def test_weights_and_several_classes_in_cells():
    rng = np.random.default_rng(2)
    y, weight = rng.integers(0, 3, 30_000), rng.random(30_000)
    odds = rng.normal(0, 1, (30_000, 3)) + np.eye(3)[y]
    parts = [slice(start, start + 500) for start in range(0, len(y), 500)]
    found = reduce(add, [Ranks.from_log_odds(odds[p], y[p], weight[p], limits=SMALL) for p in parts])
    for c in range(3):
        exact = roc_auc_score(y == c, odds[:, c], sample_weight=weight)
        assert abs(found.areas[c] - exact) <= found.area_errors[c] < 1e-3


def test_log_odds_of_several_classes_do_not_tie_however_far():
    log_p = np.array([[0, -800, -900.0], [0, -1000, -1100], [0, -1200, -1300], [-800, 0, -900], [-900, -950, 0]])
    assert Scores.from_log_posterior(log_p, np.array([1, 0, 0, 1, 2])).auc == 1.0
