"""What every encoding keeps: learning, applying, uniting, naming, and the same in SQL."""

import datetime as dt

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from candide import encoding as encode
from candide.data.table import EncodedColumn
from candide.encoding import CodeMapping, Encoding, Grid, Identity, Log, TransformedEncoding
from candide.encoding.codes import join_cell_names
from candide.encoding.scores import Indicators, NormalScore
from candide.encoding.tokens import Tokens
from candide.errors import InputError, MergeError
from candide.tally import LevelTally, Moments, TallySpec

numbers = st.one_of(st.none(), st.integers(-5, 5), st.floats(-1e6, 1e6, width=32))
values = {
    "numbers": numbers,
    "positive": st.one_of(st.none(), st.floats(1e-3, 1e6)),
    "amounts": st.one_of(st.none(), st.integers(0, 9)),
    "levels": st.one_of(st.none(), st.integers(0, 6), st.text("abc", max_size=2), st.booleans()),
    "texts": st.one_of(st.none(), st.text("ab ", max_size=9)),
}
ENCODINGS = {
    "identity": (Identity(), "numbers"),
    "amounts": (Identity(least=0.0), "amounts"),
    "log": (Log(), "positive"),
    "own": (TransformedEncoding(np.cbrt), "numbers"),
    "threshold": (Grid((0.5,), raw=True), "numbers"),
    "grid": (Grid((-1.0, 0.0, 2.5)), "numbers"),
    "quantiles": (Grid(cells=4), "numbers"),
    "levels": (encode.LevelEncoding(), "levels"),
    "tokens": (Tokens(), "texts"),
}
every_encoding = pytest.mark.parametrize("name", ENCODINGS)
with_levels = pytest.mark.parametrize("name", ["threshold", "grid", "quantiles", "levels"])


def drawn(data, name, min_size=0):
    """An encoding that has learned a column, and that column."""
    encoding, kind = ENCODINGS[name]
    column = data.draw(st.lists(values[kind], min_size=min_size, max_size=30))
    return encoding.learn(column), column


def absent(column):
    return np.array([v is None for v in column], bool)


# Learning and applying ----------------------------------------------------------------------------------------------


@every_encoding
@given(data=st.data())
def test_learning_twice_is_learning_once_and_an_encoding_is_a_value(name, data):
    encoding, column = drawn(data, name)
    assert encoding.learn(column) == encoding == ENCODINGS[name][0].learn(list(reversed(column)))
    assert hash(encoding) == hash(encoding.learn(column))
    assert isinstance(encoding, Encoding)


@every_encoding
@given(data=st.data())
def test_what_is_applied_is_what_the_tally_makes_of_the_block(name, data):
    encoding, column = drawn(data, name)
    if encoding.block_kind == "documents":
        assert len(encoding.apply(column)) == len(column)
        assert encoding.apply(column).absent_mask().tolist() == absent(column).tolist()
        return
    got = encoding.apply(column)
    np.testing.assert_array_equal(got, encoding.tally_values(encoding.read(column)))
    spec = TallySpec("levels" if encoding.n_levels else "moments", (encoding,) * 2)
    block = np.column_stack([encoding.read(column)] * 2)
    np.testing.assert_array_equal(spec.tally_values(block), np.column_stack([got, got]))


@with_levels
@given(data=st.data())
def test_codes_of_what_was_learned_lie_among_the_levels(name, data):
    encoding, column = drawn(data, name)
    codes = encoding.apply(column)
    assert codes.dtype == np.int32
    np.testing.assert_array_equal(codes == -1, absent(column))
    assert codes.max(initial=-1) < max(encoding.n_levels, 1)
    assert len(encoding.level_names()) == encoding.n_levels
    # 1 and "1" are two levels
    assert len(set(encoding.level_names())) == len(encoding.level_names()) or name == "levels"


@pytest.mark.parametrize("name", ["identity", "amounts", "log", "own"])
@given(data=st.data())
def test_absent_numbers_are_nan_and_no_other(name, data):
    encoding, column = drawn(data, name)
    np.testing.assert_array_equal(np.isnan(encoding.apply(column)), absent(column))
    assert encoding.n_levels is None
    assert encoding.level_names() == ()


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcdef")))
def test_an_unseen_level_has_the_code_after_the_last(learned, applied):
    encoding = encode.LevelEncoding().learn(learned)
    unseen = [v not in learned for v in applied]
    np.testing.assert_array_equal(encoding.apply(applied) == encoding.n_levels, unseen)


@with_levels
def test_what_an_engine_has_coded_passes(name):
    encoding = ENCODINGS[name][0].learn([0, 1, 2])
    codes = np.array([1, -1, 0], np.int32)
    assert encoding.read(EncodedColumn(codes)) is codes
    assert len(EncodedColumn(codes)) == 3


