"""partial_fit in chunks of any size is fit, also where the first rows look like another kind of column."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import candide as cd
from candide.data.column_types import infer_column, infer_columns
from candide.data.first_rows import FirstRows
from candide.data.notes import DataWarning
from candide.data.table import LIMITS, Table
from candide.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")


def _rows(n=900, seed=0):
    """Columns whose first hundred rows mislead."""
    rng = np.random.default_rng(seed)
    y, at = rng.integers(0, 2, n), np.arange(n)
    late = at >= 100
    rows = {
        "flag": np.where(late, rng.poisson(4 + 3 * y), rng.integers(0, 2, n)),
        "few": rng.integers(0, 9, n) + y,
        "serial": np.where(late, rng.integers(0, 9, n) + y, at),
        "gaps": np.where(late, rng.normal(y), np.nan),
        "word": np.where(late, rng.choice(list("abc"), n), [f"w{i}" for i in at]),
        "note": [f"one two three four {i if i >= 100 else i % 7}" for i in at],
        "mixed": [None if i < 100 else ("x" if i % 3 else i % 2) for i in at],
        "size": rng.normal(y),
    }
    return rows, y


def _frames():
    rows, y = _rows()
    yield "mapping", rows, lambda a, b: {name: column[a:b] for name, column in rows.items()}, y
    frame = pd.DataFrame(rows)
    yield "pandas", frame, lambda a, b: frame[a:b], y
    table = pa.table({name: column for name, column in rows.items() if name != "mixed"})
    yield "arrow", table, lambda a, b: table.slice(a, b - a), y
    array = np.column_stack([rows["flag"], rows["size"], rows["gaps"]])
    yield "array", array, lambda a, b: array[a:b], y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [13, 60, 250])
@pytest.mark.parametrize(("kind", "whole", "some", "y"), [pytest.param(*case, id=case[0]) for case in _frames()])
def test_chunks_are_fit(kind, whole, some, y, size, weighted):
    weight = np.random.default_rng(1).integers(1, 4, len(y)) if weighted else np.ones(len(y))
    model, fitted = cd.NaiveBayes(), cd.NaiveBayes().fit(whole, y, weight)
    for start in range(0, len(y), size):
        at = slice(start, start + size)
        model.partial_fit(some(start, min(len(y), start + size)), y[at], sample_weight=weight[at] if weighted else None)
    assert model.counts_.plan.columns == fitted.counts_.plan.columns
    np.testing.assert_allclose(model.predict_proba(whole), fitted.predict_proba(whole), rtol=1e-9, atol=1e-12)


def test_every_prefix_is_fit():
    rows, y = _rows(160)
    frame, model = pd.DataFrame(rows), cd.NaiveBayes()
    for n in range(2, 160):
        model.partial_fit(frame[(n > 2) * (n - 1) : n], y[(n > 2) * (n - 1) : n])
        if n % 20 == 10:
            fitted = cd.NaiveBayes().fit(frame[:n], y[:n])
            np.testing.assert_allclose(model.predict_proba(frame), fitted.predict_proba(frame), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_column_types_of_chunks_are_those_of_all_rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 300))
    columns = {
        "a": rng.integers(0, rng.integers(1, 40), n),
        "b": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 3, n)),
        "c": rng.choice([f"w{i}" for i in range(rng.integers(1, 200))], n).astype(object),
        "d": [f"one two three four {rng.integers(0, 60)}" for _ in range(n)],
        "row_id": rng.permutation(n) if seed % 2 else np.minimum(np.arange(n), n - 2),
        "e": rng.random(n) < 0.5,
    }
    frame = pd.DataFrame(columns)
    cuts = [0, *np.unique(rng.integers(1, n, 8)), n]
    rows = None
    for a, b in itertools.pairwise(cuts):
        table, y = Table.from_data(frame[a:b]), np.zeros(b - a)
        rows = FirstRows.from_chunk(table, y, None, table.names) if rows is None else rows.append(table, y, None)
        assert [c.kind for c in rows.columns] == [c.kind for c in infer_columns(Table.from_data(frame[:b]))]
        if not rows.undecided:
            return


@pytest.mark.parametrize("form", ["arrays", "lists", "frames", "rows of arrays"])
@pytest.mark.parametrize("numbers", [[0, 1, 2], [0.5, 1.5, 2.5], [0, 1]])
@pytest.mark.parametrize("first", [True, False])
def test_booleans_before_or_after_numbers(form, numbers, first):
    rng = np.random.default_rng(0)
    chunks = [rng.choice([True, False], 40), rng.choice(numbers, 40)][:: 1 if first else -1]
    y = rng.choice(["a", "b"], 40)
    make = {
        "arrays": lambda x: {"x": np.asarray(x)},
        "lists": lambda x: {"x": list(np.asarray(x, object))},
        "frames": lambda x: pd.DataFrame({"x": x}),
        "rows of arrays": lambda x: np.asarray(x)[:, None],
    }[form]
    whole = make(np.concatenate(chunks))
    if form == "frames":
        whole = pd.concat([make(chunk) for chunk in chunks], ignore_index=True)
    model, fit = cd.NaiveBayes(), cd.NaiveBayes().fit(whole, np.tile(y, 2))
    for chunk in chunks:
        model.partial_fit(make(chunk), y)
    kinds = [[part.event.name for part in one.fitted_.plan.parts] for one in (model, fit)]
    assert kinds == [["categorical" if numbers == [0, 1] else "gaussian"]] * 2
    np.testing.assert_allclose(model.predict_proba(whole), fit.predict_proba(whole), rtol=1e-12)


def test_rows_are_kept_no_longer_than_they_are_needed():
    X, y = np.random.default_rng(0).normal(size=(10, 3)), [0, 1] * 5
    assert cd.NaiveBayes().partial_fit(X, y)._first_rows is None
    events = {"a": "categorical"}
    assert cd.NaiveBayes(events).partial_fit({"a": ["u", "v"] * 5}, y)._first_rows is None
    model = cd.NaiveBayes().partial_fit({"a": [0, 1] * 5}, y)
    assert model._first_rows.has_rows
    more = LIMITS.rows // 2
    assert model.partial_fit({"a": [0, 1] * more}, [0, 1] * more)._first_rows is None
    assert cd.NaiveBayes().partial_fit({"a": [0, 1] * 5}, y).fit({"a": [0, 1] * 5}, y)._first_rows is None


def test_chunks_may_be_written_over():
    X, y = np.array([[0.0], [1.0]] * 5), np.array([0, 1] * 5)
    model = cd.NaiveBayes().partial_fit(X, y)
    X[:], y[:] = 7, 0
    model.partial_fit([[0.5]], [1])
    assert model.counts_.class_weight.tolist() == [5, 6]
    assert model.counts_.tallies[0].mean.ravel().tolist() == pytest.approx([0, 5.5 / 6])


def test_pickles_hold_no_rows_but_the_number_that_decided_the_types():
    X, y = {"secret": ["Ada Lovelace", "Alan Turing"] * 3, "flag": [0, 1] * 3}, [0, 1] * 3
    model = cd.NaiveBayes().partial_fit(X, y)
    assert copy.deepcopy(model)._first_rows.has_rows
    again = pickle.loads(pickle.dumps(model))
    assert not again._first_rows.has_rows
    with pytest.warns(DataWarning, match="first 6 rows") as found:
        again.partial_fit(X, y)
    assert set(found[0].message.note.columns) == {"secret", "flag"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.partial_fit(X, y)  # once


def test_unlearned_rows_are_not_kept():
    model = cd.NaiveBayes().partial_fit({"a": [0, 1, 1, 0]}, [0, 1, 1, 0]).forget({"a": [0]}, [0])
    assert not model._first_rows.has_rows


def test_a_column_left_out_may_be_missing_later():
    rows = {"k": [f"k{i}" for i in range(30)], "x": [0, 1] * 15}
    model = cd.NaiveBayes().partial_fit(rows, [0, 1] * 15)
    assert model.counts_.plan.columns == ("x",)
    model.partial_fit({"x": [0, 1]}, [0, 1]).partial_fit({"x": [5.5, 1]}, [0, 1])
    assert model.counts_.plan.parts[0].event.name == "gaussian"
    assert model.counts_.n_rows == 34


def test_a_chunk_that_fails_changes_nothing():
    model = cd.NaiveBayes().partial_fit({"a": [0, 1] * 5}, [0, 1] * 5)
    before = model.counts_
    with pytest.raises(InputError, match="infinity"):
        model.partial_fit({"a": [np.inf, 2.5]}, [0, 1])
    assert model.counts_ is before
    assert model._first_rows.n_rows == 10
    model.partial_fit({"a": [2.5, 3]}, [0, 1])
    assert model.counts_.n_rows == 12


def test_an_empty_sample_decides_nothing():
    rows = FirstRows.from_chunk(Table.from_data({"a": np.full(5, np.nan)}), np.zeros(5), None, ["a"])
    assert infer_column("a", np.full(5, np.nan)).kind == "number"
    assert "a" in rows.undecided


@pytest.mark.parametrize(("n", "warns"), [(40, True), (1000, False)])
def test_bayes_classifier_warns_of_a_small_first_chunk(n, warns):
    X, y = {"a": np.arange(n) % 7}, np.arange(n) % 2
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = cd.BayesClassifier().partial_fit(X, y)
        model.partial_fit(X, y)
        cd.BayesClassifier(like=model).partial_fit({"a": X["a"][:40]}, y[:40])
    codes = [one.message.note.code for one in found if isinstance(one.message, DataWarning)]
    assert codes.count("few-first-rows") == warns
