"""Odd input is read for what it is, or ends in an error of Candide's that names the column; in no other library's."""

import copy
import pickle
import sys
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import candide as cd
from candide.data.notes import DataWarning
from candide.errors import InputError

Y = ["a", "b"] * 4
NESTED = {
    "list": pa.array([[1, 2], None, [], [3]] * 2),
    "fixed list": pa.array([[1, 2]] * 8, pa.list_(pa.int32(), 2)),
    "structure": pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}] * 2),
    "map": pa.array([[("k", 1)], None, [], [("z", 3)]] * 2, pa.map_(pa.string(), pa.int64())),
}
PLAIN = {
    "half": pa.array(np.arange(8), pa.float16()),
    "wide decimal": pa.array([Decimal(i) for i in range(8)], pa.decimal256(50, 2)),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4, 8], pa.int32()), pa.array([1.0, 2.0])),
}


def entry_points(column, path):
    """Ways to fit a table with such a column, each from the event models of the columns."""
    table = pa.table({"x": [1.0, 2.0, 8.0, 9.0] * 2, "v": column})
    labelled = table.append_column("y", pa.array(Y))
    yield lambda events: cd.NaiveBayes(events).fit(table, Y)
    yield lambda events: cd.NaiveBayes(events).fit(dict(zip(table.column_names, table.columns, strict=True)), Y)
    yield lambda events: cd.fit(labelled, "y", events=events, model="naive")
    yield lambda events: cd.fit(
        dict(zip(labelled.column_names, labelled.columns, strict=True)), "y", events=events, model="naive"
    )
    try:
        pq.write_table(labelled, path / "rows.parquet")
    except pa.ArrowNotImplementedError:  # runs
        return
    yield lambda events: cd.fit(path / "rows.parquet", "y", events=events, model="naive")


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.filterwarnings("ignore:column 'v'")
def test_a_column_of_lists_is_left_out_and_cannot_be_asked_for(kind, tmp_path):
    for fit in entry_points(NESTED[kind], tmp_path):
        assert fit("auto").counts_.plan.columns == ("x",)
        for event in ("categorical", "gaussian"):
            with pytest.raises(InputError) as refused:
                fit({"v": event})
            assert refused.value.column == "v"


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.filterwarnings("ignore:column 'v'")
def test_lists_are_left_out_beside_categories_of_many_rows(kind, tmp_path):
    rows = {"v": pa.chunked_array([NESTED[kind]] * 15), "c": ["x", "y", "z", "x"] * 30, "y": ["a", "b"] * 60}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    for data in (tmp_path / "rows.parquet", pa.table(rows)):
        assert cd.fit(data, "y", model="naive").counts_.plan.columns == ("c",)
        assert cd.fit(data, "y").counts_.plan.columns == ("c",)
        assert cd.check_data(data, "y").counts.plan.columns == ("c",)
    assert cd.NaiveBayes().fit(pa.table(rows).drop(["y"]), rows["y"]).counts_.plan.columns == ("c",)


def test_lists_in_memory_are_left_out_with_a_note():
    with pytest.warns(DataWarning, match="column 'v' is left out"):
        model = cd.BayesClassifier().fit({"v": [["a"], ["b"]] * 80, "x": np.arange(160.0) ** 2}, ["a", "b"] * 80)
    assert model.counts_.plan.columns == ("x",)


def test_intervals_are_categories_and_sparse_columns_are_dense():
    cut, y = pd.cut(np.r_[np.arange(79.0), np.nan], 3), np.array(["a", "b"] * 40)
    numbers = [0, 1.5, 2, np.nan] * 20
    odd = {"cut": cut, "interval": pd.arrays.IntervalArray(cut), "sparse": pd.arrays.SparseArray(numbers)}
    text = [None if pd.isna(value) else str(value) for value in cut]
    plain = {"cut": text, "interval": text, "sparse": numbers, "mixed": ["x", 1] * 40}
    frame = pd.DataFrame({**odd, "mixed": plain["mixed"]})
    frame.index += 5
    expected = cd.NaiveBayes().fit(plain, y).predict_proba(plain)
    models = [cd.NaiveBayes().fit(frame, y), cd.NaiveBayes().fit({**odd, "mixed": plain["mixed"]}, y)]
    models += [
        cd.fit(data, "y", model="naive") for data in (frame.assign(y=y), {**odd, "mixed": plain["mixed"], "y": y})
    ]
    for model in models:
        for rows in (frame, plain):
            np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=1e-9)
    assert cd.fit(frame, "cut").classes_.tolist() == sorted(set(text) - {None})


def test_the_index_of_a_frame_is_not_a_column():
    frame = pd.DataFrame({"month": pd.period_range("2020-01", periods=40, freq="M"), "y": ["a", "b"] * 20})
    assert "__index_level_0__" not in cd.fit(frame[frame.index % 3 > 0], "y", model="naive").counts_.plan.columns


def test_text_of_numpy_is_text():
    text = np.array(["x", "y", "x", None] * 10, np.dtypes.StringDType(na_object=None))
    plain, y = text.astype(object), ["a", "b"] * 20
    expected = cd.NaiveBayes().fit({"v": plain}, y).predict_proba({"v": plain})
    for rows in ({"v": text}, text[:, None]):
        np.testing.assert_array_equal(cd.NaiveBayes().fit(rows, y).predict_proba(rows), expected)
    cd.BayesClassifier().fit({"v": text}, y)


