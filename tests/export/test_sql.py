"""A model as a query says what the model says, in every database: every law, every voice, real tables, odd values."""

import datetime as dt
import itertools
import sqlite3
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from tests.engines.spark_session import needs_spark, session
from tests.export.databases import DATABASES, arrow, by_postgres, by_spark, check
from tests.export.test_policies import POLICIES
from tests.export.test_policies import rows as drawn
from tests.export.test_scorers import LAWS, adult, every_law, real
from tests.model_cases import MODELS

import candide as cd
from candide.data.notes import DataWarning
from candide.engines.sql.dialects.registry import DIALECTS
from candide.errors import InputError
from candide.export.sql.query import write_select

assert adult  # a fixture
NO_TEXT = {name: law for name, law in LAWS.items() if name != "words"}


@pytest.fixture(params=[*DATABASES, "postgres"])
def score(request):
    """What a database says of rows by a model."""
    if request.param == "postgres":
        return by_postgres(request.getfixturevalue("postgres"))
    return DATABASES[request.param]


def same(score, model, data):
    check(score(model.fitted_, arrow(data, model.fitted_.plan.columns)), model, data)


def without_text(drawn):
    rows, y = drawn
    return {name: column for name, column in rows.items() if name != "words"}, y


def needs_sqlite(name):
    """A column without a name no other database has; and none has text with a NUL."""
    return name.startswith(("mixed", "voices", "by-name", "group-and-more"))


@pytest.mark.parametrize("name", [name for name in MODELS if "text" not in name and not name.endswith("-odd")])
def test_models_of_every_sort(name, score, request):
    if needs_sqlite(name) and request.node.callspec.params["score"] != "sqlite":
        pytest.skip("one of its columns has no name")
    if name == "long-prior" and request.node.callspec.params["score"] == "duckdb":
        pytest.skip("it takes DuckDB seconds to plan")
    same(score, *MODELS[name])


def test_adult(adult, score):
    X, _ = real("adult_test")
    same(score, adult, X[:10_000] if score is DATABASES["duckdb"] else X[:1000])


def test_adult_by_naive_bayes(score):
    X, y = real("adult_train")
    same(score, cd.NaiveBayes().fit(X, y), real("adult_test")[0][:10_000])


@pytest.mark.parametrize("estimate", ["predictive", "mean", "mle"])
def test_every_distribution_at_once(score, estimate):
    rng = np.random.default_rng(0)
    model = cd.NaiveBayes(NO_TEXT, estimate=estimate).fit(*without_text(every_law(rng, 2000)))
    rows, _ = without_text(every_law(rng, 10_000 if estimate == "predictive" else 1000, wild=True))
    same(score, model, rows)


@pytest.fixture(scope="module")
def spark():
    with session() as found:
        yield found


@pytest.fixture
def in_spark(spark, tmp_path):
    """What Spark says of rows by a model."""
    return by_spark(spark, tmp_path)


@pytest.mark.all_cases
@needs_spark
def test_every_distribution_in_spark(in_spark):
    rng = np.random.default_rng(0)
    model = cd.NaiveBayes(NO_TEXT).fit(*without_text(every_law(rng, 2000)))
    same(in_spark, model, without_text(every_law(rng, 1000, wild=True))[0])


@pytest.mark.all_cases
@needs_spark
def test_adult_in_spark(adult, in_spark):
    """No table is joined: Spark plans the query anew after each of them, and took minutes."""
    assert "JOIN" not in write_select(adult.fitted_, dialect="spark", table="t")
    same(in_spark, adult, real("adult_test")[0][:1000])


@needs_spark
def test_many_levels_in_spark(in_spark):
    """More than are compared one by one."""
    rng = np.random.default_rng(3)
    names = np.array(["it's", "\\", '"', "日本🙂", *(f"no {i}" for i in range(400))], object)
    data = {"zip": rng.choice(names, 5000), "x": rng.choice(names[:9], 5000)}
    same(in_spark, cd.NaiveBayes().fit(data, rng.integers(0, 2, 5000)), data)


