"""Exporting: through the task, the estimator and the command, and never over what is not an export."""

import ast
import csv
import subprocess
import sys

import pytest
from tests.cli.typed import ask, output, run

import candide as cd
from candide.errors import InputError

ROWS = {"size": [1.0, 2.0, 6.0, 7.0] * 5, "job": ["cook", "cook", "smith", None] * 5}


@pytest.fixture
def model():
    return cd.NaiveBayes().fit(ROWS, ["a", "a", "b", "b"] * 5)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "m.candide")
    return tmp_path / "m.candide"


@pytest.mark.parametrize("to", ["js", "python", "onnx"])
def test_every_entry_point_gives_the_same(model, path, tmp_path, to):
    found = cd.export_model(path, to)
    written = found.encode() if to != "onnx" else found
    assert model.export(to, tmp_path / "one") == found
    facts = ask("export", path, "--to", to, "-o", tmp_path / "two")
    assert facts["size_bytes"] == len(written)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() == written
    if to == "onnx":  # no text, which a terminal cannot show
        assert "-o" in run("export", path, "--to", to).exception.remedy
    else:
        assert output("export", path, "--to", to) == found


def test_only_an_export_is_replaced(model, path, tmp_path):
    out = tmp_path / "model.py"
    model.export("js", out)
    model.export("onnx", out)
    model.export("python", out)  # an export replaces an export
    for other in (tmp_path / "notes.py", path):
        before = other.read_bytes() if other == path else b"x = 1\n"
        other.write_bytes(before)
        with pytest.raises(InputError) as caught:
            cd.export_model(path, "python", other)
        assert "--force" in caught.value.remedy
        assert isinstance(run("export", path, "--to", "js", "-o", other).exception, InputError)
        assert other.read_bytes() == before
    model.export("js", tmp_path / "notes.py", force=True)
    assert (tmp_path / "notes.py").read_text() == model.export("js")


def test_an_unknown_target_is_reported(model, path):
    with pytest.raises(InputError) as caught:
        model.export("cobol")
    assert caught.value.value == "cobol"
    assert run("export", path, "--to", "cobol").exit_code != 0


def test_a_module_of_python_scores_a_file(model, tmp_path):
    model.export("python", tmp_path / "m.py")
    (tmp_path / "rows.csv").write_text("size,job\n1.5,cook\n6.5,\n,never met\n")
    alone = [sys.executable, "-I", "-S", tmp_path / "m.py", tmp_path / "rows.csv"]
    done = subprocess.run(alone, capture_output=True, text=True, check=True)
    found = list(csv.DictReader(done.stdout.splitlines()))
    rows = {"size": [1.5, 6.5, None], "job": ["cook", None, "never met"]}
    assert [row["prediction"] for row in found] == model.predict(rows).tolist()
    p = model.predict_proba(rows)
    assert [float(row["p_b"]) for row in found] == pytest.approx(p[:, 1].tolist(), abs=1e-12)


@pytest.mark.parametrize(("rows", "told"), [
    ("size,job\n1.5,cook\nbig,cook\n", "line 3: column 'size': 'big' is not a number"),
    ("size;job\n1.5;cook\n", "none of the columns size, job"),
    (None, "No such file"),
])  # fmt: skip
def test_a_module_of_python_says_in_one_line_what_is_wrong(model, tmp_path, rows, told):
    model.export("python", tmp_path / "m.py")
    if rows is not None:
        (tmp_path / "rows.csv").write_text(rows)
    alone = [sys.executable, "-I", "-S", tmp_path / "m.py", tmp_path / "rows.csv"]
    done = subprocess.run(alone, capture_output=True, text=True)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_module_of_python_says_which_columns_are_missing(model, tmp_path):
    model.export("python", tmp_path / "m.py")
    (tmp_path / "rows.csv").write_text("size\n1.5\n")
    alone = [sys.executable, "-I", "-S", tmp_path / "m.py"]
    done = subprocess.run([*alone, tmp_path / "rows.csv"], capture_output=True, text=True, check=True)
    assert "job" in done.stderr
    assert "usage" in subprocess.run(alone, capture_output=True, text=True).stderr


def test_a_row_left_open_has_no_label_in_the_file(model, tmp_path):
    model.with_policy(abstain_below=0.999999).export("python", tmp_path / "m.py")
    (tmp_path / "rows.csv").write_text("size,job\n4.0,\n")
    alone = [sys.executable, "-I", "-S", tmp_path / "m.py", tmp_path / "rows.csv"]
    done = subprocess.run(alone, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1].startswith(",0.")


def test_a_module_of_python_imports_each_name_once(model):
    tree = ast.parse(model.export("python"))
    names = [alias.name for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    assert len(set(names)) == len(names)
