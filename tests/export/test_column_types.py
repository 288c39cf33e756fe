"""Columns of other types than those fitted: a query reads them as ``predict`` reads them, or ends with an error.

Booleans where yes and no were counted, times of day and durations are what readers of CSV files and databases make of
the same values. Other programs than databases read them too.
"""

import datetime as dt
import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.export.databases import CLOSE, arrow, by_postgres, by_sqlite, check
from tests.export.scorers import SCORERS
from tests.serve.client import ask

import candide as cd
from candide.errors import InputError, InputTypeError
from candide.serve import app

pytestmark = pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
N = 60
Y = ["a", "b", "b"] * (N // 3)
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(i * i % 40) for i in range(N)]
TIMES = [dt.time(i % 24, (7 * i) % 60, i % 60, 250_000 * (i % 2)) for i in range(N)]
SPANS = [dt.timedelta(hours=(5 * i) % 37, seconds=i) for i in range(N)]
FITTED = {
    "number": ([(i * i) % 23 / 2 for i in range(N)], "gaussian"),
    "date": (DAYS, "gaussian"),
    "time": (TIMES, "gaussian"),
    "duration": (SPANS, "binned"),
    "yes or no": (["yes", "no", "no", "yes"] * 15, "categorical"),
    "Y, N or ?": (["Y", "N", "?", "Y"] * 15, "categorical"),
    "booleans": ([True, False, False, True] * 15, "categorical"),
    "codes": ([0, 1, 40, 1] * 15, "categorical"),
    "days": ([*DAYS[:4]] * 15, "categorical"),
    "text of times": (["01:30", "02:30:00", "noon", "1 day 02:00:00"] * 15, "categorical"),
    "text of dates": (["2024-01-01", "2024-01-02", "soon", "1"] * 15, "categorical"),
}
TYPES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1", "0", "40"],
    "HUGEINT": ["1", "40"],
    "FLOAT": ["1.5", "2"],
    "DECIMAL(12,2)": ["1.25", "40"],
    "DATE": ["2024-01-01", "2024-01-05"],
    "TIMESTAMP": ["2024-01-01 05:30:00.25", "2024-01-02"],
    "TIMESTAMPTZ": ["2024-01-01 05:30:00+00", "2024-01-02 01:00:00+01"],
    "TIMESTAMP_NS": ["2024-01-01 05:30:00"],
    "TIMESTAMPTZ_NS": ["2024-01-01 05:30:00+00", "2024-01-02 01:00:00+01"],
    "TIME": ["01:30:00", "02:30:00", "13:00:05.25"],
    "INTERVAL": ["5 hours", "1 day 2 hours", "-3 hours", "1 year 1 month 1 day"],
    "UUID": ["00000000-0000-0000-0000-000000000001"],
    "ENUM('noon', 'yes', 'true', '1')": ["noon", "yes", "true", "1"],
    "INTEGER[]": ["[1, 2]"],
    "STRUCT(a INTEGER)": ["{'a': 1}"],
}


@pytest.fixture(scope="module", params=FITTED)
def model(request):
    values, event = FITTED[request.param]
    return cd.fit(pa.table({"c": values, "y": Y}), target="y", model="naive", events={"c": event})


def predicted(model, rows):
    """The probabilities of rows, or None where they are refused."""
    try:
        return model.predict_proba(rows)
    except (InputError, InputTypeError):
        return None


def test_every_type_of_duckdb_is_read_as_predict_reads_it_or_refused(model):
    query = model.to_sql("duckdb", "t", keep="row #")
    with duckdb.connect() as con:
        for kind, values in TYPES.items():
            con.execute(f'CREATE OR REPLACE TABLE t ("row #" INT, c {kind})')
            con.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate([*values, None])))
            expected = predicted(model, con.sql('SELECT c FROM t ORDER BY "row #"').to_arrow_table())
            if expected is None and "ENUM" in kind:  # text in a column of numbers is missing
                continue
            if expected is None:
                with pytest.raises(duckdb.Error, match="column"):
                    con.execute(query).fetchall()
                continue
            found = np.array([row[2:] for row in sorted(con.execute(query).fetchall())], float)
            assert np.abs(found - expected).max() <= CLOSE, kind


