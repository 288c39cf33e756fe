"""Spark counts, scores and refuses as the array engine does, wherever its rows lie."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.typed import ask, run
from tests.engines.spark_session import needs_spark, session
from tests.engines.test_counts import written
from tests.engines.test_engines import same

import candide as cd
from candide.data.table import Table
from candide.engines.base import LabelledSource, get_engine
from candide.engines.counting import prepare_source
from candide.engines.draw_sample import draw_sample
from candide.engines.spark.source import Spark, SparkSource
from candide.engines.sql.offline_query import HEADER
from candide.errors import InputError, SourceError
from candide.fit_source import fit_model
from candide.testing import check_engine
from candide.testing.checks import check_same_state
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate

pytestmark = [needs_spark, pytest.mark.filterwarnings("ignore:.*pandas >= 3:FutureWarning")]


@pytest.fixture(scope="module")
def spark():
    with session(**{"spark.sql.session.timeZone": "America/New_York"}) as spark:
        yield spark


def test_a_pasted_query_counts_times_in_no_zone(spark):
    """Two instants of the hour that clocks have twice are two levels; what looks like a setting is none."""
    times = [
        datetime.datetime(2024, 11, 3, 4, 30, tzinfo=datetime.UTC) + datetime.timedelta(hours=i) for i in range(4)
    ] * 10
    t = pa.array(times, pa.timestamp("us", "UTC"))
    rows = pa.table({"t": t, "s": ["${spark.app.name}", "b"] * 20, "y": ["a", "b", "b", "a", "a"] * 8})
    query = cd.make_counting_query(rows, "y", table="pasted", dialect="spark", events={"t": "categorical"})
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        spark.createDataFrame(rows).selectExpr("CAST(t AS TIMESTAMP_LTZ) AS t", "s", "y").createOrReplaceTempView(
            "pasted"
        )
        found = cd.fit_from_counts(written(HEADER, map(tuple, spark.sql(query).collect())))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.catalog.dropTempView("pasted")
    same(found.fitted.counts, fit_model(rows, "y", model="naive", events={"t": "categorical"}).fitted.counts)
    with pytest.raises(InputError) as error:
        cd.make_counting_query(rows.rename_columns(["t", "${s}", "y"]), "y", table="pasted", dialect="spark")
    assert error.value.column == "${s}"


@pytest.mark.all_cases
def test_it_passes_the_engine_checks_on_executors(spark):
    """Rows that are made anew each time are counted by no query; those that are read are in the test of a cluster."""
    check_engine(get_engine("spark"), lambda table: spark.createDataFrame(table).repartition(2))


@pytest.fixture(scope="module")
def mixed():
    """Rows of every type that Spark has for one value."""
    rng = np.random.default_rng(0)
    n = 600
    kind = rng.integers(0, 2, n)
    x = rng.normal(kind, 1.0, n)
    gaps = rng.random(n) < 0.1
    start = datetime.datetime(2024, 3, 9, 12)  # a night later clocks are set, in New York
    moments = [start + datetime.timedelta(i * 37 % 2048 / 1024) for i in range(n)]  # of days: no engine rounds them
    return pa.table(
        {
            "a.b": pa.array(x, from_pandas=True),
            "gappy": pa.array(np.where(gaps, np.nan, rng.normal(kind, 2.0, n)), from_pandas=False),
            "say `x`": pa.array(x + 1e8 + rng.normal(size=n)),
            'the "y"': pa.array([Decimal(round(v * 100)) / 100 for v in x], pa.decimal128(12, 2)),
            "Day": pa.array([start.date() + datetime.timedelta(int(k * 30 + i % 40)) for i, k in enumerate(kind)]),
            "moment": pa.array(moments, pa.timestamp("us")),
            "instant": pa.array(moments, pa.timestamp("us", "UTC")),
            "flag": pa.array(x > 0.5),
            "job": pa.array(np.where(gaps, None, np.array(["cook", "smith", "tailor"])[rng.integers(0, 3, n)])),
            "small": pa.array(rng.integers(0, 5, n), pa.int8()),
            "key": pa.array([f"k{i % 97}" for i in range(n)]),
            "w": pa.array(rng.choice([0.0, 0.5, 2.0], n)),
            "label": pa.array([None if i % 50 == 7 else ("no", "yes")[k] for i, k in enumerate(kind)]),
        }
    )


@pytest.mark.parametrize(("model", "is_read"), [("naive", True), ("naive", False), ("bayes", False)])
def test_every_type_is_counted_as_the_array_engine_does(spark, mixed, model, is_read):
    """By queries of rows that are only read, with all laws that queries say; else on executors."""
    frame = spark.createDataFrame(mixed)
    frame = frame if is_read else frame.repartition(3).localCheckpoint()
    with get_engine("spark").open(frame) as source:
        assert source.can_answer("label", "w") == is_read
    mine, theirs = (
        fit_model(rows, "label", model=model, weight="w") for rows in (frame, Table.from_data(frame.toArrow()))
    )
    assert mine.fitted.counts.n_rows == 588
    assert mine.fitted.plan == theirs.fitted.plan
    assert not spark.catalog.listTables()
    for a, b in zip(mine.fitted.counts.tallies, theirs.fitted.counts.tallies, strict=True):
        check_same_state(a, b, 1e-9)
    assert [remark.code for remark in mine.notes] == [remark.code for remark in theirs.notes]
    p, q = (cd.predict_table(one, mixed, keep=["job"]) for one in (mine.fitted, theirs.fitted))
    np.testing.assert_allclose(p["p_yes"].to_numpy(), q["p_yes"].to_numpy(), atol=1e-9)


def counted(rows):
    """The rows of a census, and the values of each of its tallies."""
    census = fit_model(rows, "y", model="naive").fitted.counts
    each = [tally.arrays() for tally in census.tallies]
    return [census.n_rows, *(arrays["n" if "n" in arrays else "counts"].sum() for arrays in each)]


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("version", [1, 2])  # of Spark's readers
def test_rows_that_are_malformed_are_dropped_from_all_counts(spark, tmp_path, form, version):
    """Which of them are depends on the columns that are read, so all are read at once."""
    rows = [(i % 10, "x" if i % 7 == 0 else i % 13, "uvw"[i % 3], "no" if i % 2 else "yes") for i in range(300)]
    lines = [
        ",".join(map(str, row)) if form == "csv" else json.dumps(dict(zip("absy", row, strict=True))) for row in rows
    ]
    path = tmp_path / f"rows.{form}"
    path.write_text("\n".join(lines))
    before = spark.conf.get("spark.sql.sources.useV1SourceList")
    spark.conf.set("spark.sql.sources.useV1SourceList", before if version == 1 else "")
    try:
        read = spark.read.format(form).schema("a double, b double, s string, y string")
        read = read.options(mode="DROPMALFORMED").load(str(path))
        with get_engine("spark").open(read) as source:
            assert not source.can_answer("y", None)
        assert counted(read) == counted(read.toArrow()) == [257, 2 * 257, 257]
    finally:
        spark.conf.set("spark.sql.sources.useV1SourceList", before)


def test_floats_of_32_bits_are_their_shortest_decimals(spark):
    """Levels and classes, and with numbers that are summed again."""
    x = pa.array(np.resize([0.1, 0.3, 1.7272904e9], 90), pa.float32())  # Java: 1.72729037E9
    rows = pa.table({"x": x, "far": np.resize([1e17, 1.0, 1e-9, -1e17], 90), "y": ["a", "b"] * 45})
    frame = spark.createDataFrame(rows)
    how = {"events": {"x": "categorical"}, "model": "naive"}
    same(fit_model(frame, "y", **how).fitted.counts, fit_model(rows, "y", **how).fitted.counts)
    by_float = fit_model(frame.drop("y"), "x", model="naive").fitted.counts
    same(by_float, fit_model(rows.drop_columns("y"), "x", model="naive").fitted.counts)
    assert by_float.labels.values == (0.1, 0.3, 1727290400.0)


def test_a_name_that_looks_like_a_setting_is_a_name(spark):
    spark.conf.set("candide.test", "other")
    rows = pa.table({"${candide.test}": np.sin(range(90)), "other": np.arange(90.0), "y": ["a", "b", "b"] * 30})
    try:
        with get_engine("spark").open(spark.createDataFrame(rows)) as source:
            assert source.can_answer("y", None)
            same(fit_model(source, "y", model="naive").fitted.counts, fit_model(rows, "y", model="naive").fitted.counts)
    finally:
        spark.conf.unset("candide.test")
    assert spark.conf.get("spark.sql.variable.substitute") == "true"


def test_rows_that_may_be_others_again_are_counted_once(spark):
    """Spark says which, but of the clock and of what is encrypted."""
    some = spark.range(90).selectExpr("sin(id) AS x", "string(id % 3) AS c", "id % 2 AS y")
    chance = "{}('java.util.UUID', 'randomUUID') < '8'"
    changing = [chance.format(name) for name in ("reflect", "java_method", "try_reflect")]
    changing += ["randstr(1) < 'V'", "uniform(0, 10) < 5", "uuid() < '8'", "x < rand()", "x < unix_timestamp()"]
    changing += ["hex(aes_encrypt(c, '0000111122223333')) < '8'", "x < unix_timestamp(now())", "c < current_date()"]
    for filtered in changing:
        with get_engine("spark").open(some.filter(filtered)) as source:
            assert not source.can_answer("y", None), filtered
    assert len(set(counted(some.filter(changing[0])))) == 1
    stored = some.filter("x < rand()").cache()
    for same_again in (some.filter("x < 0.5"), stored, stored.union(some)):
        with get_engine("spark").open(same_again) as source:
            assert source.can_answer("y", None)
    stored.unpersist()
    with get_engine("spark").open(stored.union(some.filter("x < rand()"))) as source:
        assert not source.can_answer("y", None)


def test_names_that_differ_in_case_only(spark):
    frame = spark.range(90).selectExpr("sin(id) AS x", "cos(id) AS X", "id % 2 AS y")
    census = fit_model(frame, "y", model="naive").fitted.counts
    waves = np.sin(np.arange(90)), np.cos(np.arange(90))
    want = [[wave[k::2].mean() for wave in waves] for k in range(2)]
    np.testing.assert_allclose(census.tallies[0].mean, want, atol=1e-12)


class Patient(Spark):
    """As if a few partitions were very many."""

    max_partitions, add_group_size = 3, 2


def test_results_of_many_partitions_are_added_on_executors(spark):
    frame = spark.range(2000, numPartitions=7).selectExpr("sin(id) AS x", "id % 3 AS y", "string(id % 7) AS z")
    x = np.sin(np.arange(2000))
    with Patient().open(frame) as source:
        census = fit_model(source, "y", model="naive").fitted.counts
        seen = draw_sample(LabelledSource(source, "y"), prepare_source(source, "y"), rows=500)
    np.testing.assert_allclose(census.tallies[0].mean[:, 0], [x[k::3].mean() for k in range(3)], atol=1e-12)
    np.testing.assert_allclose(seen.table.column("x"), x[seen.row_number])
    assert len(seen) == 500
    assert len(set(seen.row_number // 286)) == 7


def test_folds_are_the_same_again_or_refused(spark, mixed):
    frame = spark.createDataFrame(mixed.drop_columns(["w"]))
    found = cross_validate(frame, "label", folds=4, model="naive")
    assert found.total.n == 588
    assert cross_validate(frame, "label", folds=4, model="naive").total.confusion.tolist() == (
        found.total.confusion.tolist()
    )
    shuffled = frame.repartition(2)
    with pytest.raises(InputError) as caught:
        cross_validate(shuffled, "label", folds=4, model="naive")
    assert "fold_by" in caught.value.remedy
    assert cross_validate(shuffled, "label", folds=4, model="naive", fold_by="key").total.n == 588


def test_what_cannot_be_read_is_named(spark):
    nested = spark.sql("SELECT id AS x, array(id) AS many, id % 2 AS y FROM range(50)")
    with pytest.raises(InputError) as caught:
        fit_model(nested, "y", events={"many": "gaussian"})
    assert caught.value.column == "many"
    with pytest.raises(InputError) as caught:
        fit_model(spark.sql("SELECT make_interval(0, 0, 0, 1) AS v, id % 2 AS y FROM range(50)"), "y")
    assert caught.value.column == "v"
    with pytest.raises(SourceError) as caught:
        fit_model(spark.sql("SELECT id AS x, 1 AS x, id % 2 AS y FROM range(50)"), "y")
    assert caught.value.value == "x"
    with pytest.raises(InputError, match="no rows"):
        fit_model(spark.sql("SELECT 1 AS x, 2 AS y WHERE 1 = 0"), "y")
    with pytest.raises(InputError) as caught:
        fit_model(
            spark.sql("SELECT if(id = 40, double('inf'), sin(id)) AS x, id % 2 AS y FROM range(50)"), "y", model="naive"
        )
    assert caught.value.column == "x"


def test_an_address_names_a_table_a_path_or_a_query(spark, tmp_path):
    spark.range(60).selectExpr("sin(id) AS x", "id % 2 AS y").write.parquet(str(tmp_path / "rows.parquet"))
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("rows")
    for what in ("rows", str(tmp_path / "rows.parquet"), "select * from rows"):
        assert cd.fit(f"spark://local::{what}", target="y").fitted_.counts.n_rows == 60
    assert cd.fit("spark://local", target="y", table="rows").fitted_.counts.n_rows == 60
    for what in ("no_such_table", str(tmp_path / "none.parquet")):
        with pytest.raises(SourceError) as caught:
            cd.fit(f"spark://local::{what}", target="y")
        assert what in str(caught.value)
        assert "\n" not in str(caught.value)


def test_scored_rows_stay_on_the_cluster(spark, mixed, tmp_path, monkeypatch):
    frame = spark.createDataFrame(mixed)
    model = cd.NaiveBayes().fit(mixed.drop_columns(["label", "w"]), np.array(mixed["flag"]))
    keep = ["a.b", "Day", "moment", 'the "y"', "flag", "label"]
    scored = model.predict_table(frame, keep=keep)
    assert scored.schema.fields[: len(keep)] == frame.select([f"`{name}`" for name in keep]).schema.fields
    want = model.predict_table(mixed, keep=keep)
    assert scored.columns == want.column_names
    found = scored.toArrow()
    assert found.select([*keep, "prediction"]).to_pylist() == want.select([*keep, "prediction"]).to_pylist()
    for name in want.column_names[-3:]:
        np.testing.assert_allclose(found[name].to_numpy(), want[name].to_numpy(), rtol=1e-12)
    assert model.predict_table(frame, str(tmp_path / "scored.csv"), keep=["label"]) == 600
    with monkeypatch.context() as no_rows:  # are sent to the driver
        no_rows.setattr(SparkSource, "batches", None)
        scores = evaluate(model.fitted_, frame.repartition(3), "flag", weight="w")
    want = evaluate(model.fitted_, mixed, "flag", weight="w")
    assert (scores.n, scores.confusion.tolist()) == (want.n, want.confusion.tolist())
    assert scores.metrics() == pytest.approx(want.metrics(), rel=1e-9)


def test_through_the_command_line(spark, tmp_path):
    """Rows on a cluster stand where a file would, in every command that reads some."""

    def accuracy(*arguments):
        return ask("evaluate", *arguments)["metrics"]["accuracy"]["value"]

    made = spark.range(200).selectExpr("sin(id) + id % 2 AS x", "string(id % 7) AS s", "id % 97 AS k", "id % 2 AS y")
    made.write.parquet(str(tmp_path / "rows.parquet"))
    data, model = f"spark://local::{tmp_path}/rows.parquet", tmp_path / "rows.candide"
    how = ["--target", "y", "--drop", "k", "--model", "naive"]
    assert run("fit", data, *how, "-o", model).exit_code == 0
    assert run("predict", model, data, "-o", tmp_path / "scored.csv").exit_code == 0
    rows = tmp_path / "copy.parquet"
    parquet.write_table(made.toArrow(), rows)
    assert accuracy(model, data) == accuracy(model, rows)
    folds = ["--target", "y", "--model", "naive", "--folds", "3", "--fold-by", "k"]
    assert accuracy(data, *folds) == accuracy(rows, *folds)
    for command, left in (("update", 400), ("forget", 200)):
        assert run(command, model, data).exit_code == 0
        assert cd.load(model).fitted_.counts.n_rows == left
    assert run("check", data, "--target", "y").exit_code == 0


def test_the_setting_of_batches_is_left_as_it_was(spark, mixed):
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    cd.fit(spark.createDataFrame(mixed), target="label")
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before


def test_executors_without_the_package_are_reported(spark, monkeypatch):
    frame = spark.range(50).repartition(1).selectExpr("sin(id) AS x", "id % 2 AS y")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/usr/bin/python3")
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", "")
    with pytest.raises(SourceError) as caught:
        fit_model(frame, "y", model="naive")
    assert "PYSPARK_PYTHON" in caught.value.remedy


@pytest.mark.parametrize("address", ["spark://127.0.0.1:1::rows", "spark://nowhere::rows", "spark://local"])
def test_a_wrong_address_is_refused_at_once(address, monkeypatch):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(SourceError) as caught:
        fit_model(address, "y")
    assert caught.value.source == address
    assert caught.value.remedy


def test_a_missing_java_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ImportError, match="JRE"):
        fit_model("spark://local::rows", "y")