def test_columns_come_as_lists_arrays_and_arrow():
    for column in ([1.5, None], np.array([1.5, np.nan]), pa.array([1.5, None]), pa.chunked_array([[1.5], [None]])):
        assert np.isnan(Identity().apply(column)).tolist() == [False, True]
        assert Grid((1.0,)).apply(column).tolist() == [1, -1]
    days = Identity().apply(np.array(["1970-01-03", "NaT"], "M8[D]"))
    np.testing.assert_array_equal(days, [2.0, np.nan])
    assert Identity().read(column := np.arange(3.0)) is column  # as it lies


# Grids --------------------------------------------------------------------------------------------------------------


@given(data=st.data(), cells=st.integers(2, 9))
def test_a_grid_counts_the_edges_below(data, cells):
    column = np.array(data.draw(st.lists(numbers, max_size=60)), float)
    encoding = Grid(cells=cells).learn(column)
    present = column[~np.isnan(column)]
    below = [sum(edge < x for edge in encoding.edges) for x in present]
    np.testing.assert_array_equal(encoding.apply(column)[~np.isnan(column)], below)
    np.testing.assert_array_equal(below, np.searchsorted(encoding.edges, present))
    assert encoding.n_levels <= cells
    if 0 < len(set(present.tolist())) <= cells:  # few values have a cell each
        assert sorted(set(below)) == list(range(len(set(present.tolist()))))


def test_an_edge_lies_midway_between_the_values_it_parts():
    assert Grid().learn([1.5, 2.0, 7.0]).edges == (1.75, 4.5)
    assert Grid().learn([1, 2, 7, 100]).edges == (1.0, 4.0, 53.0)  # whole between whole numbers
    near = np.nextafter(1.0, 2.0)
    assert Grid().learn([1.0, near]).apply([1.0, near]).tolist() == [0, 1]
    assert Grid().learn([-1.7e308, 1.7e308, 1.0]).apply([-1.0, 0.0, 1e307]).tolist() == [1, 1, 1]
    assert Grid(cells=2).learn([0.0, 0.0, 0.0, 1.0, 3.0]).edges == (0.0,)
    assert Grid(cells=2).learn([0.0, 0.0, 0.5, 3.0]).edges == (0.25,)


def test_cells_at_quantiles_hold_as_many_each():
    column = np.random.default_rng(0).lognormal(size=10_001)
    encoding = Grid().learn(column)
    assert encoding.n_levels == 255
    weights = np.bincount(encoding.apply(column))
    assert weights.min() >= 39
    assert weights.max() <= 40


def test_names_have_the_edges():
    assert Grid((27.0, 41.0)).level_names() == ("<= 27", "27 to 41", "> 41")
    assert Grid((0.5,), raw=True).level_names() == ("<= 0.5", "> 0.5")
    assert Grid(()).level_names() == ("any",)
    assert Grid().level_names() == ()
    near = (1.0, 1.0 + 1e-12)
    assert len(set(Grid(near).level_names())) == 3


@given(data=st.data())
def test_a_coarser_grid_codes_by_groups(data):
    encoding, column = drawn(data, "grid")
    group = np.cumsum([0, *data.draw(st.tuples(*[st.integers(0, 1)] * 3))])
    codes = encoding.apply(column)
    np.testing.assert_array_equal(encoding.coarsen(group).apply(column), np.append(group, -1)[codes])


@given(data=st.data(), seed=st.integers(0, 99))
def test_a_tally_of_levels_counts_grids_from_codes_and_grows_coarser_with_them(data, seed):
    grids = [Grid((0.0, 1.0, 2.0)), Grid(cells=3).learn([1, 2, 3, 4, 5]), Grid((2.0,))]
    rng = np.random.default_rng(seed)
    x = rng.choice([np.nan, -1.0, 0.0, 0.5, 1.5, 2.0, 4.0, 9.0], (40, 3))
    y = rng.integers(0, 2, 40)

    def tally(encodings):
        block = np.column_stack([encoding.read(x[:, j]) for j, encoding in enumerate(encodings)])
        return LevelTally.from_rows(block, y, n_classes=2, spec=TallySpec("levels", tuple(encodings)))

    whole = tally(grids)
    assert np.diff(whole.offsets).tolist() == [4, 3, 2]
    for j, grid in enumerate(grids):
        for c in (0, 1):
            codes = grid.apply(x[y == c, j])
            counts = np.bincount(codes[codes >= 0], minlength=grid.n_levels)
            assert whole.select_features(np.array([j])).counts[c].tolist() == counts.tolist()
    groups = [np.cumsum([0, *data.draw(st.tuples(*[st.integers(0, 1)] * (g.n_levels - 1)))]) for g in grids]
    coarse = tally([grid.coarsen(group) for grid, group in zip(grids, groups, strict=True)])
    got = whole.coarsen(groups)
    assert (got.counts.tolist(), got.offsets.tolist()) == (coarse.counts.tolist(), coarse.offsets.tolist())
    assert [whole.locate_cell(cell) for cell in range(9)] == [(j, k) for j, n in enumerate([4, 3, 2]) for k in range(n)]
    one = whole.select_features(np.array([2, 0]))
    assert (one.counts[0].tolist(), one.offsets.tolist()) == (
        [*whole.counts[0, 7:9].tolist(), *whole.counts[0, :4].tolist()],
        [0, 2, 6],
    )


