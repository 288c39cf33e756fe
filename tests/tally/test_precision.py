"""A huge value that is counted and removed leaves everything else as it was; where that cannot be, it is refused."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import candide as cd
from candide import kernels, store
from candide.data.table import Table
from candide.encoding import Identity
from candide.errors import NotCountedError
from candide.fit_source import fit_model
from candide.kernels import powers
from candide.tally import CoMoments, Moments, Sums, TallySpec
from candide.tally.precision import estimate_scale

HUGE = [1e9, -1e15, 1e18]
KINDS = {Moments: "moments", CoMoments: "comoments", Sums: "sums"}


def two_classes(n=1000, d=2, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(3.0 * y[:, None], 1.0, (n, d)), y


def count(kind, X, y):
    return kind.from_rows(X, y, n_classes=2, spec=TallySpec.from_encoding(KINDS[kind], Identity(), X.shape[1]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1000, 60_000], ids=["few", "many"])
@pytest.mark.parametrize("huge", HUGE)
def test_a_huge_value_counted_and_removed_leaves_the_rest(kind, n, huge):
    X, y = two_classes(n)
    one, alone = (np.array([[huge, 1.0]]), np.array([0])), count(kind, X, y)
    gone = count(kind, *one)
    for whole in (alone + gone, count(kind, np.vstack([X, one[0]]), np.append(y, 0))):
        left = whole - gone
        for name, state in alone.arrays().items():
            np.testing.assert_allclose(left.arrays()[name], state, rtol=1e-9, atol=1e-10 * n, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_heap_of_huge_values_may_be_removed_in_other_parts_than_it_came_in(kind):
    X, y = two_classes(60_000)
    rng = np.random.default_rng(1)
    heap = rng.random(len(X)) < 0.3
    X[heap, 1] = 1e9 + rng.normal(size=heap.sum())
    left = count(kind, X, y)
    for rows in np.array_split(rng.permutation(np.flatnonzero(heap)), 5):
        left = left - count(kind, X[rows], y[rows])
    for name, state in count(kind, X[~heap], y[~heap]).arrays().items():
        np.testing.assert_allclose(left.arrays()[name], state, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_lost_beside_a_value_is_refused(kind):
    X, y = two_classes()
    whole = count(kind, X, y)
    gone = count(kind, np.array([[0.0, 1e60]]), np.array([0]))
    with pytest.raises(NotCountedError) as caught:
        whole + gone - gone
    assert caught.value.cell == (0, 1)


def test_the_column_that_was_lost_is_named():
    rows, y = {"a": [0.5, 1.5, 2.5, 1.0], "b": [1.0, 2.0, 4.0, 1e60]}, ["n", "n", "y", "n"]
    model = cd.NaiveBayes("gaussian").fit(rows, y)
    with pytest.raises(NotCountedError) as caught:
        model.forget({"a": [1.0], "b": [1e60]}, ["n"])
    assert caught.value.column == "b"
    assert model.counts_.n_rows == 4


@pytest.mark.parametrize("model", [cd.GaussianNB(), cd.NaiveBayes("gaussian"), cd.GaussianBayes("full")])
def test_accuracy_survives(model):
    X, y = two_classes(1000, 1)
    never = model.fit(X, y).predict_proba(X)
    model.fit(np.vstack([X, [[1e9]]]), np.append(y, 0)).forget([[1e9]], [0])
    np.testing.assert_allclose(model.predict_proba(X), never, rtol=1e-12)
    model.partial_fit([[1e9]], [0]).forget([[1e9]], [0])
    np.testing.assert_allclose(model.predict_proba(X), never, rtol=1e-12)


@pytest.mark.parametrize("events", ["gaussian", {"x": "lognormal"}, {"x": "exponential"}, {"x": "poisson"}])
def test_through_sql_and_files(events, tmp_path):
    X, y = two_classes(1000, 2)
    rows = {"x": np.floor(np.exp(X[:, 0])) + 1, "z": X[:, 1], "y": y}
    row = {"x": [1e15], "z": [0.0], "y": [0]}
    both = {name: np.append(rows[name], row[name]) for name in rows}
    alone = fit_model(pa.table(rows), "y", events=events, model="naive").fitted
    whole = fit_model(pa.table(both), "y", events=events, model="naive").fitted
    path = tmp_path / "m.candide"
    store.save(alone, path)
    cd.update_model(path, pa.table(row))
    for left in (cd.forget_rows(whole, pa.table(row)).fitted, cd.forget_rows(path, pa.table(row)).fitted):
        np.testing.assert_allclose(left.posterior(rows), alone.posterior(rows), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_rounding_took_is_kept_in_files(kind):
    X, y = two_classes()
    whole = count(kind, X, y) + count(kind, np.array([[1e15, -1e15]]), np.array([0]))
    spec = TallySpec.from_encoding(KINDS[kind], Identity(), 2)
    again = kind.from_arrays(whole.arrays() | whole.rounding_residuals(), spec)
    np.testing.assert_allclose(again.sums, whole.sums, rtol=1e-12)  # each part, the smallest too
    shapes = kind.residual_shapes(2, spec)
    assert {"rest"} <= whole.rounding_residuals().keys() <= shapes.keys()
    assert all(shapes[name] == rest.shape for name, rest in whole.rounding_residuals().items())


@pytest.mark.parametrize("loops", [kernels, powers], ids=["compiled", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_powers_are_exact(loops, weighted):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-9, 10, (200, 1)), rng.integers(0, 2, 200)
    X[5, 1] = np.nan
    w = rng.choice([0.0, 0.1, 1.0, 3.3], 200) if weighted else None
    sums = loops.power_sums(X, y, w, 2)
    n, mean, m2 = loops.moments_of(sums)
    for c, j in np.ndindex(2, 3):
        mine = (y == c) & ~np.isnan(X[:, j])
        x = [Fraction(v) for v in X[mine, j].tolist()]
        v = [Fraction(v) for v in (np.ones(len(x)) if w is None else w[mine]).tolist()]
        want = [sum(a * b**k for a, b in zip(v, x, strict=True)) for k in range(3)]
        for k, total in enumerate(want):
            size = sum(a * abs(b) ** k for a, b in zip(v, x, strict=True))
            assert abs(sum(map(Fraction, sums[c, j, k].tolist())) - total) <= size / 2**150
        assert mean[c, j] == pytest.approx(float(want[1] / want[0]), rel=1e-15)
        assert m2[c, j] == pytest.approx(float(want[2] - want[1] ** 2 / want[0]), rel=1e-15)
        assert n[c, j] == float(want[0])


def test_the_scale_of_a_column_is_that_of_most_values():
    X, _ = two_classes(5000, 3)
    X[::50, 1] = 1e12
    X[:, 2] = 7.0
    plain, mixed, constant = estimate_scale(X, len(X))
    assert 0.01 < mixed / plain < 100
    assert constant == 0


def test_rounding_is_not_taken_for_rows_that_were_never_counted():
    """Sparse counts of fractional weight, removed one by one: what rounding leaves of log x! is no reason to refuse."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.zeros(20), [7, 8, 3, 3, 4, 3, 7, 9, 5, 1, 4, 6, 8, 3, 9, 8, 6, 5, 3, 3]])
    w = np.array([2.5, 2.5, 0, 0, 0, 0.1, 0, 2.5, 0, 1, 2.5, 1, 2.5, 0.1, 0, 1, 2.5, 1, 0.1, 1])
    spec = TallySpec("sums", (Identity(least=0.0),) * 2, frozenset({"log_factorial"}))

    def tally(rows):
        block = Table.from_data(csr_array(x[rows])).source
        return Sums.from_rows(block, np.zeros(len(rows), np.intp), w[rows], n_classes=1, spec=spec)

    for _ in range(200):
        left = tally(np.arange(20))
        for i in rng.permutation(20):
            left = left - tally(np.array([i]))
        assert not left.n.any()


