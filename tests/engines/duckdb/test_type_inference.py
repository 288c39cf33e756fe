"""A few words among numbers or dates make a column text: a note names them, whatever the format of the others."""

import csv
import json
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.cli.typed import run

import candide as cd
from candide.engines.duckdb.type_inference import find_other_values, infer_csv_type, stray_values

FORMATS = {
    "plain": (lambda x: f"{x:.1f}", "about 50"),
    "dollars": (lambda x: f"${x:.2f}", "about 50"),
    "euros": (lambda x: f"{x * 100:,.2f} €".replace(",", " ").replace(".", ","), "about 50"),
    "percent": (lambda x: f"{x:.1f}%", "tbd"),
    "percent without its sign": (lambda x: f"{x:.1f}%", "50"),
    "thousands": (lambda x: f"{x * 100:,.2f}", "about 50"),
    "decimal comma": (lambda x: f"{x:.2f}".replace(".", ","), "about 50"),
    "another currency": (lambda x: f"${x:.2f}", "€53.20"),
    "day first": (lambda x: f"{int(x) % 28 + 1}/{int(x * 7) % 12 + 1}/2024", "tbd"),
    "ISO dates": (lambda x: f"2024-{int(x) % 12 + 1:02}-{int(x * 7) % 28 + 1:02}", "tbd"),
}


def _rows(form, word):
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=120)
    texts = [form(x) for x in rng.normal(40 + 20 * y, 9)]
    texts[20] = word
    return {"x": texts, "z": [f"{v:.2f}" for v in rng.normal(y, 1)], "y": ["yes" if each else "no" for each in y]}


def _write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([rows, *zip(*rows.values(), strict=True)])
    return path


def _warnings(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("name", FORMATS)
def test_a_note_names_the_word_among_numbers_of_any_format(name, tmp_path):
    rows, word = _rows(*FORMATS[name]), FORMATS[name][1]
    path, start = _write(tmp_path / "rows.csv", rows), f"column 'x' is read as text because of {word!r}"
    x = {name: values for name, values in rows.items() if name != "y"}
    ways = {
        "file": lambda: cd.fit(path, "y"),
        "frame": lambda: cd.fit(pa.table(rows), "y"),
        "estimator": lambda: cd.BayesClassifier().fit(x, rows["y"]),
        "naive": lambda: cd.NaiveBayes().fit(pa.table(x), rows["y"]),
    }
    for way, fit in ways.items():
        assert any(text.startswith(start) for text in _warnings(fit)), way
    checked = json.loads(run("check", path, "--target", "y", "--json").stdout)
    assert any(note.startswith(start) for note in checked["notes"])


def test_two_currencies_are_named_by_an_example_each(tmp_path):
    rows = _rows(lambda x: f"{'$€'[int(x) % 2]}{x:.2f}", "$53.20")
    [note] = [text for text in _warnings(lambda: cd.fit(pa.table(rows), "y")) if "read as text" in text]
    assert "different units or formats" in note
    assert "'$" in note and "'€" in note  # noqa: PT018


@pytest.mark.parametrize(
    "values",
    [
        ["12 Main St", "13 Main St", "9 Elm"],
        ["A100", "B200", "C300", "$5"],
        ["2024-01-05", "06.01.2024", "2024-01-07"],  # the check for mixed dates tells
        [None, "", "x"],
        [],
    ],
)
def test_no_note_where_most_values_are_not_numbers_of_one_format(values):
    assert stray_values(pa.array(values, pa.string())) is None


def test_a_number_is_not_suggested_for_na_as_it_would_be_missing_in_all_columns(tmp_path):
    rows = _rows(*FORMATS["percent without its sign"])
    path = _write(tmp_path / "rows.csv", rows)
    [note] = [text for text in _warnings(lambda: cd.fit(path, "y")) if "read as text" in text]
    assert "na=" not in note


def test_types_of_text():
    columns = ["1", "2"], ["1", "2.5", None], ["true", "FALSE"], ["yes", "no"], ["0", "1"]
    types = [infer_csv_type(pa.array(values)) for values in columns]
    assert types == ["BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR", "VARCHAR"]
    assert infer_csv_type(pa.array(["01", "02"]), is_label=True) == "VARCHAR"


def test_columns_of_words_have_no_stray_values():
    assert stray_values(pa.array(["cook", "smith", "judge"])) is None
    assert stray_values(pa.array(["$53.20", "$41.75", "about 50"])) == (["about 50"], "numbers", False)


def test_other_values_than_0_and_1_are_found_below_the_first_rows():
    con = duckdb.connect()
    con.register("source", pa.table({"x": [0] * 90 + [7] * 10, "z": [0, 1] * 50}))
    found = find_other_values(con.sql, "source", ["x", "z"], 50)
    assert {name: sorted(set(column.to_pylist())) for name, column in found.items()} == {"x": [0, 7]}
