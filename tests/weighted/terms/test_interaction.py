"""Interactions: which sets are valid, named and selected."""

from itertools import combinations

import numpy as np
import pytest

from candide.errors import InputError
from candide.weighted.terms.interaction import CodedRows, Interaction, select_interactions


@pytest.mark.parametrize("sets", [((0,),), ((0, 1), (0, 1, 2)), ((0, 0),)])
def test_invalid_sets_are_refused(sets):
    with pytest.raises(InputError) as error:
        Interaction(sets)
    assert error.value.value == sets


def test_terms_are_named_by_their_columns_and_can_be_dropped():
    event, columns = Interaction(((0, 1), (1, 2))), ("age", "job", "town")
    assert event.term_names(columns) == (("age", "job"), ("job", "town"))
    assert [event.term_kind(names) for names in (("a", "b"), ("a", "b", "c"), tuple("abcd"))] == [
        "pair",
        "triple",
        "set of 4",
    ]
    assert event.select_terms(np.array([1])).term_names(columns) == (("job", "town"),)
    assert event.n_candidates(columns, 10) == 45


def test_frequencies_and_the_order_of_rows_and_columns():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (400, 5))
    y = np.where(rng.random(400) < 0.8, codes[:, 1] == codes[:, 3], rng.random(400) < 0.5).astype(int)
    p, sets, sizes = np.full((400, 2), 0.5), tuple(combinations(range(5), 2)), (3,) * 5
    assert select_interactions(sets, CodedRows(codes, sizes, y, p), max_sets=9) == ((1, 3),)
    assert select_interactions(sets, CodedRows(codes, sizes, y, p, np.ones(400)), max_sets=9) == ((1, 3),)
    backwards = codes[::-1, ::-1].copy()
    assert select_interactions(sets, CodedRows(backwards, sizes, y[::-1].copy(), p), max_sets=9) == ((1, 3),)
    assert select_interactions(sets, CodedRows(codes, sizes, 1 - y, p), max_sets=9) == ((1, 3),)
    seldom = np.full(400, 0.02)  # as many rows as eight
    assert select_interactions(sets, CodedRows(codes, sizes, y, p, seldom), max_sets=9) == ()