@pytest.mark.parametrize("seed", range(40))
def test_the_last_row_of_all_has_no_spread_that_could_be_lost(seed):
    """What rounding leaves of the spread of one row is none, and its fourth moments need not be known."""
    rng = np.random.default_rng(seed)
    values, weight = rng.normal(0.0, 1e-3, 14), rng.choice([0.1, 1.0, 2.5], 14)
    values[-1], weight[-2:] = 4e-5, [0.05, 1.0]
    spec = TallySpec("comoments", (Identity(),), frozenset({"fourth"}))
    one = [CoMoments.from_rows(values[[[i]]], np.zeros(1, int), weight[[i]], n_classes=1, spec=spec) for i in range(14)]
    left = sum(one[1:], one[0])
    for part in one[:-1]:
        left = left - part
    assert left.weight.item() == pytest.approx(1.0)
    assert left.mean.item() == pytest.approx(values[-1])


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "through arrays"])
@pytest.mark.parametrize("kind", KINDS)
def test_removing_two_huge_values_in_turn_is_exact_or_refused(kind, kept):
    """The first may hide behind the second what it took with it: then removing the second is refused."""
    X, y = two_classes(200, 2)
    X = np.abs(X)
    alone, spec = count(kind, X, y), TallySpec.from_encoding(KINDS[kind], Identity(), 2)
    outcomes = set()
    for first, second in [(1e12, 1e9), (1e20, 1e15), (1e26, 1e12), (1e36, 1e18), (1e44, 1e27), (1e45, 1e40)]:
        one, two = (count(kind, np.array([[1.0, value]]), np.array([0])) for value in (first, second))
        left = alone + one + two
        try:
            for gone in (one, two):
                left = left - gone
                left = kind.from_arrays(left.arrays() | left.rounding_residuals(), spec) if kept else left
                left = left.remap(np.array([0, 1]), 2).scale(1.0)
        except NotCountedError as error:
            outcomes.add(("refused", error.cell))
            continue
        outcomes.add(("exact", None))
        for name, state in alone.arrays().items():
            np.testing.assert_allclose(left.arrays()[name], state, rtol=1e-5, atol=1e-9, err_msg=f"{first} {second}")
    assert outcomes == {("refused", (0, 1)), ("exact", None)}


