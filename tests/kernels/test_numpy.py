"""A compiled kernel and its NumPy reference are equal, on nasty input."""

from fractions import Fraction

import kernel_data as nasty
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide import kernels
from candide.kernels import _numpy as reference

THRESHOLDS = st.sampled_from([np.nan, 0.0, 1.5])


def close(ours, theirs, rtol=1e-11, atol=1e-11):
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


@given(st.data())
def test_moments(compiled, data):
    x = data.draw(nasty.blocks())
    y, w, k = data.draw(nasty.members(len(x)))
    n, mean, m2 = compiled.moments(x, y, w, k)
    n2, mean2, m22 = reference.moments(x, y, w, k)
    close(n, n2)
    close(mean, mean2, rtol=1e-14)
    # What the rounding of x itself leaves of a variance of 1e-6 at an offset of 1e9.
    close(m2, m22, rtol=1e-9, atol=1e-9 * (1 + np.nanmax(np.abs(x), initial=0.0) * 1e-9))


@given(st.data())
def test_moments_keep_an_infinity_in_its_place(compiled, data):
    x = data.draw(nasty.blocks(infinities=True))
    y, w, k = data.draw(nasty.members(len(x)))
    n, mean, m2 = compiled.moments(x, y, w, k)
    n2, mean2, _ = reference.moments(x, y, w, k)
    finite = np.isfinite(mean2)
    np.testing.assert_array_equal(np.isfinite(mean), finite)
    close(n, n2)
    close(mean[finite], mean2[finite], rtol=1e-14)
    assert np.isfinite(m2[finite]).all()


@given(st.data(), THRESHOLDS)
def test_dense_sums(compiled, data, threshold):
    x = data.draw(nasty.blocks(infinities=data.draw(st.booleans())))
    y, w, k = data.draw(nasty.members(len(x)))
    mine, other = compiled.dense_sums(x, y, w, k, threshold), reference.dense_sums(x, y, w, k, threshold)
    # Sums of both signs: the rounding is that of the largest term.
    largest = np.abs(np.where(np.isfinite(x), x, 0.0)).max(initial=1.0)
    for ours, theirs in zip(mine, other, strict=True):
        close(ours, theirs, rtol=1e-13, atol=1e-12 * largest)


