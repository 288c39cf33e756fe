"""Numbers in bins: any shape, found from the counts, and found anew when counts are added."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candide as cd
from candide.errors import InputError
from candide.events import Binned
from candide.events.categorical import merge_cells
from candide.priors import Beta, Dirichlet
from candide.testing import check_event
from candide.validation.cross_validation import cross_validate


def humps(n, seed=0):
    """A column whose middle is one class, and both ends the other."""
    x = np.random.default_rng(seed).normal(size=n)
    return {"x": x, "noise": np.random.default_rng(seed + 1).normal(size=n)}, np.where(np.abs(x) < 0.7, "in", "out")


@pytest.mark.parametrize("prior", [None, Dirichlet(0.5)])
def test_the_published_checks(prior):
    check_event(Binned(prior), prior=Dirichlet(0.7))


def test_bins_are_cut_where_the_classes_change():
    X, y = humps(4000)
    model = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    asked, truth = humps(1000, seed=2)
    assert (model.predict(asked) == truth).mean() > 0.98
    [fit] = model.fitted_.model.distributions
    rows, _ = fit.describe(0, levels=model.fitted_.plan.parts[0].encodings[0].level_names())
    edges = [float(name.split()[-1]) for name in (rows[0], rows[-1])]
    assert edges == pytest.approx([-0.7, 0.7], abs=0.02)
    assert fit.describe(1, levels=model.fitted_.plan.parts[0].encodings[1].level_names())[0] == [
        "any"
    ]  # it tells nothing


def test_an_independent_column_has_no_information():
    X, y = humps(300)
    model = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    [part], [tally] = model.fitted_.plan.parts, model.counts_.tallies
    assert part.event.information(tally)[0] > 0.3
    assert part.event.information(tally)[1] == 0.0  # of its 255 cells it would be large, by chance


def test_a_sum_finds_its_bins_anew():
    X, y = humps(400)
    some = {name: column[:3] for name, column in X.items()}
    whole = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    few = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y).partial_fit(some, y[:3]) - whole
    assert not few.fitted_.model.distributions[0].bins.any()  # three rows pay for no cut
    again = few + (whole - few)
    np.testing.assert_allclose(again.predict_proba(X), whole.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("prior", [Beta(), Dirichlet((1.0, 2.0))], ids=["of two", "of several values"])
def test_a_prior_that_does_not_fit_is_refused(prior):
    with pytest.raises(InputError):
        cd.NaiveBayes({"x": Binned(prior)}).fit({"x": [1.0, 2.0, 3.0]}, ["a", "b", "b"])


def test_every_entry_point_draws_the_same_grid(tmp_path):
    X, y = humps(500)
    frame = pd.DataFrame({**X, "y": y})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    want = cd.NaiveBayes({"x": "binned"}).fit(X, y).predict_proba(X)
    for door in (frame, tmp_path / "x.csv", tmp_path / "x.parquet"):
        found = cd.fit(door, "y", events={"x": "binned"}, model="naive")
        np.testing.assert_allclose(found.predict_proba(X), want, atol=1e-9)
    folds = cross_validate(str(tmp_path / "x.csv"), "y", events={"x": "binned"}, model="naive", folds=3)
    assert folds.total.accuracy > 0.95


def entropy(y):
    n = np.unique(y, return_counts=True)[1]
    return -(n / n.sum() * np.log2(n / n.sum())).sum()


def cuts_of(x, y):
    """The rule as its paper has it, on rows."""
    edges = np.unique(x)[1:]
    if not len(edges):
        return []
    gains = [entropy(y) - (x < e).mean() * entropy(y[x < e]) - (x >= e).mean() * entropy(y[x >= e]) for e in edges]
    best = int(np.argmax(np.round(gains, 12)))
    left, right = y[x < edges[best]], y[x >= edges[best]]
    k, k1, k2 = (len(set(some.tolist())) for some in (y, left, right))
    delta = np.log2(3.0**k - 2) - (k * entropy(y) - k1 * entropy(left) - k2 * entropy(right))
    if gains[best] <= (np.log2(len(edges)) + delta) / len(y):
        return []
    below = x < edges[best]
    return sorted([edges[best], *cuts_of(x[below], y[below]), *cuts_of(x[~below], y[~below])])


def counts_of(x, y, n_cells, k):
    counts = np.zeros((k, n_cells))
    np.add.at(counts, (y, x), 1.0)
    return counts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 30), st.integers(2, 300), st.floats(0, 12))
def test_bins_are_those_of_the_paper(seed, k, n_cells, n, shift):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = np.clip(rng.integers(0, n_cells, n) + (shift * y).astype(int), 0, n_cells - 1)
    found = merge_cells(counts_of(x, y, n_cells, k))
    there = np.unique(x)
    assert len(set(found[there].tolist())) == 1 + len(cuts_of(x, y))
    np.testing.assert_array_equal(np.diff(found[there]) > 0, np.isin(there[1:], cuts_of(x, y)))


def test_numbers_of_bins_ascend_without_gaps():
    counts = np.array([[90.0, 0.0, 0.0, 90.0, 0.0], [0.0, 0.0, 90.0, 0.0, 0.0]])
    assert merge_cells(counts).tolist() == [0, 1, 1, 2, 2]  # read from above, where fewer rows are
    assert merge_cells(counts[:, ::-1]).tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("counts", [np.zeros((2, 3)), np.ones((1, 5)), np.zeros((3, 0))])
def test_an_uninformative_column_is_one_bin(counts):
    assert merge_cells(counts).tolist() == [0] * counts.shape[1]


def test_weights_count_as_rows():
    x, y = np.arange(60) // 10, np.repeat([0, 1], 30)
    counts = counts_of(x, y, 6, 2)
    assert merge_cells(counts).tolist() == [0, 0, 0, 1, 1, 1]
    assert merge_cells(counts * 0.01).tolist() == [0] * 6  # less than a row tells nothing
