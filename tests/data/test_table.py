"""Table: the same values from every holder of rows, without needless copies, and errors that say where."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from candide.data.blocks import Csr
from candide.data.labels import Labels, is_absent
from candide.data.table import Table
from candide.errors import InputError, InputTypeError

COLUMNS = {
    "whole": [3, -1, 2, 7],
    "gaps": [3, None, 2, 7],
    "real": [0.5, None, -1e300, 2.0],
    "flag": [True, False, True, True],
    "perhaps": [True, None, False, True],
    "text": ["b", None, "", "b"],
    "date": [dt.date(2020, 1, 2), None, dt.date(1999, 1, 1), dt.date(2020, 1, 2)],
    "price": [Decimal("1.50"), None, Decimal("-2.25"), Decimal("0")],
    "nothing": [None, None, None, None],
}
DAYS = [18263.0, np.nan, 10592.0, 18263.0]  # of the dates, since 1970
NUMERIC = ("whole", "gaps", "real", "flag", "perhaps", "price", "nothing")


class Stream:
    """Anything that speaks the Arrow stream, and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def arrow():
    return pa.table(COLUMNS)


HOLDERS = {
    "mapping": lambda: COLUMNS,
    "mapping-of-arrays": lambda: {name: np.array(v, object) for name, v in COLUMNS.items()},
    "mapping-of-arrow": lambda: {name: pa.array(v) for name, v in COLUMNS.items()},
    "mapping-of-polars": lambda: {name: pl.Series(v) for name, v in COLUMNS.items()},
    "mapping-of-pandas": lambda: {name: pd.Series(v) for name, v in COLUMNS.items()},
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas-nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas-arrow": lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas-categories": lambda: pd.DataFrame(COLUMNS).astype({"text": "category", "flag": "category"}),
    "pandas-object": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars-categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("text").cast(pl.Categorical)),
    "polars-chunks": lambda: pl.concat([pl.DataFrame(COLUMNS)[:1], pl.DataFrame(COLUMNS)[1:]], rechunk=False),
    "arrow": arrow,
    "arrow-chunks": lambda: pa.concat_tables([arrow()[:3], arrow()[3:]]),
    "arrow-batch": lambda: arrow().to_batches()[0],
    "arrow-stream": lambda: Stream(arrow()),
    "polars-stream": lambda: Stream(pl.DataFrame(COLUMNS)),
    "table": lambda: Table.from_data(COLUMNS),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_holder_gives_the_same_values(holder):
    table = Table.from_data(HOLDERS[holder]())
    assert table.names == tuple(COLUMNS)
    assert table.n_rows == 4
    numbers = table.numbers(NUMERIC)
    want = np.array([[np.nan if v is None else float(v) for v in COLUMNS[name]] for name in NUMERIC]).T
    np.testing.assert_array_equal(numbers, want)
    for name in ("text", "perhaps", "flag", "whole"):
        levels = Labels(tuple(sorted({v for v in COLUMNS[name] if v is not None})))
        assert Labels.from_values(table.column(name)) == levels
        want = [-1 if v is None else levels.values.index(v) for v in COLUMNS[name]]
        assert levels.encode(table.column(name)).tolist() == want
    assert len(Labels.from_values(table.column("date"))) == 2
    if not isinstance(table.column("date"), np.ndarray):  # a list of dates is a list of objects
        np.testing.assert_array_equal(table.numbers(("date",))[:, 0], DAYS)
    assert len(Labels.from_values(table.column("nothing"))) == 0


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
def test_an_array_is_not_copied(dtype):
    array = np.ones((5, 3), dtype)
    for X in (array, np.asfortranarray(array), array[::2, ::-1]):
        block = Table.from_data(X).numbers((0, 1, 2))
        assert np.shares_memory(block, X)
        assert (block.dtype, block.strides) == (X.dtype, X.strides)
    assert Table.from_data(array).numbers((2, 0)).dtype == array.dtype


def test_numbers_of_a_frame_are_not_copied_where_they_need_not_be():
    array = np.random.default_rng(0).normal(size=(50, 4))
    frame = pd.DataFrame(array, columns=list("abcd"), copy=False)
    for names in (("a", "b", "c", "d"), ("b", "c"), ("d", "b"), ("c",)):
        block = Table.from_data(frame).numbers(names)
        assert np.shares_memory(block, array)
        np.testing.assert_array_equal(block, frame[list(names)].to_numpy())
    for names in (("a", "b", "d"), ("a", "c", "b")):  # unevenly spaced
        np.testing.assert_array_equal(Table.from_data(frame).numbers(names), frame[list(names)].to_numpy())
    column = pa.array(array[:, 0].copy())
    assert np.shares_memory(Table.from_data(pa.table({"a": column})).numbers(("a",)), column.to_numpy())
    series = pl.Series(array[:, 0])
    assert np.shares_memory(Table.from_data(pl.DataFrame({"a": series})).numbers(("a",)), series.to_numpy())