@given(st.data())
def test_code_range(compiled, data):
    codes, _ = data.draw(nasty.codes())
    for ours, theirs in zip(compiled.code_range(codes), reference.code_range(codes), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@given(st.data())
def test_level_counts(compiled, data):
    codes, offsets = data.draw(nasty.codes())
    y, w, k = data.draw(nasty.members(len(codes)))
    close(compiled.level_counts(codes, y, w, k, offsets), reference.level_counts(codes, y, w, k, offsets))


@given(st.data(), THRESHOLDS)
def test_csr_sums(compiled, data, threshold):
    values, indices, indptr, d = data.draw(nasty.sparse())
    y, w, k = data.draw(nasty.members(len(indptr) - 1))
    ours = compiled.csr_sums(values, indices, indptr, y, w, k, d, threshold)
    theirs = reference.csr_sums(values, indices, indptr, y, w, k, d, threshold)
    close(ours[0], theirs[0])
    assert ours[1] == theirs[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_csr_sums_detect_what_is_not_finite(compiled, value):
    csr = np.array([1.0, value, 2.0]), np.array([0, 1, 1]), np.array([0, 2, 3])
    assert np.isnan(compiled.csr_sums(*csr, np.array([0, 1]), None, 2, 2)[1])
    assert compiled.add_linear_csr(*csr, np.ones((2, 3)), np.zeros((2, 3))) == reference.INFINITE


@given(st.data(), THRESHOLDS, st.booleans())
def test_linear_csr(compiled, data, threshold, impossible):
    values, indices, indptr, d = data.draw(nasty.sparse())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = rng.normal(size=(d, data.draw(st.sampled_from([1, 3, 8, 20, 70]))))
    if impossible:
        weights[rng.random(weights.shape) < 0.3] = -np.inf
        values = np.abs(values)
    ours = rng.normal(size=(len(indptr) - 1, weights.shape[1]))
    theirs = ours.copy()
    if data.draw(st.booleans()):
        weights = kernels.pad_columns(weights)
    assert compiled.add_linear_csr(values, indices, indptr, weights, ours, threshold) == 0
    assert reference.add_linear_csr(values, indices, indptr, weights, theirs, threshold) == 0
    close(ours, theirs)


@st.composite
def scored(draw):
    """A dense block, the number of its classes, and an array to add to."""
    x = draw(nasty.blocks())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    k = draw(st.sampled_from([1, 2, 5, 11]))
    out = rng.normal(size=(len(x), k))
    return x, rng, out if draw(st.booleans()) else np.asfortranarray(out)


def same_scores(compiled, name, *arguments, out, scale=1.0):
    mine, theirs = out.copy(order="K"), out.copy()
    assert getattr(compiled, name)(*arguments, mine) == getattr(reference, name)(*arguments, theirs)
    close(mine, theirs, rtol=1e-12, atol=1e-11 * scale)


def parameters(rng, x, k, draw):
    centre = np.nan_to_num(np.asarray(x, np.float64)).mean(axis=0) if len(x) else np.zeros(x.shape[1])
    shape = (k, x.shape[1])
    layout = draw(st.sampled_from(["C", "F"]))
    return [
        np.asarray(p, order=layout)
        for p in (centre + rng.normal(size=shape), rng.uniform(0.1, 2, shape), rng.normal(size=shape))
    ]


@given(scored(), st.data())
def test_gaussian(compiled, scored, data):
    x, rng, out = scored
    same_scores(compiled, "add_gaussian", x, *parameters(rng, x, out.shape[1], data.draw), out=out)


@given(scored(), st.data(), st.booleans())
def test_student(compiled, scored, data, shared):
    x, rng, out = scored
    loc, inv_scale, log_norm = parameters(rng, x, out.shape[1], data.draw)
    df = rng.choice([0.5, 3.0, 1e6], loc.shape)
    if shared:
        df = np.broadcast_to(df[:, :1], df.shape)
    # Half a million times the logarithm of 1 + 1e-6: the rounding of the sum, not of a term.
    same_scores(compiled, "add_student", x, loc, inv_scale, df, log_norm, out=out, scale=10.0)


@given(scored(), st.booleans(), st.sampled_from([0.0, 1.0, 1e8]))
def test_switch(compiled, scored, impossible, threshold):
    x, rng, out = scored
    low, high = rng.normal(size=(2, out.shape[1], x.shape[1]))
    if impossible:
        low[rng.random(low.shape) < 0.3] = -np.inf
        high[rng.random(low.shape) < 0.3] = -np.inf
    same_scores(compiled, "add_switch", x, threshold, low, high, out=out)


@given(scored(), st.booleans())
def test_linear(compiled, scored, impossible):
    x, rng, out = scored
    weights = np.asarray(rng.normal(size=(x.shape[1], out.shape[1])), order=rng.choice(["C", "F"]))
    if impossible:
        weights[rng.random(weights.shape) < 0.3] = -np.inf
        x = np.abs(x) * (rng.random(x.shape) < 0.1).astype(x.dtype)
    largest = np.abs(np.where(np.isfinite(x), x, 0.0)).max(initial=1.0)
    same_scores(compiled, "add_linear", x, weights, out=out, scale=largest)


@given(st.data(), st.booleans())
def test_levels(compiled, data, impossible):
    codes, offsets = data.draw(nasty.codes())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    k = data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 19]))
    if codes.size and data.draw(st.booleans()):
        codes = np.where(rng.random(codes.shape) < 0.1, np.iinfo(codes.dtype).max, codes).astype(codes.dtype)
    table, unseen = rng.normal(size=(offsets[-1], k)), rng.normal(size=(codes.shape[1], k))
    if impossible:
        table[rng.random(table.shape) < 0.3] = -np.inf
    if data.draw(st.booleans()):
        table, unseen = kernels.pad_columns(table), kernels.pad_columns(unseen)
    same_scores(compiled, "add_levels", codes, offsets, table, unseen, out=rng.normal(size=(len(codes), k)))


