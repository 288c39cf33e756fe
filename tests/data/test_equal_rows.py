"""Equal rows: natural repeats are independent draws, copies are one; folds keep copies together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table as real_table

from candide.data.documents import Documents
from candide.data.equal_rows import DistinctRows, find_distinct_rows, repeated_row_notes
from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding.base import distinct_numbers
from candide.errors import InputError
from candide.numerics import is_right_skewed, nearest_indices


def table_of(n, seed, columns=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    job = np.array(["cook", "smith", None], object)[rng.integers(0, 3, n)]
    return {**{f"x{j}": rng.normal(size=n) + y for j in range(columns)}, "job": job}, y


def pick(columns, rows):
    return Table.from_data({name: column[rows] for name, column in columns.items()})


@pytest.mark.parametrize("times", [2, 3, 10])
def test_copies_of_rows_are_one_draw_each(times):
    columns, y = table_of(60, 0)
    rows = np.repeat(np.arange(60), times)
    found = find_distinct_rows(pick(columns, rows), y[rows])
    assert len(found) == 60
    np.testing.assert_array_equal(found.frequency, times)
    np.testing.assert_array_equal(found.draws, 1.0)
    np.testing.assert_array_equal(found.weight_per_draw_by_class(2), times)


def test_rows_of_few_values_repeat_by_chance():
    rng = np.random.default_rng(0)
    bits, y = rng.integers(0, 2, (1000, 3)), rng.integers(0, 2, 1000)
    found = DistinctRows.from_columns(list(bits.T), y)
    assert len(found) == 16
    np.testing.assert_array_equal(found.draws, found.frequency)


def test_whole_numbers_of_one_column_repeat_by_chance_and_measurements_do_not():
    rng = np.random.default_rng(0)
    ages, y = rng.normal(50, 12, 400).round(), np.arange(400) % 2
    assert DistinctRows.from_columns([ages], y).draws.sum() > 0.98 * 400
    sizes, rows = rng.normal(size=300), rng.integers(0, 300, 400)
    assert DistinctRows.from_columns([sizes[rows]], rows % 2).draws.sum() < 0.8 * 400


@pytest.mark.parametrize("levels", [25, 60])
def test_categories_of_one_column_repeat_by_chance(levels):
    rng = np.random.default_rng(0)
    shop = rng.integers(0, levels, 2000)
    y = (rng.random(2000) < np.linspace(0.05, 0.95, levels)[shop]).astype(int)
    found = DistinctRows.from_columns([np.array([f"s{code}" for code in shop], object)], y)
    np.testing.assert_array_equal(found.draws, found.frequency)


def test_columns_that_another_determines_do_not_make_copies():
    rng = np.random.default_rng(0)
    item = rng.integers(0, 120, 1500)
    y = rng.integers(0, 2, 1500)
    columns = [item, rng.uniform(size=120)[item], rng.normal(size=120)[item], item % 7]
    found = DistinctRows.from_columns(columns, y)
    np.testing.assert_array_equal(found.draws, found.frequency)


@pytest.mark.parametrize("copies", [3, 10])
def test_equal_columns_of_few_values_do_not_make_copies(copies):
    rng = np.random.default_rng(0)
    sky = (rng.random(1000) < 0.3).astype(int)
    y = (rng.random(1000) < np.where(sky == 1, 0.5, 0.9)).astype(int)
    found = DistinctRows.from_columns([sky] * copies, y)
    assert len(found) == 4
    np.testing.assert_array_equal(found.draws, found.frequency)


@pytest.mark.parametrize("columns", [5, 10, 16])
def test_columns_that_nearly_agree_do_not_make_copies(columns):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    hidden = (rng.random(1000) < np.where(y == 1, 0.7, 0.3)).astype(int)
    bits = hidden[:, None] ^ (rng.random((1000, columns)) < 0.02)
    assert DistinctRows.from_columns(list(bits.T), y).draws.sum() > 0.95 * 1000


def test_copies_of_rows_of_bits_are_found():
    rng = np.random.default_rng(0)
    bits, y, rows = rng.integers(0, 2, (60, 16)), rng.integers(0, 2, 60), rng.integers(0, 60, 600)
    assert DistinctRows.from_columns(list(bits[rows].T), y[rows]).draws.sum() < 0.2 * 600


def categories(n, seed, levels=4, columns=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return list(((rng.integers(0, levels, (n, columns)) + (rng.random((n, columns)) < 0.3) * y[:, None]) % levels).T), y


@pytest.mark.parametrize("factor", [1.0, 1.0000001, 1.001, 2.5, 10.0, 1e6])
def test_weights_of_sparse_categories_count_in_units_of_a_draw(factor):
    """Whole weights were copies, and others were not: the model changed with the last digit."""
    columns, y = categories(300, 0)
    weight = np.random.default_rng(9).integers(1, 6, 300).astype(float)
    one, many = (DistinctRows.from_columns(columns, y, f * weight) for f in (1.0, factor))
    assert 1.5 < one.weight_per_draw_by_class(2).min() <= one.weight_per_draw_by_class(2).max() < 4.0
    np.testing.assert_allclose(many.draws, one.draws, rtol=0.01)
    np.testing.assert_allclose(many.weight_per_draw_by_class(2) / factor, one.weight_per_draw_by_class(2), rtol=0.01)


@pytest.mark.parametrize(
    "change", [lambda n: n, lambda n: 1.001 * n, lambda n: n + 0.5, lambda n: n + (n == n[0]) * 1e-6]
)
def test_counts_of_cells_are_draws_whole_or_not(change):
    columns, y = categories(2000, 0, levels=3, columns=2)
    cells = DistinctRows.from_columns(columns, y)
    weight = change(cells.frequency)
    found = DistinctRows.from_columns([column[cells.first] for column in columns], cells.y, weight)
    np.testing.assert_allclose(found.draws, weight)


@pytest.mark.parametrize("times", [3, 10])
def test_copies_in_uneven_numbers_are_found_among_sparse_categories(times):
    columns, y = categories(300, 1)
    rows = np.random.default_rng(0).integers(0, 300, 300 * times)
    found = DistinctRows.from_columns([column[rows] for column in columns], y[rows])
    assert found.draws.sum() < 1.8 * 300


@pytest.mark.parametrize("times", [3, 10])
@pytest.mark.parametrize("kind", ["number", "text", "documents"])
def test_copies_are_found_by_one_column_whose_values_rows_do_not_share(kind, times):
    """Above three copies of a row the column counted as one of ordinary levels, and copies explained themselves."""
    rng = np.random.default_rng(0)
    rows, y = rng.integers(0, 150, 150 * times), rng.integers(0, 2, 150)
    values = rng.normal(size=150)
    if kind != "number":
        values = np.array([" ".join(rng.choice(list("abcdefghijkl"), 9)) for _ in range(150)], object)
    job = np.array(["cook", "smith"])[rng.integers(0, 2, 150)]
    columns = [Documents.from_column(values[rows].tolist())] if kind == "documents" else [values[rows], job[rows]]
    found = DistinctRows.from_columns(columns, y[rows])
    np.testing.assert_allclose(found.draws, 1.0)


def test_some_texts_that_are_copied_often_are_found():
    rng = np.random.default_rng(0)
    values = np.array([" ".join(rng.choice(list("abcdefghijkl"), 9)) for _ in range(400)], object)
    rows = np.concatenate([np.arange(400), np.repeat(np.arange(50), 20)])
    np.testing.assert_allclose(DistinctRows.from_columns([values[rows]], rng.integers(0, 2, 400)[rows]).draws, 1.0)


def test_whole_numbers_that_determine_the_class_repeat_by_chance():
    ages = np.random.default_rng(0).normal(50, 8, 1000).round()
    assert DistinctRows.from_columns([ages], (ages > 50).astype(int)).draws.sum() > 0.98 * 1000


def test_folds_of_independent_draws_have_whole_weights():
    """They had rounding errors, and counted as weights that are no copies."""
    columns, y = categories(5000, 2, levels=3, columns=2)
    weight = DistinctRows.from_columns(columns, y).assign_folds(3)[2]
    np.testing.assert_array_equal(weight, np.round(weight))


def test_a_class_that_is_copied_does_not_touch_the_others():
    columns, y = table_of(80, 1)
    rows = np.concatenate([np.arange(80), *[np.flatnonzero(y == 1)] * 4])
    found = find_distinct_rows(pick(columns, rows), y[rows])
    np.testing.assert_allclose(found.weight_per_draw_by_class(2), [1.0, 5.0])


def test_a_bootstrap_sample_has_fewer_draws_than_rows():
    columns, y = table_of(400, 2)
    rows = np.random.default_rng(0).integers(0, 400, 400)
    found = find_distinct_rows(pick(columns, rows), y[rows])
    assert found.draws.sum() < 1.01 * len(np.unique(rows))


def test_real_tables_that_repeat_naturally_are_left_alone():
    for name in ("breast_cancer_wisconsin", "congressional_voting"):
        frame = pd.read_parquet(real_table(f"{name}.parquet"))
        labels = Labels.from_values(frame["class"])
        found = find_distinct_rows(Table.from_data(frame.drop(columns="class")), labels.encode(frame["class"]))
        assert (found.frequency > 1).sum() > 30
        assert found.draws.sum() > 0.93 * len(frame)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 40))
def test_folds_divide_all_weight_and_keep_copies_together(seed, folds, n):
    rng = np.random.default_rng(seed)
    columns, y = table_of(n, seed, columns=1)
    rows = rng.integers(0, n, 3 * n)
    weight = rng.choice([0.5, 1.0, 4.0], 3 * n)
    found = find_distinct_rows(pick(columns, rows), y[rows], weight)
    at, fold, share = found.assign_folds(folds)
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
        find_distinct_rows(pick(columns, rows), y[rows]),
        find_distinct_rows(pick(columns, there), y[there], weight[there].astype(float)),
    )
    for name in ("frequency", "draws", "order", "y"):
        np.testing.assert_array_equal(getattr(copies, name), getattr(weighted, name))


def test_the_order_of_folds_depends_on_contents_alone():
    columns, y = table_of(70, 4)
    rng = np.random.default_rng(1)
    rows = rng.permutation(70)
    want = find_distinct_rows(pick(columns, np.arange(70)), y)
    turned = {name: -column if column.dtype.kind == "f" else column for name, column in reversed(columns.items())}
    found = find_distinct_rows(pick({**turned, "constant": np.ones(70)}, rows), 1 - y[rows])
    np.testing.assert_array_equal(found.order, want.order[rows])
    fold = {int(i): f for i, f in zip(*want.assign_folds(5)[:2], strict=True)}
    assert [fold[int(rows[i])] for i in found.assign_folds(5)[0]] == found.assign_folds(5)[1].tolist()


def test_an_infinity_is_refused_with_its_row_and_column():
    with pytest.raises(InputError) as error:
        find_distinct_rows(Table.from_data({"a": [1.0, 2.0], "b": [1.0, np.inf]}), np.array([0, 1]))
    assert (error.value.column, error.value.row) == ("b", 1)


def test_a_note_has_the_share_of_the_copies():
    columns, y = table_of(100, 5)
    assert repeated_row_notes(find_distinct_rows(pick(columns, np.arange(100)), y)) == []
    rows = np.concatenate([np.arange(100), np.arange(25)])
    [note] = repeated_row_notes(find_distinct_rows(pick(columns, rows), y[rows]))
    assert note.code == "repeated-rows"
    assert "40.0%" in note.text
    assert "naive Bayes counts every copy, the default model learns from each row once" in note.remedy


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=60), st.integers(2, 9))
def test_quantiles_of_a_negated_column_are_reversed(values, cells):
    x = np.array(values, float)
    (up, n), (down, m) = distinct_numbers(x), distinct_numbers(-x)
    if len(up) < 3 or is_right_skewed(up, n) == is_right_skewed(down, m):
        return
    wanted = np.arange(1, cells) / cells
    mine = nearest_indices(np.cumsum(n)[:-1] / n.sum(), wanted, prefer_low=is_right_skewed(up, n))
    theirs = nearest_indices(np.cumsum(m)[:-1] / m.sum(), wanted, prefer_low=is_right_skewed(down, m))
    np.testing.assert_array_equal(mine, len(up) - 2 - theirs[::-1])


def test_draws_of_equal_rows_are_assigned_to_folds_at_random():
    """Divided evenly, cross-validation of a table of few categories would be as good as scoring the training rows."""
    rng = np.random.default_rng(0)
    rows = DistinctRows.from_columns([rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)], rng.integers(0, 2, 3000))
    row, fold, weight = rows.assign_folds(3)
    part = np.bincount(row * 3 + fold, weight, 3 * len(rows)).reshape(-1, 3)
    np.testing.assert_allclose(part.sum(axis=1), rows.frequency)
    by_class = np.stack([part[rows.y == c].sum(axis=0) for c in (0, 1)])
    assert np.ptp(by_class, axis=1).max() <= 1.0  # classes are divided evenly
    expected = rows.frequency[:, None] / 3
    chi_square = ((part - expected) ** 2 / expected).sum()  # 16 degrees of freedom, less 4 for the classes
    assert 3.0 < chi_square < 32.0
