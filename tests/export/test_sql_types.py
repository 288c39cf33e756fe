"""A model as a query, in tables whose columns have other types than those it was fitted to, or collations."""

import datetime as dt

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.export.databases import arrow, by_duckdb, by_postgres, check

import candide as cd
from candide.engines.sql.dialects.registry import get_dialect
from candide.export.sql.lookups import line_segments


@pytest.fixture(params=["duckdb", "postgres"])
def score(request):
    return by_duckdb if request.param == "duckdb" else by_postgres(request.getfixturevalue("postgres"))


def test_floats_of_32_bits_are_what_their_decimals_spell(score):
    data = {"x": np.array([0.1, 0.2, 2.5, 1e10] * 10, np.float32)}
    for fitted in (data, {"x": data["x"].astype(float).round(1)}):
        model = cd.NaiveBayes("categorical").fit(fitted, [0, 1, 1, 2, 2] * 8)
        check(score(model.fitted_, arrow(data, data)), model, data)

    numbers = {"x": np.linspace(0.1, 0.7, 40, dtype=np.float32)}  # which a law of numbers reads bit by bit
    model = cd.NaiveBayes("gaussian").fit({"x": 0.3 + (numbers["x"] - 0.3) / 1000}, [0, 1] * 20)
    check(score(model.fitted_, arrow(numbers, numbers)), model, numbers)


LETTERS = ["a", "A", "b", "B ", "B", "z", ""]


def model_of_letters():
    return cd.NaiveBayes("categorical").fit({"s": LETTERS[:5] * 20}, [0, 0, 1, 1, 2, 2, 0, 1, 2, 1] * 10)


@pytest.mark.parametrize("collation", ["NOCASE", "NOCASE.NOACCENT"])
def test_text_is_compared_letter_by_letter_in_duckdb(collation):
    model = model_of_letters()
    with duckdb.connect() as con:
        con.execute(f'CREATE TABLE t ("row #" INT, s VARCHAR COLLATE {collation})')
        con.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(LETTERS)))
        check(con.execute(model.to_sql("duckdb", "t", keep="row #")).fetchall(), model, {"s": [*LETTERS[:-1], None]})


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
def test_text_is_compared_letter_by_letter_in_postgres(postgres):
    model, data = model_of_letters(), {"s": np.array([*LETTERS[:-1], None], object)}
    numbers = cd.NaiveBayes("categorical").fit({"s": [1, 2, 2, 3] * 20}, [0, 1, 2, 1] * 20)
    postgres.run(
        "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        'CREATE TABLE letters ("row #" INT, s TEXT COLLATE folded)',
        *(f"INSERT INTO letters VALUES ({i}, '{text}')" for i, text in enumerate(LETTERS)),
    )
    for one in (model, numbers):
        check(postgres.run(one.to_sql("postgres", "letters", keep="row #")), one, data)


def test_text_of_other_databases():
    """By reading: blanks at the end of a text make a difference, and it is of any script."""
    model = cd.NaiveBayes("categorical").fit({"s": ["a", "a ", "é"] * 9}, [0, 1, 2] * 9)
    query = model.to_sql("tsql", "t")
    assert all(text in query for text in ("N'a.'", "N'a .'", "N'é.'", "+ N'.')"))
    assert "utf8mb4_0900_bin" in model.to_sql("mysql", "t")  # utf8mb4_bin takes no heed of such blanks


DAYS = [dt.date(2024, 2, 20) + dt.timedelta(i * i % 17) for i in range(60)]


@pytest.mark.parametrize("event", ["gaussian", "categorical"])
def test_dates_that_are_text_in_the_table(score, event):
    rows = pa.table({"d": DAYS, "y": ["a", "b", "b", "c"] * 15})
    model = cd.fit(rows, target="y", model="naive", events={"d": event})
    zoned = ["2024-02-29 22:00:00+00", "2024-03-01 01:30:00+02:00", "2024-03-01T03:00:00Z", "2024-03-01 12:00"]
    data = {"d": np.array([*map(str, DAYS[:9]), *zoned, None], object)}
    check(score(model.fitted_, arrow(data, data)), model, data)


def test_knots_too_close_for_a_slope_have_a_step_between_them():
    knots, values = [0.0, 5e-324, 1e-320, 1.0], np.array([-2.0, -1.0, 0.5, 3.0])
    base, slope, start = line_segments(knots, values)
    assert np.isfinite(slope).all()
    at = np.searchsorted(knots, knots)  # of each knot the line that ends there
    assert base[at] + slope[at] * (np.array(knots) - start[at]) == pytest.approx(values)


def test_numbers_too_close_for_a_slope(score):
    x = np.array([0.0, 5e-324, 1e-320, 2e-310, 1e-300, 1.0] * 50)
    data = {"x": x, "z": np.arange(300) % 7.0}
    model = cd.BayesClassifier().fit(data, ((np.arange(300) * 7) % 11 + (x > 0)) > 5)
    check(score(model.fitted_, arrow(data, data)), model, data)


def test_a_text_that_looks_like_a_setting_is_split_in_spark():
    assert get_dialect("spark").quote_string("a ${b}${c}") == "CONCAT('a $', '{b}$', '{c}')"
    assert get_dialect("postgres").quote_string("a ${b}") == "'a ${b}'"


CLOCKS = [dt.time(i * 7 % 10 + 12 * (i % 2), 5) for i in range(60)]


@pytest.mark.parametrize(
    ("values", "text", "number"), [(DAYS, "2024-02-21", 20240221), (CLOCKS, "03:05:00", 10)], ids=["dates", "times"]
)
def test_what_is_not_a_date_or_time_is_missing_as_text_and_ends_the_query_as_a_number(postgres, values, text, number):
    model = cd.NaiveBayes().fit({"x": values, "size": np.arange(60) % 7 / 3}, ["a", "b"] * 30)
    postgres.run("DROP TABLE IF EXISTS asked", "CREATE TABLE asked (x TEXT, size FLOAT)")
    for value, expected in ((text, text), ("20240221", None), ("10", None), ("soon", None)):
        postgres.run("DELETE FROM asked", f"INSERT INTO asked VALUES ('{value}', 1)")
        [found] = postgres.run(model.to_sql("postgres", "asked"))
        assert found[1:] == pytest.approx(model.predict_proba({"x": [expected], "size": [1.0]})[0])
    postgres.run("DROP TABLE asked", f"CREATE TABLE asked AS SELECT {number} AS x, 3.0 AS size")
    with pytest.raises(Exception, match=r"does not hold times|cannot cast"):
        postgres.run(model.to_sql("postgres", "asked"))
    postgres.run("DROP TABLE asked")


def test_text_that_is_not_a_finite_number_is_an_unseen_level_among_numbers(score):
    model = cd.NaiveBayes("categorical").fit({"x": [1, 2, 2, 3] * 20}, [0, 1, 2, 1] * 20)
    unseen = model.predict_proba({"x": [99]})[0]
    for text in ("nan", "NaN", "inf", "-Infinity", "1e400", "word"):
        data = {"x": np.array([text], object)}
        assert model.predict_proba(data)[0] == pytest.approx(unseen)
        check(score(model.fitted_, arrow(data, data)), model, data)
    numbers = {"x": np.array([np.nan, np.inf, 2.0])}
    check(score(model.fitted_, arrow(numbers, numbers)), model, numbers)