OBJECTS = st.sampled_from(
    ["", "a", "b" * 3, "\u00e9", "\u4e2d", "\U0001f600", None, float("nan"), 1, 1.0, True, (), b"a"]
)


@given(st.lists(OBJECTS, max_size=60), st.integers(0, 20))
def test_distinct_objects(compiled, values, most):
    """Whether texts are one object or equal; other objects are one if they are."""
    copies = ["".join([value[:1], value[1:]]) if type(value) is str else value for value in values]
    column = np.empty(len(values), object)
    column[:] = copies
    column.flags.writeable = False  # as a data frame may give it
    ours, theirs = compiled.distinct(column, most), reference.distinct(column, most)
    different = {value if type(value) is str else id(value) for value in values}
    assert (ours is None) == (theirs is None) == (len(different) > most)
    if ours is not None and theirs is not None:
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)
        assert all(a is b or a == b for a, b in zip(column[ours[0]][ours[1]], column, strict=True))


@given(nasty.blocks(infinities=True), st.integers(0, 20))
def test_places_among_ascending_numbers(compiled, block, n):
    """Cells of a grid and lines between knots, at the edges and knots themselves, too."""
    x = block.reshape(-1)[:500]
    edges = np.unique(np.asarray(x[:n], np.float64)[np.isfinite(np.asarray(x[:n], np.float64))])
    ours, theirs = np.empty((2, len(x)), np.int32)
    compiled.grid_codes(x, edges, ours)
    reference.grid_codes(x, edges, theirs)
    np.testing.assert_array_equal(ours, theirs)
    if len(edges):
        values = np.sort(np.random.default_rng(n).normal(size=len(edges)))
        mine, other = np.empty((2, len(x)))
        compiled.interpolate(x, edges, values, mine)
        reference.interpolate(x, edges, values, other)
        close(mine, other)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-300, 1.0, 1e300, 0.99 * 2.0**1023])
def test_lines_between_knots_of_any_size(compiled, unit):
    """Against exact fractions."""
    knots, values = np.array([-2.0, -1.0, 1.0, 2.0]) * (unit if unit < 1e300 else unit / 2), np.array([-3.0, 0, 1, 5])
    x = np.concatenate([knots, knots / 2, knots * 0.75, [np.nan, np.inf, -np.inf]])
    want = np.zeros(len(x))
    for r, number in enumerate(x):
        i = int(np.searchsorted(knots, number, side="right")) - 1
        if np.isfinite(number) and 0 <= i < 3:
            share = (Fraction(number) - Fraction(knots[i])) / (Fraction(knots[i + 1]) - Fraction(knots[i]))
            want[r] = values[i] + (values[i + 1] - values[i]) * float(share)
        elif not np.isnan(number):
            want[r] = values[0] if i < 0 else values[-1]
    for kernel in (compiled, reference):
        out = np.empty(len(x))
        kernel.interpolate(x, knots, values, out)
        np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-12)


@st.composite
def together(draw):
    """Level codes, sets of columns with how many levels each has, and classes and weights of the rows."""
    codes, offsets = draw(nasty.codes())
    rng, d, order = (
        np.random.default_rng(draw(st.integers(0, 99))),
        codes.shape[1],
        draw(st.sampled_from([1, 2, 2, 3, 3, 4])),
    )
    sets = [rng.choice(d, order, replace=False) for _ in range(draw(st.integers(0, 5)) if d >= order else 0)]
    y, w, k = draw(nasty.members(len(codes)))
    return codes, np.array(sets, np.intp).reshape(-1, order), np.diff(offsets)[:d], y, w, k


@given(together())
def test_cells(compiled, together):
    """Counts, terms of every cell, and terms of rows without themselves."""
    codes, sets, sizes, y, w, k = together
    counts = reference.cell_counts(codes, y, w, k, sets, sizes)
    close(compiled.cell_counts(codes, y, w, k, sets, sizes), counts)
    close(compiled.cell_terms(counts, sets, sizes, 10.0, 1.0), reference.cell_terms(counts, sets, sizes, 10.0, 1.0))
    given = counts, codes, y, w, sets, sizes, 10.0, 1.0
    close(compiled.held_out_cells(*given), reference.held_out_cells(*given))