def test_columns_of_two_frames_side_by_side_are_not_taken_for_one():
    a, b = np.arange(6.0).reshape(3, 2), np.arange(10.0, 16.0).reshape(3, 2)
    table = Table.from_data({"x": a[:, 0], "y": b[:, 1], "z": a[:, 1]})
    np.testing.assert_array_equal(table.numbers(("x", "y", "z")), np.column_stack([a[:, 0], b[:, 1], a[:, 1]]))
    block = Table.from_data({"x": a[:, 0], "y": b[:, 0]}).numbers(("x", "y"))
    assert not np.shares_memory(block, a)  # a view would not keep the other's memory alive
    np.testing.assert_array_equal(block, np.column_stack([a[:, 0], b[:, 0]]))
    table = Table.from_data({"x": a[:, 0], "y": a[:, 0], "z": a[:, 0]})
    np.testing.assert_array_equal(table.numbers(("x", "y", "z")), np.column_stack([a[:, 0]] * 3))


@pytest.mark.parametrize(
    "values",
    [
        ["b", None, "a", float("nan"), "b"],
        [3, None, 2**60, 3],
        [1.5, None, float("nan"), 1.5],
        [True, None, False],
        [dt.date(2024, 2, 29), None],
        [Decimal("1.25"), None],
        ["a", 1, None, True],
        [None, None],
    ],
)
def test_objects_of_a_frame_are_the_same_in_many_rows_as_in_few(values):
    """Whether each is read for itself, or once for all rows that have it."""
    few, many = (Table.from_data(pd.DataFrame({"x": pd.Series(values * n, dtype=object)})).column("x") for n in (1, 20))
    once, often = (column.to_pylist() if hasattr(column, "to_pylist") else column.tolist() for column in (few, many))
    assert (type(few), getattr(few, "type", None)) == (type(many), getattr(many, "type", None))
    assert [None if is_absent(v) else v for v in often] == [None if is_absent(v) else v for v in once] * 20


def test_float32_stays_float32():
    frame = pd.DataFrame({"a": np.array([1, np.nan], np.float32), "b": np.array([3, 4], np.float32)})
    assert Table.from_data(frame).numbers(("a", "b")).dtype == np.float32
    assert Table.from_data(pl.from_pandas(frame)).numbers(("b", "a")).dtype == np.float32


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.csr_matrix, sp.dok_array])
def test_sparse_matrices(kind):
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    table = Table.from_data(kind(dense))
    block = table.numbers((0, 1, 2))
    assert isinstance(block, Csr)
    assert table.is_sparse
    np.testing.assert_array_equal(sp.csr_array((block.data, block.indices, block.indptr), block.shape).toarray(), dense)