@given(st.lists(numbers, max_size=20))
def test_an_edge_kept_raw_is_counted_as_its_codes_are(column):
    raw, coded = Grid((0.5,), raw=True), Grid((0.5,))
    y = np.zeros(len(column), np.intp)
    a, b = (
        LevelTally.from_rows(encoding.read(column)[:, None], y, n_classes=1, spec=TallySpec("levels", (encoding,)))
        for encoding in (raw, coded)
    )
    assert a.counts.tolist() == b.counts.tolist()


def test_columns_encoded_in_several_ways_are_counted_by_one_tally():
    x = np.array([[1.0, 1.0, 3.0], [np.e, np.e, 7.0]])
    y = np.zeros(2, np.intp)
    tally = Moments.from_rows(
        x, y, n_classes=1, spec=TallySpec("moments", (Identity(), Log(), TransformedEncoding(np.sqrt)))
    )
    np.testing.assert_allclose(tally.mean, [[(1 + np.e) / 2, 0.5, (3**0.5 + 7**0.5) / 2]])
    thresholds = TallySpec("levels", (Grid((1.0,), raw=True), Grid((2.8,), raw=True)))
    assert LevelTally.from_rows(x[:, :2], y, n_classes=1, spec=thresholds).counts.tolist() == [[1.0, 1.0, 2.0, 0.0]]


# Uniting ------------------------------------------------------------------------------------------------------------


@every_encoding
@given(data=st.data())
def test_uniting_with_itself_changes_nothing(name, data):
    encoding, column = drawn(data, name)
    both, mine, theirs = encoding.union(encoding)
    assert both == encoding
    if encoding.block_kind != "documents":
        for move in (mine, theirs):
            np.testing.assert_array_equal(move.apply(encoding.apply(column)), encoding.apply(column))


@given(data=st.data())
def test_codes_move_with_the_united_levels(data):
    (a, left), (b, right) = (drawn(data, "levels") for _ in range(2))
    both, mine, theirs = a.union(b)
    for encoding, column, move in ((a, left, mine), (b, right, theirs)):
        np.testing.assert_array_equal(move.apply(encoding.apply(column)), both.apply(column))
    assert set(both.labels.values) == {*a.labels.values, *b.labels.values}
    assert mine.apply(np.array([a.n_levels, -1])).tolist() == [both.n_levels, -1]  # never met, and absent
    other, back, forth = b.union(a)
    assert other == both
    np.testing.assert_array_equal(back.new_codes, theirs.new_codes)
    np.testing.assert_array_equal(forth.new_codes, mine.new_codes)


@given(data=st.data())
def test_uniting_associates(data):
    a, b, c = (drawn(data, "levels")[0] for _ in range(3))
    assert a.union(b)[0].union(c)[0] == a.union(b.union(c)[0])[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Identity(), Identity(least=0.0)),
        (TransformedEncoding(np.sqrt), TransformedEncoding(np.cbrt)),
        (Grid((1.0,)), Grid((2.0,))),
        (Grid((1.0,)), Grid((1.0,), raw=True)),
        (Tokens(), Tokens(ngrams=(1, 2))),
    ],
)
def test_encodings_that_differ_do_not_unite(one, other):
    with pytest.raises(MergeError):
        one.union(other)


def test_numbers_stay_where_they_are():
    x = np.array([1.5])
    assert CodeMapping().apply(x) is x


# Refusing -----------------------------------------------------------------------------------------------------------


def test_values_that_cannot_be_encoded():
    x = np.array([1.0, 0.0, -1.0, np.nan])
    assert Identity().invalid_mask(x).tolist() == [False] * 4
    assert Identity(least=0.0).invalid_mask(x).tolist() == [False, False, True, False]
    assert Log().invalid_mask(x).tolist() == [False, True, True, False]
    assert (Identity(least=0.0).requirement, Log().requirement) == ("values >= 0", "values > 0")
    with pytest.raises(InputError) as error:
        Log().apply(x)
    assert error.value.value == 0.0
    with pytest.raises(InputError) as error:
        encode.LevelEncoding().learn([1.0, np.inf])
    assert error.value.value == np.inf
    with pytest.raises(InputError) as error:
        Identity().apply(["1", "x"])
    assert (error.value.row, error.value.value) == (1, "x")


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: Grid((2.0, 1.0)), (2.0, 1.0)),
        (lambda: Grid((np.nan,)), (np.nan,)),
        (lambda: Grid((1.0, 2.0), raw=True), (1.0, 2.0)),
        (lambda: Grid(cells=1), 1),
        (lambda: Grid(cells=256), 256),
        (lambda: Grid((1.0, 2.0)).coarsen([0, 2, 3]), (0, 2, 3)),
        (lambda: Grid((1.0, 2.0)).coarsen([0, 1]), (0, 1)),
        (lambda: Grid().apply([1.0]), None),
    ],
)
def test_grids_that_are_none(make, value):
    with pytest.raises(InputError) as error:
        make()
    assert error.value.value == value or error.value.value is value


