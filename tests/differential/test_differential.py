"""A few random tables through every entry point; ``python -m tests.differential`` tries many."""

import numpy as np
import pytest
from tests.differential.compare import Found, compare
from tests.differential.entry_points import ESTIMATORS, PREDICTIONS
from tests.differential.tables import random_case
from tests.engines.conftest import postgres

__all__ = ["postgres"]
TABLES = 3  # of each estimator


@pytest.mark.all_cases
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predictions_are_equal_through_every_entry_point(estimator, tmp_path, postgres):
    found = Found()
    for seed in range(TABLES):
        compare(seed, estimator, tmp_path, found, postgres, n_fits=4)
    assert not found.differences
    read = [name for name in PREDICTIONS if "SQL in" not in name and name != "ONNX"]  # which read no text
    assert all(found.answered[name] == TABLES for name in read)


def test_a_difference_and_an_unexpected_error_are_found():
    found, case = Found(), random_case(0, "naive")
    found.add("other", case, np.array([[0.5, 0.5]]), lambda: [[0.5 + 1e-8, 0.5]])
    found.add("broken", case, np.array([[0.5, 0.5]]), lambda: [][0])
    found.add("same", case, np.array([[0.5, 0.5]]), lambda: [[0.5, 0.5]])
    assert [name for _, name, *_ in found.differences] == ["other", "broken"]