def test_values_stored_twice_are_one_value():
    matrix = sp.csr_array((np.array([0.3, 0.4, 1.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    block = Table.from_data(matrix).numbers((0, 1))
    assert sorted(block.data.tolist()) == [0.7, 1.0]
    assert matrix.nnz == 3  # the caller's matrix stays as it was


def test_numbers_beside_text_keep_their_type():
    table = Table.from_data([[1, "a"], [2, "b"], [None, "a"]])
    assert Labels.from_values(table.column(1)).values == ("a", "b")
    np.testing.assert_array_equal(table.numbers((0,)), [[1.0], [2.0], [np.nan]])


def test_masked_values_are_absent():
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(Table.from_data(masked).numbers((0, 1)), [[1.0, np.nan], [3.0, 4.0]])


@pytest.mark.parametrize("dtype", [">f8", ">i4", "f2", np.longdouble, "<f4"])
def test_unusual_number_types_become_native_ones(dtype):
    block = Table.from_data(np.array([[1, 2], [3, 4]], dtype)).numbers((0, 1))
    assert block.dtype.isnative
    assert block.dtype.itemsize in (4, 8)
    np.testing.assert_array_equal(block, [[1, 2], [3, 4]])


def test_a_matrix_is_read_as_an_array():
    table = Table.from_data(np.matrix([[1.0, 2.0], [3.0, 4.0]]))
    assert table.column(1).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_days_since_1970(unit):
    times = np.array(["1970-01-02T06:00", "NaT", "1969-12-31"], f"M8[{unit}]")
    want = [[1.25], [np.nan], [-1.0]]
    frames = [{"t": times}, pd.DataFrame({"t": times}), pd.DataFrame({"t": pd.Series(times).dt.tz_localize("UTC")})]
    polars = pl.DataFrame({"t": pl.Series(times.astype("M8[us]"))})  # has no seconds
    for data in (*frames, polars, pa.table({"t": pa.array(times)})):
        np.testing.assert_array_equal(Table.from_data(data).numbers(("t",)), want)
    waits = pa.table({"t": pa.array([dt.timedelta(hours=12), None])})
    np.testing.assert_array_equal(Table.from_data(waits).numbers(("t",)), [[0.5], [np.nan]])


def test_no_columns_and_no_rows():
    assert Table.from_data(np.empty((0, 3))).n_rows == 0
    assert Table.from_data({}).names == ()
    assert Table.from_data(pd.DataFrame(index=range(3))).n_rows == 3
    empty = Table.from_data(pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Float64, "b": pl.String}))
    assert empty.numbers(("a",)).shape == (0, 1)
    assert Labels.from_values(empty.column("b")).values == ()


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda c: {k: np.array(v) for k, v in c.items()}]
)
def test_text_among_numbers_names_column_value_row_and_remedy(make):
    table = Table.from_data(make({"id": ["1", "2", "3"], "age": ["31", "forty", "8"]}))
    with pytest.raises(InputError, match=r"^column 'age' \(row 1\): 'forty' is not a number; ") as error:
        table.numbers(("id", "age"))
    assert (error.value.column, error.value.row, error.value.value) == ("age", 1, "forty")
    assert "categorical" in error.value.remedy


def test_text_among_numbers_in_an_array_of_objects():
    with pytest.raises(InputError) as error:
        Table.from_data([[1, 2], [3, None], [5, "x"]]).numbers((0, 1))
    assert (error.value.column, error.value.row, error.value.value) == (1, 2, "x")


def test_two_columns_of_one_name():
    with pytest.raises(InputError, match=r"same name.*'a'"):
        Table.from_data(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match=r"same name.*'a'"):
        Table.from_data(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (np.zeros(3), r"2-D array.*got 1-D.*Reshape"),
        (np.zeros((2, 2, 2)), r"2-D array.*got 3-D"),
        (np.float64(3.0), r"2-D array.*got 0-D"),
        ([1, 2, 3], r"2-D array.*got 1-D"),
        (pd.Series([1, 2]), r"cannot read rows from Series.*to_frame\(\)"),
        ([[1, 2], [3]], "differ in length"),
        ({"a": [1, 2], "b": [1]}, r"differ in length: \{'a': 2, 'b': 1\}"),
        ({"a": np.zeros((2, 2))}, "column 'a': 2 dimensions"),
        ({"a": 3}, "column 'a': a single int"),
        ({"a": "text"}, "column 'a': a single str"),
        (np.zeros((2, 2), complex), "Complex data not supported"),
        (np.zeros((2, 2), "M8[s]"), "datetime64"),
        (sp.csr_array(np.zeros((2, 2), complex)), "complex"),
        (sp.coo_array(np.zeros(3)), "2 dimensions"),
        ("file.csv", "cannot read rows from str.*predict_table"),
        (3, "cannot read rows from int"),
        (None, "cannot read rows from NoneType"),
        (pl.DataFrame({"a": [1]}).lazy(), r"LazyFrame.*collect\(\)"),
        (pl.Series([1]), "cannot read rows from Series"),
    ],
)
def test_what_is_not_a_table(data, says):
    with pytest.raises(InputError, match=says):
        Table.from_data(data)


def test_sparse_rows_have_no_categories():
    table = Table.from_data(sp.csr_array(np.eye(3)))
    with pytest.raises(InputTypeError, match="sparse"):
        table.column(0)


@pytest.mark.parametrize("names", [(0, 1), (3,), (4, 0, 2), ()])
def test_some_columns_of_sparse_rows(names):
    whole = sp.random_array((7, 5), density=0.4, format="csr", rng=np.random.default_rng(0))
    rows = Table.from_data(whole).numbers(names)
    read = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()
    np.testing.assert_array_equal(read, whole.toarray()[:, list(names)])
