"""Bad input: each a clear one-line error that names the place and the remedy, or a sensible result."""

import gzip
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide.engines.reading import ReadOptions
from candide.errors import CandideError, InputError, InputTypeError, SourceError, UnknownNameError
from candide.fit_source import fit_model
from candide.validation.evaluation import evaluate

GOOD = "age,job,y\n" + "".join(f"{20 + i % 49},{'cook' if i % 3 else 'smith'},{'ab'[i % 2]}\n" for i in range(200))


def csv(tmp_path, text, name="data.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


CASES = {  # what stands in the file, the attributes of the error, and a word of its text
    "missing file": (None, {}, "no such file"),
    "empty file": ("", {}, "is empty"),
    "only a header": ("age,job,y\n", {}, "has no rows"),
    "target not there": (GOOD.replace(",y\n", ",yy\n", 1), {"value": "y"}, "did you mean 'yy'? Known: age, job, yy"),
    "one class": ("age,y\n" + "1,a\n2,a\n" * 20, {"column": "y", "value": "a"}, "one class only"),
    "all labels missing": ("age,y\n" + "1,\n2,\n" * 20, {"column": "y"}, "has a label"),
    "ragged": (GOOD + "1,cook,a,9\n" + GOOD[10:], {"line": 202, "value": 4}, "data.csv, line 202: 4 fields where 3"),
    "type changes late": (
        "age,job,y\n" + GOOD[10:] * 150 + "forty,cook,a\n",
        {"line": 30002, "column": "age", "value": "forty"},
        "line 30002: column 'age': 'forty' is not a number; pass --na 'forty' (na=[...]) if it means a missing value",
    ),
    "a target like an identifier": (
        "age,y\n" + "".join(f"{i % 7},name{i}\n" for i in range(100_000)),
        {"column": "y", "remedy": "name another target, or bin it"},
        "not a class",
    ),
    "a target like a quantity": (
        "age,y\n" + "".join(f"{i % 7},{i / 7:.3f}\n" for i in range(500)),
        {"column": "y", "value": 500},
        "not a class",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_line(case, tmp_path):
    text, attributes, word = CASES[case]
    path = tmp_path / "nosuch.csv" if text is None else csv(tmp_path, text)
    with pytest.raises(CandideError) as caught:
        fit_model(path, "y", model="naive")
    assert {name: getattr(caught.value, name) for name in attributes} == attributes
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_na_and_event_are_the_remedies_of_a_changed_type(tmp_path):
    path = csv(tmp_path, "age,job,y\n" + GOOD[10:] * 150 + "forty,cook,a\n")
    assert (
        fit_model(path, "y", reading=ReadOptions(na=("forty",)), model="naive").fitted.counts.tallies[0].n.sum()
        == 30_000
    )
    census = fit_model(path, "y", events={"age": "categorical"}, model="naive").fitted.counts
    assert "forty" in census.plan.parts[0].levels[0].values


def test_latin_1(tmp_path):
    path = csv(tmp_path, GOOD.replace("cook", "café"), encoding="latin-1")
    for reading in (None, ReadOptions(encoding="latin-1")):
        census = fit_model(path, "y", reading=reading, model="naive").fitted.counts
        assert census.plan.parts[1].levels[0].values == ("café", "smith")
    with pytest.raises(SourceError, match="not UTF-8 text") as error:
        fit_model(path, "y", reading=ReadOptions(encoding="utf-8"), model="naive")
    assert "--encoding" in error.value.remedy


def test_a_damaged_parquet_and_a_truncated_gzip(tmp_path):
    pq.write_table(pa.table({"x": np.arange(1000.0), "y": np.arange(1000) % 2}), tmp_path / "p.parquet")
    broken = (tmp_path / "p.parquet").read_bytes()[:-20]
    (tmp_path / "p.parquet").write_bytes(broken)
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:-30])
    for name in ("p.parquet", "g.csv.gz"):
        with pytest.raises(CandideError, match=name) as caught:
            fit_model(tmp_path / name, "y", model="naive")
        assert "\n" not in str(caught.value)


def test_infinite_values_and_negative_counts_name_the_column():
    data = {"x": [1.0, 2.0, np.inf, 3.0], "n": [1, -2, 3, 4], "y": ["a", "b", "a", "b"]}
    with pytest.raises(InputError) as error:
        fit_model(data, "y", model="naive")
    assert error.value.column == "x"
    with pytest.raises(InputError, match="cannot come from poisson, which needs values >= 0") as error:
        fit_model(data, "y", drop=["x"], events={"n": "poisson"}, model="naive")
    assert (error.value.column, error.value.value) == ("n", -2)
    fitted = fit_model({"x": [1.0, 2.0, 4.0, 3.0], "y": ["a", "b", "a", "b"]}, "y", model="naive").fitted
    with pytest.raises(InputError) as error:
        cd.predict_table(fitted, {"x": [1.0, np.inf]})
    assert (error.value.column, error.value.row, error.value.value) == ("x", 1, np.inf)


@pytest.mark.parametrize("weights", [[1.0, math.nan, 1.0, 1.0], [1.0, math.inf, 1.0, 1.0]])
def test_weights_that_are_not_finite(weights):
    """Of an Arrow table NaN is a value, not a missing one."""
    table = pa.table({"x": [1.0, 2.0, 4.0, 3.0], "w": weights, "y": ["a", "b", "a", "b"]})
    with pytest.raises(InputError, match="weights must be numbers >= 0") as error:
        fit_model(table, "y", weight="w", model="naive")
    assert error.value.column == "w"


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0, 1.0], [1.0, None, 1.0, 1.0]])
def test_bad_weights(weights):
    with pytest.raises(InputError, match="weights must be numbers >= 0") as error:
        fit_model({"x": [1.0, 2.0, 4.0, 3.0], "w": weights, "y": ["a", "b", "a", "b"]}, "y", weight="w", model="naive")
    assert (error.value.column, error.value.value) == ("w", weights[1])


