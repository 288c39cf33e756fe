"""Token counts: exact counts, a real corpus, damaged arrays, memory for buckets."""

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import tables

from candide.data.documents import Documents
from candide.encoding.tokens import Tokens, tokenize
from candide.errors import InputError, NotCountedError
from candide.tally import TallySpec, TokenCounts
from candide.tally import token_counts as module

WORDS = ["ant", "bee", "Cat", "dog", "été", "ant ant", "x", "ΣΑΣ", "naïve"]
document = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
weights = st.sampled_from(["none", "ones", "some"])
ENCODINGS = {
    "words": Tokens(),
    "bigrams": Tokens(ngrams=(1, 2)),
    "sublinear": Tokens(sublinear=True),
    "hashed": Tokens(bits=3),
    "signed": Tokens(bits=3, signed=True),
}
every_encoding = pytest.mark.parametrize("tokens", ENCODINGS.values(), ids=ENCODINGS)


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
    return TokenCounts.from_rows(
        Documents.from_column(documents[part]), y[part], w, n_classes=k, spec=TallySpec("token_counts", (tokens,))
    )


def assert_identical(got, want):
    got, want = got.arrays(), want.arrays()
    for name, state in want.items():
        np.testing.assert_array_equal(got[name], state, err_msg=name)


@every_encoding
@given(rows_of(), st.sampled_from([" ant", " bee ant", " bee bee bee"]))
def test_as_many_longer_documents_are_not_the_whole(tokens, rows, more):
    documents, y, weight, k = rows
    longer = [None if d is None else (d or "ant") + more for d in documents], y, weight, k
    whole, other = tally(rows, tokens), tally(longer, tokens)
    assume(other.n.any())
    with pytest.raises(NotCountedError):
        whole - other
    with pytest.raises(NotCountedError):
        other - whole


@every_encoding
@given(rows_of(), st.randoms(use_true_random=False))
def test_documents_go_one_by_one_in_any_order(tokens, rows, order):
    left, places = tally(rows, tokens), list(range(len(rows[0])))
    order.shuffle(places)
    for i in places:
        left = left - tally(rows, tokens, slice(i, i + 1))
    assert_identical(left, TokenCounts.empty(rows[3], TallySpec("token_counts", (tokens,))))


def test_a_column_of_documents_is_the_only_one():
    whole = tally((["ant bee", "cat"], np.array([0, 1]), None, 2), Tokens())
    assert whole.select_features(np.array([0])) is whole
    with pytest.raises(InputError):
        whole.select_features(np.array([1]))


@given(rows_of())
def test_counts_are_the_exact_ones(rows):
    documents, y, weight, k = rows
    total, have, n = defaultdict(float), defaultdict(float), np.zeros(k)
    for document, c, w in zip(documents, y, np.ones(len(y)) if weight is None else weight, strict=True):
        terms = [] if document is None else tokenize(document, Tokens())
        n[c] += w * (document is not None)
        for term in terms:
            total[c, term] += w
        for term in set(terms):
            have[c, term] += w
    got = tally(rows, Tokens())
    np.testing.assert_allclose(got.n[:, 0], n)
    assert set(got.token_texts()) == {term for (_, term), w in have.items() if w}
    for word in got.token_texts():
        totals, documents_with = got.class_counts(word)
        assert totals == [total[c, word] for c in range(k)]
        assert documents_with == [have[c, word] for c in range(k)]


@pytest.mark.parametrize(
    "ngrams", [pytest.param((1, 1), id="words"), pytest.param((1, 2), id="bigrams", marks=pytest.mark.all_cases)]
)
def test_four_quarters_of_newsgroups_add_up_to_the_whole_exactly(ngrams):
    rows = pq.read_table(tables.corpus("newsgroups20"))
    labels, spec = np.array(rows["class"].to_pylist()), TallySpec("token_counts", (Tokens(ngrams=ngrams),))
    classes, y = np.unique(labels, return_inverse=True)
    if not module.kernel.compiled:
        rows, y = rows[:2000], y[:2000]
    quarters = np.array_split(np.arange(len(y)), 4)
    documents = Documents.from_column(rows["text"])
    parts = [documents[slice(q[0], q[-1] + 1)] for q in quarters]
    found = [
        TokenCounts.from_rows(d, y[q], n_classes=len(classes), spec=spec) for d, q in zip(parts, quarters, strict=True)
    ]
    whole = TokenCounts.from_rows(documents, y, n_classes=len(classes), spec=spec)
    assert_identical(reduce(add, found), whole)
    assert_identical(whole - found[1] - found[3], found[0] + found[2])


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
        with pytest.raises(InputError, match="not token counts"):
            TokenCounts.from_arrays({**whole, name: damaged})


def test_memory_of_buckets_is_stated_before_it_is_taken():
    tokens, documents = Tokens(bits=26), Documents.from_column(["word " * 100])
    assert tokens.max_bytes(20) == 2**26 * (12 + 20 * 20)
    with pytest.raises(InputError) as error:
        module.check_memory(tokens, 1, documents, memory=1000)
    assert 1000 < error.value.value < tokens.max_bytes(1)  # the documents bound it too
    assert "fewer bits" in error.value.remedy
    module.check_memory(replace(tokens, bits=2), 1, Documents.from_column(["word"]), memory=1000)


def test_the_cost_of_buckets_is_that_of_those_touched():
    rows = ["ant bee", "cat"], np.array([0, 1]), None, 2
    sizes = {bits: sum(a.nbytes for a in tally(rows, Tokens(bits=bits)).arrays().values()) for bits in (10, 28)}
    assert sizes[10] == sizes[28] < 1000
