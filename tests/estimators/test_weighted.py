"""Weighted models: counts add and subtract, and weights are learned again from rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss
from tests.estimators.test_bayes_classifier import mixed
from tests.store.test_update import same

import candide as cd
from candide.data.table import Table
from candide.errors import InputError, MergeError, NotCountedError
from candide.weighted import learning


def at(rows, X, y):
    return {name: column[rows] for name, column in X.items()}, y[rows]


def numbers(n, seed=0):
    """A table in which all kinds of voices speak: columns, pairs, triples, numbers together and beside levels."""
    X, y = mixed(n, seed)
    rng = np.random.default_rng(seed + 1000)
    return X | {"z": rng.normal(size=n) + (y == "yes"), "u": rng.normal(size=n).round(1)}, y


WHOLE = numbers(1200)
ASKED = numbers(60, seed=9)[0]


@pytest.fixture(scope="module")
def first():
    return cd.BayesClassifier().fit(*at(slice(0, 500), *WHOLE))


def test_all_kinds_of_terms_are_fitted(first):
    kinds = {part.event.name for part in first.fitted_.plan.parts}
    assert kinds == {"binned", "categorical", "discriminant", "interaction", "prototype"}


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(1, 1199), min_size=1, max_size=3, unique=True), st.randoms(use_true_random=False))
def test_parts_with_equal_encodings_add_up_to_the_whole(first, cuts, order):
    parts = [
        cd.BayesClassifier(like=first).partial_fit(*at(slice(a, b), *WHOLE))
        for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 1200], strict=True)
    ]
    order.shuffle(parts)
    together = cd.BayesClassifier(like=first).fit(*WHOLE)
    added = sum(parts)
    same(added.counts_, together.counts_, moments=1e-9)
    want = together.reweight(*WHOLE).predict_proba(ASKED)
    np.testing.assert_allclose(added.reweight(*WHOLE).predict_proba(ASKED), want, atol=1e-6)


def test_adding_and_subtracting_cancel(first):
    other = cd.BayesClassifier(like=first).fit(*at(slice(500, 1200), *WHOLE))
    again = (first + other) - other
    same(again.counts_, first.counts_, moments=1e-9)
    mine = at(slice(0, 500), *WHOLE)
    want = clone(first).fit(*mine).reweight(*mine).predict_proba(ASKED)
    np.testing.assert_allclose(again.reweight(*mine).predict_proba(ASKED), want, atol=1e-6)


def test_reweighting_by_the_same_rows_changes_little(first):
    mine = at(slice(0, 500), *WHOLE)
    again = clone(first).fit(*mine)
    fitted = again.predict_proba(ASKED)
    np.testing.assert_allclose(
        again.reweight(*mine).predict_proba(ASKED), fitted, atol=0.02
    )  # strengths within a tenth


def test_a_sum_has_mean_weights_and_the_sum_of_rows(first):
    other = cd.BayesClassifier(like=first).fit(*at(slice(500, 1200), *WHOLE))
    sums = first + other, other + first
    a, b, ab, ba = (np.concatenate(one.fitted_.term_weights.weight) for one in (first, other, *sums))
    np.testing.assert_allclose(ab, (500 * a + 700 * b) / 1200, rtol=1e-12)
    np.testing.assert_allclose(ab, ba, rtol=1e-12)
    assert "1,200 of 1,200 rows" in repr(sums[0].fitted_)


def test_classes_of_one_part_keep_their_intercept(first):
    X, y = at(slice(500, 1200), *WHOLE)
    other = cd.BayesClassifier(like=first).fit(X, np.where(y == "no", "never", y))
    both = first + other
    assert both.classes_.tolist() == ["never", "no", "yes"]
    (mine,), (theirs,) = ((one.fitted_.term_weights.bias[:1]) for one in (first, other))
    np.testing.assert_allclose(both.fitted_.term_weights.bias[:2], [theirs * 700 / 1200, mine * 500 / 1200], rtol=1e-12)
    labels = np.append(WHOLE[1][:500], np.where(y == "no", "never", y))
    assert np.isfinite(both.reweight(WHOLE[0], labels).predict_proba(ASKED)).all()


def test_labels_written_as_text_and_as_numbers_are_the_same_classes():
    X, y = numbers(300)
    code = (y == "yes").astype(int)
    first = cd.BayesClassifier().fit(X, code)
    second = cd.BayesClassifier(like=first).fit(X, code.astype(str))
    both = first + second
    np.testing.assert_allclose(both.fitted_.term_weights.bias, first.fitted_.term_weights.bias, atol=1e-4)


def test_other_encodings_do_not_add(first):
    with pytest.raises(MergeError) as error:
        first + cd.BayesClassifier().fit(*at(slice(500, 1200), *WHOLE))
    assert "like=" in error.value.remedy
    with pytest.raises(MergeError) as error:
        first + cd.NaiveBayes().fit(*WHOLE)
    assert "like=" in error.value.remedy


def test_like_may_be_a_plan_or_a_file_and_survives_a_clone(first, tmp_path):
    first.save(tmp_path / "m.candide")
    rest = at(slice(500, 1200), *WHOLE)
    want = cd.BayesClassifier(like=first).fit(*rest)
    for like in (first.counts_.plan, tmp_path / "m.candide", first.fitted_):
        got = clone(cd.BayesClassifier(like=like)).fit(*rest)
        same(got.counts_, want.counts_)
    copy = clone(want)
    assert copy.like is first
    assert not hasattr(copy, "fitted_")
    want.save(tmp_path / "w.candide")
    loaded = cd.load(tmp_path / "w.candide")
    assert loaded.like is None
    np.testing.assert_array_equal((first + loaded).predict_proba(ASKED), (first + want).predict_proba(ASKED))


def test_like_excludes_events_and_needs_its_columns(first):
    with pytest.raises(InputError) as error:
        cd.BayesClassifier(events={"x": "gaussian"}, like=first).fit(*WHOLE)
    assert error.value.remedy
    with pytest.raises(InputError) as error:
        cd.BayesClassifier(like=cd.NaiveBayes().fit(*WHOLE)).fit(*WHOLE)
    assert "NaiveBayes" in error.value.remedy
    X, y = at(slice(0, 50), *WHOLE)
    with pytest.raises(InputError) as error:
        cd.BayesClassifier(like=first).fit({n: c for n, c in X.items() if n != "job"}, y)
    assert error.value.column == "job"


def test_forgotten_rows_make_weights_stale(first):
    model, gone = clone(first).fit(*at(slice(0, 500), *WHOLE)), at(slice(0, 100), *WHOLE)
    left = at(slice(100, 500), *WHOLE)
    model.forget(*gone)
    same(model.counts_, cd.BayesClassifier(like=first).fit(*left).counts_, moments=1e-9)
    assert model.fitted_.term_weights.n_removed_rows == 100
    note = "weights learned on 500 rows, before 100 rows were forgotten; the counts now hold 400 rows"
    assert model.fitted_.term_weights.training_summary(400) == note
    assert "100 rows were forgotten" in repr(model.fitted_)
    want = cd.BayesClassifier(like=first).fit(*left).reweight(*left).predict_proba(ASKED)
    model.reweight(*left)
    assert model.fitted_.term_weights.n_removed_rows == 0
    np.testing.assert_allclose(model.predict_proba(ASKED), want, atol=1e-6)


def test_uncounted_rows_are_an_error_unless_declared_new(first):
    rest = at(slice(500, 1200), *WHOLE)
    model = clone(first).fit(*at(slice(0, 500), *WHOLE))
    before = model.predict_proba(ASKED)
    with pytest.raises(NotCountedError) as error:
        model.reweight(*rest)
    assert "new=True" in error.value.remedy
    np.testing.assert_array_equal(model.predict_proba(ASKED), before)
    model.reweight(*rest, rows_are_new=True)
    assert model.fitted_.term_weights.training_summary(500) == "weights learned on 700 rows that were not counted"
    truth = numbers(60, seed=9)[1]
    assert log_loss(truth, model.predict_proba(ASKED)) < 1.05 * log_loss(truth, before)
    with pytest.raises(NotCountedError) as error:
        model.reweight(rest[0], np.full(700, "maybe"))
    assert error.value.value == "maybe"


def test_new_rows_are_scored_without_leaving_any_out(first):
    fitted = first.fitted_
    blocks = fitted.plan.blocks(Table.from_data(at(slice(500, 600), *WHOLE)[0]))
    rows = learning.TrainingRows(blocks, np.zeros(100, np.intp))
    terms = learning.row_contributions(fitted.counts, fitted.settings, rows, is_counted=False)
    joint = sum(part @ weight for part, weight in zip(terms, fitted.term_weights.weight, strict=True))
    joint, want = joint + fitted.model.log_prior, fitted.model.joint_log_likelihood(blocks)
    np.testing.assert_allclose(joint - joint[:, :1], want - want[:, :1], atol=1e-9)


def test_row_weights_are_left_out():
    X, y = numbers(300)
    w = np.random.default_rng(0).uniform(0.5, 2, 300)
    model = cd.BayesClassifier().fit(X, y, sample_weight=w)
    assert model.reweight(X, y, sample_weight=w).fitted_.term_weights.n_learned_rows == 300
    with pytest.raises(NotCountedError):
        model.reweight(X, y, sample_weight=3 * w)


def test_rows_of_weight_0_have_no_effect():
    X, y = numbers(400)
    w = np.repeat([0.0, 1.0], 200)
    some = cd.BayesClassifier(sample_rows=100).fit(X, y, sample_weight=w)
    assert some.fitted_.term_weights.n_learned_rows == 100
    assert some.reweight(X, y, sample_weight=w).fitted_.term_weights.n_learned_rows == 100


def test_partial_fit_reweights_when_rows_have_doubled():
    parts = [at(slice(a, a + 300), *WHOLE) for a in range(0, 1200, 300)]
    model = cd.BayesClassifier().partial_fit(*parts[0])
    counted = []
    for part in parts[1:]:
        model.partial_fit(*part)
        counted.append(model.fitted_.term_weights.n_counted_rows)
    assert counted == [600, 600, 1200]
    want = cd.BayesClassifier(like=cd.BayesClassifier().fit(*parts[0])).fit(*WHOLE).reweight(*parts[3])
    np.testing.assert_allclose(model.predict_proba(ASKED), want.predict_proba(ASKED), atol=1e-6)


def test_few_rows_do_not_reweight():
    model = cd.BayesClassifier().partial_fit(*at(slice(0, 300), *WHOLE))
    taught = model.fitted_.term_weights.weight
    for a in range(300, 1200, 100):
        model.partial_fit(*at(slice(a, a + 100), *WHOLE))
    assert model.fitted_.term_weights.weight is taught
    assert model.fitted_.term_weights.is_stale(1200)


def test_a_class_and_a_level_may_come_later():
    X, y = numbers(600)
    job, late = X["job"].copy(), y.astype(object)
    job[300:][job[300:] == "smith"], late[300:][late[300:] == "no"] = "baker", "late"
    X = X | {"job": job}
    model = cd.BayesClassifier().partial_fit(*at(slice(0, 300), X, late)).partial_fit(*at(slice(300, 600), X, late))
    assert model.classes_.tolist() == ["late", "no", "yes"]
    assert model.fitted_.term_weights.n_counted_rows == 600
    assert np.isfinite(model.predict_proba(ASKED)).all()
    model.forget(*at(slice(300, 600), X, late))
    assert model.classes_.tolist() == ["no", "yes"]


def test_rows_of_one_class_have_no_weights_and_add(first):
    X, y = WHOLE
    only = cd.BayesClassifier(like=first).partial_fit({n: c[y == "no"] for n, c in X.items()}, y[y == "no"])
    assert only.fitted_.term_weights.n_learned_rows == 0
    both = first + only
    np.testing.assert_array_equal(
        np.concatenate(both.fitted_.term_weights.weight), np.concatenate(first.fitted_.term_weights.weight)
    )
    assert np.isfinite(
        cd.BayesClassifier().partial_fit(X, np.full(1200, "no")).partial_fit(X, y).predict_proba(X)
    ).all()


def taught(model):
    """The same counts with weights of other rows."""
    return (model + model).reweight(*at(slice(500, 1200), *WHOLE), rows_are_new=True)


@pytest.mark.parametrize(
    "change", [lambda m: m, lambda m: m + m, lambda m: m.scale(0.5), lambda m: (m + m) - m, taught]
)
def test_a_file_keeps_how_weights_were_learned(first, change, tmp_path):
    model = change(first)
    model.save(tmp_path / "m.candide")
    again = cd.load(tmp_path / "m.candide")
    np.testing.assert_array_equal(again.predict_proba(ASKED), model.predict_proba(ASKED))
    assert repr(again.fitted_) == repr(model.fitted_)
    assert again.fitted_.term_weights.n_counted_rows == model.fitted_.term_weights.n_counted_rows
