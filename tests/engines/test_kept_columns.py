"""What is kept of the rows beside their predictions is kept word for word, and type for type."""

import csv
import datetime as dt
import json
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide.engines.reading import ReadOptions

WRITTEN = {
    "id": ["000425", "1e3", "007", "+5"],
    "age": ["25", "032.50", " 47", "?"],
    "price": ["1,50", "2,00", "3,25", "n/a"],
    "day": ["2020-02-29", "2021-01-01", "2022-01-01", "2023-01-01"],
    "note": ['say "yes"', "a;b", "two\nlines", "?"],
    "flag": ["TRUE", "false", "1", ""],
}
MODEL = cd.NaiveBayes("gaussian").fit(
    {name: [1.0, 2.0, 8.0, 9.0] for name in ("id", "age", "price", "day")}, ["a", "a", "b", "b"]
)


@pytest.fixture
def path(tmp_path):
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        out = csv.writer(file, delimiter=";")
        out.writerows([list(WRITTEN), *zip(*WRITTEN.values(), strict=True)])
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("na", [(), ("?",), ("?", "TRUE")])
def test_text_stays_as_it_is_written(path, tmp_path, na):
    reading = ReadOptions(na=na)
    scored = cd.predict_table(MODEL, path, keep="all", **vars(reading))
    assert {name: scored[name].to_pylist() for name in WRITTEN} == WRITTEN | {"flag": ["TRUE", "false", "1", None]}
    plain = cd.predict_table(MODEL, path, **vars(reading))
    assert scored.select(plain.column_names).equals(plain)
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        cd.predict_table(MODEL, path, out=tmp_path / f"out.{ending}", keep="all", **vars(reading))
        with open(tmp_path / f"out.{ending}", newline="") as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert {name: [row[name] for row in rows] for name in WRITTEN} == WRITTEN
    cd.predict_table(MODEL, path, out=tmp_path / "out.jsonl", keep=["age"], **vars(reading))
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [line["age"] for line in lines] == WRITTEN["age"]


TYPED = pa.table(
    {
        "age": pa.array([25, 32, 47, None], pa.int16()),
        "price": pa.array([Decimal("1.50"), None, Decimal("2.25"), Decimal("0.00")], pa.decimal128(10, 2)),
        "code": pa.array(["a", None, "b", "a"]).dictionary_encode(),
        "name": pa.array(["x", None, "", "y"], pa.large_string()),
        "stay": pa.array([1, None, 3, 86_400_000_007], pa.duration("us")),
        "at": pa.array([1, None, 3, 4], pa.timestamp("us", "Europe/Rome")),
        "born": pa.array([dt.date(2020, 1, 1), None, dt.date(1, 1, 1), dt.date(2020, 1, 1)]),
        "clock": pa.array([1, None, 3, 4], pa.time32("ms")),
        "raw": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
        "parts": pa.array([[1, 2], None, [3, 4], [3, 5]], pa.list_(pa.int32(), 2)),
        "half": pa.array([1.5, None, 3.0, 4.0], pa.float32()),
    }
)


@pytest.mark.parametrize("into", ["table", "parquet"])
@pytest.mark.parametrize("out_of", ["table", "parquet"])
def test_types_stay_as_they_are(tmp_path, out_of, into):
    data = TYPED
    if out_of == "parquet":
        pq.write_table(TYPED, data := tmp_path / "rows.parquet")
    with pytest.warns(UserWarning, match="lacks"):
        scored = cd.predict_table(MODEL, data, keep="all", out=tmp_path / "out.parquet" if into == "parquet" else None)
    found = pq.read_table(tmp_path / "out.parquet") if into == "parquet" else scored
    assert found.select(TYPED.column_names).schema.equals(TYPED.schema)
    assert found.select(TYPED.column_names).to_pylist() == TYPED.to_pylist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_types_too(frame):
    rows = {"age": [25, 32], "stay": [dt.timedelta(days=1), dt.timedelta(seconds=1)], "name": ["x", None]}
    with pytest.warns(UserWarning, match="lacks"):
        scored = MODEL.predict_table(frame(rows), keep=list(rows))
    assert scored.select(list(rows)).to_pylist() == pa.table(rows).to_pylist()
    assert pa.types.is_duration(scored["stay"].type)
