"""One rule each for labels, missing labels, absent columns and what is told of them, through every door of a source."""

import numpy as np
import pytest

import candide as cd
from candide import store
from candide.data.notes import DataWarning
from candide.errors import InputError, InputTypeError, MergeError, ModelFileError, NotCountedError, UnknownNameError
from candide.fit_source import fit_model
from candide.model.fitted import FittedModel

ROWS = {"leaf": [1.0, 2.0, 3.0, 9.0, 8.0, 7.0], "soil": list("abcabc"), "herb": ["sage"] * 3 + ["thyme"] * 3}


@pytest.fixture
def fitted():
    return fit_model(ROWS, "herb", model="naive").fitted


@pytest.fixture
def path(fitted, tmp_path):
    store.save(fitted, tmp_path / "herbs.candide")
    return tmp_path / "herbs.candide"


def test_labels_that_look_like_a_measurement_are_classes_with_a_note():
    learned = fit_model({"x": [1.0, 2.0, 8.0, 9.0], "y": [0.5, 0.5, 1.5, 1.5]}, "y", model="naive")
    assert learned.fitted.labels.values == (0.5, 1.5)
    [remark] = learned.notes
    assert (remark.code, remark.column) == ("label-measurement", "y")
    assert not fit_model({"x": [1.0, 2.0, 8.0, 9.0], "y": [0.0, 0.0, 1.0, 1.0]}, "y", model="naive").notes
    with pytest.raises(InputError, match="Unknown label type"):
        cd.NaiveBayes().fit({"x": [1.0, 2.0, 8.0, 9.0]}, [0.5, 0.5, 1.5, 1.5])


def test_rows_without_a_label_are_left_out_and_reported(fitted):
    more = {name: [*column, column[0]] for name, column in ROWS.items()} | {"herb": [*ROWS["herb"], None]}
    [remark] = fit_model(more, "herb", model="naive").notes
    assert (remark.code, remark.column) == ("label-missing", "herb")
    with pytest.warns(DataWarning, match="1 row has no value of 'herb' and was left out") as told:
        assert cd.evaluate(fitted, more).n == 6
    assert told[0].message.note.code == "label-missing"
    assert told[0].filename == __file__
    with pytest.raises(InputError, match="Input y contains NaN"):
        cd.NaiveBayes().fit({"leaf": more["leaf"]}, more["herb"])


def test_labels_that_a_model_does_not_know_are_left_out_and_reported(fitted):
    with pytest.warns(DataWarning, match=r"3 rows have a label the model does not know \('rose'\)"):
        assert cd.evaluate(fitted, ROWS | {"herb": ["sage"] * 3 + ["rose"] * 3}).n == 3


def test_labels_are_matched_however_they_are_spelled():
    rows = {"x": [1.0, 2.0, 8.0, 9.0], "y": [0, 0, 1, 1]}
    model = fit_model(rows, "y", model="naive").fitted
    for spelled in (["0", "0", "1", "1"], [0.0, 0.0, 1.0, 1.0], [False, False, True, True]):
        assert cd.evaluate(model, rows | {"y": spelled}).n == 4
        assert cd.update_model(model, rows | {"y": spelled}).fitted.counts.class_weight.tolist() == [4.0, 4.0]


def test_a_missing_column_is_reported_where_it_is_needed(fitted):
    with pytest.warns(DataWarning) as told:
        cd.predict_table(fitted, {"leaf": [1.0]})
    assert (told[0].message.note.code, told[0].message.note.column) == ("column-absent", "soil")
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["fitted", "estimator", "path", "text of a path"])
def test_a_model_is_whatever_holds_one(kind, fitted, path):
    model = {
        "fitted": fitted,
        "estimator": cd.NaiveBayes.from_fitted(fitted),
        "path": path,
        "text of a path": str(path),
    }[kind]
    assert cd.predict_table(model, ROWS)["prediction"].to_pylist() == ROWS["herb"]
    assert cd.evaluate(model, ROWS).accuracy == 1.0
    assert next(cd.explain_rows(model, ROWS)).decision.prediction == "sage"
    assert cd.merge_models([model, model]).counts.n_rows == 12
    assert not cd.diff_models(model, model).columns


def test_what_is_not_a_model_is_refused(tmp_path):
    with pytest.raises(InputTypeError, match="expected a model, got int"):
        cd.predict_table(3, ROWS)
    with pytest.raises(InputError, match="not fitted yet"):
        cd.predict_table(cd.NaiveBayes(), ROWS)
    with pytest.raises(ModelFileError):
        cd.update_model(tmp_path / "nothing.candide", ROWS)


def test_a_file_is_changed_and_any_other_model_is_not(fitted, path):
    assert cd.update_model(path, ROWS).fitted.counts.n_rows == store.load(path).counts.n_rows == 12
    assert cd.forget_rows(path, ROWS).fitted.counts.n_rows == store.load(path).counts.n_rows == 6
    assert cd.update_model(fitted, ROWS).fitted.counts.n_rows == 12
    assert fitted.counts.n_rows == 6
    with pytest.raises(NotCountedError):
        cd.forget_rows(path, ROWS | {"leaf": [1e6] * 6})
    assert store.load(path).counts.n_rows == 6


def test_a_window_slides(path):
    day = {"leaf": [1.5, 8.5], "soil": ["a", "b"], "herb": ["sage", "thyme"]}
    change = cd.slide_window(path, day, ROWS)
    np.testing.assert_array_equal(change.fitted.counts.class_weight, [1.0, 1.0])
    assert change.n_rows == 8
    alone = fit_model(day, "herb", events={"leaf": "gaussian", "soil": "categorical"}, model="naive").fitted.counts
    np.testing.assert_allclose(store.load(path).counts.tallies[0].mean, alone.tallies[0].mean)


def test_new_classes_and_an_empty_model_are_reported(path):
    change = cd.update_model(path, ROWS | {"herb": ["sge"] * 3 + ["thyme"] * 3})
    [new] = change.new_classes
    assert (new.label, new.weight, new.did_you_mean) == ("sge", 3.0, "sage")
    assert change.note_texts == ["new class 'sge' (3 rows); did you mean 'sage'?"]
    cd.forget_rows(path, ROWS | {"herb": ["sge"] * 3 + ["thyme"] * 3})
    assert [remark.code for remark in cd.forget_rows(path, ROWS).notes] == ["no-rows"]


def test_models_that_do_not_add_are_named(fitted, path):
    other = fit_model({"leaf": [1.0, 2.0], "herb": ["sage", "thyme"]}, "herb", model="naive").fitted
    store.save(other, path.with_name("other.candide"))
    with pytest.raises(MergeError, match=r"herbs\.candide and .*other\.candide"):
        cd.merge_models([path, path.with_name("other.candide")])


@pytest.mark.parametrize("task", [cd.evaluate, cd.update_model, cd.forget_rows])
def test_a_target_or_weight_that_is_not_there(task, fitted):
    for how in ({"target": "hreb"}, {"weight": "w"}):
        with pytest.raises(UnknownNameError) as error:
            task(fitted, ROWS, **how)
        assert error.value.value == next(iter(how.values()))
    with pytest.raises(InputError, match="does not name its label column"):
        task(FittedModel(fitted.counts), ROWS)


def test_a_row_past_the_end_is_named(fitted):
    with pytest.raises(InputError) as error:
        list(cd.explain_rows(fitted, ROWS, [(5, 9)]))
    assert error.value.row == 7
