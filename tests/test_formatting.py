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
    ("function", "text_by_argument"),
    [
        (formatting.format_list, {("a", "b"): "'a', 'b'", tuple(range(10)): "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"}),
        (formatting.format_column, {"age": "age", ("x", "y"): "(x, y)", (0, 1, 2, 3, 4): "(0, 1, 2, and 2 more)"}),
        (formatting.format_columns, {("a",): "column 'a'", tuple("abcd"): "columns 'a', 'b', 'c' and 1 more"}),
        (formatting.format_value, {None: "missing", "a  cook": "a cook", (1.5, None): "1.5, missing", 51.0: "51"}),
        (formatting.format_value, {1.5623976772929593: "1.5624", "no ": "'no '", "x" * 50: "x" * 37 + "..."}),
        (formatting.format_label, {"no": "no", "no ": "'no '", "a  b": "'a  b'", "": "''", 3: "3"}),
        (formatting.make_printable, {"red\x1b[31m\tsoil": "red [31m soil", "a\u202eb": "a b", "a\nb\t": "a\nb "}),
        (formatting.strip_bidi_controls, {"a\u202eb\tc": "a b\tc"}),
        (formatting.format_count, {1: "1 row", 2000: "2,000 rows", 1712.747252: "rows of weight 1,712.7"}),
        (lambda n: formatting.format_count(n, "class", "classes"), {1: "1 class", 2: "2 classes"}),
        (formatting.format_weight, {1712.747252: "1,712.7", 1712.0: "1,712", 0.0123: "0.0123"}),
        (lambda days: str(formatting.date_from_days(days)), {19782.0: "2024-02-29", 0.5: "1970-01-01 12:00:00"}),
        (formatting.date_from_days, {1e12: 1e12}),
        (lambda name: formatting.format_parameter(name, 19782.4, True), {"mean": "2024-02-29", "sd": "19,782 days"}),
        (lambda name: formatting.format_parameter(name, 19782.4), {"mean": "19,782", "sd": "19,782"}),
        (formatting.format_number, {0.00123456: "0.001235", 24716.2: "24,716", 4006.21: "4006"}),
        (formatting.format_log_odds, {0.1234: "+0.123", -2.0: "-2.000", -0.0004: "+0.000"}),
        (formatting.format_percent, {0.5: "50%", 0.12345: "12.3%", 0.00331: "0.33%", 0.9996: "99.96%", 0.0: "0%"}),
        (formatting.format_percent, {2e-210: "2e-208%"}),
        (formatting.format_probability, {0.87654: "= 0.8765", 1 - 1e-9: "> 0.9999", 1e-9: "< 0.0001"}),
        (formatting.format_threshold, {0.23456: "0.2346", 1 - 1.23e-7: "0.99999988", 1.0: "1"}),
    ],
)
def test_how_names_values_and_numbers_are_written(function, text_by_argument):
    assert {argument: function(argument) for argument in text_by_argument} == text_by_argument


def test_tables_of_text_and_html():
    lines = formatting.align_columns([["herb", "n"], ["sage", "12"], ["thyme", "3"]])
    assert lines == ["herb    n", "sage   12", "thyme   3"]
    columns = [formatting.Column("rows", "real", formatting.format_count), formatting.Column("p", "imag", ".1%")]
    assert [column.cell(3 + 0.25j) for column in columns] == ["3 rows", "25.0%"]
    shown = formatting.render_html_table("Herbs & more", [["herb", "odds"], ["<sage>", "1.5"]], bars=[1.5])
    assert "Herbs &amp; more" in shown
    assert "&lt;sage&gt;" in shown
    assert shown.count("<tr>") == 2


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
