"""The score test: its tail for terms learned from noise, row weights, and Benjamini and Hochberg's rule."""

from itertools import combinations

import numpy as np
import pytest
from tests.weighted.test_optimizer import problem

from candide.weighted.score_test import benjamini_hochberg, is_term_needed, score_test, score_test_p_value
from candide.weighted.terms.interaction import score_sets


def test_row_weights_are_frequencies_in_the_score_test():
    terms, _, y, _ = problem(4)
    p = np.full((len(y), terms.shape[1]), 1 / terms.shape[1])
    plain = score_test(terms, y, p)
    np.testing.assert_allclose(score_test(terms, y, p, np.full(len(y), 9.0)), 3.0 * plain, rtol=1e-9)
    some = np.arange(len(y)) % 2 == 0  # rows without weight are no rows
    np.testing.assert_allclose(
        score_test(terms, y, p, some * 1.0), score_test(terms[some], y[some], p[some]), rtol=1e-9
    )


@pytest.mark.parametrize("proportions", [(0.5, 0.5), (0.9, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_the_tail_of_the_score_test_holds_for_noise(proportions):
    rng, sets = np.random.default_rng(0), np.array(list(combinations(range(30), 2)))
    z = []
    for _ in range(10):
        codes, y = rng.integers(0, 8, (300, 30)), rng.choice(len(proportions), 300, p=proportions)
        p = np.broadcast_to(np.bincount(y) / 300, (300, len(proportions))).copy()
        z.append(score_sets(sets, codes, np.full(30, 8), y, p))
    probability = score_test_p_value(np.concatenate(z), np.array(4.0 * 49 * (len(proportions) - 1)))
    assert 0.2 < (probability < 0.05).mean() / 0.05 < 1.6
    assert (probability < 0.002).mean() / 0.002 < 2.5  # a normal tail is off by a factor of ten


def test_benjamini_hochberg_is_the_largest_p_value_below_its_line():
    p = np.array([0.04, 0.001, 0.3, 0.012])
    assert benjamini_hochberg(p, 0.05, 4) == 0.012  # 0.04 is above 3 / 4 of 0.05
    assert benjamini_hochberg(p, 0.05, 5000) == -1.0


def test_a_term_is_needed_if_it_predicts_what_the_posterior_does_not():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 300), np.full((300, 2), 0.5)
    signal = np.eye(2)[y][:, :, None] + rng.normal(0, 0.5, (300, 2, 1))
    assert is_term_needed(signal, 1.0, y, p)
    assert not is_term_needed(rng.normal(size=(300, 2, 1)), 1.0, y, p)
    assert not is_term_needed(signal, 1.0, y, np.eye(2)[y])  # nothing is left to predict
