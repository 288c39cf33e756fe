"""No command writes over what it reads, over what Candide did not make, or over what is no file."""

import json
import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.cli.typed import run as run_command

import candide as cd
from candide import cli, store
from candide.engines.predictions import is_scored_file
from candide.errors import InputError
from candide.files import check_output, input_files
from candide.fit_source import fit_model

ROWS = "size,kind\n" + "".join(f"{i % 7}.5,{'ab'[i % 7 > 3]}\n" for i in range(40))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "one.csv").write_text(ROWS)
    os.link("rows/one.csv", "hard.csv")
    os.symlink("a.csv", "soft.csv")
    run("fit", "a.csv", "-t", "kind", "-o", "m.candide")
    os.symlink("m.candide", "link.candide")
    return tmp_path


def run(*args: str):
    result = CliRunner().invoke(cli.cli, list(args))
    if isinstance(result.exception, InputError):
        return result.exception
    assert result.exit_code == 0, result.output
    return None


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "a.csv", "-t", "kind", "-o", "a.csv"),
        ("fit", "a.csv", "-t", "kind", "-o", "./soft.csv"),
        ("fit", "soft.csv", "-t", "kind", "-o", "a.csv"),
        ("fit", "rows", "-t", "kind", "-o", "rows/one.csv"),
        ("fit", "r*/*.csv", "-t", "kind", "-o", "rows/one.csv"),
        ("fit", "rows", "-t", "kind", "-o", "hard.csv"),
        ("fit", "SELECT * FROM 'a.csv'", "-t", "kind", "-o", "a.csv"),
        ("predict", "m.candide", "a.csv", "-o", "a.csv"),
        ("predict", "m.candide", "a.csv", "-o", "m.candide"),
        ("merge", "m.candide", "m.candide", "-o", "m.candide"),
        ("adapt", "m.candide", "a.csv", "-o", "m.candide"),
        ("adapt", "m.candide", "a.csv", "-o", "link.candide"),
    ],
)
def test_an_input_is_not_written_over(folder, command):
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    error = run(*command)
    assert error.value == command[-1]
    assert "input" in error.problem
    assert "--force" in error.remedy
    assert {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()} == before


def test_force_writes_all_the_same(folder):
    assert run("predict", "m.candide", "a.csv", "-o", "a.csv", "--keep", "all", "--force") is None
    assert is_scored_file("a.csv")
    assert (folder / "a.csv").read_text().count("\n") == 41
    assert run("fit", "rows/one.csv", "-t", "kind", "-o", "a.csv", "--force") is None
    assert store.is_model_file("a.csv")


