"""Values that no table should hold: scorers say what ``predict`` says, or name the column, the value and a remedy."""

import datetime as dt
import decimal
import fractions
import json
import math
import subprocess

import numpy as np
import pandas as pd
import pytest
from tests.export.scorers import CLOSE, SCORERS, check, enormous_counts, node, rows_of
from tests.export.test_scorers import LAWS, every_law

import candide as cd
from candide import export
from candide.demo import garden
from candide.errors import InputError, InputTypeError
from candide.export.python_js.model import load, score_csv
from candide.export.python_js.numbers import log_normalize
from candide.model.fitted import FittedModel

N = 200
TEXTS = [
    "", " ", "x", "1_000", "1__0", "_1", "1e1_0", "\u0661\u0662", "\uff11\uff12", "\xa012", "12\u3000", "\ufeff12",
    "\x1c12", "\x1c\u0661", "\u221212", "0x10", "inf", "-Infinity", " NaN ", "1e308", "-1e308", "1e400", "1e-400",
    "1e0001", "true", "TRUE", "12.", "2024-02-29", "2024-02-29 12:00", "20240229", "29.02.2024", "tea", "tea milk 12",
]  # fmt: skip
PLAIN = [0, 1, -1, 2.5, 1e308, -1e308, 1e155, 1e16, 5e-324, True, False, None, [], [1], ["tea", "milk"], {}, {"a": 1}]
TYPED = [
    10**400, 10**30, math.inf, -math.inf, math.nan, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    dt.time(12, 30), dt.timedelta(days=2), b"12", b"tea", b"\xff", decimal.Decimal("2.5"), decimal.Decimal("NaN"),
    fractions.Fraction(1, 2), 1j, ("tea",), object(), np.float32(0.1), np.int64(1), np.bool_(True), np.str_("a"),
    np.datetime64("2024-02-29"), np.datetime64("2024-02-29T12:00:00.5", "ns"), np.datetime64("NaT"),
    pd.NA, pd.NaT, pd.Timestamp("2024-02-29"), pd.Timedelta("1D"),
]  # fmt: skip


def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    data = {
        "number": rng.normal(10.0 + 3 * y, 3.0),
        "level": rng.choice(["a", "b", "1", "true", "2024-02-29"], N).astype(object),
        "code": rng.integers(0, 3, N),
        "flag": rng.random(N) < 0.3 + 0.3 * y,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 300, N) + 50 * y,
        "words": np.array([" ".join(rng.choice(["tea", "milk", "free", "12", "true"], 3)) for _ in range(N)], object),
    }
    return data, y


EVENTS = {"level": "categorical", "code": "categorical", "flag": "categorical", "words": cd.events.Text()}
ROW = {"number": 11.0, "level": "a", "code": 1, "flag": True, "day": "2024-03-01", "words": "tea free"}
MODELS = {
    "naive": cd.NaiveBayes(EVENTS).fit(*table()),
    "gaussian": cd.NaiveBayes({**EVENTS, "number": "gaussian"}, estimate="mle").fit(*table()),
    "bayes": cd.BayesClassifier(EVENTS).fit(*table()),
}


def predicted(model, column, value):
    """What the model says of a row with this value; None where it refuses it. Text without letters is missing."""
    if isinstance(value, list) and column != "words":
        return None  # of a list of one number numpy makes that number
    if column == "day" and isinstance(value, str) and value == "29.02.2024":
        return None  # predict reads another date format of a whole column, scorers that of the rows fitted alone
    held = np.empty(1, object)
    held[0] = None if isinstance(value, str) and value == "" and column != "words" else value
    try:
        return model.predict_proba({**{name: [one] for name, one in ROW.items()}, column: held})[0].tolist()
    except (InputError, InputTypeError):
        return None


def said(score, row):
    """What a scorer says of a row, or what its error says."""
    try:
        return score(row)["probabilities"]
    except ValueError as error:
        return [error.column, error.remedy in str(error)]


def agree(found, expected, column):
    refused = [column, True]
    return found == (refused if expected is None else pytest.approx(expected, abs=CLOSE))


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize("name", MODELS)
def test_python_agrees_or_gives_a_reason(name):
    model, scorer = MODELS[name], {}
    exec(model.export("python"), scorer)
    for column in ROW:
        for value in [*TEXTS, *PLAIN, *TYPED]:
            found = said(scorer["score"], {**ROW, column: value})
            assert agree(found, predicted(model, column, value), column), (column, value, found)


