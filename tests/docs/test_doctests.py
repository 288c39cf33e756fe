"""Every example in a docstring runs, and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest
from tests.docs import numbers
from tests.docs.numbers import Checker

import candide

MODULES = [
    m.name for m in pkgutil.walk_packages(candide.__path__, "candide.") if not m.name.rpartition(".")[2].startswith("_")
]


@pytest.mark.parametrize("name", ["candide", *MODULES])
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    for test in doctest.DocTestFinder().find(module):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_comparison_of_numbers_finds_what_is_wrong():
    assert doctest.testmod(numbers).failed == 0
    assert not numbers.same("[1, 2]", "[1, 3]")
    assert not numbers.same("0.25 and 3", "0.25")
    assert not numbers.same("accuracy 0.91", "accuracy 0.94")
