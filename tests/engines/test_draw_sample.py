"""A sample of a source: the same rows through every entry point, drawn from all of them."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.data.equal_rows import hash_row_numbers
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import LIMITS, Table
from candide.engines.base import Folds, LabelledSource, open_source
from candide.engines.counting import prepare_source
from candide.engines.draw_sample import draw_sample, draw_source_rows
from candide.engines.reading import ReadOptions
from candide.errors import InputError

N = 3000


def rows(n=N):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], n).astype(object)
    y[::7] = None
    return pa.table({
        "x": rng.normal(size=n), "age": rng.integers(0, 90, n), "code": rng.integers(1, 4, n),
        "job": rng.choice(["cook", "smith"], n), "w": rng.choice([0.0, 1.0, 2.5], n), "y": y,
    })  # fmt: skip


def seen(data, most=200, seed=0, weight="w", folds=None, reading=None):
    with open_source(data, reading) as source:
        source.materialise()
        prepared = prepare_source(source, "y", {"code": "categorical"}, weight=weight)
        return draw_sample(LabelledSource(source, "y", weight, folds), prepared, rows=most, seed=seed)


def entry_points(folder):
    data = rows()
    pa.csv.write_csv(data, folder / "rows.csv")
    pa.parquet.write_table(data, folder / "rows.parquet", row_group_size=500)
    with duckdb.connect(str(folder / "rows.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT * FROM data")
    files = [str(folder / name) for name in ("rows.csv", "rows.parquet", "rows.duckdb")]
    return [
        *files,
        f"SELECT * FROM '{files[1]}'",
        data.to_pandas(),
        Table.from_data(data),
        data.to_reader(),
        duckdb.sql("FROM data"),
    ]


def test_every_entry_point_draws_the_same_rows(tmp_path):
    want = seen(rows())
    assert len(want) == 200
    for entry_point in entry_points(tmp_path):
        got = seen(entry_point)
        np.testing.assert_array_equal(got.row_number, want.row_number)
        np.testing.assert_array_equal(got.labels.array[got.y], want.labels.array[want.y])
        np.testing.assert_array_equal(got.weight, want.weight)
        for name in ("x", "age", "code"):
            np.testing.assert_array_equal(np.asarray(got.table.column(name), float), want.table.column(name))


def test_they_are_drawn_from_all_rows_that_count():
    data, got = rows(), seen(rows())
    there = np.flatnonzero(data["y"].is_valid().to_numpy() & (data["w"].to_numpy() > 0))
    assert set(got.row_number) <= set(there)
    assert 0.3 < (got.row_number < N / 2).mean() < 0.7
    np.testing.assert_array_equal(data["x"].to_numpy()[got.row_number], got.table.column("x"))
    assert len(seen(data, most=N)) == len(there)
    assert set(seen(data, seed=1).row_number) != set(got.row_number)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_batches_make_no_difference(tmp_path, threads):
    n = 400_000  # several batches
    data = pa.table({"x": np.random.default_rng(0).normal(size=n), "y": np.arange(n) % 3, "w": np.ones(n)})
    pa.parquet.write_table(data, tmp_path / "rows.parquet", row_group_size=50_000)
    with open_source(str(tmp_path / "rows.parquet"), ReadOptions(threads=threads)) as source:
        got = draw_sample(LabelledSource(source, "y"), prepare_source(source, "y", drop=["w"]), rows=500)
    own = Sample.from_table(
        Table.from_data({"x": data["x"].to_numpy()}), np.arange(n) % 3, Labels((0, 1, 2))
    ).limit_rows(500)
    np.testing.assert_array_equal(got.row_number, own.row_number)
    np.testing.assert_array_equal(got.y, got.row_number % 3)


def test_rows_in_memory_are_drawn_the_same():
    data, got = rows(), seen(rows())
    there = np.flatnonzero(data["y"].is_valid().to_numpy())
    labels = Labels.from_values(data["y"])
    features = {name: data[name].to_numpy()[there] for name in ("x", "age", "code", "job")}
    own = Sample.from_table(
        Table.from_data(features), labels.encode(data["y"])[there], labels, data["w"].to_numpy()[there]
    )
    assert there[own.row_number].tolist() == [row for row in there if data["w"][row].as_py()]
    assert there[own.limit_rows(200).row_number].tolist() == got.row_number.tolist()
    assert set(own.limit_rows(50).row_number) < set(own.limit_rows(200).row_number)


@pytest.mark.parametrize("batch", [100, 10_000])
def test_copies_come_into_a_sample_together_with_their_frequency(tmp_path, batch):
    """In whatever order they come, and however many there are."""
    rng = np.random.default_rng(0)
    sizes = {name: rng.normal(size=900) for name in ("x", "z")}
    distinct = pa.table({**sizes, "job": rng.choice(["cook", "smith"], 900), "y": np.arange(900) % 2})
    often = rng.integers(1, 4, 900)
    found = []
    for order in (np.repeat(np.arange(900), often), rng.permutation(np.repeat(np.arange(900), often))):
        data = distinct.take(order)
        pa.parquet.write_table(data, tmp_path / "rows.parquet", row_group_size=batch)
        with open_source(str(tmp_path / "rows.parquet")) as source:
            got = draw_sample(LabelledSource(source, "y"), prepare_source(source, "y"), rows=300)
        assert got.n_rows == got.weight.sum()
        assert got.distinct_fraction == pytest.approx(1 / 3, rel=0.2)
        place = {x: i for i, x in enumerate(distinct["x"].to_pylist())}
        mine = np.array([place[x] for x in got.table.column("x").tolist()])
        np.testing.assert_array_equal(got.weight, often[mine])
        np.testing.assert_array_equal(got.distinct().draws, 1.0)
        memory = Sample.from_table(
            Table.from_data(data.drop_columns(["y"])), data["y"].to_numpy(), Labels((0, 1))
        ).limit_rows(300)
        assert sorted(memory.table.column("x")) == sorted(got.table.column("x"))
        found.append(set(mine.tolist()))
    assert len(found[0]) == 300
    assert found[0] == found[1]


def test_rows_that_often_repeat_by_chance_are_drawn_one_by_one():
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.15, (20_000, 4)), 25)
    codes[rng.random(20_000) < 0.3] = 1  # a row that a third of the table has
    y = rng.integers(0, 2, 20_000)
    own = Sample.from_table(Table.from_data({f"c{j}": codes[:, j] for j in range(4)}), y, Labels((0, 1))).limit_rows(
        1000
    )
    assert len(own) == 1000
    assert own.weight is None
    share = np.mean([own.table.column(f"c{j}") == 1 for j in range(4)])
    assert share == pytest.approx((codes == 1).mean(), abs=0.04)


def test_a_sample_knows_the_fold_of_each_row():
    folds = Folds(4, 3, "y")
    got = seen(rows(), weight=None, folds=folds)
    with open_source(rows()) as source:
        want = np.concatenate([batch["fold"].to_numpy() for batch in source.batches(["x"], 1000, folds)])
    np.testing.assert_array_equal(got.fold, want[got.row_number])


def test_codes_among_the_labels_of_all_rows():
    got = seen(rows())
    wider = got.with_labels(type(got.labels)(("maybe", "no", "yes")))
    np.testing.assert_array_equal(wider.y, got.y + 1)


def test_no_row_with_a_label_is_an_error():
    data = rows(50)
    with pytest.raises(InputError) as error:
        seen(data.set_column(5, "y", pa.nulls(50, pa.string())))
    assert error.value.column == "y"


def test_hashes_look_random():
    lot = hash_row_numbers(np.arange(10_000)) / 2.0**64
    assert abs(lot.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(lot[1:], lot[:-1])[0, 1]) < 0.05
    assert len(np.unique(hash_row_numbers(np.arange(10_000), 7))) == 10_000


def test_fewer_rows_are_drawn_of_long_documents(tmp_path):
    """As many as have room, whatever the batches; those of fewer letters are some of those of more."""
    rng = np.random.default_rng(0)
    texts = [f"w{i} " + "word " * size for i, size in enumerate(rng.integers(1, 2000, 400))]
    table = pa.table({"text": texts, "y": ["a", "b"] * 200})
    pa.parquet.write_table(table, tmp_path / "small.parquet", row_group_size=7)
    taken = []
    for data in (table, tmp_path / "small.parquet"):
        for letters in (300_000, 100_000, 1):
            with open_source(data) as source:
                prepared = prepare_source(source, "y", {"text": "text"})
                some = draw_source_rows(LabelledSource(source, "y"), prepared.plan, 300, 0, letters)
            assert some.table.num_rows == 1 or sum(map(len, some.table["f0"].to_pylist())) <= letters
            taken.append(some.table["row"].to_pylist())
    assert taken[:3] == taken[3:]
    assert set(taken[2]) < set(taken[1]) < set(taken[0])
    assert len(taken[2]) == 1


def test_rows_for_weights_are_fewer_where_classes_and_columns_are_many():
    assert LIMITS.n_rows(20_000, 2, 14) == 20_000
    assert LIMITS.n_rows(20_000, 26, 16) == 10_683
    assert LIMITS.n_rows(20_000, 10, 3000) == 2000
    assert LIMITS.n_rows(20_000, 1000, 5000) * 1000 * 5200 <= 240_000_000


def test_copies_are_given_where_some_class_has_any():
    rng = np.random.default_rng(0)
    table, y, labels = Table.from_data(rng.normal(size=(120, 2))), np.arange(120) % 2, Labels((0, 1))
    once, copied = (Sample.from_table(table, y, labels).take(np.repeat(np.arange(120), times)) for times in (1, 3))
    assert once.class_copies is None
    assert once.pool_rows().class_copies is None
    assert copied.pool_rows().class_copies.tolist() == [3.0, 3.0]


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0]), st.booleans())
def test_no_more_is_left_out_than_was_counted(seed, fraction, is_weighted):
    """Copies beyond a sample were estimated, and cells of the sample became negative."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 60, 300)
    X, y = np.column_stack([rng.normal(size=60), rng.integers(0, 4, 60)])[at], rng.integers(0, 2, 60)[at]
    weight = rng.lognormal(0, 1, 300) if is_weighted else None
    seen = Sample(Table.from_data(X), np.arange(300), y, Labels((0, 1)), weight, fraction=fraction).pool_rows()
    assert seen.copies is not None
    often = np.ones(len(seen)) if seen.weight is None else seen.weight
    counted = {}
    for row, c, n in zip(X[seen.row_number].tolist(), seen.y.tolist(), often.tolist(), strict=True):
        counted[*row, c] = counted.get((*row, c), 0.0) + n
    gone = often if seen.left_out_weight is None else seen.left_out_weight
    whole = [counted[*row, c] for row, c in zip(X[seen.row_number].tolist(), seen.y.tolist(), strict=True)]
    assert (gone <= np.array(whole) * (1 + 1e-9)).all()
