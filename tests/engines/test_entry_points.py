"""One rule of what a value is, through every entry point: a model fitted by one knows the same values by any other."""

import datetime as dt
import warnings
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide.data.notes import DataWarning

FITTED = ("rows.csv", "rows.parquet", "rows.jsonl", "arrow", "dict")
ZONE = dt.timezone(dt.timedelta(hours=2))
VALUES = {
    "float": pa.array([0.1, 2.5, 3.0]),
    "float32": pa.array([0.1, 2.7, 3.0], pa.float32()),
    "whole": pa.array([1, 2, 30]),
    "past 2^53": pa.array([2**53 + 1, 2**53, 2**53 + 2]),
    "boolean": pa.array([True, False, None]),
    "decimal": pa.array([Decimal("0.10"), Decimal("2.50"), Decimal("3.00")]),
    "date": pa.array([dt.date(2024, 2, day) for day in (27, 28, 29)]),
    "timestamp": pa.array([dt.datetime(2024, 2, 29, hour, 30) for hour in (1, 2, 3)]),
    "nanoseconds": pa.array([dt.datetime(2024, 2, 29, hour, 30) for hour in (1, 2, 3)], pa.timestamp("ns")),
    "zone": pa.array([dt.datetime(2024, 2, 29, hour, tzinfo=ZONE) for hour in (1, 2, 3)]),
    "time": pa.array([dt.time(hour, 30) for hour in (1, 2, 3)]),
    "text": pa.array(["1", "1.0", "true"]),
}


def entry_points(table, folder):
    """One table through every entry_point. A JSON number has no width, so a float32 is not written there."""
    frame = table.to_pandas()
    pq.write_table(table, folder / "rows.parquet")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.csv.gz", index=False)
    con = duckdb.connect()
    con.register("rows", table)
    con.execute(f"COPY rows TO '{folder}/sql.csv'")
    out = {name: str(folder / name) for name in ("rows.parquet", "rows.csv", "rows.csv.gz", "sql.csv")}
    if table.schema.field("x").type != pa.float32():
        con.execute(f"COPY rows TO '{folder}/rows.jsonl' (FORMAT json)")
        out["rows.jsonl"] = str(folder / "rows.jsonl")
        out["dict"] = {name: table.column(name).to_pylist() for name in table.column_names}
    out |= {"arrow": table, "pandas": frame, "polars": pl.from_arrow(table)}
    out["arrays"] = {name: frame[name].to_numpy() for name in frame}
    return out | {"query": f"FROM '{folder}/rows.parquet'", "relation": con.sql("FROM rows")}


def features(data):
    """The column x of what an estimator takes."""
    return {"x": data["x"]} if isinstance(data, dict) else data[["x"]] if hasattr(data, "iloc") else data.select(["x"])


def p(scored):
    return np.column_stack([scored[f"p_{label}"].to_numpy() for label in "abc"])


@pytest.mark.all_cases
@pytest.mark.parametrize("kind", VALUES)
def test_a_level_is_the_same_through_every_entry_point(kind, tmp_path):
    values = VALUES[kind].take(pa.array([0, 1, 2] * 4))
    every = entry_points(pa.table({"x": values, "y": ["a", "b", "c"] * 4}), tmp_path)
    frames = {name: data for name, data in every.items() if name in ("arrow", "pandas", "polars", "dict", "arrays")}
    events = {"x": "categorical"}
    models = {name: cd.fit(every[name], "y", events=events, model="naive") for name in FITTED if name in every}
    models["X arrays"] = cd.NaiveBayes(events).fit(features(every["arrays"]), ["a", "b", "c"] * 4)
    want = p(models["arrow"].predict_table(every["arrow"]))
    assert (want.argmax(axis=1) == [0, 1, 2] * 4).mean() >= 2 / 3
    for fitted_by, model in models.items():
        for name, data in every.items():
            np.testing.assert_allclose(p(model.predict_table(data)), want, err_msg=f"{fitted_by} -> {name}")
        for name, data in frames.items():
            np.testing.assert_allclose(model.predict_proba(features(data)), want, err_msg=f"{fitted_by} -> X {name}")
        both = model + models["arrow"]
        assert [len(levels) for levels in both.fitted_.plan.parts[0].levels] == [len(set(VALUES[kind].drop_null()))]


@pytest.mark.all_cases
@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind not in ("float", "float32", "decimal", "text")])
def test_a_class_is_the_same_through_every_entry_point(kind, tmp_path):
    values = VALUES[kind].take(pa.array([0, 1, 2] * 4))
    every = entry_points(pa.table({"y": values, "x": ["a", "b", "c"] * 4}), tmp_path)
    first = cd.fit(every["arrow"], "y", model="naive")
    want = cd.evaluate(first, every["arrow"])
    assert want.n == len(values.drop_null())
    for name in FITTED:
        model = cd.fit(every[name], "y", model="naive")
        for data in every.values():
            assert cd.evaluate(model, data).accuracy == want.accuracy, name
        assert len((first + model).classes_) == len(first.classes_), name


TIMES = {
    "date": [dt.date(2024, 1, 1) + dt.timedelta(7 * i % 90) for i in range(40)],
    "timestamp": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * i % 90) for i in range(40)],
    "zone": [dt.datetime(2024, 1, 1, tzinfo=ZONE) + dt.timedelta(hours=7 * i % 90) for i in range(40)],
    "time": [dt.time(7 * i % 24, 30) for i in range(40)],
    "duration": [dt.timedelta(hours=7 * i % 90, seconds=1) for i in range(40)],
    "nanoseconds": pa.array([10**9 * (7 * i % 90 + 1) for i in range(40)], pa.duration("ns")),
    "nothing": pa.nulls(40),
}


