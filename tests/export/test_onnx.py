"""The graph of ONNX says what the model says, run by onnxruntime: every law and voice, real tables, odd names."""

import datetime as dt
import json
import sys

import numpy as np
import pytest
from tests.export.scorers import CLOSE, enormous_counts, rows_of
from tests.export.test_policies import POLICIES
from tests.export.test_policies import rows as some_rows
from tests.export.test_scorers import DROPINS, HOSTILE, LAWS, ROWS, every_law, real
from tests.model_cases import MODELS
from tests.tables import table

import candide as cd
from candide.errors import InputError
from candide.export.onnx import build_onnx_model, to_onnx_bytes
from candide.export.python_js.values import format_plain_value, read_number_value

proto = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
TABLES = [name for name in MODELS if not name.startswith("text")]
pytestmark = pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")


def inputs(graph, rows):
    """Rows as the graph takes them: numbers and dates as doubles, levels of text as strings."""
    facts = json.loads({one.key: one.value for one in graph.metadata_props}["columns"])
    return {column["input"]: _array(column, [row.get(column["name"]) for row in rows]) for column in facts}


def _array(column, values):
    if column["type"] == "double":
        return np.array([[read_number_value(column, value)] for value in values], np.float64).reshape(-1, 1)
    told = [
        column["missing"] if value is None else value if isinstance(value, str) else format_plain_value(value)
        for value in values
    ]
    return np.array(told, object).reshape(-1, 1)


def run(model, rows):
    """The labels and the probabilities that onnxruntime gives rows."""
    graph = build_onnx_model(model.fitted_)
    proto.checker.check_model(graph, full_check=True)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities"], inputs(graph, rows))


def same(model, data):
    labels, found = run(model, rows_of(data, model.fitted_.plan.columns))
    expected = model.predict_proba(data)
    assert found.dtype == np.float64
    assert np.abs(found - expected).max(initial=0.0) <= CLOSE
    assert labels.tolist() == [_label(value) for value in model.predict(data).tolist()]


def _label(value):
    return "" if value is None else value if isinstance(value, int | float | str | bool) else str(value)


@pytest.mark.parametrize("name", TABLES)
def test_models_of_every_sort(name):
    same(*MODELS[name])


@pytest.mark.parametrize("model", ["bayes", "naive"])
def test_adult(model):
    same(cd.fit(table("adult_train.parquet"), target="class", model=model), real("adult_test")[0][:ROWS])


def without_words(table):
    return {name: column for name, column in table.items() if name != "words"}


@pytest.mark.parametrize("estimate", ["predictive", "mean", "mle"])
def test_every_distribution_at_once(estimate):
    rng = np.random.default_rng(0)
    X, y = every_law(rng, 2000)
    model = cd.NaiveBayes(without_words(LAWS), estimate=estimate).fit(without_words(X), y)
    same(model, without_words(every_law(rng, ROWS if estimate == "predictive" else 1000, wild=True)[0]))


def test_every_column_has_a_weight():
    rng = np.random.default_rng(1)
    X, y = every_law(rng, 1000, wild=True)
    same(cd.BayesClassifier().fit(without_words(X), y), without_words(every_law(rng, ROWS, wild=True)[0]))


def test_huge_numbers():
    rng = np.random.default_rng(0)
    X, y = every_law(rng, 500)
    model = cd.NaiveBayes(without_words(LAWS)).fit(without_words(X), y)
    for name in ("bell", "size", "shared", "above", "wait", "cells", "side 1"):
        far = np.array([1e308, -1e308, 1e200, -1e155, 1e30, 5e-324, -0.0])
        same(model, {**{each: column[: len(far)] for each, column in without_words(X).items()}, name: far})


def test_many_degrees_of_freedom():
    """Where log(1 + x) would lose the small x."""
    rng = np.random.default_rng(0)
    X, y = every_law(rng, 500)
    model = cd.NaiveBayes(without_words(LAWS)).fit(without_words(X), y)
    for factor in (1e4, 1e8, 1e12):
        same(model.scale(factor), without_words(X))


def test_the_reference_of_onnx_agrees():
    """An evaluator that is not onnxruntime: nothing depends on what one of them makes of an operation."""
    rng = np.random.default_rng(0)
    X, y = every_law(rng, 500)
    rows = without_words(every_law(rng, 200, wild=True)[0])
    for make in (lambda: cd.NaiveBayes(without_words(LAWS)), cd.BayesClassifier):
        model = make().fit(without_words(X), y)
        graph = build_onnx_model(model.fitted_)
        asked = inputs(graph, rows_of(rows, model.fitted_.plan.columns))
        labels, found = ReferenceEvaluator(graph).run(["label", "probabilities"], asked)
        assert np.abs(found - model.predict_proba(rows)).max() <= CLOSE
        assert list(labels) == model.predict(rows).tolist()


