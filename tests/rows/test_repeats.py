"""Equal rows: natural repeats are independent draws, copies are one; folds keep copies together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data import table as real_table

from candide.errors import InputError
from candide.rows.labels import Labels
from candide.rows.quantiles import distinct_numbers, leans_right, nearest
from candide.rows.repeats import DistinctRows, distinct_rows, repeated_rows
from candide.rows.table import Table


def table_of(n, seed, columns=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    job = np.array(["cook", "smith", None], object)[rng.integers(0, 3, n)]
    return {**{f"x{j}": rng.normal(size=n) + y for j in range(columns)}, "job": job}, y


def pick(columns, rows):
    return Table.of({name: column[rows] for name, column in columns.items()})


@pytest.mark.parametrize("times", [2, 3, 10])
def test_copies_of_rows_are_one_draw_each(times):
    columns, y = table_of(60, 0)
    rows = np.repeat(np.arange(60), times)
    found = distinct_rows(pick(columns, rows), y[rows])
    assert len(found) == 60
    np.testing.assert_array_equal(found.frequency, times)
    np.testing.assert_array_equal(found.draws, 1.0)
    np.testing.assert_array_equal(found.copies_by_class(2), times)


def test_rows_of_few_values_repeat_by_chance():
    rng = np.random.default_rng(0)
    bits, y = rng.integers(0, 2, (1000, 3)), rng.integers(0, 2, 1000)
    found = DistinctRows.of(list(bits.T), y)
    assert len(found) == 16
    np.testing.assert_array_equal(found.draws, found.frequency)


def test_whole_numbers_of_one_column_repeat_by_chance_and_measurements_do_not():
    rng = np.random.default_rng(0)
    ages, y = rng.normal(50, 12, 400).round(), np.arange(400) % 2
    assert DistinctRows.of([ages], y).draws.sum() > 0.98 * 400
    sizes, rows = rng.normal(size=300), rng.integers(0, 300, 400)
    assert DistinctRows.of([sizes[rows]], rows % 2).draws.sum() < 0.8 * 400


@pytest.mark.parametrize("levels", [25, 60])
def test_categories_of_one_column_repeat_by_chance(levels):
    rng = np.random.default_rng(0)
    shop = rng.integers(0, levels, 2000)
    y = (rng.random(2000) < np.linspace(0.05, 0.95, levels)[shop]).astype(int)
    found = DistinctRows.of([np.array([f"s{code}" for code in shop], object)], y)
    np.testing.assert_array_equal(found.draws, found.frequency)


def test_columns_that_another_determines_do_not_make_copies():
    rng = np.random.default_rng(0)
    item = rng.integers(0, 120, 1500)
    y = rng.integers(0, 2, 1500)
    columns = [item, rng.uniform(size=120)[item], rng.normal(size=120)[item], item % 7]
    found = DistinctRows.of(columns, y)
    np.testing.assert_array_equal(found.draws, found.frequency)


@pytest.mark.parametrize("copies", [3, 10])
def test_equal_columns_of_few_values_do_not_make_copies(copies):
    rng = np.random.default_rng(0)
    sky = (rng.random(1000) < 0.3).astype(int)
    y = (rng.random(1000) < np.where(sky == 1, 0.5, 0.9)).astype(int)
    found = DistinctRows.of([sky] * copies, y)
    assert len(found) == 4
    np.testing.assert_array_equal(found.draws, found.frequency)


@pytest.mark.parametrize("columns", [5, 10, 16])
def test_columns_that_nearly_agree_do_not_make_copies(columns):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    hidden = (rng.random(1000) < np.where(y == 1, 0.7, 0.3)).astype(int)
    bits = hidden[:, None] ^ (rng.random((1000, columns)) < 0.02)
    assert DistinctRows.of(list(bits.T), y).draws.sum() > 0.95 * 1000


def test_copies_of_rows_of_bits_are_found():
    rng = np.random.default_rng(0)
    bits, y, rows = rng.integers(0, 2, (60, 16)), rng.integers(0, 2, 60), rng.integers(0, 60, 600)
    assert DistinctRows.of(list(bits[rows].T), y[rows]).draws.sum() < 0.2 * 600


def test_weights_that_are_not_whole_count_in_units_of_their_mean():
    rng = np.random.default_rng(0)
    levels, y = rng.integers(0, 3, (300, 3)), rng.integers(0, 2, 300)
    weight = rng.lognormal(0, 0.5, 300)
    one, many = (DistinctRows.of(list(levels.T), y, f * weight).copies_by_class(2) / f for f in (10.0, 1e4))
    np.testing.assert_allclose(one, many, rtol=1e-6)


def test_a_class_that_is_copied_does_not_touch_the_others():
    columns, y = table_of(80, 1)
    rows = np.concatenate([np.arange(80), *[np.flatnonzero(y == 1)] * 4])
    found = distinct_rows(pick(columns, rows), y[rows])
    np.testing.assert_allclose(found.copies_by_class(2), [1.0, 5.0])


def test_a_bootstrap_sample_has_fewer_draws_than_rows():
    columns, y = table_of(400, 2)
    rows = np.random.default_rng(0).integers(0, 400, 400)
    found = distinct_rows(pick(columns, rows), y[rows])
    assert found.draws.sum() < 1.01 * len(np.unique(rows))


def test_real_tables_that_repeat_naturally_are_left_alone():
    for name in ("breast_cancer_wisconsin", "congressional_voting"):
        frame = pd.read_parquet(real_table(f"{name}.parquet"))
        labels = Labels.of(frame["class"])
        found = distinct_rows(Table.of(frame.drop(columns="class")), labels.encode(frame["class"]))
        assert (found.frequency > 1).sum() > 30
        assert found.draws.sum() > 0.93 * len(frame)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 40))
def test_folds_divide_all_weight_and_keep_copies_together(seed, folds, n):
    rng = np.random.default_rng(seed)
    columns, y = table_of(n, seed, columns=1)
    rows = rng.integers(0, n, 3 * n)
    weight = rng.choice([0.5, 1.0, 4.0], 3 * n)
    found = distinct_rows(pick(columns, rows), y[rows], weight)
    at, fold, share = found.folds(folds)
    assert fold.min() >= 0
    assert fold.max() < folds
    np.testing.assert_allclose(np.bincount(at, share, len(found)), found.frequency, rtol=1e-9)
    single = found.draws <= 1.0
    assert (np.bincount(at, minlength=len(found))[single] == 1).all()


def test_a_weight_is_as_many_copies():
    columns, y = table_of(50, 3)
    weight = np.random.default_rng(0).integers(0, 4, 50)
    rows = np.repeat(np.arange(50), weight)
    there = np.flatnonzero(weight)
    copies, weighted = (
        distinct_rows(pick(columns, rows), y[rows]),
        distinct_rows(pick(columns, there), y[there], weight[there].astype(float)),
    )
    for name in ("frequency", "draws", "order", "y"):
        np.testing.assert_array_equal(getattr(copies, name), getattr(weighted, name))


def test_the_order_of_folds_depends_on_contents_alone():
    columns, y = table_of(70, 4)
    rng = np.random.default_rng(1)
    rows = rng.permutation(70)
    want = distinct_rows(pick(columns, np.arange(70)), y)
    turned = {name: -column if column.dtype.kind == "f" else column for name, column in reversed(columns.items())}
    found = distinct_rows(pick({**turned, "constant": np.ones(70)}, rows), 1 - y[rows])
    np.testing.assert_array_equal(found.order, want.order[rows])
    fold = {int(i): f for i, f in zip(*want.folds(5)[:2], strict=True)}
    assert [fold[int(rows[i])] for i in found.folds(5)[0]] == found.folds(5)[1].tolist()


def test_an_infinity_is_refused_with_its_row_and_column():
    with pytest.raises(InputError) as error:
        distinct_rows(Table.of({"a": [1.0, 2.0], "b": [1.0, np.inf]}), np.array([0, 1]))
    assert (error.value.column, error.value.row) == ("b", 1)


def test_a_note_has_the_share_of_the_copies():
    columns, y = table_of(100, 5)
    assert repeated_rows(distinct_rows(pick(columns, np.arange(100)), y)) == []
    rows = np.concatenate([np.arange(100), np.arange(25)])
    [note] = repeated_rows(distinct_rows(pick(columns, rows), y[rows]))
    assert note.code == "repeated-rows"
    assert "40.0%" in note.text
    assert "naive Bayes counts every copy, the default model learns from each row once" in note.remedy


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=60), st.integers(2, 9))
def test_quantiles_of_a_negated_column_are_reversed(values, cells):
    x = np.array(values, float)
    (up, n), (down, m) = distinct_numbers(x), distinct_numbers(-x)
    if len(up) < 3 or leans_right(up, n) == leans_right(down, m):
        return
    wanted = np.arange(1, cells) / cells
    mine = nearest(np.cumsum(n)[:-1] / n.sum(), wanted, low=leans_right(up, n))
    theirs = nearest(np.cumsum(m)[:-1] / m.sum(), wanted, low=leans_right(down, m))
    np.testing.assert_array_equal(mine, len(up) - 2 - theirs[::-1])
