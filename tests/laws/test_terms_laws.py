"""The algebra of the Terms tally: that of every tally, with a vocabulary that grows and shrinks."""

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import data

from candide.encode.tokens import Tokens, terms_of
from candide.errors import InputError, MergeError, NotWithinError
from candide.kernels import threads
from candide.rows.documents import Documents
from candide.tally import KINDS, Spec, Terms
from candide.tally import terms as module

ENCODINGS = {
    "words": Tokens(),
    "bigrams": Tokens(ngrams=(1, 2)),
    "characters": Tokens("char", ngrams=(2, 2)),
    "sublinear": Tokens(sublinear=True),
    "hashed": Tokens(bits=3),
    "signed": Tokens(bits=3, signed=True),
}
every_encoding = pytest.mark.parametrize("tokens", ENCODINGS.values(), ids=ENCODINGS)
WORDS = ["ant", "bee", "Cat", "dog", "été", "ant ant", "x", "ΣΑΣ", "naïve"]
document = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
weights = st.sampled_from(["none", "ones", "some"])


@st.composite
def rows_of(draw, max_rows=12):
    """Documents, their classes, their weights (or None) and the number of classes."""
    k = draw(st.integers(1, 3))
    rows = draw(
        st.lists(st.tuples(document, st.integers(0, k - 1), st.sampled_from([0.0, 0.5, 1.0, 2.5])), max_size=max_rows)
    )
    weight = {"none": None, "ones": np.ones(len(rows)), "some": np.array([r[2] for r in rows])}[draw(weights)]
    return [r[0] for r in rows], np.array([r[1] for r in rows], np.intp), weight, k


def tally(rows, tokens, part=slice(None)):
    documents, y, weight, k = rows
    w = None if weight is None else weight[part]
    return Terms.of(Documents.of(documents[part]), y[part], w, n_classes=k, spec=Spec("terms", (tokens,)))


def cut(rows, share):
    at = int(share * len(rows[0]))
    return slice(0, at), slice(at, None)


def assert_same(got, want, loose=False):
    got, want = got.arrays(), want.arrays()
    for name, state in want.items():
        assert got[name].dtype == state.dtype
        if state.dtype == float:
            slack = 1e-12 if loose else 1e-13
            np.testing.assert_allclose(got[name], state, rtol=slack, atol=slack * 50, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], state, err_msg=name)


def assert_identical(got, want):
    got, want = got.arrays(), want.arrays()
    for name, state in want.items():
        np.testing.assert_array_equal(got[name], state, err_msg=name)


def test_it_is_a_kind():
    assert KINDS["terms"] is Terms


@every_encoding
@given(rows_of())
def test_the_empty_tally_is_the_identity(tokens, rows):
    whole, empty = tally(rows, tokens), Terms.empty(rows[3], Spec("terms", (tokens,)))
    for other in (whole + empty, empty + whole, whole - empty):
        assert_identical(other, whole)
    assert_identical(tally(rows, tokens, slice(0, 0)), empty)


@every_encoding
@given(rows_of(), st.floats(0, 1), st.floats(0, 1))
def test_addition_commutes_and_associates(tokens, rows, one, other):
    low, high = sorted((int(one * len(rows[0])), int(other * len(rows[0]))))
    a, b, c = (tally(rows, tokens, part) for part in (slice(0, low), slice(low, high), slice(high, None)))
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))
    assert_same((a + b) + c, tally(rows, tokens))


@every_encoding
@given(rows_of(), st.floats(0, 1))
def test_subtraction_undoes_addition_and_forgets_words(tokens, rows, share):
    one, other = cut(rows, share)
    a, b = tally(rows, tokens, one), tally(rows, tokens, other)
    assert_same((a + b) - b, a, loose=True)
    assert_identical((a + b) - (a + b), Terms.empty(rows[3], Spec("terms", (tokens,))))


@every_encoding
@given(rows_of(), st.floats(0, 1))
def test_removing_what_was_not_counted_is_an_error(tokens, rows, share):
    one, other = cut(rows, share)
    a, b = tally(rows, tokens, one), tally(rows, tokens, other)
    assume(b.n.any())
    with pytest.raises(NotWithinError, match="removed"):
        a - (a + b)


