"""Counting by hand: the model of what a pasted query returned is the one that is counted directly."""

import csv
import datetime as dt
import io
import json
import sqlite3
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from pyarrow import parquet
from sqlglot import exp
from tests.cli.typed import ask, output, run
from tests.engines.test_engines import same

import candide as cd
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialects.registry import DIALECTS
from candide.engines.sql.offline_query import HEADER
from candide.errors import InputError
from candide.fit_source import fit_model
from candide.store.offline_counts import make_counting_query, read_counts

N = 400
NAME = 'a "name"; --'


def table(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, N)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 300, N) + 40 * y]
    words = np.array(["cook", "it's", 'say "hi", you', "", "NULL", "two\nlines", "été 日本", " x ", "1"], object)
    return pa.table(
        {
            "height": pa.array(1e8 + 8 * y + rng.normal(0, 6, N), mask=rng.random(N) < 0.1),
            "visits": rng.poisson(2 + y),
            "price": np.exp(rng.normal(y, 1.0)),
            NAME: pa.array(words[rng.integers(0, 9, N)], mask=rng.random(N) < 0.1),
            "code": pa.array(rng.integers(1, 4, N), mask=rng.random(N) < 0.2),
            "flag": rng.random(N) < 0.3 + 0.2 * y,
            "day": days,
            "w": rng.choice([0.0, 0.5, 1.0, 2.5], N),
            "label": pa.array(np.array(["a", "01", "it's"])[y], mask=rng.random(N) < 0.05),
        }
    )


EVENTS = {
    "auto": ("auto", None),
    "weighted": ("auto", "w"),
    "others": ({"visits": "poisson", "price": "lognormal", "code": "categorical", "height": "binned"}, None),
    "a threshold": ({"visits": "bernoulli", "price": "exponential", "code": "categorical"}, "w"),
}


