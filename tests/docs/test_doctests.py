"""Every example in a docstring runs, and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import candide

MODULES = [
    m.name for m in pkgutil.walk_packages(candide.__path__, "candide.") if not m.name.rpartition(".")[2].startswith("_")
]


@pytest.mark.parametrize("name", ["candide", *MODULES])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
