"""Schema: what a column is taken for when nobody says."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from candide.data.column_types import infer_column, infer_columns
from candide.data.table import Table


def kinds(data):
    return {column.name: column.kind for column in infer_columns(Table.from_data(data))}


PROSE = [f"a tale of city number {i} and of all who lived there" for i in range(40)]


def _cells(*values):
    """A column each of whose cells is one of the values, arrays not spread out."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1.5, 2.0], "number"),
        ([1, 2, None], "number"),
        ([0, 1, None, 1], "category"),
        ([0.0, 1.0, np.nan], "category"),
        ([0, 0, 0], "category"),
        ([0, 1, 2], "number"),
        ([True, False], "category"),
        ([True, None], "category"),
        (["1", "2"], "category"),
        ([1, "a"], "category"),
        ([None, None], "category"),
        ([], "number"),
        (np.array(["a"]), "category"),
        (np.array(["2020-01-01", "NaT"], "M8[s]"), "date"),
        (pd.Series([3, 4, 3]).astype("category"), "category"),
        (np.array([1, 0] * 5000 + [2]), "whole"),  # the exception comes late
        (np.resize(np.arange(20), 100), "whole"),  # amounts or codes: both are counted
        (np.resize(np.arange(20), 99), "number"),  # too few rows of each
        (np.resize(np.arange(21), 2100), "number"),
        (np.resize([1.5, 2.0, 3.0], 100), "number"),
        (np.array([1.0, np.nan] * 5000), "category"),
        (np.arange(100, 140), "identifier"),
        (np.arange(10), "number"),
        ([f"u{i}" for i in range(40)], "identifier"),
        (["cook", "smith"] * 20, "category"),
        (PROSE, "text"),
        (PROSE[:10], "text"),
        (PROSE[:9], "category"),  # as many answers a question may have
        (PROSE * 2, "text"),
        (PROSE * 3, "category"),
        (PROSE[:12] * 20, "category"),
        ([f"the title {i}" for i in range(40)], "identifier"),
        ([f"{i} north road" for i in range(40)] * 2, "category"),
        (["".join(chr(0x4E00 + (i * 7 + j * 13) % 500) for j in range(8)) for i in range(40)], "text"),
        (["".join(chr(0x4E00 + (i * 7 + j * 13) % 500) for j in range(3)) for i in range(40)], "identifier"),  # names
        ([f"https://example.org/a/long/path/{i}?with=more" for i in range(40)], "identifier"),
        ([[1, 2], [3]], "nested"),
        (_cells(np.array([1.0, 2.0]), None, np.array([3.0])), "nested"),
        (_cells(np.array([1.0]), np.array([2.0])), "nested"),
        (_cells(np.array([]), np.array([2.0, 1.0])), "nested"),
    ],
)
def test_kind_of_one_column(column, kind):
    assert kinds(pd.DataFrame({"x": column})) == {"x": kind}
    if not isinstance(column, pd.Series):
        assert kinds({"x": column}) == {"x": kind}


@pytest.mark.parametrize("name", ["id", "ID", "user_id", "user id", "User-Id"])
def test_whole_numbers_named_as_identifiers(name):
    values = np.random.default_rng(0).permutation(50) * 3
    assert kinds({name: values, "paid": values}) == {name: "identifier", "paid": "number"}
    assert kinds({name: values // 6}) == {name: "number"}  # not all different


def test_columns_without_a_name_are_never_left_out():
    array = np.column_stack([np.arange(40.0), np.arange(40.0) * 2])
    assert kinds(array) == {0: "number", 1: "number"}


def test_dates_of_every_frame():
    dates = [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)]
    for data in (pa.table({"d": dates}), pl.DataFrame({"d": dates}), pd.DataFrame({"d": pd.to_datetime(dates)})):
        assert kinds(data) == {"d": "date"}


def test_arrays_and_frames_agree():
    array = np.column_stack([np.arange(6.0), [0, 1, 0, 1, np.nan, 0], np.full(6, np.nan), np.ones(6)])
    assert kinds(array) == {0: "number", 1: "category", 2: "number", 3: "category"}
    assert kinds(pd.DataFrame(array)) == kinds(array)
    assert kinds(np.ones((2, 1), bool)) == {0: "category"}


def test_a_sparse_matrix_holds_counts():
    assert kinds(sp.csr_array(np.eye(2))) == {0: "count", 1: "count"}


def test_text_is_one_kind_whatever_holds_it():
    for values in (PROSE, PROSE[:9], PROSE * 2, PROSE * 3, PROSE[:12] * 20, [*PROSE, None, None]):
        objects, arrow = np.array(values, object), pa.array(values)
        held = [objects, arrow, arrow.cast(pa.large_string()), arrow.dictionary_encode()]
        held += [] if None in values else [np.array(values), np.array(values, "S")]
        assert len({infer_column("x", one) for one in held}) == 1
    assert infer_column(0, np.array(PROSE)).kind == "category"  # without a name


def test_what_may_be_another_kind_has_a_note():
    doubt = {"text": PROSE * 2, "category": PROSE * 3, "identifier": [f"the title {i}" for i in range(40)]}
    assert {kind: infer_column("x", pa.array(values)).alternative for kind, values in doubt.items()} == {
        "text": "category",
        "category": "text",
        "identifier": "text",
    }
    plain = PROSE, PROSE[:5] * 20, PROSE * 10, [f"u{i}" for i in range(40)], ["cook", "smith"] * 20
    assert not any(infer_column("x", pa.array(values)).alternative for values in plain)
