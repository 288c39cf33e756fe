"""A shell completes columns, classes and event models from the files that are named on the line."""

import os
import shutil
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import candide as cd
from candide.cli import cli
from candide.cli.completion import PARAM_BY_METAVAR, BashCompletion
from candide.cli.group import iterate_commands
from candide.plot.picture import PLOTS

ROWS = "age,full name,pay=tax,kind\n30,Ada,1.5,red one\n40,Bo,2.5,blue\n50,Cy,3.5,\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "semi.txt").write_text(ROWS.replace(",", ";"))
    X = {"height": [1.0, 2.0, 3.0, 4.0], "soil": ["clay", "sand", "clay", "sand"]}
    cd.NaiveBayes().fit(X, ["low", "low", "tall", "tall"]).save("plants.candide")
    return tmp_path


def completed(*words, kind="plain"):
    *args, incomplete = words
    found = ShellComplete(cli, {}, "candide", "_CANDIDE_COMPLETE").get_completions(list(args), incomplete)
    assert all(item.type == kind for item in found)
    return [item.value for item in found]


COLUMNS = ["age", "full name", "pay=tax", "kind"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("fit", "rows.csv", "--target", ""), COLUMNS),
        (("fit", "rows.csv", "-t", "f"), ["full name"]),
        (("fit", "semi.txt", "--drop", ""), COLUMNS),
        (("evaluate", "rows.csv", "--target", "kind", "--drop", "a"), ["age"]),
        (("check", "rows.csv", "--weight", "k"), ["kind"]),
        (("predict", "plants.candide", "rows.csv", "--keep", "k"), ["kind"]),
        (("plot", "plants.candide", "--feature", ""), ["height", "soil"]),
        (("show", "plants.candide", "--column", "s"), ["soil"]),
        (("show", "plants.candide", "--class", ""), ["low", "tall"]),
        (("plot", "plants.candide", "-o", "a.png", "--class", "t"), ["tall"]),
        (("fit", "rows.csv", "--event", "a"), ["age="]),
        (("fit", "rows.csv", "--event", "age=ga"), ["age=gaussian"]),
        (("fit", "rows.csv", "--event", "pay=tax=pois"), ["pay=tax=poisson"]),
        (("plot", "plants.candide", "--what", "con"), ["confusion"]),
        (("fit", "rows.csv", "--model", ""), ["naive", "bayes"]),
        (("fit", "rows.csv", "-t", "kind", "--positive", "b"), ["blue"]),
        (("predict", "plants.candide", "rows.csv", "--positive", ""), ["low", "tall"]),
        (("predict", "plants.candide", "rows.csv", "--class-prior", ""), ["uniform", "low=", "tall="]),
        (("fit", "rows.csv", "-t", "kind", "--class-prior", "blue=.2,"), ["blue=.2,red one="]),
    ],
)
def test_what_an_option_wants_comes_from_the_file_on_the_line(folder, words, wanted):
    found = completed(*words)
    assert sorted(found) == sorted(wanted)


def test_columns_of_other_formats_are_completed_too(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"size": [1.0, 2.0], "kind": ["a", "b"]})
    pq.write_table(table, "rows.parquet")
    (folder / "rows.jsonl").write_text('{"size": 1, "kind": "a"}\n{"size": 2, "kind": "b"}\n')
    for name in ("rows.parquet", "rows.jsonl"):
        assert completed("fit", name, "--target", "") == ["size", "kind"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_classes_of_a_table_are_the_values_of_its_target(folder, name):
    import pyarrow.csv
    import pyarrow.parquet as pq

    from candide.cli.completion import list_classes

    pq.write_table(pyarrow.csv.read_csv("rows.csv"), "rows.parquet")
    assert list_classes(name, "kind") == ["blue", "red one"]


@pytest.mark.parametrize("name", ["none.csv", "broken.parquet", "broken.candide", "empty.csv", ".", "-"])
def test_nothing_is_reported_of_what_cannot_be_read(folder, name, capfd):
    for path, content in (("broken.parquet", b"PAR1??"), ("broken.candide", b"\x10" * 90), ("empty.csv", b"")):
        (folder / path).write_bytes(content)
    assert completed("fit", name, "--target", "") == []
    assert completed("show", name, "--class", "") == []
    assert capfd.readouterr() == ("", "")


def test_a_file_is_completed_where_one_is_expected(folder):
    assert completed("fit", "ro", kind="file") == ["ro"]
    assert completed("predict", "plants.candide", "", kind="file") == [""]
    assert completed("predict", "plants.candide", "rows.csv", "--costs", "co", kind="file") == ["co"]
    assert completed("drift", "plants.candide", "rows.csv", "--before", "ro", kind="file") == ["ro"]


def test_every_option_that_names_a_column_completes_it():
    for _, command in iterate_commands(cli):
        for param in command.params:
            if param.metavar in PARAM_BY_METAVAR:
                assert param.type is PARAM_BY_METAVAR[param.metavar], (command.name, param.name)
    [what] = [param for param in cli.commands["plot"].params if param.name == "what"]
    assert sorted(what.type.keywords) == sorted(PLOTS)


def test_targets_and_dialects_of_an_export_are_completed(folder):
    assert completed("export", "plants.candide", "--to", "s") == ["sql"]
    assert completed("export", "plants.candide", "--dialect", "s") == ["snowflake", "spark", "sqlite"]


def bash_words(line, monkeypatch, folder):
    """What bash would offer at the end of words that it has cut at = as it does."""
    monkeypatch.setenv("COMP_WORDS", "\n".join(line))
    monkeypatch.setenv("COMP_CWORD", str(len(line) - 1))
    return BashCompletion(cli, {}, "candide", "_CANDIDE_COMPLETE").complete().splitlines()


def test_bash_joins_what_it_cut_and_quotes_what_it_inserts(folder, monkeypatch):
    def shown(*line):
        return bash_words(["candide", *line], monkeypatch, folder)

    assert shown("fit", "rows.csv", "--target", "fu") == ["plain,full\\\\ name"]
    assert shown("fit", "rows.csv", "--target", "full\\ n") == ["plain,full\\\\ name"]
    assert shown("fit", "rows.csv", "--target", '"full n') == ["plain,full name"]
    assert shown("fit", "rows.csv", "--target", "=", "a") == ["plain,age"]
    assert shown("fit", "rows.csv", "--event", "age", "=", "po") == ["plain,poisson"]
    assert "plain,gaussian" in shown("fit", "rows.csv", "--event", "age", "=")
    assert shown("sho") == ["plain,show"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_real_bash_completes_columns_and_event_models(folder):
    script = folder / "try.sh"
    script.write_text(
        'eval "$(_CANDIDE_COMPLETE=bash_source candide)"\n'
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _candide_completion candide; '
        'printf "%s|" "${COMPREPLY[@]}"; echo; }\n'
        'ask candide fit rows.csv --target ""\n'
        "ask candide fit rows.csv --event age = gau\n"
        "ask candide show plants.candide --class t\n"
        'ask candide fit none.csv --target ""\n'
    )
    program = folder / "bin" / "candide"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m candide "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "try.sh"], capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )
    assert done.stdout.splitlines() == ["age|full\\ name|pay=tax|kind|", "gaussian|", "tall|", "|"]
    assert done.stderr == ""