# SQL ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["identity", "log", "threshold", "grid", "quantiles", "levels"])
@given(data=st.data())
def test_sql_gives_what_apply_gives(name, data):
    encoding, column = drawn(data, name, min_size=1)
    kind = "DOUBLE"
    if name == "levels":
        column = [None if v is None else str(v) for v in column]
        encoding, kind = encode.LevelEncoding().learn(column[: len(column) // 2]), "VARCHAR"
    query = f"SELECT {encoding.sql(exp.column('x'), None).sql('duckdb')} FROM t ORDER BY i"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE t (i INT, x {kind})")
        database.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(column)))
        got = [row[0] for row in database.execute(query).fetchall()]
    want = encoding.apply(column)
    if encoding.n_levels is None:
        np.testing.assert_allclose(np.array(got, float), want, rtol=1e-15)
    else:
        assert got == want.tolist()


def test_what_sql_cannot_express():
    assert Tokens().sql(exp.column("x"), None) is None
    assert TransformedEncoding(np.sqrt).sql(exp.column("x"), None) is None


def test_levels_of_dates_in_sql():
    levels = encode.LevelEncoding().learn([dt.date(2024, 1, 1), dt.date(2024, 2, 1)])
    query = f"SELECT {levels.sql(exp.column('x'), None).sql('duckdb')} FROM (SELECT DATE '2024-02-01' AS x)"
    with duckdb.connect() as database:
        assert database.execute(query).fetchall() == [(1,)]


def test_indicators_know_a_level_however_it_is_written():
    marks = Indicators.from_column([1.5, 2.5, 2.5, 4.0], 9)
    want = marks.read([1.5, 2.5, 4.0, None, 7.0])
    for column in (["1.5", "2.50", "4", None, "seven"], pa.array(["1.5", "2.5", "4.0", None, "7"])):
        np.testing.assert_array_equal(marks.read(column), want)
    days = Indicators.from_column(["2024-01-01", "2024-01-02", "2024-01-02"], 9)
    np.testing.assert_array_equal(days.read([dt.date(2024, 1, 1)]), days.read(["2024-01-01"]))


# Names and scores -----------------------------------------------------------------------------------------------------


def test_edges_are_printed_with_as_many_digits_as_tell_them_apart():
    assert Grid((0.123456, 0.5)).level_names() == ("<= 0.1235", "0.1235 to 0.5", "> 0.5")
    assert Grid((0.57364712, 0.5736491)).level_names()[0] == "<= 0.573647"
    assert Grid((256263.25,)).level_names()[0] == "<= 256263"
    assert Grid((1.5e300,)).level_names()[0] == "<= 1.5e+300"
    assert Grid((19782.0,)).level_names(dates=True) == ("<= 2024-02-29", "> 2024-02-29")


@pytest.mark.parametrize(
    ("first", "last", "joined"),
    [("<= 3", "3 to 7", "<= 7"), ("3 to 7", "7 to 9", "3 to 9"), ("3 to 7", "> 7", "> 3"), ("<= 3", "> 7", "any")],
)
def test_names_of_cells_join(first, last, joined):
    assert join_cell_names(first, last) == joined


def test_levels_of_a_fixed_size_stay_known_below_a_seen_one():
    assert encode.LevelEncoding.from_size(3).retain_levels(np.array([False, True, False])).level_names() == ("0", "1")


def test_normal_scores_are_those_of_ranks_and_decode_to_numbers():
    income = NormalScore().learn([1.0, 2.0, 2.0, 900.0])
    assert income.read([1.0, 2.0, 451.0, None]).round(2).tolist() == [-1.15, 0.0, 0.58, 0.0]
    assert income.decode(np.array([0.0, 9.0])).tolist() == [2.0, 900.0]


def test_indicators_are_standardised_and_0_where_missing():
    jobs = Indicators.from_column(["cook", "smith", "smith", "smith"], max_levels=60)
    assert jobs.levels == ("cook",)
    assert jobs.read(["cook", "smith", None]).round(2).tolist() == [[1.73], [-0.58], [0.0]]