POSTGRES = {
    "BOOLEAN": ["true", "false"],
    "INTEGER": ["1", "0", "40"],
    "NUMERIC(12,2)": ["1.25", "40"],
    "DATE": ["2024-01-01", "2024-01-05"],
    "TIMESTAMP": ["2024-01-01 05:30:00.25", "2024-01-02"],
    "TIME": ["01:30:00", "02:30:00", "13:00:05.25"],
    "INTERVAL": ["5 hours", "1 day 2 hours", "-3 hours", "1 year 1 month 1 day"],
    "UUID": ["00000000-0000-0000-0000-000000000001"],
    "INTEGER[]": ["{1,2}"],
}


def test_every_type_of_postgres_is_read_as_predict_reads_it_or_refused(model, postgres):
    """What the database cannot cast ends the query in its own words."""
    for kind, values in POSTGRES.items():
        name = f"typed{next(postgres.numbers)}"
        held = [f"({i}, CAST('{value}' AS {kind}))" for i, value in enumerate(values)]
        rows = f"INSERT INTO {name} VALUES {', '.join(held)}, ({len(values)}, NULL)"
        postgres.run(f'CREATE TABLE {name} ("row #" INT, c {kind})', rows)
        expected = predicted(model, {"c": [*map(POSTGRES_VALUES[kind], values), None]})
        try:
            said = postgres.run(model.to_sql("postgres", name, keep="row #"))
        except postgres.con.Error:
            continue
        assert expected is not None, kind
        found = np.array([row[2:] for row in sorted(said)], float)
        assert np.abs(found - expected).max() <= CLOSE, kind


def of_duckdb(kind):
    """What a value of a type is in Python, as DuckDB reads it."""
    return lambda text: duckdb.connect().execute(f"SELECT CAST(? AS {kind})", [text]).fetchone()[0]


def seconds(text):
    return duckdb.connect().execute("SELECT EPOCH(CAST(? AS INTERVAL))", [text]).fetchone()[0]


POSTGRES_VALUES = {kind: of_duckdb(kind) for kind in POSTGRES} | {
    "INTERVAL": lambda text: dt.timedelta(seconds=seconds(text)),
    "INTEGER[]": lambda text: [1, 2],
}


def test_booleans_times_and_durations_are_read_in_postgres(postgres):
    for kind in ("yes or no", "booleans", "time", "duration", "number"):
        values, event = FITTED[kind]
        model = cd.NaiveBayes({"c": event}).fit({"c": values}, Y)
        rows = [True, False, None] if kind in ("yes or no", "booleans") else TIMES[:5]
        data = {"c": np.array(rows, object)}
        check(by_postgres(postgres)(model.fitted_, arrow(data, data)), model, data)


def test_times_and_durations_that_are_text_in_sqlite():
    texts = ["13:05", "13:05:30.25", "00:00:00", None]
    model = cd.NaiveBayes({"c": "gaussian"}).fit({"c": TIMES}, Y)
    data = {"c": np.array(texts, object)}
    check(by_sqlite(model.fitted_, arrow(data, data)), model, data)
    model = cd.NaiveBayes({"c": "gaussian"}).fit({"c": SPANS}, Y)
    data = {"c": np.array(["1 day, 2:05:06", "5:00:00", "-1 day, 23:00:00", "2 days", "-03:00:00.5", None], object)}
    check(by_sqlite(model.fitted_, arrow(data, data)), model, data)


def test_times_in_sqlite_keep_their_milliseconds():
    moments = [dt.datetime(2024, 1, 1, 5) + dt.timedelta(milliseconds=i * i % 61) for i in range(N)]
    model = cd.NaiveBayes({"c": "gaussian"}).fit({"c": moments}, Y)
    data = {"c": np.array(moments, object)}
    said = sorted(by_sqlite(model.fitted_, arrow(data, data)))
    assert np.abs(np.array([row[2:] for row in said], float) - model.predict_proba(data)).max() <= 1e-6


