"""Discriminants as terms: their titles, and when they are proposed."""

import numpy as np
import pytest

import candide as cd
from candide.encoding.indicators import Indicators
from candide.encoding.normal_score import NormalScore
from candide.weighted.terms.discriminant import Discriminant


def titles(X, y):
    return {term.title for term in cd.BayesClassifier().fit(X, y).terms_ if term.kind == "discriminant"}


def test_titles_count_numbers_and_categories():
    encodings = (NormalScore(), NormalScore(), Indicators.from_column(np.array(["a", "b", "c"] * 3), 9))
    assert Discriminant().term_titles(("a", "b", "c"), encodings) == (
        "linear discriminant of 2 numbers and 1 category",
        "quadratic discriminant of 2 numbers and 1 category",
    )


def test_several_numbers_have_a_linear_and_a_quadratic_discriminant():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    X[:, 0] += y
    both = {f"{kind} discriminant of 3 numbers" for kind in ("linear", "quadratic")}
    assert titles(dict(zip("abc", X.T + y, strict=True)), y) == both
    assert titles({"a": X[:, 0]}, y) == set()


@pytest.mark.parametrize(("signal", "is_needed"), [(2.0, True), (0.0, False)])
def test_numbers_and_categories_are_joined_if_that_improves_the_model(signal, is_needed):
    """The class is the sign of a sum of many small effects, which single columns show poorly."""
    rng = np.random.default_rng(1)
    levels, x = rng.integers(0, 4, (600, 6)), rng.normal(size=(600, 2))
    score = signal * (x.sum(axis=1) + (levels - 1.5).sum(axis=1)) + rng.logistic(size=600)
    X = {f"x{j}": x[:, j] for j in range(2)} | {f"c{j}": np.array(list("abcd"))[levels[:, j]] for j in range(6)}
    found = [title for title in titles(X, score > 0) if "categories" in title]
    assert bool(found) is is_needed