@pytest.mark.parametrize("kind", PLAIN)
def test_numbers_are_read_in_whatever_type_they_come(kind, tmp_path):
    expected = cd.NaiveBayes("gaussian").fit({"x": [1.0, 2.0, 8.0, 9.0] * 2, "v": PLAIN[kind].to_pylist()}, Y)
    for fit in entry_points(PLAIN[kind], tmp_path):
        model = fit({"x": "gaussian", "v": "gaussian"})
        [tally], [wanted] = model.counts_.tallies, expected.counts_.tallies
        assert np.allclose(tally.mean, wanted.mean, rtol=1e-12)


def test_drop_ins_take_a_table_of_numbers_and_name_what_is_none():
    numbers = pa.table({"x": [1.0, 2.0, 8.0, 9.0] * 2, "v": PLAIN["wide decimal"]})
    assert (
        cd.GaussianNB().fit(numbers, Y).theta_.tolist()
        == cd.GaussianNB().fit(np.column_stack([[1.0, 2.0, 8.0, 9.0] * 2, np.arange(8.0)]), Y).theta_.tolist()
    )
    for column in (*NESTED.values(), pa.array(Y), pa.array([b"x"] * 8)):
        for classifier in (cd.GaussianNB, cd.MultinomialNB, cd.CategoricalNB):
            with pytest.raises(InputError):
                classifier().fit(pa.table({"v": column}), Y)


@pytest.mark.parametrize("n", [-1, 1.5, "3", None, True])
def test_a_sample_is_of_a_number_of_rows(n):
    model = cd.NaiveBayes().fit({"x": [1.0, 2.0, 8.0, 9.0]}, list("aabb"))
    with pytest.raises(InputError) as refused:
        model.sample(n)
    assert refused.value.value == n
    assert len(model.sample(0)[1]) == 0


def test_where_no_term_is_known_documents_are_empty():
    model = cd.TextNB(min_count=100).fit(["foo bar", "baz"], ["a", "b"])
    assert model.sample(3, random_state=0)[0] == ["", "", ""]


def test_a_name_that_stands_twice_is_refused_whichever_object_it_is():
    twice = "".join(["v", "w"])
    for data in (
        pd.DataFrame([[1.0, 2.0, "a"], [3.0, 4.0, "b"]], columns=["v", "v", "y"]),
        pa.table([[1.0, 2.0], [3.0, 4.0], ["a", "b"]], names=["vw", twice, "y"]),
        {1: [1.0, 2.0], "1": [3.0, 4.0], "y": ["a", "b"]},
    ):
        with pytest.raises(InputError) as refused:
            cd.fit(data, "y", model="naive")
        assert refused.value.value in ("v", "vw", "1")


def test_a_relation_whose_names_stand_twice_is_read_under_the_names_of_a_query():
    import duckdb

    query = "SELECT * FROM (VALUES (1.5, 4, 'a'), (2.5, 3, 'b'), (3.5, 9, 'a')) t(v, V2, y)"
    query = query.replace("SELECT *", "SELECT v, V2 AS v, y")
    relation = cd.fit(duckdb.connect().sql(query), "y", model="naive")
    assert relation.counts_.plan.columns == cd.fit(query, "y", model="naive").counts_.plan.columns


def test_a_model_is_not_data_and_a_merge_is_of_models(tmp_path):
    path = tmp_path / "m.candide"
    cd.fit({"x": [1.0, 2.0, 8.0, 9.0], "y": list("aabb")}, "y", model="naive").save(path)
    before = path.read_bytes()
    for task in (cd.update_model, cd.forget_rows, cd.predict_table, cd.evaluate):
        with pytest.raises(InputError, match="model"):
            task(path, path)
    for models in ([], path):
        with pytest.raises(InputError):
            cd.merge_models(models)
    assert path.read_bytes() == before


@pytest.mark.parametrize("classifier", [cd.NaiveBayes, cd.GaussianNB])
def test_rows_that_several_threads_count_are_all_counted(classifier):
    model, X, y = classifier(), np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        counting = [
            threading.Thread(target=lambda: [model.partial_fit(X, y, classes=[0, 1]) for _ in range(20)])
            for _ in range(6)
        ]
        for thread in counting:
            thread.start()
        for thread in counting:
            thread.join()
    finally:
        sys.setswitchinterval(every)
    assert model.counts_.n_rows == 12 * 6 * 20
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.partial_fit(X, y).counts_.n_rows == 12 * 6 * 20 + 12
    assert not hasattr(clone(model), "fitted_")


def test_one_value_is_not_a_column_and_text_is_not_a_size():
    with pytest.raises(InputError) as refused:
        cd.fit({"x": 1.5, "y": ["a", "b"]}, "y", model="naive")
    assert refused.value.column == "x"
    with pytest.raises(InputError) as refused:
        cd.fit({"x": [1.5, 2.5], "y": ["a", "b"]}, "y", memory_limit="much", model="naive")
    assert refused.value.value == "much"


@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_an_empty_label_in_memory_is_missing(model):
    rows = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] * 5, "l": ["x", "y", "", "x", "y", "x"] * 5}
    with pytest.warns(DataWarning, match="5 rows have no value of 'l' and were left out"):
        assert cd.fit(rows, "l", model=model).classes_.tolist() == ["x", "y"]