def test_what_rounding_left_is_kept_in_files(tmp_path):
    X, y = two_classes(200, 1)
    rows = {"a": np.append(X[:, 0], [1e35, 1e18])}
    model = cd.NaiveBayes("gaussian").fit(rows, [*y, 0, 0]).forget({"a": [1e35]}, [0])
    model.save(tmp_path / "m")
    merged = cd.load(tmp_path / "m") + cd.NaiveBayes("gaussian").fit({"a": X[:, 0]}, y)
    for again in (model, cd.load(tmp_path / "m"), merged):
        with pytest.raises(NotCountedError) as caught:
            again.forget({"a": [1e18]}, [0])
        assert caught.value.column == "a"


def test_an_amount_that_is_exact_beside_another_is_not_lost():
    x = np.array([0.5, 1.5, 2.5, 1e15, 4.0])
    y = np.array(["n", "n", "n", "n", "y"])
    model = cd.NaiveBayes("exponential").fit({"x": x}, y).forget({"x": [1e15]}, ["n"])
    assert model.counts_.tallies[0].total[:, 0].tolist() == [4.5, 4.0]


def test_sparse_counts_that_were_lost_beside_another_are_refused():
    X, y = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 4.0], [1e17, 1.0]]), np.array([0, 0, 1, 0])
    model = cd.NaiveBayes("multinomial").fit(csr_array(X), y)
    with pytest.raises(NotCountedError) as caught:
        model.forget(csr_array(X[3:]), y[3:])
    assert caught.value.column == 0
