"""Random tables through all pairs of entry points: answers of a model are equal, or an error is clear.

The number of tables is that of the environment variable ``CANDIDE_FUZZ_TABLES``, or few.
"""

import datetime as dt
import os
import string
import warnings
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide.data.labels import Labels
from candide.errors import CandideError

TABLES = int(os.environ.get("CANDIDE_FUZZ_TABLES", "120"))
AT_ONCE = 40
ZONE = dt.timezone(dt.timedelta(hours=-5))
START = dt.datetime(2024, 2, 28, 22, 30)


def cells(kind, rng, n):
    """So many values of a kind, as an Arrow array."""
    few = rng.integers(0, int(rng.integers(2, 9)), n)
    many = rng.integers(-500, 500, n)
    moments = [START + dt.timedelta(minutes=int(i)) for i in many]
    made = {
        "float": lambda: pa.array(rng.normal(size=n)),
        "few floats": lambda: pa.array(few / 4),
        "whole": lambda: pa.array(many),
        "wide": lambda: pa.array(few + 2**53 - 3),
        "decimal": lambda: pa.array([Decimal(int(i)) / 100 for i in many], pa.decimal128(9, 2)),
        "boolean": lambda: pa.array(few % 2 == 0),
        "zero one": lambda: pa.array(few % 2),
        "date": lambda: pa.array([moment.date() for moment in moments]),
        "timestamp": lambda: pa.array(moments, pa.timestamp(str(rng.choice(["ms", "us", "ns"])))),
        "zone": lambda: pa.array([moment.replace(tzinfo=ZONE) for moment in moments]),
        "time": lambda: pa.array([moment.time() for moment in moments]),
        "duration": lambda: pa.array([dt.timedelta(minutes=int(abs(i))) for i in many]),
        "text": lambda: pa.array([string.ascii_letters[i] for i in few]),
        "text_formats": lambda: pa.array([f"{i}.5 kg" for i in few]),
        "nothing": lambda: pa.nulls(n),
    }[kind]()
    gaps = rng.random(n) < float(rng.choice([0.0, 0.0, 0.2]))
    gaps &= kind != "wide"  # pandas itself would round what stands beside them
    return pa.array([None if gap else value for value, gap in zip(made.to_pylist(), gaps, strict=True)], made.type)


KINDS = [
    "float", "few floats", "whole", "wide", "decimal", "boolean", "zero one", "date", "timestamp", "zone", "time",
    "duration", "text", "text_formats", "nothing",
]  # fmt: skip


def random_table(rng):
    """A table whose classes follow from its columns, and which of these are asked for as categories."""
    n = int(rng.integers(30, 100))
    kinds = [*rng.choice(KINDS, int(rng.integers(1, 5))), "float"]
    table = pa.table({f"{kind} {i}": cells(kind, rng, n) for i, kind in enumerate(kinds)})
    label = str(rng.choice(["text", "boolean", "whole", "date"]))
    told = sum(rng.normal() * ranks(table.column(name)) for name in table.column_names) + rng.normal(0, 0.1, n)
    classes = {
        "text": ["no", "yes"],
        "boolean": [False, True],
        "whole": [3, 12],
        "date": [dt.date(2024, 1, 5), dt.date(2024, 1, 6)],
    }
    y = pa.array([classes[label][int(above)] for above in told > np.median(told)])
    events = {name: "categorical" for name in table.column_names if rng.random() < 0.4}
    return table.append_column("y", y), events


def ranks(column):
    """The place of each value among those of its column, from 0 to 1; a gap is in the middle."""
    values = column.to_pylist()
    place = {value: i for i, value in enumerate(sorted({value for value in values if value is not None}))}
    return np.array([0.5 if value is None else place[value] / max(1, len(place) - 1) for value in values])


def sql(table, path, form=""):
    """The table written by SQL."""
    con = duckdb.connect()
    con.register("rows", table)
    con.execute(f"COPY rows TO '{path}'{form}")
    return str(path)


def pandas_csv(table, path):
    table.to_pandas().to_csv(path, index=False)
    return str(path)


def parquet(table, path):
    pq.write_table(table, path)
    return str(path)