def assert_sound(whole, tokens):
    """What holds for the counts of any documents."""
    size = np.abs(whole.total)
    assert (whole.documents > 0).all()
    assert (whole.documents <= whole.n[whole.class_of_cell, 0] + 1e-9).all()
    assert (whole.length >= 0).all()
    assert (whole.length[:, 0] >= np.bincount(whole.class_of_cell, size, len(whole.n)) - 1e-9).all()
    if not tokens.signed:
        assert (whole.total >= whole.documents).all()


@every_encoding
@given(rows_of(), st.floats(0, 1), st.lists(document, min_size=12, max_size=12))
def test_as_many_other_documents_are_an_error_or_leave_sound_counts(tokens, rows, share, others):
    documents, y, weight, k = rows
    one, _ = cut(rows, share)
    other = [d if new is None else new for d, new in zip(documents, others, strict=False)], y, weight, k
    try:
        left = tally(rows, tokens) - tally(other, tokens, one)
    except NotWithinError:
        return
    assert_sound(left, tokens)


@every_encoding
@given(rows_of(), st.sampled_from([" ant", " bee ant", " bee bee bee"]))
def test_as_many_longer_documents_are_not_the_whole(tokens, rows, more):
    documents, y, weight, k = rows
    longer = [None if d is None else (d or "ant") + more for d in documents], y, weight, k
    whole, other = tally(rows, tokens), tally(longer, tokens)
    assume(other.n.any())
    with pytest.raises(NotWithinError, match="removed"):
        whole - other
    with pytest.raises(NotWithinError, match="removed"):
        other - whole


@every_encoding
@given(rows_of(), st.randoms(use_true_random=False))
def test_documents_go_one_by_one_in_any_order(tokens, rows, order):
    left, places = tally(rows, tokens), list(range(len(rows[0])))
    order.shuffle(places)
    for i in places:
        left = left - tally(rows, tokens, slice(i, i + 1))
        assert_sound(left, tokens)
    assert_identical(left, Terms.empty(rows[3], Spec("terms", (tokens,))))


@every_encoding
@given(rows_of(), st.randoms(use_true_random=False))
def test_some_classes_are_those_of_their_documents(tokens, rows, order):
    documents, y, weight, k = rows
    some = list(range(k))
    order.shuffle(some)
    some = np.array(some[: k // 2 + 1], np.intp)
    mine = np.isin(y, some)
    kept = [d for d, m in zip(documents, mine, strict=True) if m], y[mine], None if weight is None else weight[mine], k
    whole = tally(rows, tokens)
    assert_same(whole.some_classes(some).remap(some, k), tally(kept, tokens))
    assert whole.only(np.array([0])) is whole
    with pytest.raises(InputError):
        whole.only(np.array([1]))


@pytest.mark.parametrize("weight", [0.1, 0.3])
def test_a_thousand_weighted_documents_go_one_by_one(weight):
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(50)])
    documents = [" ".join(rng.choice(words, rng.integers(1, 30))) for _ in range(1000)]
    rows = documents, np.zeros(1000, np.intp), np.full(1000, weight), 1
    left = tally(rows, Tokens(sublinear=True))
    for i in rng.permutation(1000).tolist():
        left = left - tally(rows, Tokens(sublinear=True), slice(i, i + 1))
    assert left.n.max() < 1e-9
    assert left.documents.max(initial=0.0) < 1e-9


