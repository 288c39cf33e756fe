"""The scorers say what the model says: every law, every way to read a value, real tables, odd names."""

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.export.scorers import SCORERS, check, rows_of
from tests.model_cases import MODELS
from tests.tables import corpus, table

import candide as cd
from candide import export
from candide.data.notes import DataWarning
from candide.errors import InputError

ROWS = 10_000


@pytest.fixture(params=SCORERS)
def score(request, tmp_path):
    """What a scorer says of rows by a model, in a process of its own."""
    return lambda model, rows: SCORERS[request.param](model.fitted_, rows, tmp_path)


def same(score, model, data):
    check(score(model, rows_of(data, model.fitted_.plan.columns)), model, data)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_sort(name, score, request):
    if name == "text-pattern" and request.node.callspec.params["score"] == "js":
        pytest.skip("a pattern of Python is refused, see below")
    same(score, *MODELS[name])


def test_a_pattern_of_python_is_refused_elsewhere():
    model, _ = MODELS["text-pattern"]
    with pytest.raises(InputError) as caught:
        export.to_javascript(model.fitted_)
    assert caught.value.column == model.fitted_.plan.columns[0]


def real(name, target="class"):
    rows = pq.read_table(table(f"{name}.parquet"))
    return rows.drop_columns([target]), rows[target].to_pylist()


@pytest.fixture(scope="module")
def adult():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return cd.fit(table("adult_train.parquet"), target="class")


@pytest.mark.all_cases
def test_adult(adult, score):
    X, _ = real("adult_test")
    same(score, adult, X[:ROWS])
    assert len(export.pack_json(export.export_parameters(adult.fitted_))) < 120_000


def test_adult_by_naive_bayes(score):
    X, y = real("adult_train")
    same(score, cd.NaiveBayes().fit(X, y), real("adult_test")[0][:ROWS])


def test_a_calibration_curve(score):
    for name in ("pima_diabetes", "iris"):
        X, y = real(name)
        same(score, cd.BayesClassifier(calibration="isotonic").fit(X, y), X)


@pytest.mark.all_cases
def test_many_classes(score):
    X, y = real("letter")
    same(score, cd.BayesClassifier().fit(X[:3000], y[:3000]), X[-300:])
    same(score, cd.NaiveBayes().fit(X, y), X[-300:])


TEXTS = [
    {},
    {"weights": None},
    {"weights": None, "estimate": "mle"},
    {"analyzer": "char_wb"},
    {"analyzer": "char", "ngrams": (2, 3), "weights": None},
    {"bits": 12},
]


@pytest.mark.parametrize("settings", TEXTS, ids=str)
def test_texts(settings, score):
    spam = pq.read_table(corpus("sms_spam"))
    texts, y = spam["text"].to_pylist(), spam["class"].to_pylist()
    odd = [
        "",
        None,
        "İstanbul ΣΊΣΥΦΟΣ ΟΔΟΣ",
        "🙂🙂 ok",
        "a\u2028b  c\x1cd",
        "naïve café e\u0301tat",
        "١٢٣ ½ ²²",
        "x_y __",
    ]
    same(score, cd.TextNB(**settings).fit(texts[1000:], y[1000:]), odd + texts[:1000])


def test_a_text_beside_other_columns(score):
    spam = pq.read_table(corpus("sms_spam"))[:2000]
    texts = spam["text"].to_pylist()
    data = {"words": texts, "length": [float(len(text)) for text in texts], "split": spam["split"].to_pylist()}
    events = {"words": cd.events.Text()}
    for make in (cd.BayesClassifier, cd.NaiveBayes):
        same(score, make(events).fit(data, spam["class"].to_pylist()), data)


