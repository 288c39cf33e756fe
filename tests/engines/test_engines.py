"""Every engine counts and scores as the array engine does: the same rows, the same counts, the same posteriors."""

import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.sqlite_engine import SQLite

import candide as cd
from candide.data.table import Table
from candide.encoding import Grid
from candide.engines.base import Folds, LabelledSource, PreparedSource, find_engine, get_engine, open_source
from candide.engines.counting import count_source
from candide.engines.reading import ReadOptions
from candide.events import Categorical, EventModel, Gaussian
from candide.fit_source import fit_model
from candide.model.plan import Plan, PlanPart
from candide.validation.cross_validation import cross_validate

N = 400


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    return pa.table(
        {
            "height": pa.array(1e6 + 8 * y + rng.normal(0, 6, N), mask=rng.random(N) < 0.1),
            "visits": rng.poisson(2 + y),
            'a "name"; --': np.array(["cook", "smith", "it's", 'say "hi"'])[rng.integers(0, 4, N)],
            "member": pa.array(rng.integers(0, 2, N), mask=rng.random(N) < 0.2),
            "note": [f"{'free prize' if c else 'see you'} at number {i % 7} then" for i, c in enumerate(y)],
            "w": rng.integers(1, 4, N).astype(float),
            "label": pa.array(np.array(["a", "b", "it's"])[y], mask=rng.random(N) < 0.05),
        }
    )


def as_sqlite(table: pa.Table, path: Path) -> Path:
    kinds = {"double": "REAL", "int64": "INTEGER", "string": "TEXT"}
    with sqlite3.connect(path) as con:
        quoted = ['"' + name.replace('"', '""') + '"' for name in table.column_names]
        types = [kinds[str(column.type)] for column in table.columns]
        con.execute(f"CREATE TABLE rows ({', '.join(map(' '.join, zip(quoted, types, strict=True)))})")
        marks = ", ".join("?" * len(quoted))
        con.executemany(f"INSERT INTO rows VALUES ({marks})", zip(*(c.to_pylist() for c in table.columns), strict=True))
    con.close()
    return path


@pytest.fixture(params=["duckdb", "sqlite"])
def opened(request, rows, tmp_path):
    """The same rows, open in an engine."""
    if request.param == "duckdb":
        with open_source(rows) as source:
            yield source
    else:
        with SQLite().open(as_sqlite(rows, tmp_path / "rows.db")) as source:
            yield source


def same(a, b):
    assert (a.labels, a.n_rows, a.plan) == (b.labels, b.n_rows, b.plan)
    np.testing.assert_allclose(a.class_weight, b.class_weight, rtol=1e-12)
    for mine, theirs in zip(a.tallies, b.tallies, strict=True):
        for name, state in theirs.arrays().items():
            np.testing.assert_allclose(mine.arrays()[name], state, rtol=1e-9, atol=1e-9, err_msg=name)


class Halved(EventModel):
    """Tallies a Python function of the values, which no database can say."""

    name, kind = "halved", "moments"

    def transform(self, x):
        return x / 2

    def parameters(self, tally, prior, how):
        return {"mean": tally.mean}

    def log_density(self, x, mean):
        return -((x / 2 - mean) ** 2)


