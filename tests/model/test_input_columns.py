"""One rule for columns that rows lack, or have beside those of a model, through every entry point."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.serve.client import ask

import candide as cd
from candide import demo, store
from candide.data.notes import DataWarning
from candide.data.table import Table
from candide.errors import InputError
from candide.model.input_columns import UnseenValues, compare_columns, unread_columns
from candide.serve import app

CASES = {  # columns of the rows, and the warnings: code, column, and what is suggested
    "whole": (["age", "job", "pay"], []),
    "other order": (["pay", "age", "job"], []),
    "unknown": (["age", "job", "pay", "colour", "kind"], []),
    "absent": (["age", "pay"], [("column-absent", "job", "")]),
    "misspelt": (["aeg", "job", "pay"], [("column-absent", "age", "did you mean 'aeg' for 'age'?")]),
    "other case": (["age", "job", "pay", "Pay "], [("column-unknown", "Pay ", "the model reads 'pay'")]),
}
every_case = pytest.mark.parametrize(("names", "expected"), CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = {"age": rng.normal(40, 9, 90), "job": rng.choice(list("abc"), 90), "pay": rng.normal(3, 1, 90)}
    return cd.NaiveBayes().fit(X, np.where(X["age"] > 40, "old", "young"))


@pytest.fixture(scope="module")
def fitted(model):
    return replace(model.fitted_, target="kind")


def rows_of(names):
    values = {"age": 44.0, "aeg": 44.0, "job": "a", "pay": 2.5, "Pay ": 9.0, "colour": "red", "kind": "old"}
    return {name: [values[name]] * 2 for name in names}


def found(call):
    """The warnings of a call on columns, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    notes = [one.message.note for one in caught if isinstance(one.message, DataWarning)]
    return [(note.code, note.column, note.remedy) for note in notes if note.code.startswith("column-")], result


@every_case
def test_estimators_and_tasks(model, fitted, names, expected):
    rows = rows_of(names)
    told, p = found(lambda: model.predict_proba(rows))
    assert told == expected
    for call in (model.predict, model.explain, model.log_density, model.predict_interval):
        assert found(lambda call=call: call(pd.DataFrame(rows)))[0] == expected
    assert found(lambda: cd.NaiveBayes.from_fitted(fitted).predict(rows))[0] == expected
    told, table = found(lambda: cd.predict_table(fitted, rows))
    assert told == expected
    assert table.column("p_old").to_numpy() == pytest.approx(p[:, 0])
    assert found(lambda: list(cd.explain_rows(fitted, rows)))[0] == expected
    if "kind" in rows:
        assert found(lambda: cd.evaluate(fitted, rows))[0] == expected
    gaps = {name: rows.get(name, [None] * 2) for name in ("age", "job", "pay")}
    assert model.predict_proba(gaps) == pytest.approx(p)


@every_case
def test_server(model, fitted, names, expected):
    expected = expected + [("column-unknown", "colour", "'colour' is ignored")] * ("colour" in names)
    rows, served = rows_of(names), app(fitted)
    p = found(lambda: model.predict_proba(rows))[1][0, 0]
    for path in ("/predict", "/explain"):
        for body in ({name: column[0] for name, column in rows.items()}, pd.DataFrame(rows).to_dict("records")):
            answer = ask(served, path, body).json
            first = answer[0] if isinstance(answer, list) else answer
            notes = first.get("warnings", [])
            assert [(note["code"], note["column"]) for note in notes] == [pair[:2] for pair in expected]
            assert all(hint in note["text"] for note, (_, _, hint) in zip(notes, expected, strict=True))
            if path == "/predict":
                assert first["p_old"] == pytest.approx(p)


def test_command_line(fitted, tmp_path):
    path = str(tmp_path / "m.candide")
    store.save(fitted, path)
    pd.DataFrame(rows_of(["aeg", "job", "pay"])).to_csv(tmp_path / "rows.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "candide",
        "predict",
        path,
        str(tmp_path / "rows.csv"),
        "-o",
        str(tmp_path / "p.csv"),
    ]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 2
    assert "did you mean 'aeg' for 'age'?" in " ".join(done.stderr.split())


def test_none_of_the_columns_is_an_error(model, fitted):
    for call in (model.predict, model.explain, lambda rows: cd.predict_table(fitted, rows)):
        with pytest.raises(InputError) as error:
            call({"AGE": [1.0]})
        assert error.value.remedy == "did you mean 'AGE' for 'age'?"
    assert ask(app(fitted), "/predict", {"AGE": 1.0}).json["remedy"] == "did you mean 'AGE' for 'age'?"


def test_rows_to_learn_from_must_have_every_column(model, fitted, tmp_path):
    rows = rows_of(["aeg", "job", "pay"])
    with pytest.raises(InputError) as error:
        cd.NaiveBayes.from_fitted(fitted).partial_fit(rows, ["old", "old"])
    assert (error.value.column, error.value.remedy) == ("age", "did you mean 'aeg' for 'age'?")
    with pytest.raises(InputError) as error:
        cd.update_model(fitted, rows | {"kind": ["old", "old"]})
    assert (error.value.value, error.value.remedy) == (["age"], "did you mean 'aeg' for 'age'?")
    served = app(fitted, journal_path=tmp_path / "state.db")
    try:
        problem = ask(served, "/learn", {name: column[0] for name, column in rows.items()} | {"kind": "old"}).json
    finally:
        served.close()
    assert (problem["column"], problem["remedy"]) == ("age", "did you mean 'aeg' for 'age'?")


def test_replacements_for_scikit_learn_ask_for_the_same_columns():
    model = cd.GaussianNB().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}), ["x", "y"])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        model.predict(pd.DataFrame({"a": [1.0]}))


def test_columns_left_out_of_the_fit_are_not_reported_as_unknown():
    X = {"a": [1.0, 2.0, 3.0, 4.0] * 10, "A_": [f"id{i}" for i in range(40)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cd.NaiveBayes().fit(X, ["x", "y"] * 20)
    assert model.fitted_.plan.columns == ("a",)
    assert found(lambda: model.predict(X))[0] == []


def test_very_many_unknown_columns():
    [note] = compare_columns("rows", [f"x{i}" for i in range(50_000)] + ["age"], ["age", "pay"])
    assert (note.code, note.columns) == ("column-absent", ("pay",))


def test_similar_names_are_suggested():
    assert compare_columns("rows.csv", ["Age", "job"], ("age", "job"))[0].remedy == "did you mean 'Age' for 'age'?"
    [note] = compare_columns("rows.csv", ["age", "job", "Job"], ("age", "job"))
    assert str(note) == "rows.csv: column 'Job' is ignored; the model reads 'job'"
    [note] = unread_columns("the request", ["age", "jobs", "id"], ["age", "job"])
    assert str(note) == "the request: columns 'jobs', 'id' are ignored; did you mean 'job' for 'jobs'?"


def test_a_column_of_unseen_values_is_noted():
    rows = {"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["mud"], "scented": ["yes"]}
    plan = demo.garden().plan
    unseen = UnseenValues(plan)
    unseen.observe(plan.blocks(Table.from_data(rows)))
    [note] = unseen.notes()
    known = "no value is known to the model ('chalk', 'clay', 'sand')"
    assert str(note) == f"column 'soil': {known}; write values as in the training rows"
