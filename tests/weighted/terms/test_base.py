"""A new kind of term is one file and one line: ``toy/difference.py`` and what the fixture adds; and the score test."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.export.scorers import SCORERS, rows_of
from tests.weighted.test_optimizer import problem

import candide as cd
from candide.validation.cross_validation import cross_validate
from candide.weighted import terms
from candide.weighted.terms.base import (
    TERMS,
    benjamini_hochberg,
    is_term_needed,
    score_test,
    score_test_p_value,
)
from candide.weighted.terms.interaction import CodedRows, score_sets

TITLE = "difference of high and low"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(terms, "__path__", [*terms.__path__, str(Path(__file__).parent / "toy")])
    monkeypatch.setitem(TERMS.class_names, "difference", "Difference")


def rows(n=120, seed=0):
    """The class depends on the difference of two numbers that hardly tell anything alone."""
    rng = np.random.default_rng(seed)
    level, apart = rng.normal(0, 3, n), rng.normal(0, 1, n)
    X = {"high": level + apart, "low": level, "town": rng.choice(["york", "bath"], n)}
    return X, np.where(apart > 0, "up", "down")


def test_kinds_of_terms_are_proposed_in_order():
    assert list(TERMS) == ["discriminant", "prototype", "decision_tables", "interaction", "difference"]
    assert {name: kind.name for name, kind in TERMS.items()} == {name: name for name in TERMS}


def test_a_new_kind_is_fitted_predicts_and_is_explained():
    X, y = rows()
    model = cd.BayesClassifier().fit(X, y)
    term = model.terms_[TITLE]
    assert term.kind == "difference"
    assert term.weight > 0
    new, truth = rows(seed=1)
    assert model.score(new, truth) > 0.9
    [decision] = model.explain({name: column[:1] for name, column in X.items()})
    assert TITLE in [part.term for part in decision.contributions]
    p = model.predict_proba({name: column[:1] for name, column in X.items()})[0]
    assert decision.log_odds == pytest.approx(abs(np.log(p[0] / p[1])))


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_a_new_kind_is_saved_and_loaded(detail, tmp_path):
    X, y = rows()
    model = cd.BayesClassifier().fit(X, y)
    model.save(tmp_path / "m.candide", detail=detail)
    np.testing.assert_array_equal(cd.load(tmp_path / "m.candide").predict_proba(X), model.predict_proba(X))


def test_a_new_kind_is_counted_by_engines_and_merges(tmp_path):
    X, y = rows()
    lines = [",".join([*map(str, row), label]) for *row, label in zip(*X.values(), y, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join([",".join([*X, "way"]), *lines]))
    model = cd.fit(tmp_path / "rows.csv", "way")
    assert TITLE in [term.title for term in model.terms_]
    new, truth = rows(seed=1)
    both = model + cd.BayesClassifier(like=model).fit(new, truth)
    assert both.counts_.n_rows == 240
    assert both.score(new, truth) > 0.9


def test_a_new_kind_is_cross_validated():
    X, y = rows()
    validation = cross_validate(X | {"way": y}, "way", folds=3)
    assert validation.total.accuracy > 0.8


def test_a_new_kind_is_exported(tmp_path):
    X, y = rows()
    model = cd.BayesClassifier().fit(X, y)
    few = {name: column[:20] for name, column in X.items()}
    exported = SCORERS["python"](model.fitted_, rows_of(few, list(X)), tmp_path)
    np.testing.assert_allclose([row["probabilities"] for row in exported], model.predict_proba(few), atol=1e-9)


# The score test


def test_row_weights_are_frequencies_in_the_score_test():
    terms, _, y, _ = problem(4)
    p = np.full((len(y), terms.shape[1]), 1 / terms.shape[1])
    plain = score_test(terms, y, p)
    np.testing.assert_allclose(score_test(terms, y, p, np.full(len(y), 9.0)), 3.0 * plain, rtol=1e-9)
    some = np.arange(len(y)) % 2 == 0  # rows without weight are no rows
    np.testing.assert_allclose(
        score_test(terms, y, p, some * 1.0), score_test(terms[some], y[some], p[some]), rtol=1e-9
    )


@pytest.mark.parametrize("proportions", [(0.5, 0.5), (0.9, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_the_tail_of_the_score_test_holds_for_noise(proportions):
    rng, sets = np.random.default_rng(0), np.array(list(combinations(range(30), 2)))
    z = []
    for _ in range(10):
        codes, y = rng.integers(0, 8, (300, 30)), rng.choice(len(proportions), 300, p=proportions)
        p = np.broadcast_to(np.bincount(y) / 300, (300, len(proportions))).copy()
        z.append(score_sets(sets, CodedRows(codes, (8,) * 30, y, p)))
    probability = score_test_p_value(np.concatenate(z), np.array(4.0 * 49 * (len(proportions) - 1)))
    assert 0.2 < (probability < 0.05).mean() / 0.05 < 1.6
    assert (probability < 0.002).mean() / 0.002 < 2.5  # a normal tail is off by a factor of ten


def test_benjamini_hochberg_is_the_largest_p_value_below_its_line():
    p = np.array([0.04, 0.001, 0.3, 0.012])
    assert benjamini_hochberg(p, 0.05, 4) == 0.012  # 0.04 is above 3 / 4 of 0.05
    assert benjamini_hochberg(p, 0.05, 5000) == -1.0


def test_a_term_is_needed_if_it_predicts_what_the_posterior_does_not():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 300), np.full((300, 2), 0.5)
    signal = np.eye(2)[y][:, :, None] + rng.normal(0, 0.5, (300, 2, 1))
    assert is_term_needed(signal, 1.0, y, p)
    assert not is_term_needed(rng.normal(size=(300, 2, 1)), 1.0, y, p)
    assert not is_term_needed(signal, 1.0, y, np.eye(2)[y])  # nothing is left to predict


def test_the_p_value_depends_on_the_degrees_of_freedom():
    p_value = score_test_p_value(np.array([0.0, 4.0, 4.0, 4.0]), np.array([49.0, 1.0, 49.0, 1e6]))
    np.testing.assert_allclose(p_value, [0.47313, 2e-05, 0.00083, 0.00232], atol=5e-6)
