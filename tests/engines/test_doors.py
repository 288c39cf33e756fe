"""One rule of what a value is, through every door: a model fitted by one knows the same values by any other."""

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd

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


def doors(table, folder):
    """One table through every door. A JSON number has no width, so a float32 is not written there."""
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


@pytest.mark.parametrize("kind", VALUES)
def test_a_level_is_the_same_through_every_door(kind, tmp_path):
    values = VALUES[kind].take(pa.array([0, 1, 2] * 4))
    every = doors(pa.table({"x": values, "y": ["a", "b", "c"] * 4}), tmp_path)
    frames = {name: data for name, data in every.items() if name in ("arrow", "pandas", "polars", "dict", "arrays")}
    events = {"x": "categorical"}
    models = {name: cd.fit(every[name], "y", events=events) for name in FITTED if name in every}
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


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind not in ("float", "float32", "decimal", "text")])
def test_a_class_is_the_same_through_every_door(kind, tmp_path):
    values = VALUES[kind].take(pa.array([0, 1, 2] * 4))
    every = doors(pa.table({"y": values, "x": ["a", "b", "c"] * 4}), tmp_path)
    first = cd.fit(every["arrow"], "y")
    want = cd.evaluate.evaluate(first, every["arrow"])
    assert want.n == len(values.drop_null())
    for name in FITTED:
        model = cd.fit(every[name], "y")
        for data in every.values():
            assert cd.evaluate.evaluate(model, data).accuracy == want.accuracy, name
        assert len((first + model).classes_) == len(first.classes_), name