ENTRY_POINTS = {  # each as it holds a table
    "Parquet": lambda table, folder: parquet(table, folder / "rows.parquet"),
    "CSV": lambda table, folder: pandas_csv(table, folder / "rows.csv"),
    "CSV of SQL": lambda table, folder: sql(table, folder / "sql.csv"),
    "CSV packed": lambda table, folder: sql(table, folder / "sql.csv.gz"),
    "JSON lines": lambda table, folder: sql(table, folder / "rows.jsonl", " (FORMAT json)"),
    "query": lambda table, folder: f"FROM read_json('{sql(table, folder / 'q.jsonl', ' (FORMAT json)')}')",
    "relation": lambda table, folder: duckdb.connect().from_arrow(table),
    "arrow": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas(),
    "polars": lambda table, folder: pl.from_arrow(table),
    "lists": lambda table, folder: {name: table.column(name).to_pylist() for name in table.column_names},
    "arrays": lambda table, folder: {name: column.to_numpy() for name, column in table.to_pandas().items()},
}
IN_MEMORY = ("arrow", "pandas", "polars", "lists", "arrays")  # what an estimator takes


def told(what, *arguments):
    """What an entry_point answers, or None where an error of ours says why it cannot."""
    try:
        return what(*arguments)
    except CandideError:
        return None


def features(data, names):
    """The columns of rows in memory, without the labels."""
    if isinstance(data, dict):
        return {name: data[name] for name in names}
    return data[names] if hasattr(data, "iloc") else data.select(names)


MODELS = {"naive": cd.NaiveBayes, "bayes": cd.BayesClassifier}


def fitted(kind, entry_point, table, events, folder):
    """A model of the table by an entry_point; by ``X`` in memory an estimator's own ``fit``."""
    name, data = entry_point.removeprefix("X "), ENTRY_POINTS[entry_point.removeprefix("X ")](table, folder)
    if entry_point == name:
        return told(lambda: cd.fit(data, "y", events=events, model=kind))
    y = np.array(table.column("y").to_pylist(), object)
    return told(MODELS[kind](events).fit, features(data, table.column_names[:-1]), y)


def answers(model, entry_point, table, folder):
    """Posteriors by an entry_point, and log-densities where the scores are such."""
    name, data = entry_point.removeprefix("X "), ENTRY_POINTS[entry_point.removeprefix("X ")](table, folder)
    if entry_point == name:
        scored = told(model.predict_table, data)
        names = [] if scored is None else [name for name in scored.column_names if name != "prediction"]
        names = [name for name in names if scored[name].null_count < len(scored)]
        return np.column_stack([scored[name] for name in names]) if names else None
    X = features(data, table.column_names[:-1])
    p = told(model.predict_proba, X)
    weighted = isinstance(model, cd.BayesClassifier)
    return p if p is None or weighted else np.column_stack([p, model.log_density(X)])


def check(seed, folder):
    """One table: whether the entry_point that was asked answered; an answer is that of the entry_point that fitted."""
    rng = np.random.default_rng(seed)
    kind = ("naive", "bayes")[seed % 2]
    table, events = random_table(rng)
    by, to = rng.choice([*ENTRY_POINTS, *(f"X {name}" for name in IN_MEMORY)], 2, replace=False)
    model = fitted(kind, by, table, events or "auto", folder)
    want = None if model is None else answers(model, by, table, folder)
    found = None if want is None else answers(model, to, table, folder)
    if found is not None:
        kinds = dict(zip(table.column_names, map(str, table.schema.types), strict=True))
        where = f"seed {seed}: {kind} fitted by {by}, asked by {to}, {kinds}, {events}"
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-9, err_msg=where)
    return found is not None


@pytest.mark.all_cases
@pytest.mark.parametrize("run", range(-(-TABLES // AT_ONCE)))
def test_answers_are_equal_through_every_entry_point_or_an_error_is_clear(run, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answered = [check(seed, tmp_path) for seed in range(run * AT_ONCE, (run + 1) * AT_ONCE)]
    assert np.mean(answered) > 0.8


@pytest.mark.all_cases
def test_the_fuzz_would_notice(tmp_path, monkeypatch):
    """Levels that are known by one way of writing them only, wherever in a model that is."""
    monkeypatch.setattr(Labels, "match_codes", lambda labels, column: labels.encode(column))
    found = {0: 0, 1: 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(AT_ONCE):
            try:
                check(seed, tmp_path)
            except AssertionError:
                found[seed % 2] += 1
    assert all(found.values())