@pytest.mark.parametrize("name", DROPINS)
def test_drop_ins(name):
    rng = np.random.default_rng(4)
    model, draw = DROPINS[name]
    X = draw(rng, 200)
    same(model.fit(X, rng.integers(0, 3, 200)), X)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_covariances_of_rows_with_and_without_gaps(covariance):
    rng = np.random.default_rng(5)
    X, y = rng.normal(0.0, 1.0, (200, 12)) @ rng.normal(0.0, 1.0, (12, 12)), rng.integers(0, 3, 200)
    X[:, 4] = 7.0  # one that is constant
    for estimate in ("predictive", "mle"):
        model = cd.NaiveBayes({tuple(range(12)): cd.events.Gaussian(covariance=covariance)}, estimate=estimate).fit(
            X, y
        )
        same(model, X)
        same(model, np.where(rng.random(X.shape) < 0.4, np.nan, X))


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name):
    X, y = some_rows("abc")
    same(cd.NaiveBayes().fit(X, y).with_policy(**POLICIES[name]), X)


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_a_calibration_curve(classes):
    X, y = some_rows(classes)
    model = cd.BayesClassifier(calibration="isotonic").fit(X, y)
    same(model, X)
    same(model.with_policy(class_prior="uniform", threshold=0.3, positive="b"), X)


def test_odd_names():
    rng = np.random.default_rng(0)
    names = [*HOSTILE, "label", "probabilities", "/1", "/c0"]
    data = {name: rng.choice([*HOSTILE, None], 200) for name in names}
    same(cd.NaiveBayes().fit(data, rng.choice(HOSTILE, 200)), data)


def test_levels_of_every_type_and_values_that_mean_missing(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    X = {
        "day": np.array([str(day) for day in np.datetime64("2024-02-27") + rng.integers(0, 4, n)], object),
        "code": rng.integers(-2, 9, n).astype(float),
        "flag": rng.random(n) < 0.4,
        "size": np.where(rng.random(n) < 0.2, -999.0, rng.normal(5.0, 1.0, n)),
        "job": rng.choice(["cook", "smith", "?"], n),
    }
    lines = [
        "day,code,flag,size,job,y",
        *(",".join(map(str, [*row, row[3] > 5])) for row in zip(*X.values(), strict=True)),
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    events = {"day": "categorical", "code": "categorical", "flag": "categorical"}
    for model in ("naive", "bayes"):
        fitted = cd.fit(str(tmp_path / "rows.csv"), target="y", model=model, na=["-999.0", "?", "7.0"], events=events)
        assert fitted.fitted_.na
        new = {**X, "code": np.where(rng.random(n) < 0.1, 2.5, X["code"])}
        new["day"] = np.where(rng.random(n) < 0.1, "1999-12-31", X["day"])
        same(fitted, new)


def test_levels_of_several_types_and_of_none():
    rng = np.random.default_rng(0)
    several = np.array([1, "a", 2.5, dt.date(2024, 1, 2)], object)
    X = {
        "zero": rng.choice([-1.0, 0.0, 1.0], 200),
        "none": np.full(200, None),
        "several": several[rng.integers(0, 4, 200)],
        "time": np.array([dt.time(12, 30), dt.time(0)], object)[rng.integers(0, 2, 200)],
        "huge": rng.choice([2**53, 2**53 + 2, 5], 200),
    }
    model = cd.NaiveBayes("categorical").fit(X, rng.integers(0, 2, 200))
    same(model, {**X, "zero": np.where(X["zero"] == 0, -0.0, X["zero"])})


def test_the_graph_is_of_doubles_and_standard_operations():
    model, _ = MODELS["voices"]
    graph = build_onnx_model(model.fitted_)
    held = {one.data_type for one in graph.graph.initializer} | {
        one.type.tensor_type.elem_type for one in [*graph.graph.input, *graph.graph.output]
    }
    types = proto.TensorProto
    assert held <= {types.DOUBLE, types.INT64, types.BOOL, types.STRING}
    assert {node.domain for node in graph.graph.node} <= {"", "ai.onnx.ml"}
    assert [one.name for one in graph.graph.output] == ["label", "probabilities"]
    assert json.loads({one.key: one.value for one in graph.metadata_props}["classes"]) == ["apple", "bee", "cat"]


def test_no_row_and_one_row():
    model, X = MODELS["mixed-str"]
    rows = rows_of(X, model.fitted_.plan.columns)
    assert [one.shape for one in run(model, rows[:0])] == [(0,), (0, 3)]
    assert run(model, rows[:1])[1][0] == pytest.approx(model.predict_proba(X)[0].tolist(), abs=CLOSE)


@pytest.mark.parametrize("name", ["text-open", "text-polya", "text-and-more", "text-weights"])
def test_text_is_refused(name):
    model, _ = MODELS[name]
    with pytest.raises(InputError) as caught:
        to_onnx_bytes(model.fitted_)
    assert caught.value.column in model.fitted_.plan.columns
    assert "python" in caught.value.remedy


def test_the_package_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError) as caught:
        to_onnx_bytes(MODELS["mixed-str"][0].fitted_)
    assert "candide[onnx]" in caught.value.remedy


@pytest.mark.parametrize("event", ["poisson", "negativebinomial", "complement", "exponential"])
def test_enormous_counts_have_probabilities(event):
    same(*enormous_counts(event))
