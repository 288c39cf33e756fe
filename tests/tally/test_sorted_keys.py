"""Keys are put in the order that Python gives byte strings."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.tally import sorted_keys

SHORT = st.binary(max_size=40)
NESTED = st.builds(lambda n, tail: b"ab" * n + tail, st.integers(0, 60), st.binary(max_size=3))  # long common starts
NULS = st.builds(lambda n, tail: b"\0" * n + tail, st.integers(0, 80), st.sampled_from([b"", b"a", b"\xff"]))


def joined(found):
    return np.frombuffer(b"".join(found), np.uint8), np.cumsum([0, *map(len, found)])


def unjoined(letters, starts):
    return [letters[a:b].tobytes() for a, b in itertools.pairwise(starts)]


@given(st.lists(st.one_of(SHORT, NESTED, NULS), max_size=50, unique=True))
def test_the_order_is_pythons(found):
    letters, starts = joined(found)
    order = sorted_keys.sort_order(letters, starts)
    assert unjoined(*sorted_keys.take_keys(letters, starts, order)) == sorted(found)


@given(st.lists(st.one_of(SHORT, NESTED, NULS), max_size=30))
def test_ascending_is_pythons(found):
    assert sorted_keys.is_ascending(*joined(found)) == all(a < b for a, b in itertools.pairwise(found))
    distinct = sorted(set(found))
    assert sorted_keys.is_ascending(*joined(distinct))


@pytest.mark.parametrize("n", [63, 64, 65, 71, 72, 73, 1000])
def test_keys_that_agree_for_long(n):
    found = [b"x" * n + tail for tail in (b"b", b"", b"a", b"ab", b"\0")]
    letters, starts = joined(found)
    assert unjoined(*sorted_keys.take_keys(letters, starts, sorted_keys.sort_order(letters, starts))) == sorted(found)
    assert sorted_keys.is_ascending(*joined(sorted(found)))
    assert not sorted_keys.is_ascending(*joined([found[0], found[0]]))
