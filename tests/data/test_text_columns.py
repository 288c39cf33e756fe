"""Numbers, booleans and values of another kind in columns of dates and times are errors through every entry point."""

import datetime as dt
import shutil
import sqlite3
import subprocess

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.cli.typed import run
from tests.serve.client import ask

import candide as cd
from candide import store
from candide.data.notes import DataWarning
from candide.data.table import Table
from candide.data.text_columns import parse_text_columns
from candide.data.text_formats import TextFormat
from candide.errors import InputError, SourceError
from candide.serve import app
from candide.store.input_schema import example_row

N = 200
Y = ["a", "b"] * (N // 2)
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=i * 7 % 30 + 60 * (i % 2)) for i in range(N)]
CLOCKS = [dt.time(i * 7 % 10 + 12 * (i % 2), 5) for i in range(N)]
SIZES = [(i * 37 % 100) / 10 + 0.05 for i in range(N)]
KINDS = {"date": DAYS, "time": CLOCKS}
NOT_DATES = ["20240201", 20240201, 1706745600, 19754.0, True, dt.time(3, 4), dt.timedelta(3), "soon", "2024-02-30"]
NOT_TIMES = ["10", 10, 0.5, True, dt.datetime(2024, 2, 1, 3), dt.date(2024, 2, 1), "2024-02-01", "soon", "0.25"]
CASES = [("date", value) for value in NOT_DATES] + [("time", value) for value in NOT_TIMES]


def rows(kind):
    return {"when": KINDS[kind], "size": SIZES}


@pytest.fixture(scope="module")
def models():
    return {
        (kind, name): cls().fit(rows(kind), Y)
        for kind in KINDS
        for name, cls in (("naive", cd.NaiveBayes), ("weighted", cd.BayesClassifier))
    }


@pytest.fixture(params=["naive", "weighted"])
def model_of(request, models):
    return lambda kind: models[kind, request.param]


def one(value):
    return {"when": [value], "size": [3.0]}


def refuses(ask, kind, value, row=True):
    with pytest.raises(ValueError, match=r"is not a (date|time of day)") as caught:
        ask()
    error = caught.value
    assert error.column == "when"
    assert {"date": "2024-12-31", "time": "13:05:30"}[kind] in error.remedy
    if row:
        assert getattr(error, "row", None) == 0 or getattr(error, "line", None) == 2


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_rows_in_memory_and_tables(model_of, kind, value):
    model = model_of(kind)
    refuses(lambda: model.predict_proba(one(value)), kind, value)
    refuses(lambda: model.explain(one(value)), kind, value)
    refuses(lambda: model.predict_table(pa.table(one(value))), kind, value, row=not isinstance(value, str))
    with pytest.raises(InputError, match="is not a"):
        cd.update_model(model.fitted_, {**one(value), "y": ["a"]}, target="y")
    with pytest.raises(InputError, match="is not a"):
        cd.forget_rows(model.fitted_, {**one(value), "y": ["a"]}, target="y")


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_more_rows(models, kind, value):
    model = cd.NaiveBayes().fit(rows(kind), Y)
    refuses(lambda: model.partial_fit(one(value), ["a"]), kind, value)
    refuses(lambda: model.forget(one(value), ["a"]), kind, value)
    assert model.counts_.n_rows == N