def written(header, rows, separator=",") -> list[str]:
    """The lines of a CSV, as a client would write them: a null is an empty cell."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().splitlines(keepends=True)


def in_duckdb(rows: pa.Table, query: str) -> list[str]:
    with duckdb.connect() as con:
        con.register("arrow", rows)
        con.execute("CREATE SCHEMA shop; CREATE TABLE shop.people AS SELECT * FROM arrow")
        found = con.execute(query)
        return written([column[0].upper() for column in found.description], found.fetchall())


def in_sqlite(rows: pa.Table, query: str) -> list[str]:
    with sqlite3.connect(":memory:") as con:
        con.execute("ATTACH ':memory:' AS shop")
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.column_names)
        con.execute(f"CREATE TABLE shop.people ({names})")
        kinds = [(pa.types.is_date, pa.string()), (pa.types.is_decimal, pa.float64())]  # it has neither
        own = [next((kind for of, kind in kinds if of(column.type)), column.type) for column in rows.columns]
        columns = [column.cast(kind) for column, kind in zip(rows.columns, own, strict=True)]
        marks = ", ".join("?" * len(columns))
        values = zip(*(column.to_pylist() for column in columns), strict=True)
        con.executemany(f"INSERT INTO shop.people VALUES ({marks})", values)
        found = con.execute(query)
        return written([column[0] for column in found.description], found, ";")


RUN = {"duckdb": in_duckdb, "sqlite": in_sqlite}


def returned(name: str, rows: pa.Table, query: str, request) -> list[str]:
    """What a database returns, among them a server that is started where it is asked for."""
    if name != "postgres":
        return RUN[name](rows, query)
    server = request.getfixturevalue("postgres")
    return written(HEADER, server.run(query.replace("shop.people", server.make(rows).rpartition("::")[2])))


def asked(rows: pa.Table, dialect: str, events="auto", weight=None, drop=()) -> str:
    left = [*drop, *([] if weight else ["w"])]
    return cd.make_counting_query(
        rows, "label", table="shop.people", dialect=dialect, events=events, weight=weight, drop=left
    )


def direct(rows: pa.Table, events="auto", weight=None):
    return fit_model(rows, "label", model="naive", events=events, weight=weight, drop=[] if weight else ["w"])


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("case", EVENTS)
def test_the_counts_are_those_counted_directly(name, case):
    rows, (events, weight) = table(), EVENTS[case]
    found = cd.fit_from_counts(RUN[name](rows, asked(rows, name, events, weight)))
    wanted = direct(rows, events, weight)
    same(found.fitted.counts, wanted.fitted.counts)
    assert (found.fitted.target, found.fitted.dates) == ("label", wanted.fitted.dates)
    assert [note for note in wanted.note_texts if "no value of 'label'" in note] == found.note_texts[:1]


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize("name", RUN)
def test_rows_are_counted_as_a_model_counts_so_that_both_add(name, tmp_path):
    """Its bins are those of the model, whatever the sample would have chosen."""
    rows = table()
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    model = fit_model(first, "label", model="naive", events={"height": "binned", "price": "binned"}, drop=["w"]).fitted
    query = cd.make_counting_query(second[:50], "label", table="shop.people", dialect=name, like=model)
    added = cd.merge_models([model, cd.fit_from_counts(RUN[name](second, query)).fitted])
    wanted = cd.merge_models([model, fit_model(second, "label", like=model).fitted])
    same(added.counts, wanted.counts)
    with pytest.raises(InputError) as caught:
        cd.make_counting_query(
            second, "label", table="t", dialect=name, like=fit_model(first, "label", keep_held_out=False).fitted
        )
    assert "naive" in caught.value.remedy
    with pytest.raises(InputError, match="like determines"):
        cd.make_counting_query(second, "label", table="t", dialect=name, like=model, drop=["w"])


@pytest.mark.parametrize("case", EVENTS)
def test_postgres_returns_the_same(postgres, case):
    rows, (events, weight) = table(), EVENTS[case]
    name = postgres.make(rows).rpartition("::")[2]
    query = asked(rows, "postgres", events, weight).replace("shop.people", name)
    found = cd.fit_from_counts(written(HEADER, postgres.run(query)))
    same(found.fitted.counts, direct(rows, events, weight).fitted.counts)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("case", ["weighted", "others"])
def test_every_dialect_is_one_query_of_one_shape(name, case):
    query = asked(table(), name, *EVENTS[case])
    [tree] = sqlglot.parse(query, dialect=name)
    selects = [s for s in tree.find_all(exp.Select) if s.parent is None or isinstance(s.parent, exp.Union)]
    shapes = {tuple(one.alias for one in select.expressions) for select in selects if len(select.expressions) > 1}
    assert shapes == {HEADER}
    assert {table.sql(name) for table in tree.find_all(exp.Table)} == {"shop.people"}
    told = [json.loads(s.expressions[3].this.this) for s in selects if s.expressions[0].this.this == "plan"]
    assert [one["dialect"] for one in told if "dialect" in one] == [name]


def test_a_sample_finds_the_plan_of_a_table_that_it_is_part_of(tmp_path):
    """Also one without types: what text spells is found out after the counting."""
    rows, sample = table(), tmp_path / "sample.csv"
    from pyarrow import csv as arrow_csv

    small = rows.slice(0, 200).select(["height", "visits", "code", "flag", "label"])
    arrow_csv.write_csv(small, sample)
    query = cd.make_counting_query(
        sample, "label", table="shop.people", dialect="duckdb", events={"code": "categorical"}
    )
    found = cd.fit_from_counts(in_duckdb(rows, query)).fitted.counts
    wanted = fit_model(
        rows.select(small.column_names), "label", model="naive", events={"code": "categorical"}
    ).fitted.counts
    same(found, wanted)


def test_a_sample_that_differs_from_the_table_is_reported():
    rows = table()
    sample = rows.set_column(0, "height", [np.random.default_rng(0).normal(size=N)])
    codes = [one.code for one in cd.fit_from_counts(in_duckdb(rows, asked(sample, "duckdb"))).notes]
    assert ("sample-unlike" in codes, codes[-1]) == (True, "naive-of-counts")


def test_what_the_counts_show_of_a_table_is_reported_as_in_a_fit():
    """Empty text is a value in a database; as a label it is missing through every entry point, with a note."""
    each = {
        "job": ["Cook", "cook", "N/A", "smith"],
        "unit": ["kg"] * 4,
        "w": [1.0] * 4,
        "label": ["", "a", "?", "b", "a"],
    }
    rows = pa.table({name: (some * 100)[:200] for name, some in each.items()})
    found = cd.fit_from_counts(in_duckdb(rows, asked(rows, "duckdb")))
    told = {(one.code, one.column) for one in found.notes}
    assert told == {(one.code, one.column) for one in direct(rows).notes} | {("naive-of-counts", None)}
    assert {
        ("label-missing", "label"),
        ("sentinel", None),
        ("sentinel", "job"),
        ("level-spelling", "job"),
        ("constant", "unit"),
    } < told
    same(found.fitted.counts, direct(rows).fitted.counts)


WORDS = ["12", "unknown", "", None, "3.5", "7 apples", " 4 ", "1e2"]  # as text that numbers were loaded into


@pytest.mark.parametrize("name", [*RUN, "postgres"])
def test_text_among_numbers_is_missing(name, request):
    rows = pa.table({"amount": WORDS * 4, "label": ["a", "a", "b"] * 10 + ["a", "b"]})
    sample = {"amount": [i / 4 % 3 for i in range(32)], "label": rows["label"]}
    query = cd.make_counting_query(sample, "label", table="shop.people", dialect=name)
    lines = returned(name, rows, query, request)
    numbers = [
        None if text in ("unknown", "", None, "7 apples") else float(text) for text in rows["amount"].to_pylist()
    ]
    wanted = fit_model({"amount": numbers, "label": rows["label"]}, "label", model="naive").fitted.counts
    same(cd.fit_from_counts(lines).fitted.counts, wanted)


def test_text_of_numbers_that_no_double_holds_is_missing_in_postgres(postgres):
    """One such text would end the query; what is too small for one is zero."""
    texts = ["1e999", "-1e309", "1e99999999", "9" * 310, "1e-999", "-1E-0400", "1e0003", " +5. ", ".5", "1e-310"]
    meant = [None, None, None, None, 0.0, 0.0, 1000.0, 5.0, 0.5, 1e-310]
    labels = ["a", "b", "b", "a", "b"] * 8
    sample = {"amount": [i / 4 % 3 for i in range(40)], "label": labels}
    query = cd.make_counting_query(sample, "label", table="shop.people", dialect="postgres")
    name = postgres.make(pa.table({"amount": texts * 4, "label": labels})).rpartition("::")[2]
    found = cd.fit_from_counts(written(HEADER, postgres.run(query.replace("shop.people", name)))).fitted.counts
    wanted = fit_model(pa.table({"amount": meant * 4, "label": labels}), "label", model="naive", like=found.plan)
    same(found, wanted.fitted.counts)


def test_a_weight_that_is_not_a_number_is_refused():
    rows = {"size": [1.0, 2.0, 3.0, 4.0] * 5, "label": ["a", "b"] * 10}
    query = cd.make_counting_query(
        {**rows, "w": [1.0, 2.0] * 10}, "label", table="shop.people", dialect="sqlite", weight="w"
    )
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(in_sqlite(pa.table({**rows, "w": ["1", "much"] * 10}), query))
    assert error.value.column == "w"


@pytest.mark.parametrize(("kind", "n_notes"), [("BOOLEAN", 1), ("VARCHAR", 0)])
def test_a_target_that_is_boolean_in_the_table_only_is_noted(kind, n_notes, tmp_path):
    path = tmp_path / "sample.csv"
    path.write_text("x,y\n" + "".join(f"{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(60)))
    query, database = make_counting_query(path, "y", table="t", dialect="duckdb"), duckdb.connect()
    database.execute(f"CREATE TABLE t AS SELECT x, y::{kind} AS y FROM read_csv('{path}', all_varchar = true)")
    database.sql(query).write_csv(str(tmp_path / "counts.csv"))
    notes = [note for note in read_counts(tmp_path / "counts.csv")[1] if note.code == "boolean-target"]
    assert len(notes) == n_notes
    assert all(note.column == "y" for note in notes)


def test_models_of_counts_add_to_those_of_rows():
    june, july = table(0), table(1)
    counted = cd.fit_from_counts(in_duckdb(june, asked(june, "duckdb"))).fitted
    both = counted + direct(july).fitted
    assert both.counts.n_rows == direct(june).fitted.counts.n_rows + direct(july).fitted.counts.n_rows


# What is wrong with a result


@pytest.fixture(scope="module")
def result() -> list[list[str]]:
    rows = table()
    return [*csv.reader(in_duckdb(rows, asked(rows, "duckdb", {"code": "categorical"})))]


def refused(lines) -> InputError:
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(written(lines[0], lines[1:]))
    assert error.value.remedy
    return error.value


def test_a_result_that_lacks_a_line_is_refused(result):
    """Whichever line it is."""
    for i in range(1, len(result)):
        refused(result[:i] + result[i + 1 :])


def test_a_result_that_is_cut_short_is_refused(result):
    for end in range(len(result)):
        refused(result[:end] or [[""]])
    text = "".join(written(result[0], result[1:]))
    with pytest.raises(InputError):
        cd.fit_from_counts(text[: len(text) * 2 // 3].splitlines(keepends=True))


def test_a_result_that_was_pasted_twice_is_refused(result):
    assert "twice" in refused([*result, *result[1:]]).problem
    assert "twice" in refused([*result, result[-1]]).problem


@pytest.mark.parametrize(("what", "column", "value"), [
    ("class", "n", "-3"), ("level", "n", "-1"), ("numbers", "n", "nan"), ("numbers", "square", "-0.5"),
    ("level", "n", "many"), ("class", "rows", ""), ("level", "place", "x"), ("level", "place", "inf"),
    ("class", "what", "clas"),
])  # fmt: skip
def test_a_cell_that_cannot_be_is_named(result, what, column, value):
    at = next(i for i, line in enumerate(result) if line[0] == what)
    lines = [list(line) for line in result]
    lines[at][[name.lower() for name in lines[0]].index(column)] = value
    error = refused(lines)
    assert (error.row is None) == (column == "n" and value == "-1" and what == "class")
    assert str(error.value).rstrip("0.") in ("-3", "-1", "nan", "-0.5", "many", "None", "x", "clas") or error.row


@cache
def weighed(weight: str | None) -> list[str]:
    events = {"visits": "poisson", "price": "bernoulli", "code": "categorical"}
    return in_duckdb(table(), asked(table(), "duckdb", events, weight))


@pytest.mark.parametrize(("kind", "column", "value"), [
    ("numbers", "n", ""), ("numbers", "n", "1e6"), ("numbers", "n", "12.5"), ("numbers", "gap", ""),
    ("numbers", "square", ""), ("numbers", "square", "0"), ("numbers", "middle", ""), ("numbers", "total", ""),
    ("numbers", "above", ""), ("numbers", "above", "1e6"), ("class", "n", "{}.0001"), ("level", "n", "{}.00001"),
])  # fmt: skip
@pytest.mark.parametrize("weight", [None, "w"])
def test_figures_that_no_rows_have_are_refused_by_their_cell(kind, column, value, weight):
    header, *lines = csv.reader(weighed(weight))
    j = [name.lower() for name in header].index(column)
    at = next(i for i, line in enumerate(lines) if line[0] == kind and line[j])
    if weight and (value == "12.5" or kind != "numbers"):
        return  # weights may be such
    lines[at][j] = value.format(lines[at][j].removesuffix(".0"))
    error = refused([header, *lines])
    assert (error.row, f" {column} " in f" {error.problem} ") == (at + 2 + len(lines[0][3].splitlines()) - 1, True)


@pytest.mark.parametrize("line", ["level,77,a,z,5", "numbers,77,a,,5", "numbers,0,z,,5", "level,3,z,z,5"])
def test_a_line_of_what_was_not_asked_is_refused(result, line):
    cells = line.split(",")
    assert refused([*result, cells + [""] * (len(HEADER) - len(cells))]).value in (77, "z")


# Texts that mean one value

ONE = {
    "decimals": ("DECIMAL(9,2)", {"1": 1, "1.0": 1, "2": 2, "1.00": 1}),
    "doubles": ("DOUBLE", {"0.0": 0.0, "-0.0": 0.0, "1.0": 1.0, "0": 0.0}),
    "truths": ("BOOLEAN", {"true": True, "TRUE": True, "false": False, "1": True}),
}


@pytest.mark.parametrize("case", ONE)
@pytest.mark.parametrize("name", ["label", "x"])
def test_texts_that_mean_one_value_are_counted_together(case, name):
    """As a database of numbers with digits of their own, or one without types, writes them."""
    kind, meant = ONE[case]
    rng = np.random.default_rng(0)
    odd, other = rng.choice(list(meant), N), rng.choice(["p", "q"], N)
    rows = pa.table({"x": other, "z": rng.normal(size=N), "label": other}).drop_columns(name).append_column(name, [odd])
    query = cd.make_counting_query(rows, "label", table="shop.people", dialect="duckdb", events={"x": "categorical"})
    lines = [line.replace(f'""{name}"": ""VARCHAR""', f'""{name}"": ""{kind}""') for line in in_duckdb(rows, query)]
    typed = rows.drop_columns(name).append_column(name, [[meant[text] for text in odd]])
    wanted = fit_model(typed, "label", model="naive", events={"x": "categorical"}).fitted.counts
    found = cd.fit_from_counts(lines).fitted.counts
    same(found, wanted)
    [part] = [part for part in found.plan.parts if "x" in part.columns]
    values = found.labels.values if name == "label" else part.levels[0].values
    assert {repr(value) for value in values} == {repr(value) for value in meant.values()}


def test_a_result_without_a_column_is_refused(result):
    assert refused([line[:4] + line[5:] for line in result]).value == ["n"]
    assert refused([["age", "job"], ["1", "cook"]]).value == list(HEADER)


def test_a_plan_that_was_changed_is_refused(result):
    for bad in ("", "{}", '{"candide": 2}', result[1][3].replace('"parts": ', '"parts": 1'), "{"):
        refused([result[0], [*result[1][:3], bad, *result[1][4:]], *result[2:]])


def test_another_target_is_refused(result):
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(written(result[0], result[1:]), target="code")
    assert error.value.value == "code"


def test_what_a_query_cannot_count_is_refused_by_its_column():
    rows = table().append_column("note", [[f"see you at number {i} then, dear friend" for i in range(N)]])
    with pytest.raises(InputError) as error:
        asked(rows, "snowflake")
    assert error.value.column == "note"
    with pytest.raises(InputError) as error:
        asked(table(), "snowflake", {("height", "price"): "gaussian-full"})
    assert error.value.column == "height"


def test_a_name_of_a_table_is_quoted_where_it_must_be():
    query = cd.make_counting_query(table(), "label", table="a; drop table x; --", dialect="postgres", drop=["w"])
    assert {one.name for one in sqlglot.parse_one(query, dialect="postgres").find_all(exp.Table)} == {
        "a; drop table x; --"
    }
    for bad in ("", "SELECT 1; DROP TABLE x", "SELECT FROM FROM"):
        with pytest.raises(InputError) as error:
            cd.make_counting_query(table(), "label", table=bad, dialect="postgres", drop=["w"])
        assert error.value.value == bad


@pytest.mark.parametrize("name", RUN)
def test_a_query_stands_for_a_table_and_missing_markers_are_missing(name):
    rows, said = table(), ReadOptions(na=("2", "", "NULL", "01"))
    few = "SELECT * FROM shop.people WHERE visits > 1 -- some"
    query = cd.make_counting_query(rows, "label", table=few, dialect=name, drop=["w", "day"], na=said.na)
    found = cd.fit_from_counts(RUN[name](rows, query)).fitted
    some = rows.filter(pa.compute.greater(rows["visits"], 1))
    wanted = fit_model(some, "label", model="naive", drop=["w", "day"], reading=said).fitted
    same(found.counts, wanted.counts)
    assert found.na == wanted.na


GAPS = {
    "double": pa.array([-999.0, 1.5, 2.25, 8.0, 1.0] * 40),
    "decimal": pa.array([-999.0, 1.5, 2.25, 8.0] * 50).cast(pa.decimal128(8, 2)),
    "whole": pa.array([-999, 1, 2, 3, 3] * 40),
    "text": ["-999", "-999.0", "01", "1.50", "v"] * 40,
    "truth": pa.array([True, False, None, True] * 50),
}


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize("label", ["class", "double"])
@pytest.mark.parametrize("name", [*RUN, "postgres"])
def test_a_number_that_means_missing_does_so_however_it_is_written(name, label, request):
    """As levels and as labels: -999 is -999.0 in one database, and -999.00 as a decimal; a truth is no number."""
    rows = pa.table(GAPS | {"class": (["a", "b", "b"] * 67)[:200]})
    said, levels = ReadOptions(na=("-999", "1.50", "true", "1")), {"double", "decimal", "whole"} - {label}
    how = {"events": dict.fromkeys(levels, "categorical"), "reading": said}
    events = how["events"]
    query = cd.make_counting_query(rows, label, table="shop.people", dialect=name, events=events, na=said.na)
    lines = returned(name, rows, query, request)
    same(cd.fit_from_counts(lines).fitted.counts, fit_model(rows, label, model="naive", **how).fitted.counts)


def test_a_number_that_means_missing_in_a_file_does_so_in_a_table_of_doubles(tmp_path):
    """A file has no types: its -999 is what the database writes as -999.0."""
    rows = pa.table({"x": pa.array([-999.0, 1.0, 2.0, 1.0] * 20), "label": pa.array([1.0, 2.0, -999.0, 2.0, 1.0] * 16)})
    sample = tmp_path / "sample.csv"
    sample.write_text("x,label\n" + "".join(f"{x:g},{y:g}\n" for x, y in zip(*rows.to_pydict().values(), strict=True)))
    how = {"events": {"x": "categorical"}, "reading": ReadOptions(na=("-999",))}
    query = cd.make_counting_query(
        sample, "label", table="shop.people", dialect="duckdb", events={"x": "categorical"}, na="-999"
    )
    same(
        cd.fit_from_counts(in_duckdb(rows, query)).fitted.counts,
        fit_model(sample, "label", model="naive", **how).fitted.counts,
    )


@pytest.mark.parametrize("name", RUN)
def test_what_meant_missing_to_a_model_does_so_in_a_query_like_it(name):
    rows = pa.table(GAPS | {"label": ["a", "b", "b", "a"] * 50})
    model = fit_model(rows, "label", model="naive", reading=ReadOptions(na=("-999",))).fitted
    query = cd.make_counting_query(rows, "label", table="shop.people", dialect=name, like=model)
    found = cd.fit_from_counts(RUN[name](rows, query)).fitted
    same(found.counts, fit_model(rows, "label", model="naive", like=model).fitted.counts)
    assert found.na == ("-999",)


def test_no_text_of_a_query_for_spark_is_a_setting():
    rows, said = {"job": ["cook", "${env:HOME}"] * 20, "label": ["a", "b", "b", "a"] * 10}, ("${env:HOME}", "a${")
    query = cd.make_counting_query(rows, "label", table="shop.people", dialect="spark", na=said)
    assert "${" not in query
    texts = [one.this for one in sqlglot.parse_one(query, dialect="spark").find_all(exp.Literal) if one.is_string]
    [na] = [json.loads(text)["na"] for text in texts if text.startswith('{"candide"')]
    assert na == list(said)
    assert "CONCAT('$', '{env:HOME}'), CONCAT('a$', '{')" in query


def test_money_of_postgres(postgres):
    rows = {"amount": [1234.5, 2.25, -3.0, None] * 9, "label": ["a", "b", "b", "a"] * 9}
    name = postgres.make(pa.table(rows)).rpartition("::")[2]
    money = f"SELECT CAST(CAST(amount AS NUMERIC) AS MONEY) AS amount, label FROM {name}"
    query = cd.make_counting_query(rows, "label", table=money, dialect="postgres")
    same(
        cd.fit_from_counts(written(HEADER, postgres.run(query))).fitted.counts,
        fit_model(rows, "label", model="naive").fitted.counts,
    )


# The command line


def test_through_the_command_line(tmp_path):
    rows, sample, counts = table(), tmp_path / "sample.parquet", tmp_path / "counts.csv"
    parquet.write_table(rows, sample)
    how = ["--target", "label", "--table", "shop.people", "--dialect", "duckdb", "--drop", "w"]
    query = output("sql", "count", sample, *how)
    assert output("sql", "count", sample, *how, "-o", tmp_path / "q.sql") == ""
    assert (tmp_path / "q.sql").read_text() == query == asked(rows, "duckdb") + "\n"
    counts.write_text("".join(in_duckdb(rows, query)), newline="")
    found = ask("fit", "--from-counts", counts, "-o", tmp_path / "m.candide")
    assert found["rows"] == direct(rows).fitted.counts.n_rows
    assert "naive Bayes" in " ".join(found["notes"])
    assert ask("evaluate", tmp_path / "m.candide", sample)["rows"] > 0
    for bad in (["--model", "bayes"], ["--folds", "3"], ["--drop", "w"], [str(sample)]):
        assert run("fit", "--from-counts", counts, *bad).exit_code == 1
    assert run("fit").exit_code == run("fit", sample).exit_code == 2
