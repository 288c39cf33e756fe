"""Imports point down only, inside packages too, and only the estimators import scikit-learn."""

import doctest
import re

from tests import architecture
from tests.architecture import (
    CONTRIBUTING,
    FILES,
    HEIGHT,
    INSIDE,
    ROOT,
    above,
    circle,
    dotted,
    imports,
    inner_height,
    package_of,
    redrawn,
)

PACKAGES = sorted({package_of(path) for path in FILES})


def test_imports_inside_functions_are_found():
    found = {i.name: i.lazy for i in imports(ROOT / "data" / "labels.py")}
    assert found["pyarrow"]
    assert not found["candide.errors.InputTypeError"]
    assert doctest.testmod(architecture).failed == 0


def test_imports_point_down():
    wrong = []
    for path in FILES:
        mine = package_of(path)
        assert mine in HEIGHT, f"give {mine} a place in LAYERS of tests/architecture.py"
        for found in imports(path):
            if found.package not in (None, mine, "__version__"):
                assert found.package in HEIGHT, f"give {found.package} a place in LAYERS of tests/architecture.py"
                if not above(mine, found.package):
                    wrong.append(f"{path.relative_to(ROOT)}:{found.line}: {found.package} is not below {mine}")
    assert wrong == []


def test_no_import_cycle_inside_a_package():
    assert {package: circle(package) for package in PACKAGES if circle(package)} == {}


def test_the_order_inside_a_package():
    wrong = []
    for path in (path for path in FILES if package_of(path) in INSIDE):
        mine = inner_height(package_of(path), dotted(path))
        for found in imports(path):
            own = found.package == package_of(path)
            other = inner_height(package_of(path), found.module) if own else None
            if mine is not None and other is not None and other > mine:
                wrong.append(f"{dotted(path)}:{found.line}: {found.module} lies above it")
    assert wrong == []


def test_private_names_stay_in_their_package():
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line}: {found.name}"
        for path in FILES
        for found in imports(path)
        if any(part.startswith("_") and not part.startswith("__") for part in found.name.split("."))
        and found.package not in (None, package_of(path))
    ]
    assert wrong == []


def test_only_the_estimators_import_sklearn():
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line}"
        for path in FILES
        for found in imports(path)
        if found.name.partition(".")[0] == "sklearn" and package_of(path) != "estimators"
    ]
    assert wrong == []


def test_contributing_shows_the_layers_as_they_are():
    text = CONTRIBUTING.read_text()
    assert text == redrawn(text), "run python -m tests.architecture"


def test_the_table_of_layers_is_generated(monkeypatch):
    monkeypatch.setitem(architecture.LAYERS[0], "attic", "a package that does not exist")
    assert "attic" in redrawn(CONTRIBUTING.read_text())


def test_what_contributing_points_to_is_there():
    text = CONTRIBUTING.read_text()
    found = set(re.findall(r"`((?:tests/|docs/|benchmarks/)?[a-z_]+/(?:[a-z_/]+\.(?:py|md))?)`", text))
    assert {"events/", "tests/architecture.py", "docs/reference/events.md"} <= found
    assert sorted(f for f in found if not (CONTRIBUTING.parent / f).exists() and not (ROOT / f).exists()) == []
    for name, file in re.findall(r"`([A-Z_a-z]+)` (?:of|in) `([a-z_/]+\.py)`", text):
        path = next(folder / file for folder in (CONTRIBUTING.parent, ROOT) if (folder / file).exists())
        assert re.search(rf"\b{name}\b", path.read_text()), f"{file} has no {name}"