@needs_spark
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times_in_spark(spark, in_spark, zone):
    """A time is the instant in UTC, as a number and as a level, also in the hour that clocks have twice."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    times = np.datetime64("2024-11-03T02", "us") + np.arange(12).astype("m8[h]")
    types = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
    for event, name in itertools.product(("gaussian", "categorical"), types):
        model = cd.NaiveBayes(event).fit({"t": np.tile(times, 5)}, np.arange(60) % 12 // 4)
        rows = pa.table({"row #": range(12), "t": pa.array(times).cast(types[name])})
        check(in_spark(model.fitted_, rows), model, {"t": times})
        assert spark.table("t").schema["t"].dataType.typeName() == name


@needs_spark
def test_what_is_special_in_spark(spark, in_spark):
    """Floats of 32 bits, truths, what looks like a setting, and columns in which case makes no difference."""
    levels = ["${spark.app.name}", "$${env:HOME}${x}", "a", "A"]
    data = {"s": levels * 10, "r": np.array([0.1, 0.2, 2.5, 1e10] * 10, np.float32), "b": ["True", "False"] * 20}
    model = cd.NaiveBayes("categorical").fit(data, [0, 1, 1, 2, 2] * 8)
    rows = {**data, "b": np.array([True, False, False, True] * 10)}
    check(in_spark(model.fitted_, arrow(rows, rows)), model, rows)
    query = write_select(model.fitted_, dialect="spark", table="folded", kept_columns=["row #"])
    spark.table("t").withColumn("s", spark_collated("s")).createOrReplaceTempView("folded")
    check([tuple(row) for row in spark.sql(query).collect()], model, rows)
    with pytest.raises(InputError) as error:
        cd.NaiveBayes().fit({"${x}": [1.0, 2.0]}, [0, 1]).to_sql("spark", "t")
    assert error.value.column == "${x}"


def spark_collated(name):
    from pyspark.sql import functions

    return functions.collate(functions.col(name), "UTF8_LCASE")


def test_every_column_has_a_weight(score):
    rng = np.random.default_rng(1)
    model = cd.BayesClassifier().fit(*without_text(every_law(rng, 1000, wild=True)))
    same(score, model, without_text(every_law(rng, 500, wild=True))[0])


def test_many_rows_lose_no_digits(score):
    """At 10^9 degrees of freedom log(1 + q) has an error of 1e-7."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 100)
    x = {"x": rng.normal(y, 1.0), "n": rng.poisson(2.0 + y).astype(float)}
    model = cd.NaiveBayes({"x": "gaussian", "n": "negativebinomial"}).fit(x, y, sample_weight=np.full(100, 1e9))
    same(score, model, {"x": rng.normal(y, 2.0), "n": x["n"]})


def test_3000_levels(score):
    rng = np.random.default_rng(3)
    data = {"zip": rng.integers(0, 3000, 20_000).astype(str).astype(object), "x": rng.normal(size=20_000)}
    model = cd.NaiveBayes().fit(data, rng.integers(0, 2, 20_000))
    same(score, model, {name: column[:2000] for name, column in data.items()})


def test_a_calibration_curve(score):
    for name in ("pima_diabetes", "iris"):
        X, y = real(name)
        same(score, cd.BayesClassifier(calibration="isotonic").fit(X, y), X)


@pytest.mark.parametrize("name", POLICIES)
def test_the_label_is_what_a_policy_decides(name, score):
    X, y = drawn("abc")
    same(score, cd.NaiveBayes().fit(X, y).with_policy(**POLICIES[name]), X)


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_calibrated_probabilities_are_adapted_to_another_prior(score, classes):
    X, y = drawn(classes)
    model = cd.BayesClassifier(calibration="isotonic").fit(X, y)
    same(score, model.with_policy(class_prior="uniform", threshold=0.3, positive="b"), X)


def test_truths_where_numbers_are_expected(score):
    rng = np.random.default_rng(6)
    data = {"x": rng.integers(0, 2, 100), "k": rng.integers(0, 2, 100)}
    model = cd.NaiveBayes({"x": "gaussian", "k": "categorical"}).fit(data, data["x"] ^ (rng.random(100) < 0.2))
    truths = [None if i % 9 == 0 else bool(i % 2) for i in range(100)]
    rows = pa.table({"row #": range(100), "x": truths, "k": truths})
    numbers = np.array([np.nan if one is None else float(one) for one in truths])
    check(score(model.fitted_, rows), model, {"x": numbers, "k": numbers})


