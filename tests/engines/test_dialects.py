"""Dialects: what each spells is read by a parser of it, and gives the same in those that run here."""

import datetime as dt
import math
import sqlite3
import sys
import types

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from scipy.special import gammaln
from sqlglot import exp
from tests.engines.sqlite_engine import SQLite, SQLiteSource
from tests.engines.test_engines import as_sqlite

import candide as cd
from candide.engines.sql.dialect import Dialect, call_function
from candide.engines.sql.dialects.offline import SQLiteDialect
from candide.engines.sql.dialects.registry import DIALECTS, get_dialect
from candide.errors import UnknownNameError

WORDS = {
    "double": lambda d, x: d.double(x),
    "text": lambda d, x: d.text(x),
    "a level": lambda d, x: d.level(x, "UUID"),
    "a number": lambda d, x: d.literal(-1.5e-300),
    "days of a date": lambda d, x: d.days(x, "DATE"),
    "days of a time": lambda d, x: d.days(x, "TIMESTAMP"),
    "NaN": lambda d, x: d.is_nan(x) or x,
    "log": lambda d, x: d.log(x),
    "exp": lambda d, x: d.exp(x),
    "log Gamma": lambda d, x: d.log_gamma(x),
    "the larger": lambda d, x: d.greatest(x, 0.5),
    "total": lambda d, x: d.exact_sum(x),
    "grouping": lambda d, x: d.grouping(x, exp.column("z")),
    "hash": lambda d, x: d.hash(x),
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("word", WORDS)
def test_words_are_those_that_a_parser_reads(name, word):
    """And what is quoted comes out as it went in."""
    x = exp.column('a "b', quoted=True)
    query = exp.select(WORDS[word](get_dialect(name), x), x.copy()).from_("t").sql(name)
    tree = sqlglot.parse_one(query, dialect=name)
    assert len(tree.expressions) == 2
    assert {column.name for column in tree.find_all(exp.Column)} <= {
        'a "b',
        "z",
        "microsecond",
        "MICROSECOND",
        "epoch_microsecond",
    }


def in_duckdb(expression, x=1.0, kind="DOUBLE"):
    return (
        duckdb.connect()
        .execute(f"SELECT {expression.sql('duckdb')} FROM (SELECT CAST(? AS {kind}) AS x)", [x])
        .fetchone()[0]
    )


def in_sqlite(expression, x=1.0, kind=None):
    with sqlite3.connect(":memory:") as con:
        return con.execute(f"SELECT {expression.sql('sqlite')} FROM (SELECT ? AS x)", [x]).fetchone()[0]


RUN = {"duckdb": in_duckdb, "sqlite": in_sqlite}


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("value", [0.1, -0.1, 1 / 3, -1e-300, 1.7976931348623157e308, 5e-324, 123456789.123456789, 0.0])
def test_a_number_keeps_its_digits_and_is_a_double(name, value):
    assert RUN[name](get_dialect(name).literal(value)) == value
    assert in_duckdb(exp.func("typeof", get_dialect("duckdb").literal(value))) == "DOUBLE"


@pytest.mark.parametrize("name", RUN)
def test_log_gamma_is_right_where_a_database_has_none(name):
    ours = Dialect().log_gamma(exp.column("x"))
    for x in [*np.linspace(0.01, 25, 101), 1e3, 1e6, 1e12]:
        assert RUN[name](ours.copy(), float(x)) == pytest.approx(gammaln(x), rel=1e-13, abs=2e-13)


@pytest.mark.parametrize("name", RUN)
def test_functions_and_days(name):
    d, run, x = get_dialect(name), RUN[name], exp.column("x")
    assert run(d.log(x.copy()), 2.5) == pytest.approx(math.log(2.5), rel=1e-15)
    assert run(d.exp(x.copy()), -1000.0) == 0.0
    assert [run(d.greatest(x.copy(), 0), v) for v in (-3.0, 2.5, None)] == [0.0, 2.5, None]
    at = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000)
    want = (at - dt.datetime(1970, 1, 1)).total_seconds() / 86400
    assert run(d.days(x.copy(), "TIMESTAMP"), at.isoformat(" "), "TIMESTAMP") == pytest.approx(want, abs=1e-8)
    assert run(d.days(x.copy(), "DATE"), "2024-02-29", "DATE") == 19782


def test_an_unknown_dialect_is_named():
    with pytest.raises(UnknownNameError) as error:
        get_dialect("snowflakes")
    assert error.value.value == "snowflakes"
    assert "did you mean 'snowflake'" in str(error.value)


class _ToyDialect(SQLiteDialect):
    """A database that has functions of its own for sums and logarithms."""

    log_function = "toy_log"

    def exact_sum(self, x):
        return call_function("toy_sum", x)


class _ToySource(SQLiteSource):
    dialect = _ToyDialect()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        _add_toy_functions(self.con)


class _ToySum:
    def __init__(self):
        self.values = []

    def step(self, value):
        self.values += [] if value is None else [value]

    def finalize(self):
        return math.fsum(self.values) if self.values else None


def _add_toy_functions(connection):
    connection.create_aggregate("toy_sum", 1, _ToySum)
    connection.create_function("toy_log", 1, lambda x: None if x is None else math.log(x))


def test_a_new_dialect_is_one_class_and_one_line(tmp_path, monkeypatch):
    """Its class serves counting and scoring; the line in the registry makes its name known."""
    module = types.ModuleType("candide.engines.sql.dialects.toy")
    module.ToyDialect = _ToyDialect
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(DIALECTS, "toy", "toy.ToyDialect")
    rng = np.random.default_rng(0)
    height, label = rng.normal(170, 9, 200), rng.choice(["a", "b"], 200)
    table = pa.table({"height": height, "job": rng.choice(["cook", "smith"], 200), "label": label})
    with _ToySource(as_sqlite(table, tmp_path / "rows.db"), "rows", SQLite()) as source:
        model = cd.fit(source, target="label", model="naive")
        query = model.to_sql("toy", "rows")
        rows = source.con.execute(query).fetchall()
    expected = cd.fit(table, target="label", model="naive").predict_proba(table)
    assert np.array([row[1:] for row in rows]) == pytest.approx(expected, abs=1e-9)
    assert "toy_log(" in query
