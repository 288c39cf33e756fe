"""Imports point down only, and scikit-learn stays behind the estimators."""

import ast
from pathlib import Path

import pytest

import candide

ROOT = Path(candide.__file__).parent
# From the ground up. A module may import what lies in a lower row, or in its own package.
LAYERS = [
    {"errors", "wording"},
    {"numerics", "files"},
    {"kernels"},
    {"rows"},
    {"tally", "priors"},
    {"distributions"},
    {"conjugate"},
    {"events"},
    {"model"},
    {"engines"},
    {"explain"},
    {"store"},
    {"tasks"},
    {"estimators", "demo", "doctor"},
    {"report", "evaluate", "plot"},
    {"cli"},
    {"__main__"},
]
HEIGHT = {name: height for height, row in enumerate(LAYERS) for name in row}
SKLEARN = {"estimators"}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")  # the surface points everywhere


def unit(path):
    """The module or package of candide that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """(line, dotted name) of everything a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}:{node.lineno}: import by the full name"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_the_walk_sees_imports_inside_functions():
    found = {name for _, name in imported(ROOT / "rows" / "labels.py")}
    assert {"pyarrow", "candide.errors.InputTypeError"} <= found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    mine = unit(path)
    assert mine in HEIGHT, f"give {mine} a place in LAYERS"
    for line, name in imported(path):
        package, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if package == "candide" and target not in (mine, "__version__"):
            assert target in HEIGHT, f"line {line}: give {target or 'candide'} a place in LAYERS"
            assert HEIGHT[target] < HEIGHT[mine], f"line {line}: {mine} imports {target}, which does not lie below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_estimators_import_sklearn(path):
    lines = [line for line, name in imported(path) if name.partition(".")[0] == "sklearn"]
    assert not lines or unit(path) in SKLEARN, f"sklearn is imported in line {lines[0]}"