def test_types_of_levels(score):
    rng = np.random.default_rng(5)
    n = 200
    data = {
        "flag": rng.random(n) < 0.5,
        "zip": rng.integers(10, 14, n),
        "size": rng.choice([0.1, 2.5, 1e21], n),
        "day": np.datetime64("2024-02-27") + rng.integers(0, 4, n),
        "when": np.datetime64("2024-02-29T12:30:15.25") + rng.integers(0, 3, n).astype("m8[h]"),
        'it\'s "q1"': rng.choice(["q1", "it's", "", "\\", "日本🙂", "%s {} $1"], n).astype(object),
    }
    model = cd.NaiveBayes(dict.fromkeys(data, "categorical")).fit(data, rng.integers(0, 2, n))
    other = {
        "flag": np.array([None] * n),
        "zip": data["zip"] + 2,
        "size": np.where(data["size"] == 2.5, np.nan, data["size"]),
        "day": data["day"] + 2,
        "when": data["when"] + np.timedelta64(1, "h"),
        'it\'s "q1"': rng.choice(["q1", "new", None], n),
    }
    for rows in (data, other):
        same(score, model, rows)


def test_values_that_mean_missing(score, tmp_path):
    lines = [f"{i % 7},{'abc'[i % 3]},{'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["n,job,kind", *lines]) + "\n")
    model = cd.fit(str(tmp_path / "rows.csv"), target="kind", model="naive", na=["6", "c"])
    data = {"n": [6.0, 5.0, np.nan, 0.0], "job": np.array(["a", "c", "", None], object)}
    same(score, model, {"n": np.array(data["n"]), "job": data["job"]})


def test_text_that_spells_numbers_and_dates(tmp_path, postgres):
    """As the file had them; a column that holds numbers and dates by now is read as it is."""
    rng = np.random.default_rng(6)
    lines, days = ["price;share;when;kind"], np.datetime64("2023-01-01") + rng.integers(0, 700, 200)
    for i, day in enumerate(days.astype(str)):
        price = f"{1000 * (i % 9) + rng.random() * 99:,.2f}".translate(str.maketrans(",.", ".,"))
        gone = "n/a" if i % 11 == 0 else f"{price} €"
        lines.append(f"{gone};{rng.random() * 100:.1f}%;{day[8:]}.{day[5:7]}.{day[:4]};{'ab'[i % 9 > 4]}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = cd.fit(str(tmp_path / "rows.csv"), target="kind", model="naive")
    assert set(model.fitted_.text_formats) == {"price", "share", "when"}
    text = {
        "price": ["1.234,56 €", "€ 7,5", "N/A", "-12", None],
        "share": ["14.3%", "99%", None, "0 %", "1.5%"],
        "when": ["29.02.2024", "01.07.2023", "01.05.2023", None, "31.12.1969"],
    }
    plain = {"price": [1234.56, 7.5, None, -12.0, None], "share": [0.143, 0.99, None, 0.0, 0.015]}
    plain["when"] = np.array(["2024-02-29", "2023-07-01", "2023-05-01", "NaT", "1969-12-31"], "M8[D]")
    rows = {name: np.array(values, object) for name, values in text.items()}
    same(DATABASES["duckdb"], model, rows)
    typed = {name: np.array(values, object if name != "when" else None) for name, values in plain.items()}
    check(DATABASES["duckdb"](model.fitted_, arrow(typed, model.fitted_.plan.columns)), model, rows)
    postgres.run("SET timezone = 'Asia/Tokyo'")
    try:
        same(by_postgres(postgres), model, rows)
    finally:
        postgres.run("RESET timezone")
    with pytest.raises(InputError) as caught:
        model.to_sql("sqlite", "t")
    assert caught.value.column == "when"


@pytest.fixture(scope="module")
def every():
    return cd.NaiveBayes(NO_TEXT).fit(*without_text(every_law(np.random.default_rng(7), 300)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_parsed(dialect, every):
    for model in (every, MODELS["voices"][0]):
        [parsed] = sqlglot.parse(model.to_sql(dialect, "s.t", keep=["a b"]), dialect)
        names = ["a b", "prediction", *(f"p_{label}" for label in model.classes_)]
        assert [one.alias for one in parsed.expressions] == names
        assert not list(parsed.find_all(sqlglot.exp.Command))  # what is not understood


def test_more_tables_than_one_join_has(score):
    """SQLite joins 64 at once; and of a hundred classes every table has a hundred columns."""
    rng = np.random.default_rng(9)
    wide = {f"x{j}": rng.choice(["a", "b", "c"], 300).astype(object) for j in range(70)}
    same(score, cd.NaiveBayes().fit(wide, rng.integers(0, 2, 300)), wide)
    few = {f"x{j}": wide[f"x{j}"] for j in range(12)}
    same(score, cd.NaiveBayes().fit(few, np.arange(300) % 100), few)


def test_a_text_is_refused():
    model, _ = MODELS["text-and-more"]
    with pytest.raises(InputError) as caught:
        model.to_sql("duckdb", "t")
    assert caught.value.column == "words"
    assert "python" in caught.value.remedy


def test_of_many_columns_together_none_may_be_missing(score):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(300, 8)), rng.integers(0, 2, 300)
    model = cd.GaussianBayes("full").fit(X + y[:, None] * np.arange(8) / 8, y)
    with pytest.warns(DataWarning, match="missing"):
        same(score, model, X)
    X[::2, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = sorted(score(model.fitted_, arrow(X, model.fitted_.plan.columns)))
    assert all(set(one[1:]) == {None} for one in said[::2])
    whole = [(i, *one[1:]) for i, one in enumerate(said[1::2])]
    check(whole, model, X[1::2])


TABLES = {
    "People": '"People"',
    "my.People": '"my"."People"',
    '"My" . people': '"My"."people"',
    "x; DROP TABLE x": '"x; DROP TABLE x"',
    "{{ ref('people') }}": "{{ ref('people') }}",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_by_any_name(name):
    """As it is written: without quotes PostgreSQL would look for it in small letters."""
    model, _ = MODELS["labels-str"]
    query = write_select(model.fitted_, dialect="postgres", table=name)
    assert f"FROM {TABLES[name]} AS t0 OFFSET 0)" in query
    assert name.startswith("{{") or len(sqlglot.parse(query, "postgres")) == 1


def test_what_is_more_than_a_template_is_refused():
    model, _ = MODELS["labels-str"]
    for name in ("{{ ref('people') }}; DROP TABLE x", "{{ a }} {{ b }}", "x {{ a }}"):
        with pytest.raises(InputError):
            model.to_sql("postgres", name)


def test_a_column_that_the_table_lacks_is_an_error():
    """SQLite takes a name in quotes that it does not know for a text."""
    model = cd.NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 4.0]}, [0, 0, 1, 1])
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE t (id, x)")
    for table, keep in (("t", "gone"), ("(SELECT id FROM t)", "id")):
        query = model.to_sql("sqlite", "t", keep=keep).replace("FROM t ", f"FROM {table} ").replace('"t"', table)
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            con.execute(query)


def test_whole_numbers_that_are_one_double_are_refused_as_levels():
    big = [2**53, 2**53 + 1, 2**53, 2**53 + 1]
    model = cd.NaiveBayes("categorical").fit({"id": big}, [0, 0, 1, 1])
    with pytest.raises(InputError) as caught:
        model.to_sql("duckdb", "t")
    assert (caught.value.column, caught.value.value) == ("id", 2**53 + 1)


def test_names_that_a_database_does_not_distinguish_are_refused():
    long = "x" * 63
    by_case, by_end = {"Age": [1.0, 2.0], "age": [3.0, 4.0]}, {long + "a": [1.0, 2.0], long + "b": [3.0, 4.0]}
    for data, some in ((by_case, ("duckdb", "sqlite", "mysql")), (by_end, ("postgres",))):
        model = cd.NaiveBayes().fit(data, [0, 1])
        for dialect in ("duckdb", "sqlite", "mysql", "postgres"):
            if dialect not in some:
                model.to_sql(dialect, "t")
                continue
            with pytest.raises(InputError) as caught:
                model.to_sql(dialect, "t")
            assert caught.value.column == list(data)[1]


def test_names_that_would_stand_twice_are_refused():
    model, _ = MODELS["labels-str"]
    for keep in (["prediction"], ["Prediction"], ["ID", "id"], [""]):
        with pytest.raises(InputError) as caught:
            model.to_sql("duckdb", "t", keep=keep)
        assert caught.value.value == keep[0]
    assert model.to_sql("duckdb", "t", keep="id") == model.to_sql("duckdb", "t", keep=["id"])


def test_text_that_is_not_a_number_is_missing(score):
    """SQLite would read it as 0, or up to where it is none."""
    model = cd.NaiveBayes().fit({"x": [0.0, 1.0, 5.0, 6.0, 7.0]}, [0, 0, 1, 1, 1])
    text = ["abc", "n/a", "", "nan", "1,5", "2024-01-02", "5e0", " 6 ", "-1.5", ".5"]
    said = score(model.fitted_, arrow({"x": np.array(text, object)}, ["x"]))
    check(said, model, {"x": [np.nan] * 6 + [5.0, 6.0, -1.5, 0.5]})


@pytest.mark.parametrize("estimate", ["predictive", "mle"])
@pytest.mark.parametrize("event", ["gaussian", "lognormal", "exponential", "poisson", "negativebinomial"])
def test_the_largest_and_the_smallest_numbers(score, event, estimate):
    """Their squares are no numbers, and an error in PostgreSQL; the mean of a class is 0."""
    first = {"gaussian": [-1, 0, 1], "lognormal": [1, 2, 3]}.get(event, [0, 0, 1])
    x = np.array([*first, 3, 1, 8, 2, 2, 9, 5, 7], float)
    model = cd.NaiveBayes(event, estimate=estimate).fit({"x": np.tile(x, 6)}, list("aaabbbbccdd") * 6)
    values = [0.0, 1e15, 1e18, 1e100, 1e170, 1e200, 1e250, 1e300]
    values += [] if event in ("poisson", "negativebinomial") else [1e-170, 1e-308, 5e-324]
    same(score, model, {"x": np.array(values)})


def test_the_largest_and_the_smallest_numbers_together(score):
    x = np.tile([[-1.0, 1.0], [1.0, -1.0], [-2.0, -2.0], [2.0, 2.0], [1.0, 0.0]], (20, 1))
    model = cd.GaussianBayes("full").fit(x, list("aabbb") * 20)
    same(score, model, np.array([[1e-170, 1e-308], [0.0, 5e-324], [1e-160, 2.0], [1e100, 1.0]]))


CATEGORIES = {
    "numbers": ([1, 2, 2, 3], [["1", "2.0", " 3 ", "x", "4"], [1.0, 2.5, 3.0, np.nan]]),
    "digits": (["1", "2", "02", "2.50"], [[1.0, 2.5, 7.0], [1, 2, 3, 4], ["1", "1.0", "02", "2.5", "2.50"]]),
    "truths": ([True, False, False, True], [[1.0, 0.0, 2.0], [1, 0, 2], ["true", "False", "1", "0.0", "x"]]),
    "words for truths": (["True", "False", "x", "y"], [[True, False], [1, 0, 2], ["True", "true", "1", "x"]]),
    "digits for truths": (["1", "0", "2", "true or so"], [[True, False], [1, 0, 2]]),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_levels_in_a_column_of_another_type(score, name):
    levels, others = CATEGORIES[name]
    model = cd.NaiveBayes("categorical").fit({"k": levels * 20}, ["a", "b", "b", "c"] * 20)
    for values in others:
        same(score, model, {"k": np.array(values, object if isinstance(values[0], str) else None)})


@pytest.mark.parametrize("unit", ["D", "h"])
def test_levels_that_are_times_depend_on_no_zone(postgres, unit):
    hours = np.datetime64("2024-02-29T22", "us") + 2 * np.arange(8).astype("m8[h]")
    times = hours.astype(f"M8[{unit}]").astype("M8[us]")
    model = cd.NaiveBayes("categorical").fit({"t": np.tile(times, 5)}, np.arange(40) % 3)
    zoned = pa.table({"row #": range(8), "t": pa.array(times, pa.timestamp("us", "UTC"))})
    postgres.run("SET timezone = 'Asia/Tokyo'")
    try:
        check(by_postgres(postgres)(model.fitted_, zoned), model, {"t": times})
    finally:
        postgres.run("RESET timezone")
    with duckdb.connect() as con:
        con.execute("SET timezone = 'Asia/Tokyo'")
        con.register("t", zoned)
        check(con.execute(model.to_sql("duckdb", "t", keep="row #")).fetchall(), model, {"t": times})


def test_dates_of_an_estimator_are_dates(score):
    """In lists too, and in columns of objects."""
    days = [dt.date(2024, 2, 20) + dt.timedelta(i * i % 17) for i in range(60)]
    for data in ({"d": [None, *days[1:]]}, {"d": np.array([None, *days[1:]], object)}):
        same(score, cd.NaiveBayes().fit(data, [0, 1, 1] * 20), data)


def test_words_that_are_not_known_are_refused():
    model, _ = MODELS["labels-str"]
    for dialect, name in (("dbase", "t"), ("duckdb", "")):
        with pytest.raises(InputError):
            model.to_sql(dialect, name)

    assert model.export("sql", dialect="duckdb", table="t", keep="id") == model.to_sql("duckdb", "t", keep=["id"])
    with pytest.raises(InputError) as caught:
        cd.export_model(model.fitted_, "js", table="t")
    assert caught.value.value == "t"
    with pytest.raises(InputError, match=r"pass --dialect .*duckdb"):
        cd.export_model(model.fitted_, "sql", table="t")
    with pytest.raises(InputError, match="did you mean 'python'"):
        cd.export_model(model.fitted_, "py")
