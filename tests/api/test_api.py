"""Every command that works on data or models calls one function of api, and every function of api is public."""

import ast
from pathlib import Path

import candide as cd
from candide import api, cli
from candide.cli.group import iterate_commands

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
        assert calls <= set(api.__all__)
        if name in WITHOUT:
            assert not calls
        else:
            assert calls == TWO_MODES.get(name, calls), name
            assert len(calls) == len(TWO_MODES.get(name, "1")), name


def test_the_functions_are_those_of_the_package():
    assert set(api.__all__) <= set(cd.__all__)
    assert all(getattr(cd, name) is getattr(api, name) for name in api.__all__)
    packages = {path.name for path in Path(cd.__file__).parent.iterdir() if path.is_dir()}
    assert packages.isdisjoint(api.__all__)
