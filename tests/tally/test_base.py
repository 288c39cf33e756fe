"""The algebra of every tally, one property a test, for every kind and encoding.

A commutative monoid with a partial inverse, that does not care how rows are cut, ordered, threaded or stored.
"""

import io
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from candide import encoding as encode
from candide.data.blocks import Csr
from candide.data.documents import Documents
from candide.encoding import CodeMapping, Grid, Identity, Log, TransformedEncoding
from candide.encoding.tokens import Tokens
from candide.errors import InputError, InputTypeError, MergeError, NotCountedError
from candide.events import Bernoulli
from candide.kernels import threads
from candide.tally import TALLIES, CoMoments, LevelTally, Moments, Sums, TallySpec, TokenCounts, base

EPS = np.finfo(float).eps

# Rows as nasty as they come ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """One way to tally: the spec of some columns, what values they hold, and how rows are stored."""

    name: str
    spec: TallySpec
    values: str  # "numbers" | "positive" | "modest" | "counts" | "codes" | "documents"
    sparse: bool = False


ABOVE = Grid((0.5,), raw=True)
COUNTS = TallySpec("sums", (Identity(least=0.0),), frozenset({"log_factorial"}))


def columns(spec, n, sizes=()):
    """The spec of n columns, or of columns with as many levels."""
    encodings = tuple(map(encode.LevelEncoding.from_size, sizes)) or spec.encodings[:1] * n
    return replace(spec, encodings=encodings, sets=tuple(pairwise(range(len(encodings)))) if spec.sets else ())


ENCODINGS = [
    Encoding("moments", TallySpec("moments", (Identity(),)), "numbers"),
    Encoding("moments-of-logs", TallySpec("moments", (Log(),)), "positive"),
    Encoding("levels", TallySpec("levels", (encode.LevelEncoding(),)), "codes"),
    Encoding("cells", TallySpec("cells", (encode.LevelEncoding(),), sets=((0, 1),)), "codes"),
    Encoding("levels-above", TallySpec("levels", (ABOVE,)), "numbers"),
    Encoding("levels-above-sparse", TallySpec("levels", (ABOVE,)), "counts", sparse=True),
    Encoding("sums", TallySpec("sums", (Identity(),)), "numbers"),
    Encoding("sums-of-roots", TallySpec("sums", (TransformedEncoding(np.sqrt),)), "positive"),
    Encoding("sums-of-counts", COUNTS, "counts"),
    Encoding("sums-sparse", COUNTS, "counts", sparse=True),
    Encoding("comoments", TallySpec("comoments", (Identity(),)), "numbers"),
    Encoding("comoments-of-logs", TallySpec("comoments", (Log(),)), "positive"),
    Encoding("comoments-fourth", TallySpec("comoments", (Identity(),), frozenset({"fourth"})), "modest"),
    Encoding("words", TallySpec("token_counts", (Tokens(),)), "documents"),
    Encoding("pairs-of-words", TallySpec("token_counts", (Tokens(ngrams=(1, 2)),)), "documents"),
    Encoding("characters", TallySpec("token_counts", (Tokens("char", ngrams=(2, 2)),)), "documents"),
    Encoding("words-sublinear", TallySpec("token_counts", (Tokens(sublinear=True),)), "documents"),
    Encoding("words-hashed", TallySpec("token_counts", (Tokens(bits=3),)), "documents"),
    Encoding("words-signed", TallySpec("token_counts", (Tokens(bits=3, signed=True),)), "documents"),
]
WORDS = ["ant", "bee", "Cat", "dog", "été", "ant ant", "x", "ΣΑΣ", "naïve"]
every_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: e.name)


