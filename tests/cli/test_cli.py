"""The command line: what a person types, what comes out, and how it ends."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.cli.typed import ask, run

from candide import cli, demo
from candide.cli.group import iterate_commands


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    """A table of herbs as CSV, and a model of it."""
    folder = tmp_path_factory.mktemp("herbs")
    table, y = demo.garden_rows(2000, seed=1)
    columns = {name: pa.array(column, from_pandas=True) for name, column in table.items()}
    rows = pa.table({"plant_id": range(2000), **columns, "herb": y})
    pyarrow.csv.write_csv(rows, folder / "herbs.csv")
    pq.write_table(rows.drop_columns(["herb"]), folder / "new.parquet")
    facts = ask(
        "fit",
        "--model=naive",
        folder / "herbs.csv",
        "--target",
        "herb",
        "-o",
        folder / "herbs.candide",
        "--event",
        "flowers=poisson",
    )
    return folder, facts


def test_fit_says_what_it_made_of_each_column(herbs):
    _, facts = herbs
    assert facts["rows"] == 2000
    assert {c["column"]: (c["kind"], c["event"]) for c in facts["columns"]} == {
        "height_cm": ("number", "gaussian"),
        "leaf_mm": ("number", "gaussian"),
        "flowers": ("number", "poisson"),
        "soil": ("category", "categorical"),
        "scented": ("category", "categorical"),
    }
    assert facts["notes"] == ["column 'plant_id' is left out: whole numbers that step by one"]
    assert sum(one["proportion"] for one in facts["classes"]) == pytest.approx(1)
    assert max(facts["importances"], key=facts["importances"].get) == "leaf_mm"


def test_the_summary_for_a_person(herbs):
    folder, _ = herbs
    result = run("fit", "--model=naive", folder / "herbs.csv", "-t", "herb", "--folds", "5")
    assert result.exit_code == 0
    for text in (
        "2,000 rows",
        "lavender",
        "height_cm",
        "not used",
        "Cross-validated, 5 folds",
        "accuracy",
        "Next",
    ):
        assert text in result.output


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "jsonl"])
def test_predict_into_a_file(herbs, ending, tmp_path):
    folder, _ = herbs
    out = tmp_path / f"scored.{ending}"
    facts = ask("predict", folder / "herbs.candide", folder / "new.parquet", "-o", out, "--keep", "plant_id")
    assert facts["rows"] == 2000
    table = {
        "parquet": lambda: pq.read_table(out),
        "csv": lambda: pyarrow.csv.read_csv(out),
        "tsv": lambda: pyarrow.csv.read_csv(out, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")),
        "jsonl": lambda: pa.Table.from_pylist([json.loads(line) for line in out.read_text().splitlines()]),
    }[ending]()
    assert table.column_names == ["plant_id", "prediction", "p_lavender", "p_sage", "p_thyme", "log_density"]
    row = table.to_pylist()[7]
    assert row["plant_id"] == 7
    assert row["p_lavender"] + row["p_sage"] + row["p_thyme"] == pytest.approx(1)


def test_predict_into_a_pipe_is_csv_and_keep_all_keeps_all(herbs):
    folder, _ = herbs
    command = [
        sys.executable,
        "-m",
        "candide",
        "predict",
        folder / "herbs.candide",
        folder / "new.parquet",
        "--keep",
        "all",
    ]
    out = subprocess.run([str(c) for c in command], capture_output=True, check=True)
    table = pyarrow.csv.read_csv(pa.BufferReader(out.stdout))
    assert table.num_rows == 2000
    assert table.column_names[:2] == ["plant_id", "height_cm"]
    assert out.stderr == b""


def test_evaluate_a_model_and_by_cross_validation(herbs):
    folder, _ = herbs
    scored = ask("evaluate", folder / "herbs.candide", folder / "herbs.csv")
    crossed = ask(
        "evaluate",
        folder / "herbs.csv",
        "--target",
        "herb",
        "--folds",
        "4",
        "--event",
        "flowers=poisson",
        "--drop",
        "plant_id",
    )
    assert scored["metrics"]["accuracy"]["value"] == pytest.approx(crossed["metrics"]["accuracy"]["value"], abs=0.02)
    assert crossed["folds"] == 4
    assert crossed["metrics"]["accuracy"]["fold_sd"] > 0
    assert sum(map(sum, crossed["confusion"])) == 2000


def test_show_prints_the_conditional_tables(herbs):
    folder, _ = herbs
    shown = run("show", folder / "herbs.candide").output
    assert "chalk" in shown
    assert "soil" in shown
    facts = ask("show", folder / "herbs.candide")
    soil = next(c for c in facts["columns"] if c["column"] == "soil")
    assert [sum(values) for values in zip(*soil["conditionals"].values(), strict=True)] == pytest.approx([1, 1, 1])


def test_demo_and_doctor():
    assert ask("demo", "--rows", "400")["scores"]["metrics"]["accuracy"]["value"] > 0.8
    assert "plants" in run("demo", "--rows", "400").output
    assert ask("doctor")["kernels"].split()[0] in ("avx2", "baseline", "numpy")


@pytest.mark.parametrize("command", dict(iterate_commands(cli.cli)))
def test_every_command_has_help_with_an_example(command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"candide {command} " in result.output
    assert "None" not in result.output  # what is no value is no default
    for option in dict(iterate_commands(cli.cli))[command].params:  # whole, in 80 columns
        assert all(name in result.output for name in option.opts if name.startswith("--"))


def test_a_default_is_documented_for_every_model():
    shown = {one.name: getattr(one, "show_default", None) for one in cli.cli.commands["fit"].params}
    assert (shown["class_prior"], shown["estimate"], shown["decimal"]) == (False, True, False)


def main(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "candide", *map(str, args)], capture_output=True, text=True)


def test_errors_are_one_line_with_an_exit_status(herbs, tmp_path):
    folder, _ = herbs
    wrong = main("fit", "--model=naive", folder / "herbs.csv", "--target", "hrb")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("candide: unknown target 'hrb'; did you mean 'herb'?")
    assert wrong.stderr.count("\n") == 1
    (tmp_path / "not.candide").write_bytes(b"nonsense")
    assert "not a complete Candide model file" in main("show", tmp_path / "not.candide").stderr
    assert main("fit", "--model=naive", folder / "herbs.csv").returncode == 2
    assert "Traceback" in main("--debug", "fit", folder / "herbs.csv", "--target", "hrb").stderr
    said = main("--debug", "show", "postgresql://ann:s3cr@t@host/shop::orders").stderr
    assert "Traceback" in said
    assert not any(word in said for word in ("s3cr", "@t"))
    assert main("fit", "--model=naive", folder / "herbs.csv", "-t", "herb", "--event", "soil").stderr.startswith(
        "candide: --event 'soil'"
    )
