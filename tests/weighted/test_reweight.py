"""Weights learned again from any source, after update, forget and merge."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.estimators.test_weighted import ASKED, WHOLE, at
from tests.store.test_update import same

import candide as cd
from candide import store
from candide.errors import InputError, MergeError, NotCountedError
from candide.fit_source import fit_model

FIRST, REST = slice(0, 500), slice(500, 1200)


def frame(rows):
    X, y = at(rows, *WHOLE)
    return pd.DataFrame(X | {"t": y})


@pytest.fixture(scope="module")
def first():
    return replace(cd.BayesClassifier().fit(*at(FIRST, *WHOLE)).fitted_, target="t")


@pytest.fixture
def path(first, tmp_path):
    store.save(first, tmp_path / "first.candide")
    return tmp_path / "first.candide"


def answers(model):
    return cd.BayesClassifier.from_fitted(model).predict_proba(ASKED)


def written(rows, folder, kind):
    path = folder / f"rows.{kind}"
    if kind == "csv":
        frame(rows).to_csv(path, index=False)
    else:
        frame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_reweighting_a_source_equals_the_estimator(first, kind, tmp_path):
    want = cd.BayesClassifier.from_fitted(first).reweight(*at(slice(0, 400), *WHOLE)).predict_proba(ASKED)
    data = frame(slice(0, 400)) if kind == "frame" else written(slice(0, 400), tmp_path, kind)
    change = cd.reweight_model(first, data)
    assert (change.n_rows, change.fitted.term_weights.n_learned_rows, change.note_texts) == (400, 400, [])
    np.testing.assert_allclose(answers(change.fitted), want, atol=1e-9)


def test_a_file_is_reweighted_in_place_or_written_elsewhere(path, tmp_path):
    before = path.read_bytes()
    change = cd.reweight_model(path, frame(slice(0, 300)), tmp_path / "other.candide")
    assert path.read_bytes() == before
    assert store.load(tmp_path / "other.candide").term_weights.n_learned_rows == change.n_rows == 300
    cd.reweight_model(path, frame(slice(0, 300)))
    np.testing.assert_array_equal(answers(store.load(path)), answers(change.fitted))


def test_a_file_that_is_not_a_model_is_not_overwritten(path, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for out in (path, tmp_path / "notes.txt"):
        with pytest.raises(InputError) as error:
            cd.reweight_model(path, frame(FIRST), out)
        assert "force" in error.value.remedy
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_rows_that_were_never_counted_leave_the_file_as_it_is(path):
    before = path.read_bytes()
    with pytest.raises(NotCountedError) as error:
        cd.reweight_model(path, frame(REST))
    assert "--rows-are-new" in error.value.remedy
    assert path.read_bytes() == before
    assert cd.reweight_model(path, frame(REST), rows_are_new=True).fitted.term_weights.n_learned_rows == 700


def test_a_sample_of_the_rows_is_enough(first):
    found = cd.reweight_model(first, frame(FIRST), sample_rows=100, seed=3)
    assert found.fitted.term_weights.training_summary(500) == "weights learned on 100 of 500 rows"


def test_a_model_without_weights_or_without_counts_is_refused(first, tmp_path):
    plain = cd.NaiveBayes().fit(*at(FIRST, *WHOLE))
    with pytest.raises(InputError) as error:
        cd.reweight_model(plain, frame(FIRST), target="t")
    assert "BayesClassifier" in error.value.remedy
    store.save(first, tmp_path / "score.candide", detail="score")
    with pytest.raises(InputError) as error:
        cd.reweight_model(tmp_path / "score.candide", frame(FIRST))
    assert "tally" in error.value.remedy


def test_update_reweights_when_rows_have_doubled(first):
    change = cd.update_model(first, frame(REST))
    assert (
        change.fitted.term_weights.n_learned_rows,
        change.fitted.term_weights.n_counted_rows,
        change.note_texts,
    ) == (700, 1200, [])
    want = cd.BayesClassifier(like=first).fit(*WHOLE)
    same(change.fitted.counts, want.counts_, moments=1e-9)
    np.testing.assert_allclose(answers(change.fitted), want.reweight(*at(REST, *WHOLE)).predict_proba(ASKED), atol=1e-6)


def test_update_by_few_rows_notes_stale_weights(first):
    model = first
    for a in range(500, 1200, 100):
        change = cd.update_model(model, frame(slice(a, a + 100)))
        model = change.fitted
        assert [one.code for one in change.notes] == ([] if a < 900 else ["weights"])
    assert model.term_weights.weight is first.term_weights.weight
    assert cd.reweight_model(model, frame(slice(0, 1200))).note_texts == []


def test_forget_notes_stale_weights_and_a_window_reweights(first):
    less = cd.forget_rows(first, frame(slice(0, 100)))
    assert [one.code for one in less.notes] == ["weights", "not-proved"]
    same(less.fitted.counts, cd.BayesClassifier(like=first).fit(*at(slice(100, 500), *WHOLE)).counts_, moments=1e-9)
    slid = cd.slide_window(first, frame(REST), frame(FIRST))
    assert (slid.fitted.term_weights.n_learned_rows, slid.fitted.term_weights.n_removed_rows, slid.note_texts) == (
        700,
        0,
        [],
    )
    moved = cd.slide_window(first, frame(slice(500, 600)), frame(slice(0, 100)))
    assert moved.fitted.term_weights.n_removed_rows == 100
    assert [one.code for one in moved.notes] == ["weights"]


def test_merge_adds_models_with_equal_encodings_only(first, path, tmp_path):
    rest = cd.BayesClassifier(like=path).fit(*at(REST, *WHOLE))
    rest.save(tmp_path / "rest.candide")
    whole = cd.merge_models([path, tmp_path / "rest.candide"], tmp_path / "all.candide")
    assert store.load(tmp_path / "all.candide").term_weights.n_learned_rows == whole.counts.n_rows == 1200
    cd.BayesClassifier().fit(*at(REST, *WHOLE)).save(tmp_path / "rest.candide")
    with pytest.raises(MergeError) as error:
        cd.merge_models([path, tmp_path / "rest.candide"])
    assert f"--like {path} -o {tmp_path / 'rest.candide'}" in error.value.remedy
    assert "rest.candide" in error.value.problem


def test_a_new_class_comes_with_an_update(first):
    late = frame(REST).assign(t=lambda rows: np.where(rows["t"] == "no", "late", rows["t"]))
    change = cd.update_model(first, late)
    assert [one.label for one in change.new_classes] == ["late"]
    assert change.fitted.term_weights.n_counted_rows == 1200
    assert answers(change.fitted).shape == (60, 3)
    back = cd.forget_rows(change.fitted, late).fitted
    same(back.counts, first.counts, moments=1e-9)
    np.testing.assert_allclose(
        answers(cd.reweight_model(back, frame(FIRST)).fitted),
        answers(cd.reweight_model(first, frame(FIRST)).fitted),
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_a_source_is_counted_like_a_model_and_adds_to_it(first, kind, tmp_path):
    want = cd.BayesClassifier(like=first).fit(*at(REST, *WHOLE))
    data = frame(REST) if kind == "frame" else written(REST, tmp_path, kind)
    got = cd.fit(data, "t", like=first)
    assert isinstance(got, cd.BayesClassifier)
    same(got.counts_, want.counts_, moments=1e-9)
    np.testing.assert_allclose(got.predict_proba(ASKED), want.predict_proba(ASKED), atol=1e-6)
    whole = cd.BayesClassifier.from_fitted(first) + got
    np.testing.assert_allclose(
        whole.predict_proba(ASKED), (cd.BayesClassifier.from_fitted(first) + want).predict_proba(ASKED), atol=1e-6
    )


def test_like_a_plan_or_a_file_and_of_one_class(first, path):
    only = frame(REST).query("t == 'no'")
    for like in (first.counts.plan, path):
        learned = fit_model(only, "t", like=like, model="bayes")
        assert (learned.fitted.labels.values, learned.fitted.term_weights.n_learned_rows) == (("no",), 0)
        assert (first + learned.fitted).counts.n_rows == 500 + len(only)


def test_like_a_naive_model(tmp_path):
    plain = cd.fit(frame(FIRST), "t", model="naive")
    more = cd.fit(frame(REST), "t", like=plain, model="bayes")
    assert type(more) is cd.NaiveBayes
    same((plain + more).counts_, cd.fit(frame(slice(0, 1200)), "t", model="naive").counts_, moments=1e-9)


def test_like_excludes_events(first):
    for how in ({"events": {"x": "gaussian"}}, {"drop": ["x"]}):
        with pytest.raises(InputError) as error:
            fit_model(frame(REST), "t", like=first, **how)
        assert error.value.remedy
    with pytest.raises(InputError) as error:
        fit_model(frame(REST).drop(columns="job"), "t", like=first)
    assert error.value.value == ["job"]


def test_calibrated_models_add(first):
    part = fit_model(frame(REST), "t", like=first, calibration="isotonic").fitted
    assert part.term_weights.calibrator is not None
    both = first + part
    assert both.term_weights.calibrator is None
    assert cd.reweight_model(part, frame(REST)).fitted.term_weights.calibrator is None
