"""candide plot: pictures from a model file, with rows or without."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from tests.cli.typed import ask, run

import candide as cd
from candide import demo

SIGNS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def main(*args):
    return subprocess.run([sys.executable, "-m", "candide", *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    """A table of herbs, a model of it, and one of two of the herbs."""
    folder = tmp_path_factory.mktemp("herbs")
    table, y = demo.garden_rows(600, seed=1)
    columns = {name: pa.array(column, from_pandas=True) for name, column in table.items()}
    rows = pa.table({**columns, "herb": y})
    pyarrow.csv.write_csv(rows, folder / "herbs.csv")
    pyarrow.csv.write_csv(rows.drop_columns(["herb"]), folder / "unlabelled.csv")
    events = {"flowers": "poisson"}
    cd.fit(folder / "herbs.csv", "herb", events=events, model="naive").save(folder / "three.candide")
    two = rows.filter(pa.compute.not_equal(rows["herb"], "sage"))
    pyarrow.csv.write_csv(two, folder / "two.csv")
    cd.fit(folder / "two.csv", "herb", events=events, model="naive").save(folder / "two.candide")
    return folder, table, y


PAIR = ("--feature", "height_cm", "--feature", "leaf_mm")
DRAWN = [
    ("densities", (), 5),
    ("densities", ("-f", "soil"), 1),
    ("regions", PAIR, 2),
    ("ellipses", PAIR, 2),
    ("surface", (*PAIR, "--class", "sage", "--class", "thyme"), 2),
    ("surface", (*PAIR, "--class", "sage", "--kind", "contour"), 2),
    ("network", (), None),
]


@pytest.mark.parametrize(("what", "options", "features"), DRAWN)
@pytest.mark.parametrize("with_rows", [False, True])
def test_drawn_from_the_counts_alone_and_with_rows(herbs, what, options, features, with_rows, tmp_path):
    folder, _, _ = herbs
    out = tmp_path / "picture.png"
    data = (folder / "herbs.csv",) if with_rows else ()
    facts = ask("plot", folder / "three.candide", *data, "-o", out, "--what", what, *options)
    assert (facts["plot_name"], facts["format"], facts["output"]) == (what, "png", str(out))
    assert out.read_bytes().startswith(SIGNS["png"])
    if features:
        assert len(facts["features"]) == features
        assert facts["rows"] == (600 if with_rows else None)
    assert [p.name for p in tmp_path.iterdir()] == ["picture.png"]


def test_confusion_calibration_and_discriminant_need_rows_and_agree_with_the_model(herbs, tmp_path):
    folder, table, y = herbs
    out = tmp_path / "p.png"
    model = cd.load(folder / "three.candide")
    facts = ask("plot", folder / "three.candide", folder / "herbs.csv", "-o", out, "-w", "confusion")
    assert facts["confusion"] == confusion_matrix(y, model.predict(table)).tolist()
    assert ask("plot", folder / "three.candide", folder / "herbs.csv", "-o", out, "-w", "calibration")["rows"] == 600
    pair = cd.load(folder / "two.candide")
    keep = y != "sage"
    wrong = int((pair.predict({k: v[keep] for k, v in table.items()}) != y[keep]).sum())
    for kind in ("strip", "bars"):
        facts = ask("plot", folder / "two.candide", folder / "two.csv", "-o", out, "-w", "discriminant", "--kind", kind)
        assert (facts["rows"], facts["positive"], facts["errors"]) == (int(keep.sum()), "thyme", wrong)
    for what in ("confusion", "calibration", "discriminant"):
        result = run("plot", folder / "two.candide", "-o", out, "-w", what)
        assert "pass DATA after the model" in str(result.exception)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_ending_is_the_format_and_the_same_picture_is_the_same_file(herbs, ending, tmp_path):
    folder, _, _ = herbs
    out = tmp_path / f"p.{ending}"
    contents = []
    for _ in range(2):
        assert ask("plot", folder / "three.candide", "-o", out, "-w", "ellipses", *PAIR)["format"] == ending
        contents.append(out.read_bytes())
    assert contents[0].startswith(SIGNS[ending])
    assert contents[0] == contents[1]


def test_rows_without_labels_are_drawn_as_points(herbs, tmp_path):
    folder, _, _ = herbs
    facts = ask(
        "plot", folder / "three.candide", folder / "unlabelled.csv", "-o", tmp_path / "p.png", "-w", "regions", *PAIR
    )
    assert facts["rows"] == 600
    result = run(
        "plot", folder / "three.candide", folder / "unlabelled.csv", "-o", tmp_path / "p.png", "-w", "confusion"
    )
    assert "unknown target 'herb'" in str(result.exception)


def test_class_means_of_images_whose_columns_are_numbers(tmp_path):
    digits = load_digits()
    cd.NaiveBayes("gaussian").fit(digits.data, digits.target).save(tmp_path / "d.candide")
    facts = ask(
        "plot", tmp_path / "d.candide", "-o", tmp_path / "m.png", "-w", "means", "--shape", "8x8", "--class", "3"
    )
    assert facts["shape"] == [8, 8]
    facts = ask("plot", tmp_path / "d.candide", "-o", tmp_path / "r.png", "-w", "regions", "-f", "20", "-f", "36")
    assert facts["features"] == [20, 36]


@pytest.mark.parametrize("what", ["regions", "ellipses", "surface"])
def test_where_no_columns_are_named_the_two_strongest_of_numbers_are_drawn_and_named(herbs, what, tmp_path):
    folder, _, _ = herbs
    numbers = ("height_cm", "leaf_mm") if what == "ellipses" else ("height_cm", "leaf_mm", "flowers")
    scores = cd.load(folder / "three.candide").feature_scores()
    best = sorted(numbers, key=lambda name: -scores.for_column(name).evidence)[:2]
    drawn = (folder / "three.candide", "-o", tmp_path / "p.png", "-w", what)
    options = ("--class", "sage", "--class", "thyme") if what == "surface" else ()
    assert ask("plot", *drawn, *options)["features"] == best
    output = " ".join(run("plot", *drawn, *options).output.split())
    assert f"note drawn over '{best[0]}' and '{best[1]}'" in output
    assert "name others: --feature A --feature B" in output
    assert "note" not in run("plot", *drawn, *options, *PAIR).output


def test_a_plane_of_a_table_with_one_column_of_numbers_is_refused(tmp_path):
    table = {"age": [30.0, 40.0, 50.0], "job": ["cook", "smith", "cook"], "town": ["a", "b", "b"]}
    cd.NaiveBayes().fit(table, ["x", "y", "x"]).save(tmp_path / "m.candide")
    error = str(run("plot", tmp_path / "m.candide", "-o", tmp_path / "p.png", "-w", "regions").exception)
    assert error == "this picture is of two columns of numbers, and the model has one, 'age'; draw its densities"


BAD = [
    (("-w", "regons"), "unknown picture 'regons'; did you mean 'regions'?"),
    (("-w", "regions", "-f", "height", "-f", "leaf_mm"), "unknown feature 'height'; did you mean 'height_cm'?"),
    (("-w", "regions", "-f", "soil", "-f", "leaf_mm"), "column 'soil': it holds categories (chalk, clay, sand)"),
    (("-w", "regions", "-f", "leaf_mm"), "this picture is of two features, and 1 were named"),
    (("-w", "surface", *PAIR), "needs two classes, and the model has 3: lavender, sage, thyme"),
    (("-w", "means"), "this picture is for images, whose columns are pixels; if the 5 columns of this model are"),
    (("-w", "means"), "--shape 1x5; or draw densities, regions, ellipses or network"),
    (("-w", "means", "--shape", "28"), "--shape '28' is not a valid shape; pass rows and columns"),
    (("-w", "means", "--shape", "28x28"), "the model has 5 columns"),
]


@pytest.mark.parametrize(("options", "text"), BAD)
def test_what_cannot_be_drawn(herbs, options, text, tmp_path):
    folder, _, _ = herbs
    result = run("plot", folder / "three.candide", "-o", tmp_path / "p.png", *options)
    assert result.exit_code == 1
    assert text in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_errors_end_in_one_line_and_leave_no_file(herbs, tmp_path):
    folder, _, _ = herbs
    wrong = main("plot", folder / "three.candide", folder / "herbs.csv", "-o", tmp_path / "p.png", "-w", "discriminant")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("candide: a discriminant is between two classes, and the model has 3")
    assert wrong.stderr.count("\n") == 1
    wrong = main("plot", folder / "three.candide", "-o", tmp_path / "p.gif")
    assert "unknown format of a picture 'gif'. Known: png, svg, pdf" in wrong.stderr
    assert main("plot", folder / "three.candide").returncode == 2
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(herbs, tmp_path):
    folder, _, _ = herbs
    code = (
        "import sys; sys.modules['matplotlib'] = None; "
        f"sys.argv = ['candide', 'plot', {str(folder / 'two.candide')!r}, '-o', {str(tmp_path / 'p.png')!r}]; "
        "from candide.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "candide: pictures need matplotlib, which is not installed: pip install 'candide[plot]'\n"


@pytest.mark.parametrize("what", ["confusion", "calibration", "regions"])
def test_rows_with_strange_labels_are_left_out_as_in_an_evaluation(herbs, tmp_path, what):
    folder, table, y = herbs
    columns = {name: pa.array(column, from_pandas=True) for name, column in table.items()}
    pyarrow.csv.write_csv(pa.table({**columns, "herb": np.where(y == "sage", "sge", y)}), tmp_path / "odd.csv")
    model, odd = folder / "three.candide", tmp_path / "odd.csv"
    drawn = run("plot", model, odd, "-o", tmp_path / "p.png", "-w", what, "--json")
    evaluated = run("evaluate", model, odd, "--json")
    for result in (drawn, evaluated):
        assert result.exit_code == 0
        assert f"{(y == 'sage').sum()} rows have a label the model does not know ('sge')" in result.stderr
        assert "did you mean 'sage' for 'sge'?" in result.stderr
    if what != "regions":
        assert json.loads(drawn.stdout)["rows"] == json.loads(evaluated.stdout)["rows"]


def test_rows_of_which_no_label_is_known_are_an_error(herbs, tmp_path):
    folder, table, y = herbs
    columns = {name: pa.array(column, from_pandas=True) for name, column in table.items()}
    pyarrow.csv.write_csv(pa.table({**columns, "herb": ["rose"] * len(y)}), tmp_path / "roses.csv")
    drawn = run("plot", folder / "three.candide", tmp_path / "roses.csv", "-o", tmp_path / "p.png", "-w", "confusion")
    assert (drawn.exit_code, drawn.exception.column) == (1, "herb")


def test_help_has_an_example():
    result = run("plot", "--help")
    assert result.exit_code == 0
    assert "candide plot" in result.output