@given(together())
def test_no_more_is_taken_out_of_a_cell_than_it_has(compiled, together):
    """Counts below 0 gave terms that are NaN."""
    codes, sets, sizes, y, w, k = together
    counts, gone = (
        reference.cell_counts(codes, y, w, k, sets, sizes),
        np.full(len(codes), 1e3 + 2.0 * np.sum(0.0 if w is None else w)),
    )
    for loops in (compiled, reference):
        found = loops.held_out_cells(counts, codes, y, gone, sets, sizes, 10.0, 1.0)
        assert np.isfinite(found).all()
    close(compiled.held_out_cells(counts, codes, y, gone, sets, sizes, 10.0, 1.0), found)


@given(together(), st.integers(0, 99))
def test_score_of_cells(compiled, together, seed):
    codes, sets, sizes, y, w, k = together
    p = np.random.default_rng(seed).dirichlet(np.ones(k), len(codes)).reshape(len(codes), k)
    removed = None if w is None else w * np.random.default_rng(seed).uniform(0, 1, len(w))
    given = codes, y, w, removed, p, sets, sizes, 10.0, 1.0
    for ours, theirs in zip(compiled.score_cells(*given), reference.score_cells(*given), strict=True):
        close(ours, theirs, atol=1e-10 * max(1, len(codes)))


@given(together(), st.sampled_from([1, 2, 5, 8, 19]), st.booleans())
def test_cell_lookup(compiled, together, k, odd):
    """Added up, and spread over a third axis: codes past the levels, absent ones and padded tables among them."""
    codes, sets, sizes, y, *_ = together
    rng = np.random.default_rng(k)
    if odd:
        codes = np.where(rng.random(codes.shape) < 0.1, np.iinfo(codes.dtype).max, codes).astype(codes.dtype)
    n_cells = sizes[sets].prod(axis=1).sum()
    table, unseen, own = (
        rng.normal(size=(n_cells, k)),
        rng.normal(size=(len(sets), k)),
        rng.normal(size=(len(codes), len(sets))),
    )
    padded = kernels.pad_columns(table) if odd else table
    ours, theirs = (rng.normal(size=(len(codes), k)) * np.ones((2, 1, 1))).copy()
    absent = compiled.add_cells(codes, compiled.Sets(sets, sizes), padded, ours)
    assert absent == reference.add_cells(codes, reference.Sets(sets, sizes), padded, theirs)
    close(ours, theirs, rtol=1e-12)
    for dtype in (np.float64, np.float32):
        ours, theirs = np.empty((2, len(codes), k, len(sets)), dtype)
        for loops, out in ((compiled, ours), (reference, theirs)):
            loops.take_cells(codes, sets, sizes, table, unseen, y % k, own, out)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("p", [1, 2, 7, 32])
@given(n=st.sampled_from([0, 1, 15, 16, 33]), k=st.sampled_from([1, 2, 5]), order=st.sampled_from("CF"))
def test_discriminants(compiled, heavy, p, n, k, order):
    """Tiles that are full and not, an odd row of the root at the end, one root or one a class, rows near and far."""
    rng = np.random.default_rng(n)
    z = np.asarray(rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, (n, 1)), order=order)
    roots = np.tril(rng.normal(size=(k if heavy else 1, p, p)))
    params = rng.uniform(0.1, 9.0, (4, k))
    same_scores(
        compiled,
        "add_discriminant",
        z,
        rng.normal(size=(k, p)),
        roots,
        params,
        heavy,
        -0.7,
        out=rng.normal(size=(n, k)),
    )