@every_encoding
@given(rows_of(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_a_weight_of_k_is_k_copies(tokens, rows, times):
    documents, y, _, k = rows
    times = np.array(times[: len(documents)], int)
    copies = [d for d, n in zip(documents, times, strict=True) for _ in range(n)], np.repeat(y, times), None, k
    assert_same(tally((documents, y, times.astype(float), k), tokens), tally(copies, tokens), loose=True)


@every_encoding
@given(rows_of(), st.sampled_from([0.0, 0.25, 3.0]))
def test_scaling_is_a_weight_on_every_document(tokens, rows, factor):
    documents, y, weight, k = rows
    weight = np.ones(len(y)) if weight is None else weight
    assert_same(
        tally((documents, y, weight, k), tokens).scale(factor),
        tally((documents, y, weight * factor, k), tokens),
        loose=True,
    )


@every_encoding
@given(rows_of())
def test_pooling_and_moving_are_those_of_the_labels(tokens, rows):
    documents, y, weight, k = rows
    one = documents, np.zeros_like(y), weight, 1
    assert_same(tally(rows, tokens).pool(), tally(one, tokens), loose=True)
    to = np.arange(k)[::-1].copy() + 1
    assert_same(tally(rows, tokens).remap(to, k + 2), tally((documents, to[y], weight, k + 2), tokens))


@every_encoding
@given(rows_of())
def test_arrays_round_trip(tokens, rows):
    whole = tally(rows, tokens)
    assert_identical(Terms.from_arrays(whole.arrays()), whole)


@every_encoding
@given(rows_of(max_rows=40), st.integers(2, 5))
def test_the_number_of_threads_changes_nothing(tokens, rows, n):
    with threads.divided(n) as made:
        split = tally(rows, tokens)
    assert max(made) > 1 or len(rows[0]) < 2
    assert_same(split, tally(rows, tokens), loose=True)


@given(rows_of())
def test_counts_are_the_exact_ones(rows):
    documents, y, weight, k = rows
    total, have, n = defaultdict(float), defaultdict(float), np.zeros(k)
    for document, c, w in zip(documents, y, np.ones(len(y)) if weight is None else weight, strict=True):
        terms = [] if document is None else terms_of(document, Tokens())
        n[c] += w * (document is not None)
        for term in terms:
            total[c, term] += w
        for term in set(terms):
            have[c, term] += w
    got = tally(rows, Tokens())
    np.testing.assert_allclose(got.n[:, 0], n)
    assert set(got.words()) == {term for (_, term), w in have.items() if w}
    for word in got.words():
        totals, documents_with = got.table(word)
        assert totals == [total[c, word] for c in range(k)]
        assert documents_with == [have[c, word] for c in range(k)]


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2)], ids=["words", "bigrams"])
def test_four_quarters_of_newsgroups_add_up_to_the_whole_exactly(ngrams):
    rows = pq.read_table(data.corpus("newsgroups20"))
    labels, spec = np.array(rows["class"].to_pylist()), Spec("terms", (Tokens(ngrams=ngrams),))
    classes, y = np.unique(labels, return_inverse=True)
    if not module.kernel.compiled:
        rows, y = rows[:2000], y[:2000]
    quarters = np.array_split(np.arange(len(y)), 4)
    documents = Documents.of(rows["text"])
    parts = [documents[slice(q[0], q[-1] + 1)] for q in quarters]
    found = [Terms.of(d, y[q], n_classes=len(classes), spec=spec) for d, q in zip(parts, quarters, strict=True)]
    whole = Terms.of(documents, y, n_classes=len(classes), spec=spec)
    assert_identical(reduce(add, found), whole)
    assert_identical(whole - found[1] - found[3], found[0] + found[2])


def test_other_numbers_of_classes_do_not_add():
    spec = Spec("terms", (Tokens(),))
    with pytest.raises(MergeError, match="differ in shape"):
        Terms.empty(2, spec) + Terms.empty(3, spec)


def test_damaged_arrays_are_refused():
    whole = tally((["ant bee", "cat"], np.array([0, 1]), None, 2), Tokens()).arrays()
    damages = {
        "word": whole["word"] + 7,
        "starts": whole["starts"][::-1].copy(),
        "classes": whole["classes"] + 1,
        "documents": -whole["documents"],
        "total": whole["total"] * np.nan,
        "letters": whole["letters"][:-1],
        "n": whole["n"].astype(np.float32),
    }
    for name, damaged in damages.items():
        with pytest.raises(InputError, match="not the counts of terms"):
            Terms.from_arrays({**whole, name: damaged})


def test_room_for_buckets_is_stated_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(module, "_memory", lambda: 1000)
    tokens = Tokens(bits=26)
    assert tokens.most_bytes(20) == 2**26 * (12 + 20 * 20)
    with pytest.raises(
        InputError, match=r"2\*\*26 buckets of 1 classes may take [\d,]+ bytes here, and the machine has 1,000"
    ):
        tally((["word " * 100], np.array([0]), None, 1), tokens)
    tally((["word"], np.array([0]), None, 1), replace(tokens, bits=2))  # what is met bounds it too


def test_the_cost_of_buckets_is_that_of_those_touched():
    rows = ["ant bee", "cat"], np.array([0, 1]), None, 2
    sizes = {bits: sum(a.nbytes for a in tally(rows, Tokens(bits=bits)).arrays().values()) for bits in (10, 28)}
    assert sizes[10] == sizes[28] < 1000
