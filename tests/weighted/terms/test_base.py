"""A new kind of term is one file and one line: ``toy/difference.py`` is the file, the fixture adds the line."""

from pathlib import Path

import numpy as np
import pytest
from tests.export.scorers import SCORERS, rows_of

import candide as cd
from candide.validation.cross_validation import cross_validate
from candide.weighted import terms
from candide.weighted.terms.base import TERMS

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
    assert list(TERMS) == ["discriminant", "prototype", "interaction", "difference"]
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