@pytest.mark.parametrize("name", ["add_gaussian", "add_switch", "add_linear"])
@given(scored=scored(), data=st.data())
def test_an_infinite_value_is_reported(compiled, name, scored, data):
    x, rng, out = scored
    if not x.size or x.dtype.kind != "f":
        return
    x = x.copy()
    r, j = data.draw(st.integers(0, len(x) - 1)), data.draw(st.integers(0, x.shape[1] - 1))
    x[r, j] = data.draw(st.sampled_from([np.inf, -np.inf]))
    mean, inv_sd, log_norm = parameters(rng, x[:0], out.shape[1], data.draw)
    arguments = {
        "add_gaussian": (mean, inv_sd, log_norm),
        "add_switch": (0.0, mean, inv_sd),
        "add_linear": (mean.T,),
    }
    assert getattr(compiled, name)(x, *arguments[name], out) == reference.INFINITE


@st.composite
def joints(draw):
    """Joint log-probabilities: some impossible, rows of nothing else, NaN and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n, k = draw(st.sampled_from([0, 1, 5, 200])), draw(st.sampled_from([1, 2, 3, 10, 33]))
    level, spread = draw(st.sampled_from([0.0, -1e4, 800.0])), draw(st.sampled_from([0.1, 5.0, 500.0]))
    joint = rng.normal(level, spread, (n, k))
    joint[rng.random((n, k)) < 0.3] = -np.inf
    joint[rng.random(n) < 0.2] = -np.inf
    if draw(st.booleans()):
        joint[rng.random((n, k)) < 0.05] = draw(st.sampled_from([np.nan, np.inf]))
    return joint if draw(st.booleans()) else np.asfortranarray(joint)


@given(joints())
def test_normalise(compiled, ours):
    theirs = ours.copy()
    ours = ours.copy(order="K")
    with np.errstate(over="ignore"):
        close(compiled.normalise(ours), reference.normalise(theirs), rtol=1e-14)
    close(ours, theirs, atol=1e-11)


@given(joints())
def test_posterior(compiled, ours):
    theirs, otherwise = ours.copy(), np.linspace(0.1, 0.3, ours.shape[1])
    ours = ours.copy(order="K")
    with np.errstate(over="ignore"):
        compiled.posterior(ours, otherwise)
        reference.posterior(theirs, otherwise)
    close(ours, theirs, atol=1e-11)


@given(joints(), st.booleans())
def test_first_largest(compiled, joint, tied):
    if tied:
        joint = np.round(joint / 500)
    mine, theirs = np.empty((2, len(joint)), np.intp)
    compiled.first_largest(joint, 1, mine)
    reference.first_largest(joint, 1, theirs)
    np.testing.assert_array_equal(mine, theirs)


def _words(data, n_classes):
    """Words of documents in CSR: empty documents, repeated terms, no terms at all."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, v = data.draw(st.sampled_from([0, 1, 5, 40])), data.draw(st.sampled_from([1, 3, 50]))
    sizes = rng.integers(0, 12, n)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    term = rng.integers(0, v, starts[-1]).astype(np.int32)
    x, own = rng.normal(size=(2, starts[-1])).astype(np.float32)
    table = np.zeros((v, -(-n_classes // 8) * 8), np.float32)
    table[:, :n_classes] = rng.normal(size=(v, n_classes))
    return rng, (starts, term, x, own, table, rng.integers(0, n_classes, n))


@given(st.data(), st.sampled_from([1, 2, 7, 8, 9, 20]))
def test_words(compiled, data, k):
    rng, words = _words(data, k)
    n, (v, wide) = len(words[-1]), words[4].shape
    error = np.zeros((n, wide), np.float32)
    error[:, :k] = rng.normal(size=(n, k))
    share = np.abs(error) / np.maximum(np.abs(error).sum(axis=1, keepdims=True), 1e-9)
    group = rng.integers(0, 3, v)
    calls = {
        "word_scores": (rng.normal(size=v), np.zeros((n, k))),
        "word_slopes": (error, np.zeros(v)),
        "word_spreads": (rng.random(n), share.astype(np.float32), np.zeros(v)),
        "word_groups": (group, np.zeros((n, 3, wide))),
    }
    for name, (*given_, out) in calls.items():
        ours, theirs = out.copy(), out.copy()
        getattr(compiled, name)(*words, *given_, ours)
        getattr(reference, name)(*words, *given_, theirs)
        close(ours, theirs, rtol=1e-4, atol=1e-4)  # of single precision
