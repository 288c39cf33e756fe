"""Text of frames is read as the same text of a file is: the same kinds, notes and model, through every entry point."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.spark_session import needs_spark, session

import candide as cd
from candide.data.notes import DataWarning
from candide.engines.table_formats import unread_text
from candide.errors import InputError

N = 240
RNG = np.random.default_rng(7)
Y = np.array(["a", "b"])[RNG.integers(0, 2, N)]
SHIFT = (Y == "a") * 1.0
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 300, N) + 40 * SHIFT]
COLUMNS = {
    "money": [f"€ {v:,.2f}" for v in RNG.normal(5000 + 800 * SHIFT, 1500)],
    "thousands": [f"{int(v):,}" for v in RNG.normal(50_000 + 9000 * SHIFT, 12_000)],
    "percent": [f"{v:.1f}%" for v in RNG.normal(30 + 5 * SHIFT, 10)],
    "day": [day.strftime("%d.%m.%Y") for day in DAYS],
    "slashes": [day.strftime("%d/%m/%Y") for day in DAYS],
    "iso": [day.isoformat() for day in DAYS],
    "comma": [f"{v:.2f}".replace(".", ",") for v in RNG.normal(3 + SHIFT, 1)],
    "gaps": [f"{v:.1f}" if i % 9 else ("n/a", "?")[i % 2] for i, v in enumerate(RNG.normal(SHIFT, 1))],
    "clock": [f"{int(9 + 3 * s + i % 7):02d}:{i % 60:02d}:05" for i, s in enumerate(SHIFT)],
    "waited": [f"{int(i % 5 + s)} days {i % 24:02d}:00:00" for i, s in enumerate(SHIFT)],
    "late": [f"{i % 24:02d}:30" if i % 9 else "n/a" for i in range(N)],
    "job": RNG.choice(["cook", "smith", "baker"], N).tolist(),
    "version": RNG.choice(["1.2.3", "1.2.10"], N).tolist(),
    "zip": RNG.choice(["01234", "98101", "00501"], N).tolist(),
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas strings": lambda columns: pd.DataFrame(columns).astype("string"),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "mapping": dict,
    "objects": lambda columns: {name: np.array(values, object) for name, values in columns.items()},
}


@pytest.fixture
def path(tmp_path):
    pd.DataFrame({**COLUMNS, "y": Y}).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def notes(call):
    """What a call returns, and its notes on how text is read."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = call()
    kept = [one.message.note for one in told if isinstance(one.message, DataWarning)]
    return found, sorted(str(r) for r in kept if r.code in ("read-as", "read-as-open", "taken-as-missing"))


@pytest.mark.all_cases
@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_a_frame_gives_the_model_of_the_file(model, path):
    want, told = notes(lambda: cd.fit(path, target="y", model=model))
    assert len(told) == 8
    frame = pd.DataFrame(COLUMNS)
    expected = want.predict_proba(frame)
    estimator = cd.NaiveBayes if model == "naive" else cd.BayesClassifier
    for name, make in FRAMES.items():
        found, same = notes(lambda make=make: cd.fit(make({**COLUMNS, "y": Y.tolist()}), target="y", model=model))
        assert same == told, name
        np.testing.assert_allclose(found.predict_proba(make(COLUMNS)), expected, rtol=1e-9, err_msg=name)
        found, same = notes(lambda make=make: estimator().fit(make(COLUMNS), Y))
        assert same == told, name
        assert found.fitted_.text_formats == want.fitted_.text_formats
        assert found.fitted_.dates == want.fitted_.dates == {"day", "slashes", "iso"}
        assert found.fitted_.times == want.fitted_.times == {"clock", "waited", "late"}
        np.testing.assert_allclose(found.predict_proba(make(COLUMNS)), expected, rtol=1e-9, err_msg=name)
        one = {column: values[3:4] for column, values in COLUMNS.items()}  # which by itself would leave much open
        np.testing.assert_allclose(found.predict_proba(make(one)), expected[3:4], rtol=1e-9, err_msg=name)


