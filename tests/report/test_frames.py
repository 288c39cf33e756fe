"""What a notebook shows of models, validations, scores, decisions, columns: small, framed, no style but its own."""

from html import unescape

import numpy as np
import pytest
from tests.report.test_page import HOSTILE, Reader, mixed

import candide as cd
from candide.explain.terms import list_terms


@pytest.fixture(scope="module")
def shown():
    """One of every kind, of names that are markup."""
    X, y = mixed(300, names=[f"{HOSTILE} {i}" for i in range(5)], level=HOSTILE)
    y = np.where(y == "yes", HOSTILE, "no")
    model, table = cd.BayesClassifier().fit(X, y), {**X, "t": y}
    [decision] = model.explain({name: column[:1] for name, column in X.items()})
    validation = cd.cross_validate(table, "t", folds=3, model="naive")
    scores = cd.evaluate(model, table, "t")
    return [model, decision, validation, scores, model.feature_scores(), list_terms(model.fitted_)]


def test_every_kind_is_framed_and_its_names_are_text(shown):
    for one in shown:
        html = one._repr_html_()
        frame = Reader(html)
        assert not {"script", "style", "img", "link"} & set(frame.tags), type(one).__name__
        assert not [a for a in frame.attributes if a[1] not in ("style",)]
        assert frame.tags.count("tr") > 1
        assert len(html) < 20_000
    assert HOSTILE[:20] in Reader(shown[0]._repr_html_()).text
    assert HOSTILE[:20] in Reader(shown[1]._repr_html_()).text


def test_a_frame_has_the_figures_that_are_printed(shown):
    model, decision, validation, scores, columns, heard = shown
    assert f"{scores.accuracy:.4f}" in Reader(scores._repr_html_()).text
    assert f"{validation.total.log_loss:.4f}" in Reader(validation._repr_html_()).text
    assert Reader(columns._repr_html_()).tags.count("tr") == len(columns) + 1
    assert Reader(heard._repr_html_()).text.count("pair") == sum(one.kind == "pair" for one in heard)
    assert f"{decision.contributions[0].log_odds:+.2f}" in Reader(decision._repr_html_()).text
    assert "300 rows, 2 classes" in Reader(model._repr_html_()).text


def test_models_of_every_sort_have_a_frame():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    for one in (cd.GaussianNB(), cd.GaussianBayes(), cd.NaiveBayes(), cd.BayesClassifier()):
        assert "sk-top-container" in one._repr_html_()  # before it is fitted: scikit-learn's diagram of its parameters
        assert type(one).__name__ in Reader(one.fit(X, y)._repr_html_()).text
    assert "1 class" in Reader(cd.GaussianNB().fit(X[:3], y[:3])._repr_html_()).text
    assert (
        "prize"
        in Reader(
            cd.TextNB().fit(["free prize", "see you"] * 9, ["spam", "ham"] * 9).explain(["prize"])[0]._repr_html_()
        ).text
    )


def test_a_notebook_shows_a_report_as_a_page():
    X, y = mixed(300)
    page = cd.BayesClassifier().fit(X, y).report()
    assert page.startswith("<!doctype html>")
    assert len(repr(page)) < 120
    assert "out=" in repr(page)
    html = page._repr_html_()
    frame = Reader(html)
    assert frame.tags == ["iframe"]
    assert unescape(html).count("<!doctype html>") == 1
    assert len(html) < 2 * len(page)