DROPINS = {
    "GaussianNB": (cd.GaussianNB(), lambda rng, n: rng.normal(3.0, 2.0, (n, 4))),
    "BernoulliNB": (cd.BernoulliNB(binarize=0.5), lambda rng, n: rng.random((n, 4))),
    "MultinomialNB": (cd.MultinomialNB(), lambda rng, n: rng.poisson(2.0, (n, 4)).astype(float)),
    "ComplementNB": (cd.ComplementNB(norm=True), lambda rng, n: rng.poisson(2.0, (n, 4)).astype(float)),
    "CategoricalNB": (cd.CategoricalNB(), lambda rng, n: rng.integers(0, 5, (n, 4))),
    "GaussianBayes": (cd.GaussianBayes("tied"), lambda rng, n: rng.normal(3.0, 2.0, (n, 4))),
}


@pytest.mark.parametrize("name", DROPINS)
def test_drop_ins(score, name):
    rng = np.random.default_rng(4)
    model, draw = DROPINS[name]
    X = draw(rng, 200)
    same(score, model.fit(X, rng.integers(0, 3, 200)), X)


HOSTILE = ["</script>", 'it\'s "quoted"\\', "\u2028\u2029", "__proto__", "constructor", "`${1}`", "<!--", "日本🙂", ""]


def test_hostile_names(score):
    rng = np.random.default_rng(0)
    data = {name: rng.choice(HOSTILE, 200).astype(object) for name in HOSTILE}
    y = rng.choice(HOSTILE, 200)
    model = cd.NaiveBayes().fit(data, y)
    text = export.to_javascript(model.fitted_)
    assert "</script" not in text
    assert "<!--" not in text
    assert "\u2028" not in text
    same(score, model, data)


def test_values_as_they_are_written(score):
    """Numbers as text, truths, dates, new levels, nothing at all: as ``predict`` reads them."""
    days = ["2024-02-29", "2023-12-31", "2024-01-15", "2022-07-01"]
    given = {
        "age": [31.5, 40.0, 8.0, 77.0] * 10,
        "zip": [101, 102, 103, 101] * 10,
        "flag": [True, False, False, True] * 10,
        "day": np.array(days * 10, "M8[D]"),
        "code": ["1", "2.50", "yes", "TRUE"] * 10,
    }
    events = {"zip": "categorical", "flag": "categorical", "code": "categorical"}
    model = cd.NaiveBayes(events).fit(given, ["a", "b", "b", "a"] * 10)
    data = {
        "age": np.array(["31.5", " 4e1 ", None, "8", "-.5", "+7", "nan"], object),
        "zip": np.array(["101", "102.0", 103, "new", None, True, "1e2"], object),
        "flag": np.array(["true", "FALSE", 1, 0, "yes", None, "1"], object),
        "day": np.array(
            ["2024-02-29", "2024-02-29T12:00", None, "2030-01-01", "1969-12-31", "1970-01-01", days[0]], object
        ),
        "code": np.array([1, 2.5, "yes", True, "true", "2.5", None], object),
    }
    rows = [{name: column[i] for name, column in data.items()} for i in range(7)]
    said = score(model, rows)
    for row, one in zip(rows, said, strict=True):  # by itself: in a column with text beside it a number is text
        check([one], model, {name: [value] for name, value in row.items()})


def every_law(rng, n, wild=False):
    """A column for every law; ``wild``: with values that are missing, never seen, far out or impossible."""
    y = rng.integers(0, 3, n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 400, n) + 30 * y
    table = {
        "bell": rng.normal(1e6 + y, 0.5),
        "size": rng.lognormal(y, 0.7),
        "shared": rng.normal(y, 1.0),
        "above": rng.normal(y, 1.0),
        "visits": rng.poisson(2.0 + 3 * y).astype(float),
        "claims": rng.negative_binomial(2, 0.3, n).astype(float),
        "wait": rng.exponential(1.0 + y),
        "cells": rng.normal(y, 1.0),
        "job": rng.choice(["cook", "smith", "it's", "naïve 🙂"], n).astype(object),
        "flag": rng.random(n) < 0.3 + 0.2 * y,
        "day": day,
        "words": np.array(
            [" ".join(rng.choice(["tea", "milk", "Free", "prize", "ÜBER"], 4)) for _ in range(n)], object
        ),
        **{f"count {j}": rng.poisson(1.0 + j * y).astype(float) for j in range(3)},
        **{f"side {j}": rng.normal(y * (j - 1), 1.0) for j in range(3)},
    }
    if wild:
        table = {name: spoiled(rng, name, column) for name, column in table.items()}
    return table, y


