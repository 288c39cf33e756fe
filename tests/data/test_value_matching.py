"""One rule for labels and levels that one source spells differently from another."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from candide.data.labels import Labels
from candide.data.value_matching import match_codes, match_values

DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12)


@pytest.mark.parametrize(
    ("known", "spelled", "meant"),
    [
        ((0, 1), ["0", "1", "1.0", "7", "x"], [0, 1, 1, 7, "x"]),
        ((0.5, 1.5), ["0.5", "1.50", "x"], [0.5, 1.5, "x"]),
        ((False, True), ["true", "False", "TRUE", "yes", "N", "perhaps"], [True, False, True, True, False, "perhaps"]),
        (("0", "1"), [0, 1.0, True, 2.5], ["0", "1", "1", "2.5"]),
        (("True", "False"), [True, False], ["True", "False"]),
        ((DAY,), ["2024-02-29", "2024-03-01", NOON, "soon"], [DAY, dt.date(2024, 3, 1), DAY, "soon"]),
        ((NOON,), ["2024-02-29 12:00", DAY], [NOON, dt.datetime(2024, 2, 29)]),
        ((1, "a"), ["1", "a", "b"], [1, "a", "b"]),
        ((), ["a", 1], ["a", 1]),
    ],
)
def test_values_take_the_type_of_the_known(known, spelled, meant):
    assert match_values(spelled, Labels(known)) == meant


@pytest.mark.parametrize("of", [list, pa.array, lambda v: np.array(v, object)], ids=["list", "arrow", "objects"])
def test_codes_of_what_is_spelled_differently(of):
    assert match_codes(Labels((0, 1)), of(["1", None, "0", "x", "1"])).tolist() == [1, -1, 0, 2, 1]
    assert match_codes(Labels(("0", "1")), of([1, None, 0, 7, 1])).tolist() == [1, -1, 0, 2, 1]


def test_what_is_known_is_not_changed():
    labels = Labels.from_values([1, "1", "true"])
    assert match_codes(labels, np.array([1, "1", "true", True], object)).tolist() == [0, 1, 2, 0]
