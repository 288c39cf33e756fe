"""Folds by a key: the hash of a column says them, the same in NumPy and in every database."""

from hashlib import md5
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from tests.cli.typed import ask, run
from tests.engines.sqlite_engine import SQLite
from tests.engines.test_engines import as_sqlite

import candide as cd
from candide.data.sample import assign_folds_by_key
from candide.data.table import Table
from candide.engines.base import Folds, get_engine, open_source
from candide.engines.sql.dialects.registry import DIALECTS, get_dialect
from candide.engines.sql.source import fold_sql_by_key
from candide.errors import InputError

N = 300
KEYS = {
    "number": [None if i % 29 == 0 else (i * 7919) % 97 - 40 for i in range(N)],
    "wide": [2**62 + i if i % 2 else -(2**62) - i for i in range(N)],
    "text": [None if i % 31 == 0 else ["", "o'k", "été", "日本", "a b", "007", "A", "a"][i % 8] for i in range(N)],
}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return pa.table({**KEYS, "x": rng.normal(y, 1.0), "y": np.array(["a", "b"])[y]})


def of_batches(source, key, seed) -> list[int]:
    batches = source.batches(["x"], 64, Folds(7, seed, "y", key))
    return [int(f) for batch in batches for f in batch.columns[-1].to_pylist()]


@pytest.mark.parametrize("key", KEYS)
def test_folds_are_those_of_the_hash_in_every_engine(rows, key, tmp_path):
    for seed in (0, 12):
        words = ["" if value is None else str(value) for value in KEYS[key]]
        want = [int(md5(f"{seed}:{word}".encode()).hexdigest()[:7], 16) % 7 for word in words]
        assert assign_folds_by_key(rows[key], 7, seed).tolist() == want
        with open_source(rows) as source:
            assert of_batches(source, key, seed) == want
        with get_engine("arrays").open(Table.from_data(rows)) as source:
            assert of_batches(source, key, seed) == want
        with SQLite().open(as_sqlite(rows, tmp_path / f"{seed}.db")) as source:
            assert of_batches(source, key, seed) == want


def test_postgres_prints_them_in_any_encoding(postgres):
    """And of numbers without places, and of text that is filled up with blanks."""
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    words = ["a", "é", "Straße", ""]
    from adbc_driver_postgresql import dbapi

    values = ", ".join(f"('{word}', '{word}', {i})" for i, word in enumerate(words))
    with dbapi.connect(postgres.address(database="latin"), autocommit=True) as con, con.cursor() as cursor:
        cursor.execute("SET client_encoding TO 'UTF8'")
        cursor.execute("CREATE TABLE k (t text, c char(9), n numeric(18, 0))")
        cursor.execute(f"INSERT INTO k VALUES {values}")
    with open_source(f"{postgres.address(database='latin')}::k") as source:
        for key, held in (("t", words), ("c", words), ("n", range(4))):
            folds = [
                f for b in source.batches([key], 9, Folds(97, 0, key_column=key)) for f in b.columns[-1].to_pylist()
            ]
            assert folds == assign_folds_by_key(list(held), 97, 0).tolist()


def test_what_is_a_key_is_one_in_every_engine():
    whole, lists = pa.array([1, 2, None] * 6, pa.decimal128(18, 0)), pa.array([[1], [2], [3]] * 6)
    for kind in (pa.table, Table.from_data):
        rows = kind({"k": whole, "l": lists, "x": list(range(18)), "y": ["a", "b", "b"] * 6})
        with open_source(rows) as source:
            folds = [
                f for b in source.batches(["x"], 9, Folds(97, 0, key_column="k")) for f in b.columns[-1].to_pylist()
            ]
        assert folds == assign_folds_by_key([1, 2, None] * 6, 97).tolist()
        with pytest.raises(InputError) as error:
            cd.cross_validate(rows, "y", fold_by="l", folds=2, drop=["k"])
        assert error.value.column == "l"


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_prints_them(name):
    source = SimpleNamespace(dialect=get_dialect(name), view="t", columns={"k": "BIGINT"})
    query = fold_sql_by_key(source, Folds(10, 3, "y", "k")).sql(name)
    assert "MD5" in query.upper()
    assert sqlglot.parse_one(query, dialect=name).sql(name) == query