def test_names_with_quotes_and_sql_never_reach_sql_unquoted():
    names = ['"; DROP TABLE source; --', "it's", "a b;c", "f0", "fold", "candide_row", "select", "Größe ☃"]
    rng = np.random.default_rng(0)
    data = {n: (["u", "v"] * 20 if i % 2 else rng.normal(size=40)) for i, n in enumerate(names)}
    data["y"] = ["a", "b"] * 20
    learned = fit_model(data, "y", model="naive")
    assert set(learned.fitted.counts.plan.columns) == set(names)
    assert cd.predict_table(learned.fitted, data, keep=["it's"]).num_rows == 40


def test_duplicate_names_in_a_csv_are_distinguished(tmp_path):
    path = csv(tmp_path, "a,a,y\n" + "".join(f"{i % 5}.5,{i % 3}.5,{'pq'[i % 2]}\n" for i in range(50)))
    learned = fit_model(path, "y", model="naive")
    assert learned.fitted.counts.plan.columns == ("a", "a_1")
    [told] = [one for one in learned.notes if one.code == "column-renamed"]
    assert (told.column, told.remedy) == ("a_1", "rename one of them")
    as_written = csv(tmp_path, path.read_text().replace("a,a,y", "a,a_1,y"))
    assert not [one for one in fit_model(as_written, "y", model="naive").notes if one.code == "column-renamed"]


def test_a_category_of_a_megabyte():
    long = "x" * 1_000_000
    fitted = fit_model({"c": [long, "s"] * 10, "y": ["a", "b"] * 10}, "y", model="naive").fitted
    assert cd.predict_table(fitted, {"c": [long, "s", "new"]}).column("prediction").to_pylist()[:2] == ["a", "b"]


@pytest.mark.all_cases
def test_a_million_categories():
    codes = np.arange(1_200_000) % 1_000_000
    data = pa.table({"c": pa.array(codes).cast(pa.string()), "y": np.arange(1_200_000) % 2})
    census = fit_model(data, "y", events={"c": "categorical"}, model="naive").fitted.counts
    assert len(census.plan.parts[0].levels[0]) == 1_000_000
    assert census.tallies[0].counts.sum() == 1_200_000


def test_unknown_event_prior_and_column():
    data = {"x": [1.0, 2.0], "y": ["a", "b"]}
    for name, how in [
        ("gausian", {"events": {"x": "gausian"}}),
        ("z", {"events": {"z": "gaussian"}}),
        ("z", {"drop": ["z"]}),
    ]:
        with pytest.raises(UnknownNameError) as error:
            fit_model(data, "y", **how, model="naive")
        assert error.value.value == name
    with pytest.raises(InputTypeError) as error:
        fit_model(3, "y", model="naive")
    assert "a file name, a query, a data frame" in error.value.remedy
    with pytest.raises(SourceError, match="nosuch") as error:
        fit_model("SELECT * FROM nosuch", "y", model="naive")
    assert error.value.source == "the query"


