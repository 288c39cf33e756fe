"""The tally of cells: the algebra of every tally, with levels that move and go."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.encoding import CodeMapping, LevelEncoding
from candide.tally import CellTally, TallySpec

SETS = ((0, 1), (0, 2), (1, 2))


def spec(sizes, sets=SETS):
    return TallySpec("cells", tuple(map(LevelEncoding.from_size, sizes)), sets=sets)


def rows(seed, n=30, sizes=(2, 3, 4)):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, sizes, (n, len(sizes)))
    codes[rng.random(codes.shape) < 0.1] = -1
    return codes, rng.integers(0, 2, n), rng.integers(1, 4, n).astype(float)


def count(codes, y, weight=None, sizes=(2, 3, 4)):
    return CellTally.from_rows(codes, y, weight, n_classes=2, spec=spec(sizes))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_counts_are_those_of_a_person(seed):
    codes, y, w = rows(seed)
    tally = count(codes, y, w)
    for s, (i, j) in enumerate(SETS):
        own = tally.select_features(np.array([s]))
        want = np.zeros((2, (2, 3, 4)[i], (2, 3, 4)[j]))
        for row, c, weight in zip(codes, y, w, strict=True):
            if row[i] >= 0 and row[j] >= 0:
                want[c, row[i], row[j]] += weight
        np.testing.assert_array_equal(own.counts, want.reshape(2, -1))
        np.testing.assert_array_equal(tally.n[:, s], want.sum(axis=(1, 2)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_chunks_add_up_and_can_be_taken_away(seed):
    codes, y, w = rows(seed)
    a, b, whole = count(codes[:9], y[:9], w[:9]), count(codes[9:], y[9:], w[9:]), count(codes, y, w)
    np.testing.assert_array_equal((a + b).counts, whole.counts)
    np.testing.assert_array_equal((whole - b).counts, a.counts)
    np.testing.assert_array_equal(whole.scale(0.5).counts, count(codes, y, w / 2).counts)
    np.testing.assert_array_equal(whole.pool().counts, whole.counts.sum(axis=0, keepdims=True))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_levels_may_move_to_larger_sets(seed):
    codes, y, w = rows(seed)
    to = [np.array([2, 0]), np.array([0, 3, 1]), np.array([1, 2, 3, 4])]
    wider = (3, 4, 5)
    moves = [CodeMapping(t, n) for t, n in zip(to, wider, strict=True)]
    moved = np.column_stack([np.where(codes[:, j] < 0, -1, t[codes[:, j]]) for j, t in enumerate(to)])
    got = count(codes, y, w).remap(np.arange(2), 2, moves)
    np.testing.assert_array_equal(got.counts, count(moved, y, w, wider).counts)


def test_unseen_levels_may_be_removed():
    codes, y, _ = rows(0)
    codes[:, 1] = np.where(codes[:, 1] == 1, 0, codes[:, 1])
    tally = count(codes, y)
    seen = tally.seen_levels()
    assert [m.tolist() for m in seen] == [[True, True], [True, False, True], [True] * 4]
    fewer = np.where(codes == 2, 1, codes)
    fewer[:, [0, 2]] = codes[:, [0, 2]]
    np.testing.assert_array_equal(tally.select_levels(seen).counts, count(fewer, y, None, (2, 2, 4)).counts)


def test_a_block_in_pieces_is_the_same():
    codes, y, w = rows(1, n=5000)
    parts = [count(codes[a : a + 700], y[a : a + 700], w[a : a + 700]) for a in range(0, 5000, 700)]
    np.testing.assert_array_equal(sum(parts[1:], parts[0]).counts, count(codes, y, w).counts)
