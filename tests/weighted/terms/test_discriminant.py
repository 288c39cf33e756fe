"""Discriminants and prototype terms: their titles, when they are proposed, and what they learn."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding.scores import Indicators, NormalScore, Prototypes
from candide.engines import arrays
from candide.errors import MergeError
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


def rings(n, seed=0):
    """Three rings of two classes: no line, no single ellipse parts them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    angle, size = rng.uniform(0, 2 * np.pi, n), 1.0 + y + rng.normal(0, 0.15, n)
    return {"east": size * np.cos(angle), "north": size * np.sin(angle)}, np.where(y == 1, "in", "out")


def compared(model):
    return next(part for part in model.fitted_.plan.parts if part.prototypes is not None)


def test_it_separates_classes_that_no_line_or_ellipse_does():
    X, y = rings(400)
    model = cd.BayesClassifier().fit(X, y)
    new, truth = rings(2000, seed=1)
    assert model.score(new, truth) > 0.95
    assert model.terms_[0].title == "similarity to prototypes of 2 numbers"
    assert model.terms_[0].kind == "prototype"


def test_a_left_out_row_is_scored_without_it():
    X, y = rings(60)
    model, labels = cd.BayesClassifier().fit(X, y), Labels(("in", "out"))
    part, table, codes = compared(model), Table.from_data(X), labels.encode(y)
    block = part.block(table)
    tally = arrays.tally_block(part, block, codes, None, 2)
    held = part.event.held_out_contributions(tally, None, "predictive", block, codes)
    for i in (0, 7, 31):
        rest = np.arange(60) != i
        n, own = float(rest.sum()), arrays.tally_block(part, block[rest], codes[rest], None, 2)
        alone = part.event.estimate(own).contributions(block[[i]])[0]
        # The centre's divisor and the mean of all rows are held: of 60 rows that is little.
        np.testing.assert_allclose(np.ptp(held[i]), np.ptp(alone), atol=6 / n)


def test_counts_with_the_same_prototypes_add_and_others_are_refused():
    X, y = rings(300)
    first = cd.BayesClassifier().fit(X, y)
    more, labels = rings(200, seed=1)
    other = cd.BayesClassifier(like=first).fit(more, labels)
    both = {name: np.concatenate([X[name], more[name]]) for name in X}
    whole = cd.BayesClassifier(like=first).fit(both, np.concatenate([y, labels]))
    i = first.fitted_.plan.parts.index(compared(first))
    for mine, theirs in zip(
        (first + other).counts_.tallies[i].arrays().values(), whole.counts_.tallies[i].arrays().values(), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    part = compared(first)
    moved = replace(
        part,
        prototypes=Prototypes(part.prototypes.values, part.prototypes.n_prototypes, 2 * part.prototypes.length_scale),
    )
    with pytest.raises(MergeError) as error:
        part.union(moved)
    assert error.value.column == ("east", "north")
    assert error.value.remedy


def test_it_is_saved_and_scores_the_same(tmp_path):
    X, y = rings(200)
    model = cd.BayesClassifier().fit(X, y)
    model.save(tmp_path / "rings.candide")
    again = cd.load(tmp_path / "rings.candide")
    assert compared(again) == compared(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_file_and_rows_in_memory_give_the_same_prototypes(tmp_path):
    X, y = rings(200)
    names = ",".join([*X, "ring"])
    lines = [",".join([*map(repr, map(float, row)), label]) for *row, label in zip(*X.values(), y, strict=True)]
    path = tmp_path / "rings.csv"
    path.write_text("\n".join([names, *lines]))
    model = cd.fit(path, "ring")
    np.testing.assert_allclose(
        compared(model).prototypes.prototypes, compared(cd.BayesClassifier().fit(X, y)).prototypes.prototypes
    )
    np.testing.assert_allclose(model.predict_proba(X), cd.BayesClassifier().fit(X, y).predict_proba(X), rtol=1e-8)


def test_a_decision_names_the_nearest_prototype_and_adds_up():
    X, y = rings(200)
    model = cd.BayesClassifier().fit(X, y)
    rows, one = model.prototypes(), {name: column[:1] for name, column in X.items()}
    [decision] = model.explain(one)
    said = next(part for part in decision.contributions if part.nearest_prototype)
    assert said.display_value == f"nearest prototype {said.nearest_prototype}"
    away = [sum((rows[name][i] - one[name][0]) ** 2 for name in X) for i in range(len(rows["log_odds"]))]
    assert away[said.nearest_prototype - 1] < np.quantile(away, 0.1)
    p = model.predict_proba(one)[0]
    assert decision.log_odds == pytest.approx(abs(np.log(p[0] / p[1])))
    assert all(part.nearest_prototype is None for part in decision.by_column().contributions)


def test_prototypes_are_in_the_units_of_their_columns():
    X, y = rings(300)
    rows = cd.BayesClassifier().fit({"east": 1000 * X["east"], "north": X["north"]}, y).prototypes()
    assert max(map(abs, rows["east"])) > 1000
    assert max(map(abs, rows["north"])) < 4
    assert set(rows["predicted_class"]) == {"in", "out"}
    assert cd.BayesClassifier().fit({"east": X["east"]}, y).prototypes() == {}