DRIVE = """
import { readFileSync } from "node:fs";
const { default: model } = await import(process.argv[2]);
const { row, values } = JSON.parse(readFileSync(0, "utf8"));
const of = (column, value) => {
  try {
    return model.score({ ...row, [column]: value }).probabilities;
  } catch (error) {
    return [error.column, error.message.includes(error.remedy)];
  }
};
const odd = [10n, Symbol("x"), () => 1, {}, new Date(NaN), new Date("2024-02-29"), NaN, Infinity, undefined];
const said = (all) => Object.fromEntries(Object.keys(row).map((name) => [name, all.map((value) => of(name, value))]));
process.stdout.write(JSON.stringify([said(values), said(odd)]));
"""


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize("name", MODELS)
def test_javascript_agrees_or_gives_a_reason(name, tmp_path):
    model, values = MODELS[name], [*TEXTS, *PLAIN]
    (tmp_path / "model.mjs").write_text(model.export("js"), "utf-8")
    (tmp_path / "drive.mjs").write_text(DRIVE)
    asked = json.dumps({"row": ROW, "values": values})
    run = [node(), tmp_path / "drive.mjs", tmp_path / "model.mjs"]
    done = subprocess.run(run, input=asked, capture_output=True, text=True, encoding="utf-8", check=True)
    found, odd = json.loads(done.stdout)
    for column in ROW:
        for value, one in zip(values, found[column], strict=True):
            assert agree(one, predicted(model, column, value), column), (column, value, one)
    for column, found in odd.items():
        refused = [column, True]
        assert found[1:4] == [refused] * 3  # a symbol, a function and an object are nothing
        assert found[4] == found[6] == found[8] == pytest.approx(predicted(model, column, None), abs=CLOSE)
    assert odd["number"][7] == ["number", True]
    assert odd["day"][5] == pytest.approx(predicted(model, "day", "2024-02-29"), abs=CLOSE)


@pytest.mark.parametrize("estimate", ["predictive", "mean"])
def test_huge_numbers_raise_no_error(estimate):
    rng = np.random.default_rng(0)
    X, y = every_law(rng, 500)
    model, scorer = cd.NaiveBayes(LAWS, estimate=estimate).fit(X, y), {}
    exec(model.export("python"), scorer)
    for name in (
        "bell",
        "size",
        "shared",
        "above",
        "wait",
        "cells",
        "side 1",
        "count 2" if estimate == "mean" else "bell",
    ):
        for value in (1e308, -1e308, 1e200, -1e155, 1e30, 5e-324):
            data = {**{each: column[:1] for each, column in X.items()}, name: np.array([value])}
            expected = model.predict_proba(data)[0].tolist()
            found = scorer["score"](rows_of(data, model.fitted_.plan.columns)[0])["probabilities"]
            assert found == pytest.approx(expected, abs=CLOSE), (name, value)


def test_huge_logarithms_keep_their_shares():
    assert log_normalize([-1e300, -1e300, -math.inf]) == pytest.approx([-math.log(2)] * 2 + [-math.inf])


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_many_levels_that_are_fractions(scorer, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 9, 300)
    X = {"x": np.where(rng.random(300) < 0.5, y, rng.integers(0, 12, 300)) / 7}
    model = cd.NaiveBayes(events={"x": "categorical"}).fit(X, y)
    check(scorer(model.fitted_, rows_of(X, ["x"]), str(tmp_path)), model, X)


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_whole_numbers_beyond_those_of_a_double_stay_apart(scorer, tmp_path):
    """Of levels and of classes; those of JavaScript come as text."""
    ids = [2**53, 2**53 + 1, 2**60 + 1]
    x = ids * 20
    model = cd.NaiveBayes(events={"id": "categorical"}).fit({"id": x}, x)
    said = scorer(model.fitted_, [{"id": str(one)} for one in [*ids, 2**60]], str(tmp_path))
    p = model.predict_proba({"id": [*ids, 2**60]})
    assert np.abs(p - np.array([one["probabilities"] for one in said])).max() <= CLOSE
    assert [int(one["label"]) for one in said[:3]] == ids


def test_a_header_that_names_a_column_twice_is_refused():
    model = load(export.export_parameters(FittedModel(garden())))
    with pytest.raises(ValueError, match="the column 'soil' is there twice"):
        list(score_csv(model, ["soil,soil\n", "clay,sand\n"]))


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
@pytest.mark.parametrize("event", ["poisson", "negativebinomial", "complement", "exponential"])
def test_enormous_counts_have_probabilities(event, scorer, tmp_path):
    model, data = enormous_counts(event)
    check(scorer(model.fitted_, rows_of(data, ["a", "b"]), str(tmp_path)), model, data)