@pytest.mark.parametrize(("kind", "value"), [case for case in CASES if isinstance(case[1], str | int | float)])
def test_the_server_and_files(model_of, tmp_path, kind, value):
    model = model_of(kind)
    answer = ask(app(model.fitted_), "/predict", {"when": value, "size": 3.0})
    assert (answer.status, answer.json["column"]) == (422, "when")
    answer = ask(app(model.fitted_), "/predict", [{"when": value, "size": 3.0}] * 2)
    assert (answer.status, answer.json["row"]) == (422, 0)
    if value is not True:
        path = tmp_path / "rows.csv"
        path.write_text(f"when,size,y\n{value},3,a\n")
        refuses(lambda: model.predict_table(str(path)), kind, value, row=kind == "date")
        store.save(model.fitted_, tmp_path / "m.candide")
        before = (tmp_path / "m.candide").read_bytes()
        done = run("update", tmp_path / "m.candide", path, "--target", "y")
        assert done.exit_code == 1
        assert "is not a" in str(done.exception)
        assert (tmp_path / "m.candide").read_bytes() == before


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_exported_python(models, kind, value):
    scorer = {}
    exec(models[kind, "naive"].export("python"), scorer)
    refuses(lambda: scorer["score"]({"when": value, "size": 3.0}), kind, value, row=False)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_exported_javascript(models, tmp_path):
    for kind, values in (("date", NOT_DATES), ("time", NOT_TIMES)):
        models[kind, "naive"].export("js", tmp_path / f"{kind}.mjs")
        given = ", ".join(map(_in_javascript, values))
        (tmp_path / "ask.mjs").write_text(
            f'import model from "./{kind}.mjs";\nfor (const when of [{given}]) {{\n'
            "  try { console.log(model.score({ when, size: 3 }).label); }\n"
            "  catch (error) { console.log(error.column, /is not a/.test(error.message)); }\n}\n"
        )
        said = subprocess.run(["node", tmp_path / "ask.mjs"], capture_output=True, text=True, check=True).stdout
        assert said.split("\n")[:-1] == ["when true"] * len(values)


def _in_javascript(value):
    if isinstance(value, dt.datetime | dt.date) and not isinstance(value, dt.time):
        return f'new Date("{value}")'
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str | int | float) else "3"


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_exported_sql_ends_or_takes_text_for_missing(models, kind, value):
    model = models[kind, "naive"]
    missing = model.predict_proba(one(None))[0]
    with duckdb.connect() as con:
        con.register("asked", pa.table(one(value)))
        query = model.to_sql("duckdb", "asked")
        if isinstance(value, str):
            assert con.execute(query).fetchall()[0][1:] == pytest.approx(missing)
        else:
            with pytest.raises(duckdb.Error, match=f"column 'when' does not hold {kind}s"):
                con.execute(query)
    if isinstance(value, str | int | float):
        con = sqlite3.connect(":memory:")
        con.execute('CREATE TABLE asked (size REAL, "when")')
        con.execute("INSERT INTO asked VALUES (3, ?)", (value,))
        assert con.execute(model.to_sql("sqlite", "asked")).fetchall()[0][1:] == pytest.approx(missing)
        con.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_read_the_same(model_of, kind, tmp_path):
    model = model_of(kind)
    value, text = (dt.date(2024, 2, 1), "2024-02-01") if kind == "date" else (dt.time(3, 5), "03:05:00")
    path = tmp_path / "rows.csv"
    path.write_text(f"when,size\n{text},3\n")
    expected = model.predict_proba(one(value))[0]
    asked = [one(text), {"when": np.array([text], object), "size": [3.0]}]
    asked += [{"when": np.array([value], "M8[ns]"), "size": [3.0]}] if kind == "date" else []
    for each in asked:
        assert model.predict_proba(each)[0] == pytest.approx(expected)
    for each in (str(path), pa.table(one(value)), pa.table(one(text))):
        assert model.predict_table(each)["p_a"].to_pylist() == pytest.approx([expected[0]])
    answer = ask(app(model.fitted_), "/predict", {"when": text, "size": 3.0})
    assert answer.json["p_a"] == pytest.approx(expected[0])
    assert ask(app(model.fitted_), "/predict", example_row(model.fitted_)).status == 200
    missing = model.predict_proba(one(None))[0]
    for each in (one(float("nan")), {"when": np.array([None], object), "size": [3.0]}):
        assert model.predict_proba(each)[0] == pytest.approx(missing)
        assert model.predict_table(pa.table(each))["p_a"].to_pylist() == pytest.approx([missing[0]])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_drawn_are_of_the_type_and_are_read_again(models, kind):
    drawn, _ = models[kind, "naive"].sample(5, random_state=0)
    assert drawn["when"].dtype.kind == {"date": "M", "time": "m"}[kind]
    assert models[kind, "naive"].predict_proba(drawn).shape == (5, 2)