def test_objects_without_names_are_read_the_same(tmp_path):
    X = pd.DataFrame(COLUMNS).to_numpy(object)
    model, told = notes(lambda: cd.NaiveBayes().fit(X, Y))
    assert len(told) == 8
    assert model.fitted_.dates == {3, 4, 5}
    assert model.fitted_.times == {8, 9, 10}
    model.save(tmp_path / "m.candide")
    again = cd.load(tmp_path / "m.candide")
    np.testing.assert_array_equal(again.predict_proba(X[:5]), model.predict_proba(X)[:5])
    named = cd.NaiveBayes().fit(pd.DataFrame(COLUMNS), Y)
    np.testing.assert_allclose(model.predict_proba(X), named.predict_proba(pd.DataFrame(COLUMNS)), rtol=1e-9)


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "json"])
def test_text_of_typed_files_is_read_the_same(kind, path, tmp_path):
    frame, other = pd.DataFrame({**COLUMNS, "y": Y}), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(other)
    elif kind == "json":
        other = tmp_path / "rows.jsonl"
        frame.to_json(other, orient="records", lines=True)
    else:
        import duckdb

        with duckdb.connect(other) as con:
            con.execute("CREATE TABLE t AS SELECT * FROM frame")
    want, told = notes(lambda: cd.fit(path, target="y", model="naive"))
    found, same = notes(lambda: cd.fit(other, target="y", model="naive"))
    assert same == told
    np.testing.assert_allclose(found.predict_proba(frame), want.predict_proba(frame), rtol=1e-9)