@pytest.mark.parametrize("values", [[0.5, 1.0] * 9, [True, False] * 9], ids=["fractions", "truths"])
@pytest.mark.parametrize("kind", [pa.table, Table.from_data], ids=["duckdb", "arrays"])
def test_a_key_that_is_written_in_several_ways_is_refused(kind, values):
    with pytest.raises(InputError) as error:
        cd.cross_validate(
            kind({"k": values, "x": list(range(18)), "y": ["a", "b", "b"] * 6}), "y", fold_by="k", folds=2
        )
    assert (error.value.column, bool(error.value.remedy)) == ("k", True)


def test_rows_of_one_key_stay_together_and_the_key_is_not_a_feature(rows):
    """A key that gives the class away helps nobody; each of its values is in one fold."""
    patient = [f"{label}{i % 20}" for i, label in enumerate(rows["y"].to_pylist())]
    told = pa.table({"patient": patient, "x": rows["x"], "y": rows["y"]})
    found = cd.cross_validate(told, "y", fold_by="patient", folds=5, model="naive")
    assert [column.name for column in found.fit_result.columns] == ["x"]
    fold = assign_folds_by_key(patient, 5)
    assert [scores.n for scores in found.folds] == np.bincount(fold, minlength=5).tolist()
    assert found.total.accuracy < 0.9
    weighted = cd.cross_validate(told, "y", fold_by="patient", folds=5)
    assert [scores.n for scores in weighted.folds] == np.bincount(fold, minlength=5).tolist()


@pytest.mark.parametrize("model", ["naive", "bayes"])
@pytest.mark.parametrize("kind", [pa.table, Table.from_data], ids=["duckdb", "arrays"])
def test_no_row_may_be_in_a_fold(rows, kind, model):
    """Of three keys at most three of five folds have rows; the others are passed over."""
    keys = [f"k{i % 3}" for i in range(N)]
    held = np.bincount(assign_folds_by_key(keys, 5), minlength=5)
    assert 1 < (held > 0).sum() < 5
    table = kind({"key": keys, "x": rows["x"].to_numpy(), "y": rows["y"].to_pylist()})
    found = cd.cross_validate(table, "y", fold_by="key", folds=5, model=model)
    assert [scores.n for scores in found.folds] == held[held > 0].tolist()


def test_bad_keys(rows):
    for key, column in {"nothing": None, "y": "y", "one": "one"}.items():
        with pytest.raises(InputError) as error:
            cd.cross_validate(rows.append_column("one", [["same"] * N]), "y", fold_by=key, folds=3, model="naive")
        assert error.value.column == column


def test_a_source_without_an_order_needs_a_key(rows):
    with open_source(rows) as source:
        source.has_order = False
        with pytest.raises(InputError) as error:
            cd.cross_validate(source, "y", folds=3, model="naive")
        assert "--fold-by" in error.value.remedy
        assert cd.cross_validate(source, "y", folds=3, fold_by="number", model="naive").total.n == N


def test_through_the_command_line(rows, tmp_path):
    from pyarrow import parquet

    parquet.write_table(rows, path := tmp_path / "rows.parquet")
    how = ["--target", "y", "--fold-by", "number", "--folds", "3", "--model", "naive"]
    want = cd.cross_validate(rows, "y", folds=3, fold_by="number", model="naive").total.accuracy
    assert ask("evaluate", path, *how)["metrics"]["accuracy"]["value"] == pytest.approx(want, rel=1e-12)
    both = cd.compare_settings(rows, "y", {"a": {"model": "naive"}, "b": {"model": "naive"}}, folds=3, fold_by="number")
    assert both.totals["a"].accuracy == pytest.approx(want, rel=1e-12)
    assert run("fit", path, "--target", "y", "--fold-by", "number").exit_code == 1
