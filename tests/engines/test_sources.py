"""The same rows through every entry point give the same counts."""

import datetime as dt
import gzip
import io
import json
import zipfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError
from candide.estimators.naive_bayes import NaiveBayes
from candide.events import EventModel
from candide.fit_source import fit_model
from candide.validation.cross_validation import cross_validate

N = 500


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    height = np.round(170 + 8 * y + rng.normal(0, 6, N), 3)
    return pa.table(
        {
            "height": pa.array(height, mask=rng.random(N) < 0.1),
            "visits": pa.array(rng.poisson(2 + y).astype(np.int64)),
            "odd name; DROP \"x\" 'y'": pa.array(
                np.array(["cook", "smith", "it's", 'say "hi"'])[rng.integers(0, 4, N)]
            ),
            "region": pa.array(np.array(["north", "south", None], object)[rng.integers(0, 3, N)].tolist()),
            "member": pa.array(rng.integers(0, 2, N)),
            "label": pa.array(np.array(["a", "b", "yes"])[y]),
        }
    )


def write_csv(table: pa.Table, path) -> str:
    pyarrow.csv.write_csv(table, path)
    return str(path)


def entry_points(table: pa.Table, tmp):
    """Every way in, by name."""
    csv = write_csv(table, tmp / "rows.csv")
    (tmp / "rows.csv.gz").write_bytes(gzip.compress((tmp / "rows.csv").read_bytes()))
    tsv = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(table, tmp / "rows.tsv", tsv)
    pq.write_table(table, tmp / "rows.parquet")
    with open(tmp / "rows.jsonl", "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    pyarrow.feather.write_feather(table, tmp / "rows.feather")
    folder = tmp / "parts"
    folder.mkdir()
    for i in range(7):
        pq.write_table(table.slice(i * N // 7, (i + 1) * N // 7 - i * N // 7), folder / f"part-{i}.parquet")
    con = duckdb.connect(str(tmp / "rows.duckdb"))
    con.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(tmp / "rows.parquet")])
    con.close()
    return {
        "csv": csv,
        "csv.gz": tmp / "rows.csv.gz",
        "tsv": tmp / "rows.tsv",
        "parquet": tmp / "rows.parquet",
        "jsonl": str(tmp / "rows.jsonl"),
        "feather": tmp / "rows.feather",
        "folder": folder,
        "glob": str(folder / "*.parquet"),
        "duckdb file": tmp / "rows.duckdb",
        "query": f"SELECT * FROM read_parquet('{tmp / 'rows.parquet'}')",
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "pyarrow": table,
        "reader": table.to_reader(max_chunksize=64),
        "relation": duckdb.connect().from_arrow(table),
        "mapping": table.to_pydict(),
        "stream": _Stream(table),
    }


class _Stream:
    """Anything that speaks the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


NAMES = [
    "csv", "csv.gz", "tsv", "parquet", "jsonl", "feather", "folder", "glob", "duckdb file", "query",
    "pandas", "polars", "pyarrow", "reader", "relation", "mapping", "stream",
]  # fmt: skip


def assert_same_census(a, b):
    assert a.labels == b.labels
    assert a.n_rows == b.n_rows
    assert [(p.event, p.columns, p.levels) for p in a.plan.parts] == [
        (p.event, p.columns, p.levels) for p in b.plan.parts
    ]
    np.testing.assert_allclose(a.class_weight, b.class_weight, rtol=1e-12)
    for x, y in zip(a.tallies, b.tallies, strict=True):
        for name, state in x.arrays().items():
            np.testing.assert_allclose(state, y.arrays()[name], rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.fixture(scope="module")
def expected(rows):
    """The array engine, through the scikit-learn face."""
    frame = rows.to_pandas()
    return NaiveBayes().fit(frame.drop(columns="label"), frame["label"]).counts_


@pytest.mark.parametrize("entry_point", NAMES)
def test_every_entry_point_gives_the_same_counts(entry_point, rows, expected, tmp_path):
    source = entry_points(rows, tmp_path)[entry_point]
    assert_same_census(fit_model(source, "label", model="naive").fitted.counts, expected)


def test_standard_input(rows, expected, monkeypatch, tmp_path):
    text = write_csv(rows, tmp_path / "in.csv")
    stdin = io.TextIOWrapper(io.BytesIO(Path(text).read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert_same_census(fit_model("-", "label", model="naive").fitted.counts, expected)


@pytest.mark.parametrize("ending", ["gz", "zip"])
def test_packed_standard_input_is_refused_by_that_name(ending, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rows.csv", "x,label\n1,a\n")
    content = gzip.compress(b"x,label\n1,a\n") if ending == "gz" else packed.getvalue()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(SourceError, match="standard input: ") as refused:
        fit_model("-", "label", model="naive")
    assert {"gz": "gunzip -c FILE", "zip": "unzip FILE"}[ending] in refused.value.remedy


@pytest.mark.parametrize("delimiter", ["", "ab", "\n", 5])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(InputError, match="delimiter") as refused:
        ReadOptions(delimiter=delimiter)
    assert refused.value.value == delimiter
    assert "one character" in refused.value.remedy


def test_hive_partitions_are_columns(rows, tmp_path):
    frame = rows.to_pandas()
    frame.to_parquet(tmp_path / "hive", partition_cols=["region"])
    census = fit_model(tmp_path / "hive", "label", model="naive").fitted.counts
    assert "region" in census.plan.columns
    assert census.n_rows == N


def test_a_csv_without_header_and_with_another_delimiter(rows, expected, tmp_path):
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter="|")
    pyarrow.csv.write_csv(rows, tmp_path / "bare.txt", options)
    census = fit_model(
        tmp_path / "bare.txt", "column5", reading=ReadOptions(header=False, delimiter="|"), model="naive"
    ).fitted.counts
    for a, b in zip(census.tallies, expected.tallies, strict=True):
        for name, state in a.arrays().items():
            np.testing.assert_allclose(state, b.arrays()[name], rtol=1e-10)


def test_weights_equal_copies_in_every_tally_kind(rows):
    counts = np.arange(N) % 4
    heavy = rows.append_column("w", pa.array(counts))
    copied = rows.take(pa.array(np.repeat(np.arange(N), counts)))
    events = {"visits": "poisson"}
    weighted = fit_model(heavy, "label", weight="w", events=events, model="naive").fitted.counts
    plain = fit_model(copied, "label", events=events, model="naive").fitted.counts
    for a, b in zip(weighted.tallies, plain.tallies, strict=True):
        for name, state in a.arrays().items():
            np.testing.assert_allclose(state, b.arrays()[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    "events", [{"visits": "poisson"}, {"visits": "exponential"}, {"height": "lognormal"}, {"visits": "bernoulli"}]
)
def test_every_event_model_counts_the_same_on_both_engines(rows, events):
    frame = rows.to_pandas()
    arrays = NaiveBayes(events=events).fit(frame.drop(columns="label"), frame["label"]).counts_
    assert_same_census(fit_model(rows, "label", events=events, model="naive").fitted.counts, arrays)


def test_moments_are_accurate_far_from_zero():
    rng = np.random.default_rng(1)
    x = 1e9 + rng.normal(0, 1, 20_000)
    y = np.arange(20_000) % 2
    w = rng.integers(1, 4, 20_000).astype(float)
    data = pa.table({"x": x, "w": w, "y": y})
    for weight in (None, "w"):
        tally = fit_model(data, "y", weight=weight, drop=() if weight else ("w",), model="naive").fitted.counts.tallies[
            0
        ]
        variance = tally.m2 / tally.n
        for c in (0, 1):
            mine = y == c
            expected = np.cov(x[mine] - 1e9, aweights=w[mine] if weight else None, ddof=0)
            np.testing.assert_allclose(variance[c, 0], expected, rtol=1e-6)


def test_weighted_moments_are_accurate_where_the_head_misleads():
    rng = np.random.default_rng(2)
    y = np.repeat(["near", "it's far"], 25_000)
    x = np.where(y == "near", 0.0, 1e9) + rng.normal(0, 1, 50_000)
    w = rng.integers(1, 4, 50_000).astype(float)
    tally = fit_model(pa.table({"x": x, "w": w, "y": y}), "y", weight="w", model="naive").fitted.counts.tallies[0]
    for c, label in enumerate(["it's far", "near"]):
        mine = y == label
        centred = x[mine] - (1e9 if c == 0 else 0.0)
        np.testing.assert_allclose(tally.m2[c, 0] / tally.n[c, 0], np.cov(centred, aweights=w[mine], ddof=0), rtol=1e-6)


class Halved(EventModel):
    """An event model SQL knows nothing of: half the value is exponential."""

    name, kind = "halved", "sums"

    def transform(self, x):
        return x / 2

    def parameters(self, tally, prior, how):
        return {"rate": tally.n / tally.total}

    def log_density(self, x, rate):
        return np.log(rate / 2) - rate * x / 2


@pytest.mark.parametrize("folds", [0, 3])
def test_an_own_event_model_is_counted_from_batches(rows, folds):
    data = rows.append_column("wait", pa.array(1.0 + np.arange(N) % 7))
    events = {"wait": Halved()}
    frame = data.to_pandas()
    census = NaiveBayes(events=events).fit(frame.drop(columns="label"), frame["label"]).counts_
    if folds:
        assert cross_validate(data, "label", events=events, folds=folds, model="naive").total.n == N
    assert_same_census(fit_model(data, "label", events=events, model="naive").fitted.counts, census)


def test_dates_are_days(tmp_path):
    when = pd.date_range("2020-01-01", periods=60, freq="37h")
    data = pa.table({"when": pa.array(when), "day": pa.array(when.date), "y": [0, 1] * 30})
    census = fit_model(data, "y", model="naive").fitted.counts
    days = (when - pd.Timestamp(0)).total_seconds().to_numpy() / 86400
    np.testing.assert_allclose(census.tallies[0].mean[:, 0], [days[::2].mean(), days[1::2].mean()], rtol=1e-12)
    frame = data.to_pandas()
    assert_same_census(census, NaiveBayes().fit(frame.drop(columns="y"), frame["y"]).counts_)


def test_times_of_day_and_durations_are_days():
    minutes = np.arange(60) * 23
    clock = [None, *((dt.datetime(2020, 1, 1) + dt.timedelta(minutes=int(m))).time() for m in minutes[1:])]
    lasts = [dt.timedelta(minutes=int(m)) for m in minutes]
    data = pa.table({"clock": pa.array(clock), "lasts": pa.array(lasts), "y": [0, 1] * 30})
    census = fit_model(data, "y", model="naive").fitted.counts
    days = minutes / (24 * 60)
    expected = [[days[2::2].mean(), days[::2].mean()], [days[1::2].mean(), days[1::2].mean()]]
    np.testing.assert_allclose(census.tallies[0].mean, expected, rtol=1e-12)
    frame = pd.DataFrame({"clock": clock, "lasts": pd.Series(lasts)})
    assert_same_census(census, NaiveBayes().fit(frame, data["y"].to_pandas()).counts_)


def test_whole_numbers_past_the_floats_are_an_identifier_or_rounded():
    n = 60
    steps, spread = [2**60 + i for i in range(n)], [2**60 + 2**40 * (i * 7 % n) for i in range(n)]
    data = pa.table({"key": steps, "size": pa.array([None, *spread[1:]]), "y": [0, 1] * 30})
    learned = fit_model(data, "y", model="naive")
    assert {c.name: c.kind for c in learned.columns} == {"key": "identifier", "size": "number"}
    np.testing.assert_allclose(learned.fitted.counts.tallies[0].mean[1, 0], np.mean(spread[1::2]), rtol=1e-12)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("events", ["auto", {"z": "exponential"}, {"z": "lognormal"}, {"z": "bernoulli"}])
def test_nan_is_missing_even_where_sample_and_file_have_none(tmp_path, events, weight):
    """Parquet's notes on the least and largest value leave NaN out, and the first of them comes after the look."""
    rng, n = np.random.default_rng(0), 30_000
    x, z, w, y = rng.normal(size=n), rng.exponential(size=n), rng.random(n), rng.integers(0, 2, n)
    x[25_000], z[27_000] = np.nan, np.nan
    pq.write_table(pa.table({"x": x, "z": z, "w": w, "y": y}), tmp_path / "rows.parquet")
    census = fit_model(
        tmp_path / "rows.parquet", "y", events=events, weight=weight, drop=[] if weight else ["w"], model="naive"
    )
    plain = NaiveBayes(events=events).fit({"x": x, "z": z}, y, sample_weight=w if weight else None)
    assert_same_census(census.fitted.counts, plain.counts_)
    x[25_001] = np.inf
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "rows.parquet")
    with pytest.raises(InputError) as error:
        fit_model(tmp_path / "rows.parquet", "y", model="naive")
    assert error.value.column == "x"