KEPT = {
    "whole numbers": ["1", "20", "300"],
    "versions": ["1.2.3", "1.2.10", "2.0.0"],
    "two currencies": ["€ 5", "$ 6", "€ 7"],
    "units": ["5 kg", "6 kg", "7 kg"],
    "truths": ["true", "false", "true"],
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_neither_stays_a_category(case):
    X, y = {"x": KEPT[case] * 20}, ["a", "b", "a"] * 20
    for model in (cd.NaiveBayes().fit(X, y), cd.fit({**X, "y": y}, target="y", model="naive")):
        assert [part.event.name for part in model.counts_.plan.parts] == ["categorical"]
        assert model.fitted_.text_formats == {}


def test_categories_that_are_declared_are_not_read():
    texts, y = ["€ 5", "€ 6", "€ 7"] * 20, ["a", "b", "a"] * 20
    coded = pd.DataFrame({"x": pd.Categorical(texts)})
    for model in (
        cd.NaiveBayes({"x": "categorical"}).fit({"x": texts}, y),
        cd.NaiveBayes("categorical").fit({"x": texts}, y),
        cd.NaiveBayes().fit(coded, y),
        cd.NaiveBayes().fit(pl.DataFrame({"x": texts}).cast(pl.Categorical), y),
        cd.fit(coded.assign(y=y), target="y", model="naive"),
        cd.fit({"x": texts, "y": y}, target="y", model="naive", events={"x": "categorical"}),
    ):
        assert model.counts_.plan.parts[0].levels[0].values == ("€ 5", "€ 6", "€ 7")


def test_what_is_asked_for_as_numbers_is_read():
    X, y = {"x": ["1.234,5", "20", "300"] * 20, "n": ["1", "2", "4"] * 20}, ["a", "b", "a"] * 20
    model = cd.NaiveBayes("gaussian").fit(X, y)
    assert model.counts_.tallies[0].mean[1].tolist() == [20.0, 2.0]


def test_a_value_further_down_that_does_not_fit_is_named():
    texts = [f"{i % 90 + 10},{i % 9}" for i in range(21_000)]
    texts[20_900] = "12.5"
    X, y = {"x": texts}, ["a", "b"] * 10_500
    with pytest.raises(InputError) as error:
        cd.NaiveBayes().fit(X, y)
    assert (error.value.column, error.value.row, error.value.value) == ("x", 20_900, "12.5")
    with pytest.raises(InputError) as error:
        cd.fit({**X, "y": y}, target="y")
    assert (error.value.column, error.value.value) == ("x", "12.5")


def test_later_rows_are_read_in_the_format_of_the_first():
    """1.234 is a thousand and more in a model of such numbers, whatever it would be by itself."""
    model = cd.NaiveBayes().fit({"x": ["1.234,5", "2.345", "3,25"] * 20}, ["a", "b", "a"] * 20)
    assert model.predict_proba({"x": ["1.234"]}).tolist() == model.predict_proba({"x": [1234.0]}).tolist()
    with pytest.raises(InputError, match=r"'12\.5' is not a number in the format of the rows fitted"):
        model.predict_proba({"x": ["12.5"]})


@pytest.mark.parametrize("first", [1, 2, 7, 50])
def test_chunks_are_read_as_all_rows_are(first):
    """What the first chunk leaves open later ones decide."""
    X = {"x": ["1,250", "2,300", "3"] * 10 + ["12,5"] * 6, "n": ["1", "2", "3"] * 11 + ["2.5"] * 3, "y": None}
    X["y"] = ["4,5", "5,5"] * 17 + ["five", "4,5"]
    labels = ["a", "b", "a"] * 12
    whole = cd.NaiveBayes().fit(X, labels)
    part = cd.NaiveBayes()
    for start, stop in ((0, first), (first, 36)):
        if start < 36:
            rows = {name: values[start:stop] for name, values in X.items()}
            part.partial_fit(rows, labels[start:stop], classes=["a", "b"])
    assert part.fitted_.text_formats == whole.fitted_.text_formats
    np.testing.assert_allclose(part.predict_proba(X), whole.predict_proba(X), rtol=1e-9)


def test_a_word_for_missing_among_few_whole_numbers_is_missing_again(tmp_path):
    """In memory, in a file and in an update, too."""
    n = ["1", "2", "3", "?"] * 30
    y = ["a", "b", "b", "a"] * 30
    path = tmp_path / "rows.csv"
    pd.DataFrame({"n": n, "y": y}).to_csv(path, index=False)
    model = cd.fit(path, target="y", model="naive")
    missing = model.predict_proba({"n": [None]}).tolist()
    assert model.predict_proba({"n": ["?"]}).tolist() == missing
    table = model.predict_table({"n": ["?", "1"]})
    assert table["prediction"].to_pylist()[1] == "a"
    assert [table.column(1)[0].as_py(), table.column(2)[0].as_py()] == pytest.approx(missing[0])


def test_a_time_further_down_that_does_not_fit_is_named():
    texts = [f"{i % 24:02d}:05:05" for i in range(21_000)]
    texts[20_900] = "noon"
    with pytest.raises(InputError) as error:
        cd.NaiveBayes().fit({"x": texts}, ["a", "b"] * 10_500)
    assert (error.value.column, error.value.row, error.value.value) == ("x", 20_900, "noon")


def test_chunks_of_times_give_the_model_of_all_rows():
    X, y = {"at": COLUMNS["clock"], "late": COLUMNS["late"]}, Y
    whole, parts = cd.NaiveBayes().fit(X, y), cd.NaiveBayes()
    for start in range(0, N, 60):
        parts.partial_fit({name: v[start : start + 60] for name, v in X.items()}, y[start : start + 60], classes="ab")
    assert whole.fitted_.times == parts.fitted_.times == {"at", "late"}
    np.testing.assert_allclose(whole.predict_proba(X), parts.predict_proba(X))


KEPT_AS_TEXT = {
    "size": [f"{i % 7}.5" for i in range(60)],
    "price": [f"€ {i % 9 + 1},50" for i in range(60)],
    "day": [f"2024-01-{i % 28 + 1:02d}" for i in range(60)],
    "at": [f"{i % 24:02d}:30:00" for i in range(60)],
    "zip": ["98101", "98102", "01234"] * 20,
    "job": ["cook", "smith", "baker"] * 20,
    "y": ["a", "b"] * 30,
}


def kept_as_text(data, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        cd.fit(data, target="y", model="naive", **options)
    kept = [one.message.note for one in told if isinstance(one.message, DataWarning)]
    return {remark.columns: remark.remedy for remark in kept if remark.code == "text-kept"}


def test_numbers_kept_as_text_in_postgres_are_named(postgres):
    notes = kept_as_text(postgres.make(pa.table(KEPT_AS_TEXT), "kept_as_text"))
    assert notes.keys() == {("size", "price"), ("day",), ("at",)}
    assert 'CAST("size" AS double precision)' in notes["size", "price"]
    assert 'CAST("day" AS date)' in notes["day",]
    assert 'CAST("at" AS time)' in notes["at",]
    events = dict.fromkeys(("price", "day", "at"), "categorical") | {"size": "gaussian"}
    assert not kept_as_text(postgres.make(pa.table(KEPT_AS_TEXT), "kept_again"), events=events)


@needs_spark
def test_numbers_kept_as_text_in_spark_are_named():
    with session() as spark:
        notes = kept_as_text(spark.createDataFrame(pd.DataFrame(KEPT_AS_TEXT)))
    assert notes.keys() == {("size", "price"), ("day",), ("at",)}
    assert "CAST(`size` AS double)" in notes["size", "price"]


def test_text_of_a_database_that_holds_numbers_has_a_note():
    head = pa.table({"size": ["1.5", "2.25", "3.0"] * 4, "day": ["2024-01-05"] * 12, "job": ["cook"] * 12})
    notes = unread_text(head, head.column_names, "double precision")
    assert [note.column for note in notes] == ["size", "day"]
    assert str(notes[0]) == (
        "column 'size': numbers kept as text, such as '1.5', are categories here; to count them as numbers, store them "
        'as such or convert them in a view or a query: CAST("size" AS double precision)'
    )
    assert 'CAST("day" AS date)' in notes[1].remedy
