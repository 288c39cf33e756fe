"""Text in a number column is read in the format of the rows fitted through every entry point.

Text in another format, which may be in another unit, is an error, and missing to a query. Empty text and the usual
words for a missing value are missing.
"""

import json
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.typed import ask, output
from tests.export.databases import DATABASES, by_postgres
from tests.export.scorers import node

import candide as cd
from candide.data.text_formats import MISSING_MARKERS
from candide.errors import InputError
from candide.export.python_js import values
from candide.export.python_js.values import MISSING_MARKERS as MISSING_IN_MODULES
from candide.serve.scorer import RowReader

FORMATS = {
    "percent": lambda x: f"{x:.1f}%",
    "dollars": lambda x: f"${x * 100:,.2f}",
    "decimal comma": lambda x: f"{x:.2f}".replace(".", ","),
    "German": lambda x: f"{x * 100:,.2f} €".translate(str.maketrans(",.", ".,")),
    "Swiss": lambda x: f"{x * 1000:,.2f}".replace(",", "'"),
    "plain": lambda x: f"{x:.2f}",
}
OTHERS = [
    "50", "50%", " 50 % ", "0.5", "50.5", "53,20", "5,320.11", "5,32", "5.320,11", "5.32", "1.234", "1,234",
    "12,34,567", "1234,567", "1,2345", "0,123", "5'320", "$5", "5 $", "5$3", "€5", "5 €", "-5", "- $5", "1.5.5", "1e3",
    "five", "%",
]  # fmt: skip
MISSING = ["", " ", "NA", "n/a", " null ", "-", "?", "None"]


@pytest.fixture(scope="module", params=FORMATS)
def model(request):
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=200)
    texts = [FORMATS[request.param](x) for x in rng.normal(40 + 30 * y, 12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cd.NaiveBayes({"x": "gaussian"}).fit({"x": np.array(texts, object)}, y)


def predicted(model, value):
    """The probabilities of a row; None where its value is refused."""
    try:
        return model.predict_proba({"x": np.array([value], object)})[0].tolist()
    except InputError:
        return None


@pytest.mark.parametrize("database", [*DATABASES, "postgres"])
def test_a_query_reads_the_format_of_the_rows_fitted(model, database, request):
    score = DATABASES.get(database) or by_postgres(request.getfixturevalue("postgres"))
    given, missing = [*OTHERS, *MISSING], predicted(model, None)
    rows = pa.table({"x": given, "row #": range(len(given))})
    for value, (_, _, *found) in zip(given, sorted(score(model.fitted_, rows)), strict=True):
        assert found == pytest.approx(predicted(model, value) or missing, abs=1e-9), value


def test_python_modules_read_the_format_of_the_rows_fitted(model):
    module = {}
    exec(model.export("python"), module)
    for value in [*OTHERS, *MISSING]:
        try:
            found = module["score"]({"x": value})["probabilities"]
        except ValueError:
            found = None
        assert found == (predicted(model, value) and pytest.approx(predicted(model, value))), value


def test_javascript_modules_read_the_format_of_the_rows_fitted(model, tmp_path):
    (tmp_path / "model.mjs").write_text(model.export("js"), "utf-8")
    (tmp_path / "drive.mjs").write_text(
        "const { default: model } = await import(process.argv[2]);\n"
        "const of = (x) => { try { return model.score({ x }).probabilities; } catch { return null; } };\n"
        "process.stdout.write(JSON.stringify(JSON.parse(process.argv[3]).map(of)));\n"
    )
    values = [*OTHERS, *MISSING]
    run = [node(), tmp_path / "drive.mjs", tmp_path / "model.mjs", json.dumps(values)]
    for value, found in zip(
        values, json.loads(subprocess.run(run, capture_output=True, check=True).stdout), strict=True
    ):
        assert found == (predicted(model, value) and pytest.approx(predicted(model, value))), value


def test_a_server_reads_the_format_of_the_rows_fitted(model):
    reader = RowReader(model.fitted_)
    for value in [*OTHERS, *MISSING]:
        try:
            found = model.fitted_.model.posterior(reader.read_row({"x": value}))[0].tolist()
        except InputError:
            found = None
        assert found == (predicted(model, value) and pytest.approx(predicted(model, value))), value


def test_missing_words_are_missing_in_number_columns(model):
    assert [predicted(model, value) for value in MISSING] == [predicted(model, None)] * len(MISSING)


@pytest.mark.parametrize(("name", "value"), [("percent", "50"), ("dollars", "€5,320.11")])
def test_a_file_in_another_unit_is_refused(name, value, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=200)
    texts = [FORMATS[name](x) for x in rng.normal(40 + 30 * y, 12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = cd.fit({"x": texts, "y": y}, "y")
    path = tmp_path / "rows.csv"
    path.write_text(f'x\n"{value}"\n"{value}"\n')
    with pytest.raises(InputError, match="is not a number in the format of") as caught:
        fitted.predict_table(path)
    assert (caught.value.column, caught.value.value) == ("x", value)


def test_the_modules_know_the_words_for_missing_that_rows_are_read_by():
    assert MISSING_IN_MODULES == MISSING_MARKERS
    assert json.dumps(MISSING_MARKERS) in Path(values.__file__).with_suffix(".js").read_text("utf-8")


@pytest.mark.parametrize("form", ["percent", "plain"])
@pytest.mark.parametrize("command", ["predict", "update"])
def test_commands_take_na_for_missing_with_a_note(form, command, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=200)
    texts = [FORMATS[form](x) for x in rng.normal(40 + 30 * y, 12)]
    fit, more, model = tmp_path / "fit.csv", tmp_path / "more.csv", tmp_path / "m.candide"
    fit.write_text("\n".join(["x,y", *(f"{x},{c}" for x, c in zip(texts, y, strict=True))]) + "\n")
    more.write_text("\n".join(["x,y", "NA,1", *(f"{x},{c}" for x, c in zip(texts[:9], y, strict=False))]) + "\n")
    ask("fit", fit, "--target", "y", "-o", model)
    out = tmp_path / ("out.csv" if command == "predict" else "new.candide")
    assert "'NA' taken as missing" in output(command, model, more, "-o", out)


@pytest.mark.parametrize("value", ["", "NA"])
def test_empty_text_and_na_are_missing_in_frames(value, model):
    [p] = model.predict_proba(pa.table({"x": [value]}))
    assert p.tolist() == predicted(model, None)


@pytest.mark.parametrize("event", ["gaussian", "binned"])
def test_an_error_at_prediction_says_what_to_send(event):
    model = cd.NaiveBayes({"x": event}).fit({"x": [1.0, 2.0, 3.0]}, ["a", "b", "a"])
    remedy = "send null (None) where it is missing; to use text, fit the column as categorical"
    with pytest.raises(InputError, match=re.escape(f"column 'x' (row 0): 'forty' is not a number; {remedy}") + "$"):
        model.predict({"x": ["forty"]})


def test_empty_text_among_numbers_is_missing_at_fit():
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=200)
    texts = ["" if i % 9 == 0 else f"{x:.2f}" for i, x in enumerate(rng.normal(40 + 30 * y, 12))]
    with pytest.warns(UserWarning, match="'' taken as missing"):
        fitted = cd.NaiveBayes().fit({"x": texts}, y).fitted_
    assert fitted.plan.parts[0].block_kind == "numbers"
