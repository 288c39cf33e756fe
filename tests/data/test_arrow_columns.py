"""Arrow columns as ndarrays, by their buffers: what pyarrow's own way gives, which would import pandas."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.data.arrow_columns import arrow_floats, arrow_indices, arrow_numbers

TYPES = [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()]
VALUES = st.lists(st.one_of(st.none(), st.integers(0, 1)), max_size=40)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(chunks=st.lists(VALUES, max_size=3), start=st.integers(0, 5))
def test_numbers_equal_those_of_pyarrow(kind, chunks, start):
    plain = bool if kind == pa.bool_() else int
    arrays = [pa.array([None if value is None else plain(value) for value in some], kind) for some in chunks]
    whole = pa.chunked_array(arrays, kind)
    for column in (whole, whole.slice(start), *arrays, *(array.slice(start) for array in arrays)):
        want = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
        if kind == pa.bool_() and column.null_count:
            want = np.array([np.nan if v is None else float(v) for v in want])
        found = arrow_numbers(column)
        np.testing.assert_array_equal(found, want)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(arrow_floats(column), want.astype(np.float64))
        if pa.types.is_integer(kind):
            filled = arrow_numbers(column, absent=7)
            assert filled.tolist() == [7 if v is None else v for v in column.to_pylist()]
            assert filled.dtype == kind.to_pandas_dtype()


def test_numbers_without_gaps_are_not_copied():
    column = pa.array(np.arange(9.0))
    assert np.shares_memory(arrow_numbers(column), column.to_numpy())
    assert np.shares_memory(arrow_numbers(pa.chunked_array([column.slice(3)])), column.to_numpy())


def test_indices_take_rows():
    rows = np.array([4, 0, 2])
    assert pa.array(list("abcde")).take(arrow_indices(rows[::-1])).to_pylist() == ["c", "a", "e"]
    assert len(arrow_indices(np.empty(0, np.intp))) == 0
