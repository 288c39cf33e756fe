"""Labels: one ordered set and one code a value, whatever holds the column."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from candide.data.labels import Labels, is_absent, parse_levels
from candide.errors import InputTypeError

integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
floats = st.floats(allow_nan=False)
texts = st.text(max_size=4)
absent = st.sampled_from([None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT")])
mixed = st.lists(integers | floats | texts | st.booleans() | absent, max_size=30)


def by_hand(column, values):
    """Codes by looking every value up in turn."""
    codes = []
    for v in column:
        if v is None or v is pd.NA or v != v:
            codes.append(-1)
        else:
            codes.append(next((i for i, known in enumerate(values) if known == v), len(values)))
    return codes


# Laws ---------------------------------------------------------------------------------------------------------------


@given(mixed)
@example([1, 1.0, True, "1", 0, False, -0.0])
@example([2**53, float(2**53), 2**53 + 1])
def test_encode_then_decode_gives_the_column_back(column):
    labels = Labels.from_values(column)
    codes = labels.encode(column)
    assert codes.tolist() == by_hand(column, labels.values)
    assert (codes < len(labels)).all()
    for value, code in zip(column, codes, strict=True):
        assert is_absent(value) if code < 0 else labels.values[code] == value


@given(mixed, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_rows(column, order):
    labels = Labels.from_values(column)
    order.shuffle(column)
    assert Labels.from_values(column) == labels
    numbers = [v for v in labels.values if not isinstance(v, str)]
    text = [v for v in labels.values if isinstance(v, str)]
    assert list(labels.values) == sorted(numbers) + sorted(text)


@given(mixed, mixed)
def test_a_value_outside_has_the_code_past_the_end(column, others):
    labels = Labels.from_values(column)
    assert labels.encode(others).tolist() == by_hand(others, labels.values)


@given(mixed, mixed, mixed)
def test_union_is_that_of_sets(a, b, c):
    a, b, c = Labels.from_values(a), Labels.from_values(b), Labels.from_values(c)
    both, from_a, from_b = a.union(b)
    assert set(both.values) == {*a.values, *b.values}
    assert both.values == b.union(a)[0].values
    assert a.union(a)[0] == a
    assert a.union(Labels(()))[0] == a
    assert a.union(b)[0].union(c)[0] == a.union(b.union(c)[0])[0]
    for labels, moved in ((a, from_a), (b, from_b)):
        assert moved.dtype == np.intp
        assert [both.values[i] for i in moved] == list(labels.values)


@given(mixed)
def test_the_array_of_values_is_lossless(column):
    labels = Labels.from_values(column)
    assert labels.array.tolist() == list(labels.values)


@given(st.lists(integers, max_size=20), st.lists(integers, max_size=20), st.sampled_from("bhilBHIL"))
def test_integers_of_every_width(known, column, code):
    bounds = np.iinfo(code)
    known, column = ([int(v) % (bounds.max - bounds.min + 1) + bounds.min for v in some] for some in (known, column))
    known, column = np.array(known, code), np.array(column + known, code)
    labels = Labels.from_values(known)
    assert labels.values == tuple(sorted(set(known.tolist())))
    assert labels.encode(column).tolist() == by_hand(column.tolist(), labels.values)


@given(mixed, st.lists(integers, max_size=10), st.lists(st.floats(width=32), max_size=10))
def test_columns_of_one_type_against_labels_of_any(known, whole, real):
    """A typed column and the same values one by one have the same codes."""
    labels = Labels.from_values(known)
    whole = np.array([*whole, *(v for v in known if type(v) is int)], np.int64)
    real = np.array(real + [v for v in known if type(v) is float], np.float64)
    flags = np.array([True, False])
    for column in (whole, real, flags):
        assert labels.encode(column).tolist() == by_hand(column.tolist(), labels.values)


# The same column, however it is held --------------------------------------------------------------------------------

HOLDERS = {
    "numpy-object": lambda v: np.array([*v, None], object)[:-1],
    "tuple": tuple,
    "iterator": lambda v: iter(v),
    "pandas": lambda v: pd.Series(v, index=range(7, 7 + len(v))),
    "pandas-object": lambda v: pd.Series(v, dtype=object),
    "pandas-category": lambda v: pd.Series(pd.Categorical(v)),
    "pandas-index": lambda v: pd.Index(v),
    "polars": lambda v: pl.Series(v, strict=False),
    "arrow": lambda v: pa.array(v),
    "arrow-chunks": lambda v: pa.chunked_array([pa.array(v[:2]), pa.array(v[2:2], pa.array(v).type), pa.array(v[2:])]),
    "arrow-slice": lambda v: pa.array([v[-1], *v, v[0]])[1:-1],
    "arrow-dictionary": lambda v: pa.array(v).dictionary_encode(),
    "arrow-dictionaries": lambda v: pa.chunked_array(
        [pa.array(v[:3]).dictionary_encode(), pa.array(v[3:]).dictionary_encode()]
    ),
}
COLUMNS = {
    "text": ["b", "a", None, "b", "ß", ""],
    "integers": [3, -7, 3, None, 2**40, 0],
    "integers-present": [3, -7, 3, 5, 2**40, 0],
    "floats": [0.5, -1.0, None, 0.5, 1e300, 0.0],
    "booleans": [True, None, False, True, True, None],
    "one-value": [4, 4, 4, 4, 4, 4],
    "dates": [dt.datetime(2020, 1, 2), dt.datetime(1999, 1, 1), None, *[dt.datetime(2020, 1, 2)] * 3],
    "absent": [None, None, None, None, None, None],
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_holder_gives_the_same_labels(holder, column):
    values = COLUMNS[column]
    want = Labels(tuple(sorted({v for v in values if v is not None})))
    assert Labels.from_values(HOLDERS[holder](values)) == want
    assert want.encode(HOLDERS[holder](values)).tolist() == by_hand(values, want.values)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.array([True, False]), (False, True)),
        (np.array([2, 1], np.uint64), (1, 2)),
        (np.array([2**64 - 1, 1, 2**63], np.uint64), (1, 2**63, 2**64 - 1)),
        (np.array([2**64 - 2, 2**64 - 1], np.uint64), (2**64 - 2, 2**64 - 1)),
        (np.array([-128, 127], np.int8), (-128, 127)),
        (np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]), (-(2**63), 2**63 - 1)),
        (np.array([1.5, np.nan, np.inf, -np.inf]), (-math.inf, 1.5, math.inf)),
        (np.array([1e300, 0.0, -0.0, 3.0]), (0.0, 3.0, 1e300)),
        (np.array([0.1, 2.0], np.float32), (0.1, 2.0)),
        (np.array(["b", "a", "b"]), ("a", "b")),
        (np.array([b"b", b"a"]), (b"a", b"b")),
        (np.array(["2020-01-01", "NaT"], "M8[ns]"), (dt.datetime(2020, 1, 1),)),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), (dt.date(2020, 1, 1),)),
        (np.array([], np.int64), ()),
        (np.array([], np.float32), ()),
        (np.array([], object), ()),
        (np.array([np.nan, np.nan]), ()),
        (np.arange(20)[::-2], tuple(range(1, 20, 2))),
    ],
)
def test_arrays_of_every_type(array, values):
    labels = Labels.from_values(array)
    assert labels.values == values
    assert [type(v) for v in labels.values] == [type(v) for v in values]
    assert labels.array.tolist() == list(values)
    back = labels.encode(array)
    given = [v for v in array.astype(array.dtype.str.replace("ns", "us")).tolist() if not is_absent(v)]
    if array.dtype == np.float32:
        given = [float(np.float32(v).astype(str)) for v in given]  # as they are written, not as they are widened
    assert [labels.values[c] for c in back if c >= 0] == given


def test_numpy_scalars_are_the_numbers_they_hold():
    labels = Labels.from_values([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("a"), 2])
    assert labels.values == (0.5, True, 2, 3, "a")
    assert not any(isinstance(v, np.generic) for v in labels.values)
    assert labels.encode([3, 0.5, 1, "a", np.int8(2)]).tolist() == [3, 0, 1, 4, 2]


def test_labels_that_a_type_cannot_hold_match_nothing_in_it():
    labels = Labels.from_values([-1, 2**64 - 1, 2**70, 0.5, 1e300, "a"])
    assert labels.encode(np.array([2**64 - 1, 0, 255], np.uint64)).tolist() == [labels.values.index(2**64 - 1), 6, 6]
    assert labels.encode(np.array([-1, 2**62])).tolist() == [0, 6]
    assert labels.encode(np.array([0.5, -1.0, 2.0**70, np.nan])).tolist() == [1, 0, labels.values.index(2**70), -1]
    assert labels.encode(np.array([0.5, np.inf], np.float32)).tolist()[0] == 1


def test_true_is_one_and_one_is_one_point_nought():
    assert Labels.from_values([True, False]) == Labels.from_values([0, 1]) == Labels.from_values(np.array([0.0, 1.0]))
    both, mine, theirs = Labels.from_values([False, True]).union(Labels.from_values([1, 2]))
    assert (both.values, mine.tolist(), theirs.tolist()) == ((False, True, 2), [0, 1], [1, 2])
    assert both.values[1] is True  # a label keeps the form it was first met in


def test_levels_of_a_dictionary_that_no_row_uses_are_not_seen():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, None]), pa.array(["x", "never", "y"]))
    assert Labels.from_values(column).values == ("x", "y")
    assert Labels.from_values(pd.Series(pd.Categorical(["x"], categories=["x", "never"]))).values == ("x",)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_arrow_text(kind):
    labels = Labels.from_values(pa.array(["b", None, "a"], kind))
    assert labels.values == ("a", "b")
    assert labels.encode(pa.array(["a", "c", None], kind)).tolist() == [0, 2, -1]


def test_no_rows_at_all():
    for column in (
        [],
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
        pl.Series([], dtype=pl.String),
        pd.Series([], dtype=str),
    ):
        assert Labels.from_values(column).values == ()
        assert Labels.from_values(["a"]).encode(column).tolist() == []
        assert Labels(()).encode(["a", None]).tolist() == [0, -1]


def test_what_has_no_levels_is_refused():
    with pytest.raises(InputTypeError, match="plain values"):
        Labels.from_values([[1, 2], [3]])
    with pytest.raises(InputTypeError, match="plain values"):
        Labels.from_values(["a"]).encode([{"a": 1}])
    with pytest.raises(InputTypeError, match="struct"):
        Labels.from_values(pa.array([{"a": 1}]))


# Values that one source writes differently from another ---------------------------------------------------------------

DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12)


@pytest.mark.parametrize(
    ("known", "written", "meant"),
    [
        ((0, 1), ["0", "1", "1.0", "7", "x"], [0, 1, 1, 7, "x"]),
        ((0.5, 1.5), ["0.5", "1.50", "x"], [0.5, 1.5, "x"]),
        ((False, True), ["true", "False", "TRUE", "yes", "N", "perhaps"], [True, False, True, True, False, "perhaps"]),
        (("0", "1"), [0, 1.0, True, 2.5], ["0", "1", "1", "2.5"]),
        (("True", "False"), [True, False], ["True", "False"]),
        ((DAY,), ["2024-02-29", "2024-03-01", NOON, "soon"], [DAY, dt.date(2024, 3, 1), DAY, "soon"]),
        ((NOON,), ["2024-02-29 12:00", DAY], [NOON, dt.datetime(2024, 2, 29)]),
        ((1, "a"), ["1", "a", "b"], [1, "a", "b"]),
        ((), ["a", 1], ["a", 1]),
    ],
)
def test_values_take_the_type_of_the_known(known, written, meant):
    assert Labels(known).match_values(written) == meant


@pytest.mark.parametrize("of", [list, pa.array, lambda v: np.array(v, object)], ids=["list", "arrow", "objects"])
def test_codes_of_what_is_written_differently(of):
    assert Labels((0, 1)).match_codes(of(["1", None, "0", "x", "1"])).tolist() == [1, -1, 0, 2, 1]
    assert Labels(("0", "1")).match_codes(of([1, None, 0, 7, 1])).tolist() == [1, -1, 0, 2, 1]


def test_what_is_known_is_not_changed():
    labels = Labels.from_values([1, "1", "true"])
    assert labels.match_codes(np.array([1, "1", "true", True], object)).tolist() == [0, 1, 2, 0]


def test_codes_of_values_written_in_another_way():
    assert Labels((0, 1)).match_codes(["1", "0", "1.0", None, "x"]).tolist() == [1, 0, 1, -1, 2]
    assert Labels(("1", "1.5", "true")).match_codes([1.0, 1.5, 2]).tolist() == [0, 1, 3]
    assert Labels(("1", "true")).match_codes([True]).tolist() == [1]
    assert Labels(("no", "yes")).match_codes([True, False]).tolist() == [1, 0]
    assert Labels(("1.5", "b")).match_labels(Labels((1.5, 2, "a")))[0].values == ("1.5", "2", "a")


@pytest.mark.parametrize(
    ("levels", "meanings"),
    [
        (["10", "9"], [10, 9]),
        (["01", "2"], ["01", "2"]),
        (["10.0", "9.0"], [10, 9]),
        (["1", "1.0"], ["1", "1.0"]),
        (["True", "False"], [True, False]),
    ],
)
def test_levels_of_text_that_mean_something_else(levels, meanings):
    assert list(parse_levels(levels).values()) == meanings
