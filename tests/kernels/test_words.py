"""The kernels of words refuse what lies outside their tables."""

import numpy as np
import pytest

GOOD = {
    "starts": np.array([0, 2], np.int64),
    "term": np.array([0, 1], np.int32),
    "x": np.ones(2, np.float32),
    "own": np.zeros(2, np.float32),
    "table": np.ones((2, 8), np.float32),
    "y": np.array([1], np.int64),
}


def score(loops, **other):
    words = {**GOOD, **other}
    out = np.zeros((len(words["y"]), 2))
    loops.word_scores(*words.values(), np.ones(len(words["table"])), out)
    return out


def test_a_document_is_the_sum_of_its_words(loops):
    assert score(loops).tolist() == [[2.0, 2.0]]
    assert score(loops, own=np.array([0.5, 0.25], np.float32)).tolist() == [[2.0, 2.75]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("term", np.array([0, 2], np.int32)),
        ("term", np.array([0, -1], np.int32)),
        ("starts", np.array([0, 3], np.int64)),
        ("starts", np.array([-1, 2], np.int64)),
        ("y", np.array([8], np.int64)),
        ("y", np.array([-1], np.int64)),
    ],
)
def test_what_lies_outside_is_refused(loops, name, value):
    with pytest.raises(ValueError, match=r"outside|differ"):
        score(loops, **{name: value})
