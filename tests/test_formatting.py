"""Messages: one thing is singular, blanks that are not seen are quoted, and nothing is named twice."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import csv

import candide as cd
from candide import formatting
from candide.cli import cli
from candide.errors import InputError
from candide.report import build, summary


def rows(n=400, ends=("", "")):
    rng = np.random.default_rng(0)
    x = rng.normal(100, 20, n)
    z, w = x + 8 * rng.normal(size=n), rng.normal(size=n)
    yes = rng.random(n) < 1 / (1 + np.exp(-(x - 100) / 20 * (1 + w)))
    y = np.where(yes, "yes", "no")
    return {"x": x.round(2), "z": z.round(2), "w": w, "y": np.strings.add(y, np.array(ends)[np.arange(n) % 2])}


@pytest.mark.parametrize(
    ("absent", "message"), [(1, "a label is missing"), (2, "2 labels are missing, this is the first")]
)
def test_one_missing_label_is_singular(absent, message):
    X, y = np.zeros((4, 1)), np.array(["a", "b", "a", "b"], object)
    y[:absent] = None
    for model in (cd.NaiveBayes(), cd.GaussianNB()):
        with pytest.raises(InputError, match=message):
            model.fit(X, y)


def test_one_row_and_one_label_are_singular():
    with pytest.raises(ValueError, match=r"1 row in X, 2 labels in y"):
        cd.NaiveBayes().fit(np.zeros((1, 1)), ["a", "b"])
    with pytest.raises(ValueError, match=r"2 rows in X, 1 label in y"):
        cd.NaiveBayes().fit(np.zeros((2, 1)), ["a"])


def test_a_setting_without_options_has_a_name(tmp_path):
    csv.write_csv(pa.table(rows(200)), tmp_path / "t.csv")
    typed = ["compare", str(tmp_path / "t.csv"), "-t", "y", "--try", "", "--try", "--model naive", "--folds", "2"]
    shown = CliRunner().invoke(cli, typed, catch_exceptions=False).output
    assert "naive minus defaults" in shown
    assert "told from :" not in shown
    twice = CliRunner().invoke(cli, [*typed, "--try", " "])
    assert "defaults is named twice" in twice.output + str(twice.exception)


def test_labels_that_differ_by_a_blank_print_apart():
    table = rows(ends=("", " "))
    model = cd.fit(table, "y", model="naive")
    scores = cd.evaluate(model, table, "y")
    for text in (str(summary.summarize_model(model)), str(summary.summarize_scores(model, scores))):
        for label in ("no", "yes"):
            assert f"\n{label} " in text
            assert f"\n'{label} ' " in text
    page = build.build_report(model, table, "y").text
    assert "&#39;no &#39;" in page


def test_a_value_with_a_blank_at_an_end_is_quoted():
    assert [formatting.format_value(one) for one in ("no", "no ", " no", "no\xa0")] == [
        "no",
        "'no '",
        "' no'",
        "'no\\xa0'",
    ]


def test_a_note_names_a_column_once(tmp_path):
    """The columns of joint terms are in several parts of the plan."""
    rng = np.random.default_rng(0)
    a, b = rng.choice(list("pq"), 1500), rng.choice(list("uv"), 1500)
    y = np.where(((a == "p") == (b == "u")) != (rng.random(1500) < 0.1), "yes", "no")
    model = cd.fit({"a": a, "b": b, "y": y}, "y")
    assert sum("a" in part.columns for part in model.fitted_.plan.parts) > 1
    later = {"a": np.char.upper(a), "b": b, "y": y}
    csv.write_csv(pa.table(later), tmp_path / "t.csv")
    for run in (
        lambda: model.predict_table(str(tmp_path / "t.csv")),
        lambda: model.predict_proba({"a": later["a"], "b": b}),
        lambda: cd.evaluate(model, later, "y"),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            run()
        [note] = [str(one.message) for one in found if "no value is known" in str(one.message)]
        assert note.startswith("column 'a': no value is known to the model ('p', 'q')")