def test_a_folder_is_read_whole(rows, tmp_path):
    """Names with dots, packed beside plain files, several endings of one format, folders within."""
    (tmp_path / "parquet" / "within").mkdir(parents=True)
    (tmp_path / "csv").mkdir()
    third = [rows.slice(0, 100), rows.slice(100, 150), rows.slice(250)]
    for part, name in zip(third, ["sales.2023.parquet", "sales.2024.parquet", "within/more.pq"], strict=True):
        pq.write_table(part, tmp_path / "parquet" / name)
    for part, name in zip(third, ["one.csv", "two.csv", "three.v2.csv"], strict=True):
        write_csv(part, tmp_path / "csv" / name)
    packed = gzip.compress((tmp_path / "csv" / "two.csv").read_bytes())
    (tmp_path / "csv" / "two.csv").unlink()
    (tmp_path / "csv" / "two.csv.gz").write_bytes(packed)
    for kind in ("parquet", "csv"):
        assert fit_model(str(tmp_path / kind), "label", model="naive").fitted.counts.n_rows == N


def test_a_folder_of_several_formats_is_refused(rows, tmp_path):
    write_csv(rows, tmp_path / "one.csv")
    (tmp_path / "two.tsv").write_text((tmp_path / "one.csv").read_text().replace(",", "\t"))
    with pytest.raises(SourceError) as error:
        fit_model(str(tmp_path), "label", model="naive")
    assert (error.value.source, error.value.value) == (str(tmp_path), ["csv", "tsv"])


def test_one_spelling_of_missing_is_not_read_letter_by_letter(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("code,y\n" + "A,p\nN,q\nNA,p\nA,q\n" * 10)
    model = cd.fit(str(path), target="y", na="NA", model="naive")
    assert model.counts_.plan.parts[0].levels[0].values == ("A", "N")
    assert model.counts_.tallies[0].n.sum() == 30