def spoiled(rng, name, column):
    gone = rng.random(len(column)) < 0.15
    odd = rng.random(len(column)) < 0.05
    if column.dtype.kind == "M":
        return np.where(gone, np.datetime64("NaT"), column)
    if column.dtype.kind == "f":
        at_zero = name in ("size", "visits", "claims", "wait") or name.startswith("count")
        far = rng.choice([0.0, 3.5, 1e8], len(column)) if at_zero else rng.choice([-1e8, 1e3, 0.0], len(column))
        return np.where(gone, np.nan, np.where(odd, far, column))
    strange = np.full(len(column), "never met", object)
    return np.where(gone, None, np.where(odd & (name != "flag"), strange, column.astype(object)))


GROUPS = {
    ("count 0", "count 1", "count 2"): cd.events.Multinomial(),
    ("side 0", "side 1", "side 2"): cd.events.Gaussian(covariance="full"),
}
LAWS = {
    "bell": cd.events.Gaussian(),
    "size": cd.events.LogNormal(),
    "shared": cd.events.Gaussian(covariance="tied-diagonal"),
    "above": cd.events.Bernoulli(threshold=0.5),
    "visits": cd.events.Poisson(),
    "claims": cd.events.NegativeBinomial(),
    "wait": cd.events.Exponential(),
    "cells": cd.events.Binned(),
    "job": cd.events.Categorical(),
    "flag": cd.events.Categorical(),
    "words": cd.events.Text(),
    **GROUPS,
}


@pytest.mark.all_cases
@pytest.mark.parametrize("estimate", ["predictive", "mean", "mle"])
def test_every_distribution_at_once(score, estimate):
    rng = np.random.default_rng(0)
    model = cd.NaiveBayes(LAWS, estimate=estimate).fit(*every_law(rng, 2000))
    rows, _ = every_law(rng, ROWS if estimate == "predictive" else 1000, wild=True)
    same(score, model, rows)


def test_every_column_has_a_weight(score):
    rng = np.random.default_rng(1)
    model = cd.BayesClassifier().fit(*every_law(rng, 1000, wild=True))
    same(score, model, every_law(rng, 500, wild=True)[0])


def test_text_that_spells_numbers_and_dates(score, tmp_path):
    """As the file had them that the model was fitted to: decimal commas, currencies, days before months, words."""
    rng = np.random.default_rng(2)
    lines = ["price;share;when;grade;kind"]
    for i in range(200):
        day, price = np.datetime64("2023-01-01") + rng.integers(0, 700), f"{1000 * (i % 9) + rng.random() * 99:,.2f}"
        price = price.translate(str.maketrans(",.", ".,"))
        gone = "n/a" if i % 11 == 0 else f"{price} €"
        when = f"{str(day)[8:]}.{str(day)[5:7]}.{str(day)[:4]}"
        lines.append(f"{gone};{rng.random() * 100:.1f}%;{when};{rng.integers(1, 4)};{'ab'[i % 9 > 4]}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    values = {
        "price": ["1.234,56 €", "€ 7,5", "n/a", "-12", 3000.0, None],
        "share": ["14.3%", "99%", None, 0.5, "0 %", "1.5%"],
        "when": ["29.02.2024", "2023-07-01", "1.5.2023", None, "2024-02-29", "2024-01-01 12:00:00"],
        "grade": ["1", "2", 3, "2.0", "9", ""],
    }
    rows = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
    for model in ("naive", "bayes"):
        fitted = cd.fit(str(tmp_path / "rows.csv"), target="kind", model=model, na=["9"])
        assert set(fitted.fitted_.text_formats) == {"price", "share", "when"}
        for row, one in zip(rows, score(fitted, rows), strict=True):
            check([one], fitted, {name: [None if value == "" else value] for name, value in row.items()})