def test_a_failed_write_leaves_nothing_under_the_name(tmp_path):
    fitted = fit_model(csv(tmp_path, GOOD), "y", model="naive").fitted
    out = tmp_path / "out.parquet"
    with pytest.raises(InputError) as error:
        cd.predict_table(fitted, {"age": [1.0, np.inf], "job": ["cook", "cook"]}, out=out)
    assert (error.value.column, error.value.row) == ("age", 1)
    assert not out.exists()
    with pytest.raises(UnknownNameError):
        cd.predict_table(fitted, csv(tmp_path, GOOD), out=tmp_path / "out.xls")
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_a_full_disk_leaves_nothing_under_the_name(tmp_path):
    """A limit on the size of files stands in for a full disk."""
    fit_model(csv(tmp_path, GOOD), "y", model="naive")
    code = f"""
import resource, signal
import candide as cd
from candide.fit_source import fit_model
fitted = fit_model({str(tmp_path / "data.csv")!r}, "y").fitted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
query = "SELECT i % 60 AS age, 'cook' AS job FROM range(300000) t(i)"
cd.predict_table(fitted, query, out={str(tmp_path / "out.csv")!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "InputError: cannot write" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_rows_without_a_label_are_left_out_with_a_note(tmp_path):
    learned = fit_model(csv(tmp_path, GOOD + "30,cook,\n31,cook,\n"), "y", model="naive")
    assert learned.fitted.counts.n_rows == 200
    assert learned.note_texts == ["2 rows have no value of 'y' and were left out"]


def test_a_spelling_of_missing_is_pointed_out(tmp_path):
    path = csv(tmp_path, GOOD + "NA,cook,a\n")
    learned = fit_model(path, "y", model="naive")
    assert learned.note_texts == ["column 'age': 'NA' taken as missing"]
    assert fit_model(path, "y", reading=ReadOptions(na=("NA",)), model="naive").note_texts == []


def test_labels_the_model_does_not_know(tmp_path):
    fitted = fit_model(csv(tmp_path, GOOD), "y", model="naive").fitted
    with pytest.raises(InputError, match="a label the model knows") as error:
        evaluate(fitted, {"age": [1.0], "job": ["cook"], "y": ["z"]})
    assert error.value.column == "y"


@pytest.fixture
def herbs():
    rows = {"leaf": [1.0, 2.0, 3.0, 9.0, 8.0, 7.0], "soil": list("abcabc"), "herb": ["sage"] * 3 + ["thyme"] * 3}
    return rows, fit_model(rows, "herb", model="naive").fitted


def test_a_source_with_none_of_the_columns_is_refused(herbs):
    rows, fitted = herbs
    with pytest.raises(InputError, match="none of the model's columns") as error:
        cd.predict_table(fitted, {"LEAF": rows["leaf"], "Soil": rows["soil"]})
    assert error.value.value == ["leaf", "soil"]
    assert error.value.remedy == "did you mean 'LEAF' for 'leaf', 'Soil' for 'soil'?"


def test_a_missing_column_is_reported(herbs):
    rows, fitted = herbs
    with pytest.warns(UserWarning, match="lacks 'soil': taken as missing in every row; did you mean 'Soil' for 'soil'"):
        cd.predict_table(fitted, {"leaf": rows["leaf"], "Soil": rows["soil"]})
    with pytest.warns(UserWarning, match=r"lacks 'soil': taken as missing in every row$"):
        evaluate(fitted, {"leaf": rows["leaf"], "herb": rows["herb"]})


def test_columns_that_differ_in_case_alone_are_refused():
    with pytest.raises(InputError) as error:
        fit_model({"a": [1.0, 2.0], "A": [2.0, 1.0], "y": ["p", "q"]}, "y", model="naive")
    assert (error.value.value, error.value.remedy) == ("A", "rename one of them")


@pytest.mark.parametrize("weight", [[1, -1, 1, 1, 1, 1], [1, None, 1, 1, 1, 1], ["1", "x", "1", "1", "1", "1"]])
def test_weights_of_an_evaluation_are_checked(herbs, weight):
    rows, fitted = herbs
    with pytest.raises(InputError, match="weights must be numbers >= 0") as error:
        evaluate(fitted, {**rows, "w": weight}, weight="w")
    assert error.value.column == "w"
    with pytest.raises(UnknownNameError) as error:
        evaluate(fitted, {**rows, "w": weight}, weight="v")
    assert error.value.value == "v"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["size\nin cm", "size\r\nin cm"])
@pytest.mark.parametrize("other", ["", "kind"])
def test_a_name_of_two_lines_is_read(name, other, end, tmp_path):
    """As sheets write it; beside one that is empty, too."""
    rows = [",".join([f"{i % 7}.5", ["u", '"v\nw"'][i % 3 > 0], "pq"[i % 2]]) for i in range(60)]
    path = csv(tmp_path, end.join([f'"{name}",{other},y', *rows, ""]))
    fitted = fit_model(path, "y", model="naive").fitted
    assert (fitted.counts.plan.columns, fitted.counts.n_rows) == ((name, other or "column1"), 60)
