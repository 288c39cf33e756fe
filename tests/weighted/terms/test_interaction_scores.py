"""Scores of interactions, against counting the rows one by one, and against fitting without the row."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.encoding import LevelEncoding
from candide.tally import CellTally
from candide.weighted.terms.interaction import Interaction


def smoothed(n, total, towards, weight):
    return (n + weight * towards) / (total + weight)


def by_hand(codes, y, row, c, sizes):
    """The log-ratio of a row's cell in class c, by counting the rows that agree with it."""
    mine = codes[y == c]
    order = len(sizes)
    p = {}
    for r in range(1, order + 1):
        for some in combinations(range(order), r):
            n = (mine[:, some] == row[list(some)]).all(axis=1).sum()
            if r == 1:
                p[some] = smoothed(n, len(mine), 1 / sizes[some[0]], 1.0)
                continue
            p[some] = smoothed(n, len(mine), expected(p, some), 10.0)
    whole = tuple(range(order))
    return np.log(p[whole] / expected(p, whole))


def expected(p, some):
    if len(some) == 2:
        return p[some[:1]] * p[some[1:]]
    pairs = [p[two] for two in combinations(some, 2)]
    return min(np.prod(pairs) / np.prod([p[(j,)] for j in some]), *pairs)


def tallied(sets, codes, y, sizes, weight=None, k=3):
    event = Interaction(sets)
    spec = event.spec(len(sizes), tuple(map(LevelEncoding.from_size, sizes)))
    return event, CellTally.from_rows(codes, y, weight, n_classes=k, spec=spec)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_contributions_with_and_without_the_row(seed, order):
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 5, 4).tolist())
    codes, y = rng.integers(0, sizes, (40, 4)), rng.integers(0, 3, 40)
    sets = tuple(combinations(range(4), order))[:3]
    event, tally = tallied(sets, codes, y, sizes)
    terms, held = (
        event.estimate(tally).contributions(codes),
        event.held_out_contributions(tally, None, "predictive", codes, y),
    )
    for i in (0, 7):
        others = np.arange(40) != i
        for s, some in enumerate(sets):
            own = [sizes[j] for j in some]
            for c in range(3):
                row = codes[i, list(some)]
                assert terms[i, c, s] == pytest.approx(by_hand(codes[:, some], y, row, c, own), abs=1e-12)
                without = by_hand(codes[others][:, some], y[others], row, c, own)
                assert held[i, c, s] == pytest.approx(without, abs=1e-12)


def test_a_row_is_left_out_with_its_weight():
    rng = np.random.default_rng(0)
    codes, y, w = rng.integers(0, 3, (30, 2)), rng.integers(0, 2, 30), rng.uniform(0.5, 3, 30)
    event, tally = tallied(((0, 1),), codes, y, (3, 3), w, k=2)
    held = event.held_out_contributions(tally, None, "predictive", codes, y, w)
    for i in range(5):
        others = np.arange(30) != i
        _, rest = tallied(((0, 1),), codes[others], y[others], (3, 3), w[others], k=2)
        np.testing.assert_allclose(held[i], event.estimate(rest).contributions(codes[i : i + 1])[0], atol=1e-12)


def test_missing_and_unseen_values_contribute_0():
    codes = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    event, tally = tallied(((0, 1),), codes, np.array([0, 0, 1, 1]), (2, 2), k=2)
    odd = np.array([[-1, 0], [0, -1], [2, 0], [0, 2], [2, -1]])
    scores = event.estimate(tally)
    assert not event.held_out_contributions(tally, None, "predictive", odd, np.zeros(5, np.intp)).any()
    assert not scores.log_prob(odd).any()
    assert not scores.contributions(odd).any()
