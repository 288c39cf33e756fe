"""Imports point down only, inside packages too, and scikit-learn stays behind the estimators."""

import doctest
import re

import pytest
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
    redrawn,
    room,
)

PACKAGES = sorted({room(path) for path in FILES})
every_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))


def test_the_walk_sees_imports_inside_functions():
    found = {i.name: i.lazy for i in imports(ROOT / "rows" / "labels.py")}
    assert found["pyarrow"]
    assert not found["candide.errors.InputTypeError"]
    assert doctest.testmod(architecture).failed == 0


@every_file
def test_imports_point_down(path):
    mine = room(path)
    assert mine in HEIGHT, f"give {mine} a place in ROOMS of tests/architecture.py"
    for found in imports(path):
        if found.room not in (None, mine, "__version__"):
            assert found.room in HEIGHT, f"line {found.line}: give {found.room or 'candide'} a place in ROOMS"
            assert above(mine, found.room), f"line {found.line}: {mine} imports {found.room}, which is not below it"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circle_inside_a_package(package):
    assert circle(package) == []


@pytest.mark.parametrize("path", [p for p in FILES if room(p) in INSIDE], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_order_inside_a_package(path):
    mine = inner_height(room(path), dotted(path))
    for found in imports(path):
        other = inner_height(room(path), found.module) if found.room == room(path) else None
        if mine is not None and other is not None:
            assert other <= mine, f"line {found.line}: {dotted(path)} imports {found.module}, which lies above it"


@every_file
def test_private_names_stay_in_their_room(path):
    for found in imports(path):
        private = any(part.startswith("_") and not part.startswith("__") for part in found.name.split("."))
        assert found.room in (None, room(path)) or not private, f"line {found.line}: {found.name} is private"


@every_file
def test_only_the_estimators_import_sklearn(path):
    lines = [found.line for found in imports(path) if found.name.partition(".")[0] == "sklearn"]
    assert not lines or room(path) == "estimators", f"sklearn is imported in line {lines[0]}"


def test_contributing_draws_the_rooms_as_they_are():
    text = CONTRIBUTING.read_text()
    assert text == redrawn(text), "run python -m tests.architecture"


def test_the_drawing_follows_the_table(monkeypatch):
    monkeypatch.setitem(architecture.ROOMS[0], "attic", "what nobody knew was there")
    assert "attic" in redrawn(CONTRIBUTING.read_text())


def test_what_contributing_points_to_is_there():
    text = CONTRIBUTING.read_text()
    found = set(re.findall(r"`((?:tests/|docs/|benchmarks/)?[a-z_]+/(?:[a-z_/]+\.(?:py|md))?)`", text))
    assert {"events/", "tests/architecture.py", "docs/reference/events.md"} <= found
    assert sorted(f for f in found if not (CONTRIBUTING.parent / f).exists() and not (ROOT / f).exists()) == []
    for name, file in re.findall(r"`([A-Z_a-z]+)` (?:of|in) `([a-z_/]+\.py)`", text):
        path = next(folder / file for folder in (CONTRIBUTING.parent, ROOT) if (folder / file).exists())
        assert re.search(rf"\b{name}\b", path.read_text()), f"{file} has no {name}"
