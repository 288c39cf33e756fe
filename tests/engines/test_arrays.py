"""The array engine refuses what cannot be counted, and says where it is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from candide.data import blocks
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError
from candide.kernels import threads
from candide.model.plan import make_plan


def count(data, events, y=None, weight=None):
    table = Table.from_data(data)
    y = np.arange(table.n_rows) % 2 if y is None else y
    return arrays.count_table(table, y, weight, plan=make_plan(table, events).with_levels(table))


@pytest.fixture(params=[1, 3])
def n_threads(request):
    with threads.force_parts(request.param):
        yield


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("event", ["gaussian", "poisson", "bernoulli", "exponential", "multinomial", "lognormal"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [lambda a: a, lambda a: pd.DataFrame(a, columns=["age", "fare"]), np.float32])
def test_an_infinity_is_named_by_column_and_row(event, bad, make):
    values = np.ones((9, 2))
    values[[5, 7], 1] = bad
    data = make(values)
    column = "'fare'" if isinstance(data, pd.DataFrame) else "1"
    with pytest.raises(InputError, match=rf"column {column}.*row 5"):
        count(data, event)


def test_an_infinity_far_down():
    values = np.ones((11, 3))
    values[9, 2] = np.inf
    with pytest.raises(InputError) as error:
        count(values, "gaussian")
    assert (error.value.column, error.value.row, error.value.value) == (2, 9, np.inf)
    for at_once in (1, 4, 9, 10, 11):
        assert blocks.find_first(values, np.isinf, at_once) == (9, 2, np.inf)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("event", ["multinomial", "bernoulli"])
def test_in_sparse_rows_neither_infinity_nor_nan_is_usable(event, bad):
    dense = np.eye(6)
    dense[4, 2] = bad
    with pytest.raises(InputError, match=r"column 2.*row 4"):
        count(sp.csr_array(dense), event)


@pytest.mark.parametrize("make", [lambda a: a, sp.csr_array])
@pytest.mark.parametrize("event", ["multinomial", "complement"])
def test_a_negative_count_is_named_by_column_and_row(make, event):
    values = np.ones((6, 3))
    values[3, 1] = -2
    with pytest.raises(InputError, match=r"column 1 \(row 3\): negative value -2.*pass values >= 0"):
        count(make(values), event)


def test_what_has_no_logarithm_is_named_by_column_and_row():
    values = np.ones((6, 3))
    values[3, 2] = 0
    with pytest.raises(InputError, match=r"column 2 \(row 3\): value 0 .*logarithm"):
        count(values, "lognormal")


def test_squares_that_overflow():
    with pytest.raises(InputError, match="too large to be added or squared"):
        count([[1e200, 1.0], [-1e200, 2.0], [1e200, 2.0], [1e100, 1.0]], "gaussian")
    assert np.isfinite(count([[1e149, 1.0], [-1e149, 2.0]] * 2, "gaussian").tallies[0].m2).all()


def test_sums_that_overflow():
    with pytest.raises(InputError, match="too large to be added or squared"):
        count([[1.7e308]] * 4, "exponential")


def test_an_infinite_level_is_named():
    with pytest.raises(InputError, match="column 'a': infinity is not a usable level"):
        count({"a": [1.5, np.inf]}, "categorical")


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (["a", None, "b"], "row 1: the label is missing"),
        ([1.0, 2.0, np.nan], "row 2: the label is missing"),
        (["a", "b"], "3 rows but 2 labels"),
        (pl.Series(["a", "b", "c", "d"]), "3 rows but 4 labels"),
    ],
)
def test_labels_that_do_not_fit_the_rows(y, says):
    with pytest.raises(InputError, match=says):
        count(np.ones((3, 1)), "gaussian", y)


def test_no_rows_count_as_nothing():
    for data in (np.empty((0, 2)), {"a": [], "b": []}):
        for event in ("gaussian", "categorical", "multinomial", "bernoulli"):
            census = count(data, event, [])
            assert census.n_rows == 0
            assert census.labels.values == ()
            assert census.tallies[0].pool().arrays()
            whole = count(np.ones((2, 2)) if isinstance(data, np.ndarray) else {"a": [1, 1], "b": [1, 1]}, event)
            assert (whole + census).class_weight.tolist() == (census + whole).class_weight.tolist() == [1.0, 1.0]


def test_absent_values_do_not_stop_the_rest_of_their_row():
    census = count([[1.0, np.nan], [3.0, 5.0]], "gaussian", ["a", "a"])
    assert census.tallies[0].n.tolist() == [[2.0, 1.0]]
    assert census.class_weight.tolist() == [2.0]