def those(is_included):
    """The encodings that something holds of."""
    return pytest.mark.parametrize("encoding", [e for e in ENCODINGS if is_included(e)], ids=lambda e: e.name)


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled, weighted rows; ``tally`` stores some of them afresh and counts them."""

    values: np.ndarray  # (rows, features) of numbers, NaN absent; of codes, negative absent; of documents, None absent
    y: np.ndarray
    weight: np.ndarray | None
    n_classes: int
    spec: TallySpec
    storage: str
    sparse: bool

    def __len__(self):
        return len(self.y)

    def at(self, index):
        weight = None if self.weight is None else self.weight[index]
        return replace(self, values=self.values[index], y=self.y[index], weight=weight)

    def block(self):
        if self.values.dtype == object:
            return Documents.from_column(self.values[:, 0].tolist())
        return sparse_block(self.values, self.storage) if self.sparse else dense_block(self.values, self.storage)

    def tally(self):
        return TALLIES[self.spec.kind].from_rows(
            self.block(), self.y, self.weight, n_classes=self.n_classes, spec=self.spec
        )

    def empty(self):
        return TALLIES[self.spec.kind].empty(self.n_classes, self.spec)

    def cuts(self, where):
        """The rows in pieces, cut at the given fractions of their number: pieces may be empty."""
        edges = [0, *sorted(int(s * len(self)) for s in where), len(self)]
        return [self.at(slice(a, b)) for a, b in pairwise(edges)]


def dense_block(values, storage):
    if storage == "fortran":
        return np.asfortranarray(values)
    if storage == "strided":
        return np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3]
    if storage == "reversed":
        return values[::-1, ::-1].copy()[::-1, ::-1]
    block = values.copy()
    block.flags.writeable = storage != "readonly"
    return block


def sparse_block(values, storage):
    """CSR rows; "strided" ones begin inside their storage, "reversed" ones hold unsorted columns and stored zeros."""
    lead = np.vstack([np.ones_like(values[:1]), values]) if storage == "strided" and len(values) else values
    matrix = csr_array(lead)
    if storage == "reversed" and values.size:
        kept = csr_array(np.where(values == 0, -1.0, values)[:, ::-1])
        matrix = csr_array(
            (np.where(kept.data < 0, 0, kept.data), values.shape[1] - 1 - kept.indices, kept.indptr), values.shape
        )
    index = np.int64 if storage == "fortran" else np.int32
    block = Csr(matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index), values.shape[1])
    return block.slice_rows(slice(1, len(lead))) if len(lead) > len(values) else block


def documents_of(rng):
    """A document, empty or absent now and then."""
    return None if rng.random() < 0.15 else " ".join(rng.choice(WORDS, rng.integers(0, 7)))


@st.composite
def rows_of(draw, encoding, max_rows=40, widths=(1, 2, 3, 7, 60)):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(0, max_rows)), draw(st.sampled_from(widths)), draw(st.integers(1, 4))
    d = 1 if encoding.values == "documents" else d
    spec = columns(encoding.spec, d)
    if encoding.values == "codes":
        sizes = tuple(rng.choice([0, 1, 2, 5, 17], d).tolist())  # a column may have no level at all
        spec = columns(spec, d, sizes)
        values = np.column_stack([rng.integers(-1, s, n) for s in sizes]).astype(draw(st.sampled_from(["i4", "i8"])))
    elif encoding.values == "documents":
        values = np.array([[documents_of(rng)] for _ in range(n)], object).reshape(n, 1)
    elif encoding.values == "counts":
        values = rng.poisson(rng.choice([0.0, 0.3, 5.0], d), (n, d)).astype(draw(st.sampled_from(["f8", "f4"])))
    else:
        modest = encoding.values == "modest"  # fourth powers of 1e100 are no numbers
        values = rng.normal(size=(n, d)) * draw(
            st.sampled_from([0.0, 1e-3, 1.0] if modest else [0.0, 1e-6, 1.0, 1e6, 1e100])
        )
        values += draw(st.sampled_from([0.0, 1.0, -20.0] if modest else [0.0, 1.0, -1e8, 1e9]))
        if draw(st.booleans()) and np.abs(values).max(initial=0) < 1e30:
            values = values.astype(np.float32)
        if encoding.values == "positive":
            values = np.abs(values) + values.dtype.type(1e-3)
    if not encoding.sparse and encoding.values not in ("codes", "documents"):
        values[rng.random((n, d)) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = np.nan
        values[:, rng.random(d) < 0.1] = np.nan  # columns that are absent altogether
    y = rng.integers(0, k, n) if draw(st.booleans()) else np.full(n, rng.integers(0, k))
    weights = {"none": None, "ones": np.ones(n), "zeros": np.zeros(n), "some": rng.choice([0.0, 0.1, 1.0, 2.5], n)}
    weight = weights[draw(st.sampled_from(sorted(weights)))]
    storage = draw(st.sampled_from(["plain", "fortran", "strided", "reversed", "readonly"]))
    return Rows(values, y.astype(np.intp), weight, k, spec, storage, encoding.sparse)


fractions = st.lists(st.floats(0, 1), min_size=0, max_size=4)

# What is equal ------------------------------------------------------------------------------------------------------


def assert_same(got, want, rows, removed_from=None):
    """Equal but for rounding: that of sums of ``rows``, and of the whole where rows were removed from one again."""
    stretch = 1.0 if removed_from is None else 30.0 * max(1, len(rows))  # a small rest has the error of a large whole
    x = largest_tallied(rows)
    w = len(rows) if rows.weight is None else rows.weight.sum()
    blur = 8 * EPS * x * stretch  # of a mean
    for name, want_state in want.arrays().items():
        slack = {
            **dict.fromkeys(("n", "weight", "counts", "documents", "length"), 1e-13 * w * max(x, 1.0)),
            **dict.fromkeys(("letters", "starts", "classes", "word"), 0.0),
            "mean": blur,
            "total": 8 * EPS * w * x,
            "log_factorial": 8 * EPS * w * math.lgamma(min(x, 1e3) + 2) + 1e-15,
        }.get(name)
        if name == "m2":
            m2 = max(want_state.max(initial=0.0), 0.0 if removed_from is None else removed_from.m2.max(initial=0.0))
            slack = 1e-12 * m2 + 2 * blur * np.sqrt(w * m2) + w * blur * blur
        if name in ("scatter", "third", "fourth"):
            slack = _product_slack(name, want, w, blur, stretch, removed_from)
        np.testing.assert_allclose(got.arrays()[name], want_state, rtol=1e-12, atol=slack, err_msg=name)
    assert_sound(got, rows.spec)


def largest_tallied(rows):
    """The largest value that is tallied; of documents, how many terms there are at most in one."""
    if rows.values.dtype == object:
        return 30.0
    tallied = np.abs(rows.spec.tally_values(rows.values).astype(float))
    return np.max(tallied, initial=0.0, where=~np.isnan(tallied))


def _product_slack(name, want, w, blur, stretch, removed_from):
    """The rounding of sums of products of residuals, each of the size of the largest deviation."""
    m2 = max(t.m2.max(initial=0.0) for t in (want, removed_from or want))
    slack = 1e-12 * m2 + 2 * blur * np.sqrt(w * m2) + w * blur * blur
    if name == "scatter":
        return slack
    root = np.sqrt(m2) + np.sqrt(w) * blur  # no residual is larger, but for its weight's root
    largest = root * max(1.0, 1.0 / np.sqrt(0.1))  # the least weight but zero is 0.1
    return (1e-12 * m2 + slack) * stretch * (largest if name == "third" else largest * largest)


def present(tally):
    """The weight of what is in a tally."""
    state = tally.arrays()
    return next(state[name] for name in ("counts", "n", "weight") if name in state)


def assert_identical(got, want):
    assert got.arrays().keys() == want.arrays().keys()
    for name, state in want.arrays().items():
        np.testing.assert_array_equal(got.arrays()[name], state, err_msg=name)


def assert_sound(tally, spec):
    """What holds for any tally at all: no weight and no spread is negative, and no weight has no mean."""
    for name, state in tally.arrays().items():
        assert state.dtype == np.float64 or name in ("letters", "starts", "classes", "word")
        assert np.isfinite(state).all()
        assert name not in ("n", "weight", "counts", "m2", "length") or (state >= 0).all()
    if isinstance(tally, Moments | CoMoments):
        assert not tally.mean[tally.n == 0].any()
        assert not tally.m2[tally.n == 0].any()
    if isinstance(tally, CoMoments):
        assert (tally.m2 >= 0).all()
        np.testing.assert_array_equal(tally.scatter, tally.scatter.swapaxes(1, 2))
    if isinstance(tally, TokenCounts):
        assert (tally.documents > 0).all()  # what fell to nothing is forgotten
        assert (tally.documents <= tally.n[tally.class_of_cell, 0] + 1e-9).all()
        cells = np.bincount(tally.class_of_cell, np.abs(tally.total), len(tally.n))
        assert (tally.length[:, 0] >= cells - 1e-9).all()
        assert spec.encodings[0].signed or (tally.total >= tally.documents * (1 - 1e-9)).all()


# The properties -------------------------------------------------------------------------------------------------------


@every_encoding
@given(data=st.data())
def test_the_empty_tally_is_the_identity(encoding, data):
    rows = data.draw(rows_of(encoding))
    tally, empty = rows.tally(), rows.empty()
    assert_identical(tally + empty, tally)
    assert_identical(empty + tally, tally)
    assert_identical(tally - empty, tally)
    assert_identical(rows.at(slice(0, 0)).tally(), empty)


@every_encoding
@given(data=st.data(), where=st.floats(0, 1))
def test_addition_commutes(encoding, data, where):
    rows = data.draw(rows_of(encoding))
    a, b = (part.tally() for part in rows.cuts([where]))
    assert_same(a + b, b + a, rows)


@every_encoding
@given(data=st.data(), where=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_addition_associates(encoding, data, where):
    rows = data.draw(rows_of(encoding))
    a, b, c = (part.tally() for part in rows.cuts(where))
    assert_same((a + b) + c, a + (b + c), rows)


@every_encoding
@given(data=st.data(), where=fractions, order=st.randoms(use_true_random=False))
def test_chunks_in_any_order_add_up_to_the_whole(encoding, data, where, order):
    rows = data.draw(rows_of(encoding))
    parts = [part.tally() for part in rows.cuts(where)]
    order.shuffle(parts)
    assert_same(reduce(add, parts), rows.tally(), rows)


@every_encoding
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_a_weight_of_k_is_k_copies(encoding, data, seed):
    rows = data.draw(rows_of(encoding))
    k = np.random.default_rng(seed).integers(0, 4, len(rows))
    copies = replace(rows.at(np.repeat(np.arange(len(rows)), k)), weight=None)
    assert_same(replace(rows, weight=k.astype(float)).tally(), copies.tally(), replace(rows, weight=k.astype(float)))


@every_encoding
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_a_row_without_weight_is_absent(encoding, data, seed):
    rows = data.draw(rows_of(encoding))
    weight = np.random.default_rng(seed).choice([0.0, 0.7], len(rows))
    weighted = replace(rows, weight=weight)
    assert_same(weighted.tally(), weighted.at(weight > 0).tally(), weighted)


@every_encoding
@given(data=st.data(), where=st.floats(0, 1))
def test_subtraction_undoes_addition(encoding, data, where):
    rows = data.draw(rows_of(encoding))
    one, other = rows.cuts([where])
    a, b = one.tally(), other.tally()
    assert_same(a + b - b, a, rows, removed_from=a + b)
    assert_identical((a + b) - (a + b), rows.empty())


@every_encoding
@given(data=st.data(), order=st.randoms(use_true_random=False))
def test_rows_go_one_by_one_in_any_order(encoding, data, order):
    rows = data.draw(rows_of(encoding, max_rows=25, widths=(1, 2, 5)))
    left, places = rows.tally(), list(range(len(rows)))
    order.shuffle(places)
    for i in places:
        left = left - rows.at(slice(i, i + 1)).tally()
        assert_sound(left, rows.spec)
    assert present(left).max(initial=0.0) <= 1e-9


@pytest.mark.all_cases
@pytest.mark.parametrize("weight", [None, "tenths", "any"])
@those(lambda e: not e.sparse)
def test_thousands_of_rows_go_one_by_one(encoding, weight):
    n, d = (400, 1) if encoding.values == "documents" else (2000, 3)
    rng = np.random.default_rng(3)
    values = {
        "codes": lambda: rng.integers(-1, 4, (n, d)),
        "documents": lambda: np.array([[" ".join(rng.choice(WORDS, rng.integers(1, 30)))] for _ in range(n)], object),
        "counts": lambda: rng.poisson([0.01, 5.0, 1000.0], (n, d)).astype(float),
        "positive": lambda: rng.lognormal([0.0, 3.0, 10.0], 2.0, (n, d)),
    }.get(encoding.values, lambda: rng.normal([0.0, 1000.0, -20.0], 1.0, (n, d)))()
    w = {None: None, "tenths": np.full(n, 0.1), "any": rng.random(n)}[weight]
    spec = columns(encoding.spec, d, (4,) * d if encoding.values == "codes" else ())
    rows = Rows(values, np.zeros(n, np.intp), w, 1, spec, "plain", False)
    left = rows.tally()
    for i in rng.permutation(n).tolist():
        left = left - rows.at(slice(i, i + 1)).tally()
    assert_sound(left, rows.spec)
    assert present(left).max() <= 1e-9


@every_encoding
@given(data=st.data(), where=st.floats(0, 1))
def test_removing_what_was_not_counted_is_an_error(encoding, data, where):
    rows = data.draw(rows_of(encoding, widths=(1, 2, 3)))  # of many columns few rows are complete
    one, other = rows.cuts([where])
    a, b = one.tally(), other.tally()
    assume(present(other.tally().pool()).any())
    with pytest.raises(NotCountedError):
        a - (a + b)


OTHER_VALUES = {  # that have the same weight, and are absent where those are
    "codes": lambda x, rng, sizes: np.where(x < 0, x, (x + 1) % np.maximum(sizes, 1)),
    "counts": lambda x, rng, sizes: x + rng.integers(0, 3, x.shape) * rng.choice([1, 100]),
    "positive": lambda x, rng, sizes: x * rng.choice([0.5, 2.0, 1e4], x.shape[1]),
    "numbers": lambda x, rng, sizes: x * rng.choice([-1.0, 0.5, 3.0], x.shape[1]) + rng.choice([0.0, 1.0, 1e6]),
}
OTHER_VALUES["modest"] = OTHER_VALUES["numbers"]
OTHER_VALUES["documents"] = lambda x, rng, sizes: np.array(
    [[d if d is None else documents_of(rng) or d] for d in x[:, 0]], object
).reshape(-1, 1)


def with_words(documents, more):
    """Documents with words added, absent ones as they are."""
    return np.array([[None if d is None else (d or "ant") + more] for d in documents[:, 0]], object).reshape(-1, 1)


@every_encoding
@given(data=st.data(), where=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_other_values_of_the_same_weight_are_an_error_or_leave_a_sound_tally(encoding, data, where, seed):
    rows = data.draw(rows_of(encoding, widths=(1, 2, 3, 7)))
    part, rng = rows.cuts([where])[0], np.random.default_rng(seed)
    other = OTHER_VALUES[encoding.values](part.values, rng, np.array(rows.spec.sizes))
    try:
        left = rows.tally() - replace(part, values=other.astype(rows.values.dtype)).tally()
    except NotCountedError:
        return
    assert_sound(left, rows.spec)
    if rows.spec.is_non_negative and encoding.values != "documents":
        assert (left.total >= 0).all()
        assert (left.log_factorial >= -0.122 * left.n - 1e-12 * rows.tally().log_factorial).all()


LARGER = {
    "codes": OTHER_VALUES["codes"],
    "counts": lambda x, rng, sizes: x + 1,
    "positive": lambda x, rng, sizes: x * 10,
    "numbers": lambda x, rng, sizes: -10 * x - 100,
    "modest": lambda x, rng, sizes: -10 * x - 100,
    "documents": lambda x, rng, sizes: with_words(x, " bee ant"),
}


@those(lambda e: e.spec.kind != "sums" or e.spec.is_non_negative)
@given(data=st.data())
def test_as_many_other_rows_are_not_the_whole(encoding, data):
    widths = (2, 3) if encoding.spec.sets else (1, 2, 3)  # a set of two columns needs as many
    rows = data.draw(rows_of(encoding, widths=widths))
    other = replace(rows, values=LARGER[encoding.values](rows.values, None, np.array(rows.spec.sizes)))
    assume(are_apart(rows.tally(), other.tally()))
    with pytest.raises(NotCountedError):
        rows.tally() - other.tally()


def are_apart(one, other):
    """Whether two tallies differ by more than rounding could."""
    if isinstance(one, TokenCounts):
        return other.n.any()
    name = next(name for name in ("counts", "total", "mean") if hasattr(one, name))
    mine, theirs = getattr(one, name), getattr(other, name)
    apart = np.abs(mine - theirs)
    far = name != "mean" or (apart > 1e-3 * np.sqrt(one.m2)).any()
    return far and (apart > 1e-3 * np.maximum(np.abs(mine), np.abs(theirs))).any()


@every_encoding
@given(data=st.data(), factor=st.sampled_from([0.5, 1.0, 3.0]))
def test_scaling_a_tally_is_scaling_its_weights(encoding, data, factor):
    rows = data.draw(rows_of(encoding))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    scaled = replace(rows, weight=weight * factor)
    assert_same(rows.tally().scale(factor), scaled.tally(), scaled)
    assert_identical(rows.tally().scale(0.0), rows.empty())


@every_encoding
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_remapping_follows_a_union_of_labels(encoding, data, seed):
    rows = data.draw(rows_of(encoding))
    k = rows.n_classes + 3
    place = np.random.default_rng(seed).permutation(k)[: rows.n_classes].astype(np.intp)
    grown = replace(rows, y=place[rows.y], n_classes=k)
    assert_same(rows.tally().remap(place, k), grown.tally(), rows)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_remapping_follows_a_union_of_levels(data, seed):
    rows = data.draw(rows_of(ENCODINGS[2]))
    rng = np.random.default_rng(seed)
    sizes = tuple(s + int(rng.integers(0, 3)) for s in rows.spec.sizes)
    pairs = zip(rows.spec.sizes, sizes, strict=True)
    moves = [CodeMapping(np.sort(rng.permutation(b)[:a]).astype(np.intp), b) for a, b in pairs]
    codes = np.column_stack([move.apply(c) for move, c in zip(moves, rows.values.T, strict=True)])
    grown = replace(rows, values=codes, spec=columns(rows.spec, len(sizes), sizes))
    same_classes = np.arange(rows.n_classes, dtype=np.intp)
    assert_identical(rows.tally().remap(same_classes, rows.n_classes, moves), grown.tally())


@every_encoding
@given(data=st.data())
def test_pooling_is_counting_all_rows_as_one_class(encoding, data):
    rows = data.draw(rows_of(encoding))
    assert_same(rows.tally().pool(), replace(rows, y=np.zeros_like(rows.y), n_classes=1).tally(), rows)


@every_encoding
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_some_classes_are_those_of_their_rows(encoding, data, seed):
    rows = data.draw(rows_of(encoding))
    some = np.random.default_rng(seed).permutation(rows.n_classes)[: rows.n_classes // 2 + 1].astype(np.intp)
    back = rows.tally().select_classes(some).remap(some, rows.n_classes)
    assert_same(back, rows.at(np.isin(rows.y, some)).tally(), rows)


@those(lambda e: not e.spec.sets)  # whose features are sets: tests/tally/test_cells.py
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_some_features_are_those_of_their_columns(encoding, data, seed):
    rows = data.draw(rows_of(encoding))
    if encoding.spec.kind == "comoments":  # over the rows that are complete in all columns
        rows = rows.at(~np.isnan(rows.values).any(axis=1))
    some = np.random.default_rng(seed).permutation(rows.spec.n_features)[:3].astype(np.intp)
    spec = replace(rows.spec, encodings=tuple(rows.spec.encodings[j] for j in some))
    assert_same(rows.tally().select_features(some), replace(rows, values=rows.values[:, some], spec=spec).tally(), rows)


@every_encoding
@given(data=st.data())
def test_arrays_hold_the_whole_state(encoding, data):
    rows = data.draw(rows_of(encoding))
    tally = rows.tally()
    file = io.BytesIO()
    np.savez(file, **tally.arrays(), **tally.rounding_residuals())
    file.seek(0)
    again = type(tally).from_arrays(dict(np.load(file)), rows.spec)
    assert_identical(again, tally)
    assert_identical(again + tally, tally + tally)


@pytest.mark.parametrize("kind", [Moments, CoMoments])
def test_arrays_hold_the_last_bits_of_values_an_ulp_apart(kind):
    """Nearly equal values far from zero: their spread is in the last digits of the sums, which a file must hold too."""
    rng = np.random.default_rng(0)
    spec = TallySpec(kind.__name__.lower(), (Identity(),) * 2)
    for n in range(2, 42):
        x = np.repeat(rng.normal(size=(1, 2)), n, axis=0)
        x[0] = np.nextafter(x[0], np.inf)
        tally = kind.from_rows(x, np.zeros(n, np.intp), rng.choice([1.0, 0.1, 3.3], n), n_classes=1, spec=spec)
        again = kind.from_arrays(tally.arrays() | tally.rounding_residuals(), spec)
        assert_identical(again + tally, tally + tally)


@every_encoding
@given(data=st.data(), where=st.floats(0, 1))
def test_no_operation_changes_its_operands(encoding, data, where):
    rows = data.draw(rows_of(encoding))
    a, b = (part.tally() for part in rows.cuts([where]))
    before = [{name: state.copy() for name, state in t.arrays().items()} for t in (a, b)]
    _ = (a + b) - b, a.scale(0.5), a.pool(), a.remap(np.arange(rows.n_classes, dtype=np.intp), rows.n_classes + 1)
    for tally, states in zip((a, b), before, strict=True):
        assert_identical(tally, type(tally).from_arrays(states, rows.spec))


@every_encoding
@given(data=st.data(), n_threads=st.integers(2, 5))
def test_the_number_of_threads_does_not_matter(encoding, data, n_threads):
    rows = data.draw(rows_of(encoding))
    alone = rows.tally()
    with threads.force_parts(n_threads) as made:
        many = rows.tally()
    assert max(made) > 1 or len(rows) < 2
    assert_same(many, alone, rows)


@those(lambda e: e.values != "documents")
@given(data=st.data())
def test_transformed_copies_of_any_size_give_the_same(encoding, data):
    rows = data.draw(rows_of(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "_CHUNK_VALUES", 3)
        small = base.tally_by_parts(lambda part: rows.at(part).tally(), rows.block(), rows.spec)
    assert_same(small, rows.tally(), rows)


# What each kind counts, against a plain loop in exact arithmetic ----------------------------------------------------


def cells(rows, values):
    """(class, feature, [(weight, value), ...]) of the values present."""
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    for c in range(rows.n_classes):
        for j in range(rows.values.shape[1]):
            there = (rows.y == c) & ~np.isnan(values[:, j])
            yield (
                c,
                j,
                [(Fraction(w), v) for w, v in zip(weight[there].tolist(), values[there, j].tolist(), strict=True)],
            )


@those(lambda e: e.spec.kind == "moments")
@given(data=st.data())
def test_moments_are_the_exact_ones(encoding, data):
    rows = data.draw(rows_of(encoding, widths=(1, 2, 5)))
    tallied = rows.values.astype(float)
    if encoding.spec.encodings[0].has_transform:
        tallied = np.vectorize(lambda v: math.log(v), otypes=[float])(tallied)
    want = rows.empty()
    n, mean, m2 = (state.copy() for state in want.arrays().values())
    for c, j, pairs in cells(rows, tallied):
        total = sum(w for w, _ in pairs)
        if total:
            centre = sum(w * Fraction(v) for w, v in pairs) / total
            n[c, j], mean[c, j] = float(total), float(centre)
            m2[c, j] = float(sum(w * (Fraction(v) - centre) ** 2 for w, v in pairs))
    assert_same(rows.tally(), Moments(n, mean, m2), rows)


@those(lambda e: e.spec.kind == "levels")
@given(data=st.data())
def test_levels_are_the_exact_weights(encoding, data):
    rows = data.draw(rows_of(encoding, widths=(1, 2, 5)))
    if encoding.spec.threshold is None:
        sizes, codes = rows.spec.sizes, np.where(rows.values < 0, np.nan, rows.values.astype(float))
    else:
        sizes, codes = (2,) * rows.values.shape[1], np.where(np.isnan(rows.values), np.nan, rows.values > 0.5)
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=int)])
    counts, present = np.zeros((rows.n_classes, starts[-1])), np.zeros((rows.n_classes, len(sizes)))
    for c, j, pairs in cells(rows, codes):
        present[c, j] = math.fsum(w for w, _ in pairs)
        for level in range(sizes[j]):
            counts[c, starts[j] + level] = math.fsum(w for w, v in pairs if v == level)
    assert_same(rows.tally(), LevelTally(counts, starts.astype(np.intp)), rows)
    np.testing.assert_allclose(rows.tally().n, present, rtol=1e-12, atol=1e-12)


@those(lambda e: e.spec.kind == "comoments")
@given(data=st.data())
def test_comoments_are_the_exact_ones_of_the_complete_rows(encoding, data):
    rows = data.draw(rows_of(encoding, max_rows=15, widths=(1, 2, 4)))
    tallied = rows.values.astype(float)
    if encoding.spec.encodings[0].has_transform:
        tallied = np.vectorize(lambda v: math.log(v), otypes=[float])(tallied)
    want = rows.empty()
    weights = np.ones(len(rows)) if rows.weight is None else rows.weight
    for c in range(rows.n_classes):
        there = (rows.y == c) & ~np.isnan(tallied).any(axis=1)
        those = zip(weights[there].tolist(), tallied[there].tolist(), strict=True)
        pairs = [(Fraction(w), list(map(Fraction, x))) for w, x in those]
        total = sum(w for w, _ in pairs)
        if not total:
            continue
        p = range(tallied.shape[1])
        centre = [sum(w * x[j] for w, x in pairs) / total for j in p]
        want.weight[c], want.mean[c] = float(total), [float(m) for m in centre]
        apart = [(w, [v - m for v, m in zip(x, centre, strict=True)]) for w, x in pairs]
        for j in p:
            for k in p:
                want.scatter[c, j, k] = float(sum(w * x[j] * x[k] for w, x in apart))
                if want.fourth is not None:
                    want.third[c, j, k] = float(sum(w * x[j] ** 2 * x[k] for w, x in apart))
                    want.fourth[c, j, k] = float(sum(w * x[j] ** 2 * x[k] ** 2 for w, x in apart))
    assert_same(rows.tally(), want, rows)


@those(lambda e: e.spec.kind == "sums")
@given(data=st.data())
def test_sums_are_the_exact_ones(encoding, data):
    rows = data.draw(rows_of(encoding, widths=(1, 2, 5)))
    tallied = rows.values.astype(float)
    if encoding.spec.encodings[0].has_transform:
        tallied = np.vectorize(lambda v: math.sqrt(v), otypes=[float])(tallied)
    n, total, base_measure = (state.copy() for state in rows.empty().arrays().values())
    for c, j, pairs in cells(rows, tallied):
        n[c, j] = math.fsum(w for w, _ in pairs)
        total[c, j] = float(sum(w * Fraction(v) for w, v in pairs))
        if "log_factorial" in encoding.spec.extra_sums:
            base_measure[c, j] = math.fsum(float(w) * math.log(math.factorial(int(v))) for w, v in pairs)
    assert_same(rows.tally(), Sums(n, total, base_measure), rows)


# What must be refused -----------------------------------------------------------------------------------------------


@every_encoding
def test_tallies_of_other_shapes_do_not_add(encoding):
    sizes = (2, 3) if encoding.values == "codes" else ()
    spec = columns(encoding.spec, 2, sizes)
    other = columns(spec, 3, (*sizes, 2) if sizes else ())
    kind = TALLIES[spec.kind]
    documents = encoding.values == "documents"  # always one column
    for bad in (kind.empty(3, spec), *(() if documents else (kind.empty(2, other),))):
        with pytest.raises(MergeError):
            kind.empty(2, spec) + bad
        with pytest.raises(MergeError):
            kind.empty(2, spec) - bad


def test_levels_divided_otherwise_do_not_add():
    a, b = (LevelTally.empty(1, columns(ENCODINGS[2].spec, 2, sizes)) for sizes in ((2, 3), (3, 2)))
    with pytest.raises(MergeError):
        a + b


def test_other_values_of_the_same_weight_are_not_within():
    y = np.zeros(50, np.intp)
    x = np.random.default_rng(0).normal(size=(50, 1))
    whole = Moments.from_rows(x, y, n_classes=1)
    for other in (x * 3, x + 5):
        with pytest.raises(NotCountedError):
            whole - Moments.from_rows(other, y, n_classes=1)
        with pytest.raises(NotCountedError):
            whole - Moments.from_rows(other[:30] * 10, y[:30], n_classes=1)


@pytest.mark.parametrize("p", [2, 3])
def test_columns_that_went_together_otherwise_are_not_within(p):
    """The same values in each column, and so the same means and spreads, but of other rows."""
    y, rng = np.zeros(40, np.intp), np.random.default_rng(1)
    a = rng.normal(size=40)
    x = np.column_stack([a, *(a + 0.01 * rng.normal(size=(p - 1, 40)))])
    whole = CoMoments.from_rows(x, y, n_classes=1)
    for n in (20, 40):
        other = x[:n].copy()
        other[:, -1] = x[:n, -1][np.argsort(np.argsort(-x[:n, 0]))]
        with pytest.raises(NotCountedError, match="never counted together"):
            whole - CoMoments.from_rows(other, y[:n], n_classes=1)


def test_a_scatter_that_no_rows_have_is_not_left():
    """Every pair of columns would do; the three together would not."""

    def of(*r):
        scatter = np.array([[[1, r[0], r[1]], [r[0], 1, r[2]], [r[1], r[2], 1]]], float)
        return CoMoments(np.array([[10.0]]), np.zeros((1, 3)), 10 * scatter)

    part = CoMoments(np.array([[5.0]]), np.zeros((1, 3)), of(0.0, 0.0, 0.9).scatter * 0.5)
    assert np.linalg.eigvalsh((of(0.4, 0.4, 0.0).scatter - part.scatter)[0]).min() < -0.1
    with pytest.raises(NotCountedError, match="never counted together"):
        of(0.4, 0.4, 0.0) - part


def test_fractions_of_a_count_go_as_they_came():
    """log x! is below zero between 0 and 1, and so is its sum."""
    whole, part = (Sums.from_rows(np.full((n, 1), 0.5), np.zeros(n, np.intp), n_classes=1, spec=COUNTS) for n in (5, 3))
    left = whole - part
    np.testing.assert_allclose(left.log_factorial, [[2 * math.lgamma(1.5)]], rtol=1e-12)


def test_more_than_all_that_was_counted_is_not_within():
    spec, y = columns(COUNTS, 2), np.zeros(2, np.intp)
    whole = Sums.from_rows(np.array([[1.0, 4.0], [2.0, 3.0]]), y, n_classes=1, spec=spec)
    for row in ([100.0, 0.0], [3.5, 1.0], [0.0, 7.1]):
        with pytest.raises(NotCountedError):
            whole - Sums.from_rows(np.array([row]), y[:1], n_classes=1, spec=spec)
    with pytest.raises(NotCountedError, match="2 of 3 in all"):  # all rows go, and not all that they held
        whole - Sums.from_rows(np.array([[1.0, 4.0], [1.0, 3.0]]), y, n_classes=1, spec=spec)


def test_negative_counts_are_refused_dense_and_sparse():
    y = np.zeros(2, np.intp)
    values = np.array([[1.0, 0.0], [0.0, -2.0]])
    for block in (values, sparse_block(values, "plain")):
        with pytest.raises(InputError) as error:
            Sums.from_rows(block, y, n_classes=1, spec=columns(COUNTS, 2))
        assert error.value.value == -2.0
        assert error.value.remedy.startswith("pass values >= 0")
        assert Sums.from_rows(
            block, y, n_classes=1, spec=TallySpec.from_encoding("sums", Identity(), 2)
        ).total.tolist() == [[1.0, -2.0]]


def test_a_negative_threshold_on_sparse_rows_is_refused():
    block = sparse_block(np.eye(2), "plain")
    with pytest.raises(InputTypeError) as error:
        LevelTally.from_rows(block, np.zeros(2, np.intp), n_classes=1, spec=Bernoulli(threshold=-1.0).spec(2))
    assert error.value.value == -1.0


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_what_has_no_logarithm_is_refused(value):
    with pytest.raises(InputError) as error:
        Moments.from_rows(
            np.array([[1.0], [value]]), np.zeros(2, np.intp), n_classes=1, spec=TallySpec("moments", (Log(),))
        )
    assert error.value.value == value


def test_a_value_outside_an_own_transform_never_passes_as_absent():
    root = TallySpec("moments", (TransformedEncoding(np.sqrt),))
    tally = Moments.from_rows(np.array([[4.0], [-4.0], [np.nan]]), np.zeros(3, np.intp), n_classes=1, spec=root)
    assert not np.isfinite(tally.mean).any()


@those(lambda e: e.values not in ("codes", "documents"))
@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_infinity_shows_in_the_state_and_warns_of_nothing(encoding, n_threads, recwarn):
    values = np.ones((9, 2))
    values[[1, 4, 7], 1] = np.inf
    rows = Rows(values, np.zeros(9, np.intp), None, 1, columns(encoding.spec, 2), "plain", encoding.sparse)
    with threads.force_parts(n_threads):
        tally = rows.tally()
    assert not all(np.isfinite(state).all() for state in tally.arrays().values())
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
