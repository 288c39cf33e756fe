"""Models add and subtract, also through files; what is taken away is as if it had never been there."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import tables
from tests.model_cases import labels_of, mixed

import candide as cd
from candide import store
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError, MergeError, NotCountedError, UnknownNameError
from candide.fit_source import fit_model
from candide.model.counts import align_counts
from candide.model.fitted import FittedModel
from candide.store.update import count_like

EVENTS = {"age": "gaussian", "job": "categorical", "zip": "categorical", "": "poisson", 'odd "name"\n🙂': "categorical"}


def model(rows=slice(None)):
    X = {name: column[rows] for name, column in mixed().items()}
    return cd.NaiveBayes(EVENTS).partial_fit(X, labels_of("str")[rows])


def same(a, b, moments=1e-12):
    """Equal censuses: exactly where counts are counted, to rounding where moments are merged."""
    assert a.plan == b.plan
    assert a.labels == b.labels
    assert a.n_rows == b.n_rows
    np.testing.assert_array_equal(a.class_weight, b.class_weight)
    for x, y in zip(a.tallies, b.tallies, strict=True):
        for name, array in x.arrays().items():
            exact = name in ("counts", "n", "offsets", "total")
            tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": moments, "atol": moments}
            np.testing.assert_allclose(array, y.arrays()[name], **tolerance, err_msg=name)


@given(st.lists(st.integers(1, 59), min_size=1, max_size=5, unique=True))
def test_parts_through_files_add_up_to_the_whole(tmp_path_factory, cuts):
    folder = tmp_path_factory.mktemp("parts")
    edges = [0, *sorted(cuts), 60]
    for i, (a, b) in enumerate(pairwise(edges)):
        model(slice(a, b)).save(folder / f"{i}.candide")
    parts = [cd.load(folder / f"{i}.candide") for i in range(len(edges) - 1)]
    same(sum(parts).counts_, model().counts_)
    same(sum(parts[::-1]).counts_, model().counts_)


def test_a_merged_file_is_the_file_of_the_merged(tmp_path):
    a, b = model(slice(0, 30)), model(slice(30, 60))
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    (a + b).save(tmp_path / "ab")
    (cd.load(tmp_path / "a") + cd.load(tmp_path / "b")).save(tmp_path / "files")
    assert (tmp_path / "ab").read_bytes() == (tmp_path / "files").read_bytes()
    whole = cd.load(tmp_path / "ab") - cd.load(tmp_path / "b")
    np.testing.assert_array_equal(whole.counts_.class_weight, a.counts_.class_weight)


@pytest.fixture(scope="module")
def adult():
    """The Adult census: rows as columns of arrays, the target, and the model of all rows."""
    table = pq.read_table(tables.table("adult_train.parquet"))
    target = table.column_names[-1]
    return table, target, fit_model(table, target, model="naive").fitted


def shards(table, target, whole, n):
    """The censuses of so many random parts of the rows."""
    mixed_up = table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))
    edges = np.sort(np.random.default_rng(1).integers(0, table.num_rows, n - 1)).tolist()
    for start, stop in pairwise([0, *edges, table.num_rows]):
        rows = mixed_up.slice(start, stop - start).combine_chunks()
        if rows.num_rows:
            part = Table.from_data(rows.select(list(whole.counts.plan.columns)))
            yield arrays.count_table(part, rows.column(target), plan=whole.counts.plan.with_levels(part))


def test_a_thousand_shards_of_adult_are_the_whole(adult):
    table, target, whole = adult
    same(reduce(add, shards(table, target, whole, 1000)), whole.counts, moments=1e-9)


def test_unlearning_rows_is_never_having_seen_them(adult):
    table, target, whole = adult
    gone = np.zeros(table.num_rows, bool)
    gone[np.random.default_rng(1).choice(table.num_rows, 1000, replace=False)] = True
    columns = {name: table.column(name) for name in whole.counts.plan.columns}
    y = np.array(table.column(target).to_pylist(), object)

    def rows(mask):
        return {name: column.filter(pa.array(mask)) for name, column in columns.items()}, y[mask]

    events = {name: part.event for part in whole.counts.plan.parts for name in part.columns}
    forgetful = cd.NaiveBayes(events).fit(*rows(np.ones(len(y), bool))).forget(*rows(gone))
    innocent = cd.NaiveBayes(events).fit(*rows(~gone))
    # Levels stay known after the last row that had one is forgotten: both are laid out on the same levels first.
    mine, theirs = align_counts(forgetful.counts_, innocent.counts_)
    assert mine.plan == forgetful.counts_.plan
    same(mine, theirs, moments=1e-9)


def test_a_thousand_rounds_of_learning_and_forgetting_do_not_drift():
    rng = np.random.default_rng(0)
    X, y = rng.normal(1e4, 1.0, (500, 3)), rng.integers(0, 2, 500)
    learner = cd.NaiveBayes("gaussian").fit(X, y)
    start = learner.counts_.tallies[0]
    for _ in range(1000):
        more, labels = rng.normal(1e4 + 50, 20.0, (40, 3)), rng.integers(0, 2, 40)
        learner.partial_fit(more, labels).forget(more, labels)
    end = learner.counts_.tallies[0]
    np.testing.assert_array_equal(end.n, start.n)
    np.testing.assert_allclose(end.mean, start.mean, rtol=1e-6)
    np.testing.assert_allclose(end.m2, start.m2, rtol=1e-6)


def test_forgetting_lets_every_row_count_less():
    X, y = mixed(), labels_of("str")
    half = model().scale(0.5)
    weighted = cd.NaiveBayes(EVENTS).fit(X, y, sample_weight=np.full(len(y), 0.5))
    for a, b in zip(half.counts_.tallies, weighted.counts_.tallies, strict=True):
        for name, array in a.arrays().items():
            np.testing.assert_allclose(array, b.arrays()[name], rtol=1e-12, err_msg=name)
    with pytest.raises(InputError, match="not a weight"):
        model().scale(-1)


def test_unlearn_with_weights():
    X, y = mixed(), labels_of("str")
    weight = np.random.default_rng(0).random(len(y))
    left = cd.NaiveBayes(EVENTS).fit(X, y, sample_weight=weight)
    left.forget({n: c[:20] for n, c in X.items()}, y[:20], sample_weight=weight[:20])
    rest = cd.NaiveBayes(EVENTS).fit({n: c[20:] for n, c in X.items()}, y[20:], sample_weight=weight[20:])
    np.testing.assert_allclose(left.counts_.class_weight, rest.counts_.class_weight)


@pytest.mark.parametrize(
    ("rows", "labels", "complaint"),
    [
        ({"age": [40.0], "job": ["cook"]}, ["unheard"], "class 'unheard' was never counted"),
        ({"age": [40.0], "job": ["pilot"]}, ["apple"], "column 'job': class 'apple', level 'pilot': more is removed"),
        ({"age": [1e6], "job": ["cook"]}, ["apple"], "column 'age': class 'apple': the values removed were never"),
    ],
)
def test_what_was_never_counted_cannot_be_taken_away(rows, labels, complaint):
    whole = cd.NaiveBayes({"age": "gaussian", "job": "categorical"}).fit(
        {"age": [30.0, 40.0, 41.0, 50.0], "job": ["cook", "cook", "smith", "smith"]}, ["apple", "apple", "bee", "bee"]
    )
    before = whole.counts_
    with pytest.raises(NotCountedError, match=complaint):
        whole.forget(rows, labels)
    assert whole.counts_ is before


def test_models_that_count_differently_do_not_merge():
    X, y = {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}, ["p", "q", "p"]
    one = cd.NaiveBayes().fit(X, y)
    with pytest.raises(MergeError, match=r"only left \['b'\], only right \['c'\]"):
        one + cd.NaiveBayes().fit({"a": X["a"], "c": X["b"]}, y)
    with pytest.raises(MergeError, match=r"(?s)Gaussian.*Poisson.*same events"):
        one + cd.NaiveBayes({"a": "poisson"}).fit(X, y)


def test_counting_like_a_model_spells_levels_as_it_does(tmp_path):
    (tmp_path / "a.csv").write_text("age,floor,flag,y\n31,1,true,0\n40,2,false,1\n22,1,true,0\n35,3,false,1\n")
    (tmp_path / "b.csv").write_text("y,flag,floor,age\n1,true,2,33\n0,false,7,\n")
    events = {"floor": "categorical", "flag": "categorical"}
    fitted = fit_model(str(tmp_path / "a.csv"), "y", events=events, model="naive").fitted
    more = count_like(fitted, str(tmp_path / "b.csv"))
    frame = {"age": [33.0, None], "floor": ["2", "7"], "flag": [True, False], "y": ["1", "0"]}
    same(more, count_like(fitted, frame))
    whole = fitted.counts + more
    assert whole.labels.values == fitted.labels.values
    at = {part.columns[0] if len(part.columns) == 1 else part.columns: part for part in whole.plan.parts}
    levels = dict(zip(at[("floor", "flag")].columns, at[("floor", "flag")].levels, strict=True))
    assert levels["floor"].values == (1, 2, 3, 7)
    assert len(levels["flag"]) == 2
    with pytest.raises(InputError) as error:
        count_like(fitted, {"floor": [1], "flag": [True], "y": [0]})
    assert error.value.value == ["age"]
    with pytest.raises(UnknownNameError) as error:
        count_like(fitted, {"floor": [1], "flag": [True], "age": [0.0]})
    assert error.value.value == "y"
    with pytest.raises(InputError) as error:
        count_like(FittedModel(fitted.counts), frame)
    assert "--target" in error.value.remedy


def test_weights_are_counted_like_the_model(tmp_path):
    rows = {"age": [1e8, 1e8 + 1, 1e8 + 3, 1e8 + 5], "y": ["a", "b", "a", "b"], "w": [1.0, 2.0, 3.0, 4.0]}
    fitted = fit_model({k: rows[k] for k in ("age", "y")}, "y", events={"age": "gaussian"}, model="naive").fitted
    census = count_like(fitted, rows, weight="w")
    np.testing.assert_allclose(census.class_weight, [4.0, 6.0])
    a = np.average([1e8, 1e8 + 3], weights=[1, 3])
    np.testing.assert_allclose(census.tallies[0].mean[0, 0], a, rtol=1e-15)
    np.testing.assert_allclose(census.tallies[0].m2[0, 0], 1 * (1e8 - a) ** 2 + 3 * (1e8 + 3 - a) ** 2, rtol=1e-7)


def test_update_of_a_file_keeps_its_settings(tmp_path):
    path = tmp_path / "m.candide"
    cd.NaiveBayes(EVENTS, class_prior="uniform", estimate="mean").fit(mixed(), labels_of("str")).save(path)
    store.update_file(path, lambda fitted: fitted + model().fitted_)
    assert store.load(path).settings.class_prior == "uniform"
    assert store.load(path).settings.estimate == "mean"


@pytest.mark.parametrize(("label", "meant"), [("n ", "n"), ("N", "n"), (" p", "p"), ("other", None)])
def test_a_new_class_has_the_known_class_that_it_may_be(label, meant):
    model = cd.NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 4.0]}, ["n", "p", "n", "p"])
    [new] = cd.update_model(model, {"x": [1.0], "y": [label]}, target="y").new_classes
    assert (new.label, new.did_you_mean) == (label, meant)