@pytest.mark.all_cases
@pytest.mark.parametrize("kind", TIMES)
def test_times_are_days_and_nothing_is_a_category_through_every_entry_point(kind, tmp_path):
    y = ["ab"[7 * i % 90 > 40] for i in range(40)]
    table = pa.table({"x": TIMES[kind], "size": [float(i % 7) for i in range(40)], "y": y})
    every = entry_points(table, tmp_path)
    if kind in ("duration", "nanoseconds"):  # a query of a Parquet file has whole numbers, and no schema
        del every["query"]
    frames = {name: every[name] for name in ("arrow", "pandas", "polars", "dict", "arrays")}
    want = cd.fit(table, "y", model="naive")
    event = "categorical" if kind == "nothing" else "gaussian"
    assert [part.event.name for part in want.fitted_.plan.parts if "x" in part.columns] == [event]
    answers = want.predict_table(table)["p_a"].to_numpy()
    for name, data in every.items():
        model = cd.fit(data, "y", model="naive")
        assert [part.event for part in model.fitted_.plan.parts] == [part.event for part in want.fitted_.plan.parts]
        np.testing.assert_allclose(model.predict_table(data)["p_a"].to_numpy(), answers, err_msg=name)
        np.testing.assert_allclose(want.predict_table(data)["p_a"].to_numpy(), answers, err_msg=name)
    for name, data in frames.items():
        X = {"x": data["x"], "size": data["size"]}
        np.testing.assert_allclose(cd.NaiveBayes().fit(X, y).predict_proba(X)[:, 0], answers, err_msg=name)


def test_a_duration_has_one_unit():
    """Two days are 2, from whatever holds them."""
    length = [dt.timedelta(2), dt.timedelta(3), dt.timedelta(4), dt.timedelta(6)]
    for column in (length, pa.array(length), pl.Series(length), pd.Series(length), np.array(length, "m8[h]")):
        for model in (
            cd.fit({"x": column, "y": [*"aabb"]}, "y", model="naive"),
            cd.NaiveBayes().fit({"x": column}, [*"aabb"]),
        ):
            assert model.counts_.tallies[0].mean.ravel().tolist() == [2.5, 5.0]


def test_whole_numbers_behind_a_dictionary_are_categories():
    codes, y = pa.array([3, 1, 2, 3, 1, 2] * 5).dictionary_encode(), [*"abbaba"] * 5
    table = pa.table({"x": codes, "y": y})
    for data in (table, table.to_pandas(), {"x": codes, "y": y}):
        assert [part.event.name for part in cd.fit(data, "y", model="naive").fitted_.plan.parts] == ["categorical"]
        X = data[["x"]] if hasattr(data, "iloc") else {"x": data["x"]}
        assert [part.event.name for part in cd.NaiveBayes().fit(X, y).fitted_.plan.parts] == ["categorical"]


def test_wide_whole_numbers_with_gaps_are_not_rounded():
    wide = [2**53, 2**53 + 1, None] * 9
    for column in (wide, pa.array(wide), pl.Series(wide), pd.Series(wide, dtype="Int64")):
        model = cd.NaiveBayes("categorical").fit({"x": column}, ["a", "b", "b"] * 9)
        assert model.fitted_.plan.parts[0].levels[0].values == (2**53, 2**53 + 1)


def test_text_among_other_values_makes_all_of_them_text():
    X, y = {"x": [1, "a", True, 2.5, dt.date(2024, 2, 29), "true", None] * 5}, [*"ababbab"] * 5
    streamed, asked = cd.fit(X | {"y": y}, "y", model="naive"), cd.NaiveBayes().fit(X, y)
    for model in (streamed, asked):
        assert model.fitted_.plan.parts[0].levels[0].values == ("1", "2.5", "2024-02-29", "a", "true")
        np.testing.assert_allclose(model.predict_proba(X)[:, 0], model.predict_table(X)["p_a"].to_numpy())


def test_a_column_of_unseen_levels_is_reported(tmp_path):
    X, y = {"colour": ["red", "blue", "red", "blue"], "size": ["s", "l", "s", "l"]}, [*"abab"]
    model = cd.fit(X | {"y": y}, "y", model="naive")
    strange = {"colour": ["rot", None, "blau"], "size": ["s", "xl", "l"]}
    pq.write_table(pa.table(strange), tmp_path / "rows.parquet")
    labelled = strange | {"y": [*"aba"]}
    for ask, rows in (
        (model.predict_proba, strange),
        (model.predict_table, strange),
        (model.predict_table, str(tmp_path / "rows.parquet")),
        (lambda rows: model.predict_table(rows, tmp_path / "out.csv"), strange),
        (lambda rows: cd.evaluate(model, rows), labelled),
    ):
        with pytest.warns(DataWarning) as told:
            ask(rows)
        assert [(one.message.note.code, one.message.note.column) for one in told] == [("unseen", "colour")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba({"colour": ["rot", "red"], "size": [None, None]})


def test_whole_numbers_of_nineteen_digits_and_more_keep_them_all(tmp_path):
    path = tmp_path / "ids.csv"
    values = [1152921504606846977, 5152921504606846978, 10**25 + 1, 8152921504606846981]
    path.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(values, "abab", strict=True)) * 30)
    scored = cd.fit(path, "y", model="naive").predict_table(path)
    assert scored["prediction"].to_pylist()[:4] == ["a", "b", "a", "b"]