EVENTS = {
    "auto": "auto",
    "levels and logs": {"visits": "categorical", "height": "lognormal"},
    "sums": {"visits": "poisson"},
    "an own transform": {"visits": Halved()},
    "a group": {("height", "visits"): "gaussian-full"},
    "a threshold": {"visits": "bernoulli"},
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_the_counts_are_those_of_the_array_engine(opened, rows, events, weight):
    drop = ["note", *([] if weight else ["w"])]
    found = fit_model(opened, "label", events=events, weight=weight, drop=drop, model="naive")
    wanted = fit_model(Table.from_data(rows), "label", events=events, weight=weight, drop=drop, model="naive")
    same(found.fitted.counts, wanted.fitted.counts)
    assert found.note_texts == wanted.note_texts


def test_text_is_counted_from_batches_beside_the_engine_counts(opened, rows):
    events = {"note": "text"}
    same(
        fit_model(opened, "label", events=events, model="naive").fitted.counts,
        fit_model(Table.from_data(rows), "label", events=events, model="naive").fitted.counts,
    )


def test_rows_are_scored_and_explained_the_same(opened, rows):
    fitted = fit_model(rows, "label", model="naive").fitted
    mine, theirs = (
        cd.predict_table(fitted, opened, keep=["visits"]),
        cd.predict_table(fitted, Table.from_data(rows), keep=["visits"]),
    )
    assert mine.column_names == theirs.column_names
    assert mine["prediction"].equals(theirs["prediction"])
    for name in mine.column_names[2:]:
        np.testing.assert_allclose(mine[name].to_numpy(), theirs[name].to_numpy(), rtol=1e-9)
    with pytest.warns(UserWarning, match="left out"):
        assert cd.evaluate(fitted, opened).log_loss == pytest.approx(cd.evaluate(fitted, rows).log_loss, rel=1e-12)
    [mine], [theirs] = cd.explain_rows(fitted, opened, [7]), cd.explain_rows(fitted, rows, [7])
    assert (mine.row, mine.label, str(mine.decision)) == (7, theirs.label, str(theirs.decision))


def test_what_was_counted_can_be_taken_away_again(opened, rows):
    fitted = fit_model(rows, "label", model="naive").fitted
    more = cd.update_model(fitted, opened).fitted
    assert more.counts.n_rows == 2 * fitted.counts.n_rows
    np.testing.assert_allclose(cd.forget_rows(more, opened).fitted.counts.class_weight, fitted.counts.class_weight)


@pytest.mark.parametrize("seed", [0, 3])
def test_every_row_is_scored_in_the_fold_in_which_it_was_counted(opened, rows, seed):
    found = cross_validate(opened, "label", drop=["w"], folds=4, seed=seed, model="naive")
    assert found.total.n == rows["label"].drop_null().length()
    fold = np.concatenate([b.columns[-1].to_numpy() for b in opened.batches(["w"], 64, Folds(4, seed))])
    assert set(np.bincount(fold, minlength=4)) <= set(range(N // 4 - 3, N // 4 + 4))
    assert len(set(map(tuple, fold.reshape(-1, 4).tolist()))) > 1


def test_a_source_that_is_open_stays_open(opened):
    fit_model(opened, "label", model="naive")
    assert opened.head(1).num_rows == 1


def test_the_table_of_engines():
    assert get_engine("duckdb").tally_kinds == {"moments", "sums", "levels"}
    assert (find_engine("rows.csv").name, find_engine(Table.from_data({"x": [1.0]})).name) == ("duckdb", "arrays")


def test_the_toy_stays_small():
    assert len((Path(__file__).parent / "sqlite_engine.py").read_text().splitlines()) <= 120


def test_a_table_of_several_is_named(rows, tmp_path):
    path = as_sqlite(rows, tmp_path / "rows.db")
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE other (x REAL)")
    with SQLite().open(path, ReadOptions(table="rows")) as source:
        assert list(source.columns) == rows.column_names


@pytest.mark.parametrize("weight", [None, "w"])
def test_numbers_are_counted_by_the_cell_in_which_they_lie(opened, rows, weight):
    """A column may serve several parts: as a number, and by its cells."""
    grid = Grid(tuple(1e6 + edge for edge in (-8.0, 0.0, 3.5, 11.0)))
    parts = (
        PlanPart(Gaussian(), ("height",)),
        PlanPart(Categorical(), ("height",), (grid,)),
        PlanPart(Categorical(), ("member",)),
    )
    prepared = PreparedSource(Plan(("height", "member"), parts), middle_values={"height": 1e6})
    with open_source(Table.from_data(rows)) as table:
        mine, theirs = (
            count_source(LabelledSource(source, "label", weight), prepared).fold_counts[0] for source in (opened, table)
        )
    assert opened.engine.can_count(parts[1])
    same(mine, theirs)