def test_eight_digits_are_a_date_where_the_rows_fitted_were_written_so():
    how = {"day": TextFormat(date="%Y%m%d")}
    for values in (["19700102", "2024-02-01"], [19700102, 20240201], [19700102.0, 20240201.0]):
        read = parse_text_columns(Table.from_data({"day": values}), how, {"day"})
        assert read.numbers(("day",)).ravel().tolist() == [1.0, 19754.0]
    for value in ("20241301", 20241301, 1706745600, "2024021", True, 20240201.5):
        with pytest.raises(InputError, match="is not a date"):
            parse_text_columns(Table.from_data({"day": [value]}), how, {"day"})


def test_a_number_in_a_later_row_of_a_file(models, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("when,size\n" + "2024-02-01,3\n" * 30_000 + "20240201,3\n")
    with pytest.raises(InputError, match=r"line 30002: column 'when': '20240201' is not a date"):
        models["date", "naive"].predict_table(str(path))


def test_numbers_in_the_place_of_dates_where_a_table_is_counted_like_another(models):
    rows = {"when": [20240201, 20240301] * 10, "size": SIZES[:20], "y": ["a", "b"] * 10}
    with pytest.raises(InputError, match="20240201 is not a date"):
        cd.fit(rows, target="y", model="naive", like=models["date", "naive"].fitted_)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("05.03.2024", "2024-03-05"),
        ("2024/02/01", "2024-02-01"),
        ("13/04/2024", "2024-04-13"),
        ("1 Feb 2024", "2024-02-01"),
    ],
)
def test_dates_in_another_format_are_read_with_a_note_as_in_a_file(model_of, tmp_path, text, iso):
    model, expected = model_of("date"), model_of("date").predict_proba(one(iso))
    path = tmp_path / "rows.csv"
    path.write_text(f"when,size\n{text},3\n")
    asked = [lambda: model.predict_proba(one(text)), lambda: model.predict_table(pa.table(one(text)))]
    for call in (*asked, lambda: model.predict_table(str(path))):
        with pytest.warns(DataWarning, match=f"'{text}' is read as the date {iso}"):
            found = call()
        p_a = found[0, 0] if isinstance(found, np.ndarray) else found["p_a"][0].as_py()
        assert p_a == pytest.approx(expected[0, 0])
    more = cd.NaiveBayes().fit(rows("date"), Y)
    with pytest.warns(DataWarning, match="is read as the date"):
        more.partial_fit(one(text), ["a"])
    same = cd.NaiveBayes().fit(rows("date"), Y).partial_fit(one(iso), ["a"])
    np.testing.assert_allclose(more.predict_proba(rows("date")), same.predict_proba(rows("date")))


def test_dates_in_two_formats_are_an_error(model_of):
    with pytest.raises(InputError, match=r"\(row 1\): '05.03.2024' is not a date; write dates as 2024-12-31"):
        model_of("date").predict_proba({"when": ["2024-02-01", "05.03.2024"], "size": [3.0, 3.0]})


@pytest.mark.parametrize("rows", [50, 12_000])
def test_a_row_that_is_too_long_is_named_by_its_line(tmp_path, rows):
    path = tmp_path / "rows.csv"
    path.write_text("a,t,y\n" + "1,x,p\n" * rows + f"3,{'w ' * 1_500_000},q\n" + "2,y,q\n" * 50)
    with pytest.raises(
        SourceError, match=rf"line {rows + 2}: a row is longer than 2,000,000 bytes; shorten its fields"
    ):
        cd.fit(str(path), target="y")
