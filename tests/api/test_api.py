"""Every command that works on data or models calls one function of api, and every function of api is public."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import candide as cd
from candide import cli
from candide.api import fitting, models
from candide.cli.group import iterate_commands
from candide.cli.options import POLICY_NAMES
from candide.errors import InputError

API = {name for name in cd.__all__ if str(getattr(getattr(cd, name), "__module__", "")).startswith("candide.api.")}
WITHOUT = {"demo", "doctor", "serve", "export-state"}  # commands that need no function of api
TWO_MODES = {  # a command with two kinds of input
    "evaluate": {"cross_validate", "evaluate"},
    "fit": {"fit_from_counts", "fit_model"},
    "predict": {"predict_table", "predict_text"},
}


def api_calls(function, functions, visited=()):
    """The functions of api that a function calls, itself or through functions of its module."""
    found = set()
    inner = {name: other for name, other in functions.items() if name not in (function.name, *visited)}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "api":
            found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in inner:
            found |= api_calls(inner[node.func.id], functions, (function.name, *visited))
    return found


def test_each_command_calls_one_function():
    for name, command in iterate_commands(cli.cli):
        source = ast.parse(Path(command.callback.__code__.co_filename).read_text())
        functions = {node.name: node for node in source.body if isinstance(node, ast.FunctionDef)}
        calls = api_calls(functions[command.callback.__name__], functions)
        assert calls <= API
        if name in WITHOUT:
            assert not calls
        else:
            assert calls == TWO_MODES.get(name, calls), name
            assert len(calls) == len(TWO_MODES.get(name, "1")), name


def test_the_functions_are_those_of_the_package():
    public = {
        name
        for module in (fitting, models)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public == API
    packages = {path.name for path in Path(cd.__file__).parent.iterdir() if path.is_dir()}
    assert packages.isdisjoint(API)


def test_data_comes_before_the_file_to_write(tmp_path):
    rows = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}
    model = cd.fit(rows, "kind", model="naive")
    cd.write_report(model, rows, tmp_path / "report.html", "kind")
    cd.plot_model(model, rows, tmp_path / "calibration.png", "calibration")
    for function in (cd.write_report, cd.plot_model):
        with pytest.raises(InputError, match="the file to write is not given; pass it after the data: out="):
            function(model, rows)
        with pytest.raises(InputError, match="expected a path, got dict"):
            function(model, tmp_path / "report.html", rows)


def test_the_policy_has_the_names_of_the_options():
    names = {field.name for field in fields(cd.Policy)} - {"class_prior", "log_odds"}
    assert set(POLICY_NAMES) == names


@pytest.mark.parametrize("option", [{"calibration": "logistic"}, {"like": "model.candide"}])
def test_a_cross_validation_refuses_options_of_a_fit(option):
    rows, what = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}, "not calibrated|and not those of like"
    with pytest.raises(InputError, match=what):
        cd.cross_validate(rows, "kind", **option)
    with pytest.raises(InputError, match=what):
        cd.compare_settings(rows, "kind", {"calibrated": option})


def test_known_options_are_listed_once_and_without_internal_ones():
    rows = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}
    for call in (
        lambda: cd.cross_validate(rows, "kind", sizes=1),
        lambda: cd.fit_model(rows, "kind", sizes=1),
        lambda: cd.compare_settings(rows, "kind", {"all": {"sizes": 1}}),
    ):
        with pytest.raises(InputError) as error:
            call()
        names = error.value.problem.partition("Known: ")[2].partition(" and ")[0].split(", ")
        assert len(set(names)) == len(names)
        assert {"data", "target", "ignored", "watch", "warn"}.isdisjoint(names)


def test_compared_settings_read_the_data_alike():
    rows = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}
    with pytest.raises(InputError, match="coded: settings that are compared read the data alike"):
        cd.compare_settings(rows, "kind", {"all": {}, "coded": {"na": ["9"]}})