def test_standard_input_is_an_input_too(folder):
    with open("a.csv") as rows:
        command = [sys.executable, "-m", "candide", "fit", "-", "-t", "kind", "-o", "a.csv"]
        ended = subprocess.run(command, stdin=rows, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "a.csv is one of the inputs" in ended.stderr
    assert (folder / "a.csv").read_text() == ROWS


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predictions_replace_predictions_and_nothing_else(folder, ending):
    out = f"b.{ending}"
    for _ in range(2):
        assert run("predict", "m.candide", "a.csv", "-o", out, "--keep", "size") is None
    (folder / out).write_bytes(b"")
    assert "is empty" in str(run("predict", "m.candide", "a.csv", "-o", out))
    assert run("predict", "m.candide", "a.csv", "-o", out, "--force") is None
    table = pa.table({"prediction": ["a"], "p_a": [1.0], "log_density": [0.0], "remark": ["mine"]})
    check_output(out, is_own_file=is_scored_file)
    if ending == "parquet":
        pq.write_table(table, out)
    elif ending == "jsonl":
        (folder / out).write_text('{"prediction": "a", "p_a": 1, "log_density": 0, "remark": "mine"}\n')
    else:
        text = "prediction,p_a,log_density,remark\na,1,0,mine\n"
        (folder / out).write_text(text.replace(",", "\t") if ending == "tsv" else text)
    for data in ("a.csv", {"size": [1.0]}):
        with pytest.raises(InputError) as refused:
            cd.predict_table("m.candide", data, out=out)
        assert refused.value.value == out


OWN = {  # tables of a user, whose columns are named as those of a scored one
    "other classes": [("prediction", "rain tomorrow"), ("p_a", 0.5), ("p_b", 0.5), ("log_density", -1.0)],
    "no shares": [("prediction", "a"), ("p_a", 0.7), ("p_b", 0.7), ("log_density", -1.0)],
    "percent": [("prediction", "a"), ("p_a", 60.0), ("p_b", 40.0), ("log_density", -1.0)],
    "words": [("prediction", "a"), ("p_a", "likely"), ("p_b", "no"), ("log_density", "low")],
}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("row", OWN.values(), ids=OWN)
def test_a_table_with_the_same_heads_is_kept(folder, ending, row):
    out, row = folder / f"own.{ending}", dict(row)
    if ending == "parquet":
        pq.write_table(pa.table({name: [value] for name, value in row.items()}), out)
    elif ending == "jsonl":
        out.write_text(json.dumps(row) + "\n")
    else:
        lines = [",".join(row), ",".join(map(str, row.values()))]
        out.write_text("\n".join(lines).replace(",", "\t" if ending == "tsv" else ",") + "\n")
    before = out.read_bytes()
    with pytest.raises(InputError) as refused:
        cd.predict_table("m.candide", "a.csv", out=out)
    assert "--force" in refused.value.remedy
    assert out.read_bytes() == before
    cd.predict_table("m.candide", "a.csv", out=out, force=True)
    cd.predict_table("m.candide", "a.csv", out=out)  # which is ours now


@pytest.mark.parametrize("labels", [[True, False], [1, 2], [1.0, 2.0], ["2024-01-01", "2024-02-01"], ["low", "a_low"]])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_whatever_the_classes_are_predictions_are_known(folder, ending, labels):
    kinds = np.array(labels, "M8[D]" if str(labels[0]).startswith("20") else None)
    rows, out = {"size": [1.0, 1.2, 3.0, 3.3], "y": np.repeat(kinds, 2)}, folder / f"scored.{ending}"
    model = fit_model(rows, "y", model="naive").fitted
    for _ in range(2):
        cd.predict_table(model, {"size": [1.0, 2.0, 3.0]}, out=out, intervals=0.9)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_replaces_a_picture_of_ours(folder, ending):
    out = f"b.{ending}"
    for _ in range(2):
        assert run("plot", "m.candide", "a.csv", "-o", out) is None
    plt.figure().savefig(out)
    assert run("plot", "m.candide", "-o", out).value == out
    assert run("plot", "m.candide", "-o", out, "--force") is None


def test_a_model_replaces_a_model(folder):
    model = cd.load("m.candide")
    model.save("m.candide")
    assert run("fit", "a.csv", "-t", "kind", "-o", "m.candide") is None
    (folder / "notes.candide").write_text("mine")
    with pytest.raises(InputError) as refused:
        model.save("notes.candide")
    assert (refused.value.value, (folder / "notes.candide").read_text()) == ("notes.candide", "mine")
    model.save("notes.candide", force=True)
    assert store.is_model_file("notes.candide")


def test_only_regular_files_are_replaced(folder):
    os.mkfifo("pipe.csv")
    model = cd.load("m.candide")
    for name, write in (
        ("pipe.csv", lambda force: model.save("pipe.csv", force=force)),
        ("pipe.csv", lambda force: model.predict_table("a.csv", "pipe.csv", force=force)),
        ("rows", lambda force: model.save("rows", force=force)),
        ("pipe.csv", lambda force: cd.merge_models([model, model], "pipe.csv", force=force)),
    ):
        for force in (False, True):
            with pytest.raises(InputError, match="is not a regular file") as error:
                write(force)
            assert error.value.value == name
    assert (folder / "pipe.csv").is_fifo()


def test_a_folder_that_is_not_there_is_an_error_before_any_work(folder):
    for command in (("fit", "none.csv", "-t", "kind"), ("plot", "m.candide")):
        assert run(*command, "-o", "nowhere/x.png").value == "nowhere/x.png"


def test_the_files_of_an_arrow_dataset_are_inputs(folder):
    import pyarrow.dataset as ds

    assert [os.path.samefile(name, "a.csv") for name in input_files(ds.dataset("a.csv", format="csv"))] == [True]


def test_an_empty_file_of_the_user_is_not_replaced(tmp_path):
    rows, out = tmp_path / "rows.csv", tmp_path / "model.candide"
    rows.write_text("x,y\n" + "".join(f"{i % 7}.5,{'ab'[i % 2]}\n" for i in range(60)))
    out.touch()
    refused = run_command("fit", rows, "--target", "y", "-o", out)
    assert refused.exit_code == 1
    assert "exists already, and is empty" in str(refused.exception)
    assert out.stat().st_size == 0
    assert run_command("fit", rows, "--target", "y", "-o", out, "--force").exit_code == 0