def test_booleans_are_numbers_in_sqlite():
    model = cd.NaiveBayes({"c": "categorical"}).fit({"c": FITTED["yes or no"][0]}, Y)
    with sqlite3.connect(":memory:") as con:
        con.execute("CREATE TABLE t (i, c BOOLEAN)")
        con.executemany("INSERT INTO t VALUES (?, ?)", [(0, True), (1, False), (2, None), (3, 7)])
        said = con.execute(model.to_sql("sqlite", "t", keep="i")).fetchall()
    check(said, model, {"c": np.array([True, False, None, 7], object)})


def test_a_csv_whose_yes_and_no_duckdb_reads_as_booleans(tmp_path):
    answers = [["yes", "no", "no", "yes"][i % 4] for i in range(N)]
    lines = [
        f"{answer},{time:%H:%M},{i * i % 17},{y}"
        for i, (answer, time, y) in enumerate(zip(answers, TIMES, Y, strict=True))
    ]
    path = tmp_path / "bank.csv"
    path.write_text("\n".join(["loan,clock,age,y", *lines]))
    model = cd.fit(str(path), target="y")
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT row_number() OVER () AS i, * FROM read_csv('{path}')")
        kinds = con.sql("SELECT typeof(loan), typeof(clock) FROM t LIMIT 1").fetchall()
        assert kinds == [("BOOLEAN", "TIME")]
        found = sorted(con.execute(model.to_sql("duckdb", "t", keep="i")).fetchall())
    scored = model.predict_table(str(path)).to_pylist()
    expected = [[row["p_a"], row["p_b"]] for row in scored]
    assert np.abs(np.array([row[2:] for row in found], float) - expected).max() <= CLOSE


@pytest.mark.parametrize("dialect", ["bigquery", "clickhouse", "mysql", "snowflake", "spark", "trino", "tsql"])
def test_times_are_refused_where_a_query_cannot_read_them(dialect):
    model = cd.NaiveBayes({"c": "gaussian"}).fit({"c": TIMES}, Y)
    with pytest.raises(InputError) as error:
        model.to_sql(dialect, "t")
    assert error.value.column == "c"


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
@pytest.mark.parametrize("kind", FITTED)
def test_modules_read_times_and_booleans_as_predict_does(scorer, kind, tmp_path):
    values, event = FITTED[kind]
    model = cd.NaiveBayes({"c": event}).fit({"c": values}, Y)
    asked = {"time": ["13:05", "01:30:00.5"], "duration": ["1 day 02:00:00", "PT3H"], "number": [True, 2]}
    rows = asked.get(kind) or ([True, False, "yes", "F"] if kind != "date" else ["2024-01-03"])
    p = np.concatenate([model.predict_proba({"c": np.array([value], object)}) for value in rows])
    said = scorer(model.fitted_, [{"c": value} for value in rows], str(tmp_path))
    assert np.abs(np.array([one["probabilities"] for one in said]) - p).max() <= CLOSE


@pytest.mark.parametrize("kind", FITTED)
def test_a_server_reads_times_and_booleans_as_predict_does(kind):
    values, event = FITTED[kind]
    model = cd.NaiveBayes({"c": event}).fit({"c": values}, Y)
    served = app(model.fitted_)
    asked = {"time": ["13:05"], "duration": ["1 day 02:00:00"], "number": [True], "date": ["2024-01-03"]}
    for value in asked.get(kind, [True, "no", "F"]):
        [found] = ask(served, "/predict", [{"c": value}]).json
        expected = model.predict_proba({"c": np.array([value], object)})[0]
        assert [found["p_a"], found["p_b"]] == pytest.approx(expected.tolist(), abs=CLOSE)
    if event != "categorical":
        problem = ask(served, "/predict", [{"c": "soon"}])
        assert (problem.status, problem.json["column"]) == (422, "c")
