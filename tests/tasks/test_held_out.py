"""What a fit may be trusted for: rows held out of everything, and calibration by them."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.errors import InputError
from candide.model.model import Model
from candide.model.settings import Settings
from candide.operations.fit import fit_model
from candide.validation.held_out import score_held_out


def look_at(columns, y, weight=None) -> Sample:
    labels = Labels.from_values(y)
    return Sample.from_table(Table.from_data(columns), labels.encode(y), labels, weight)


def made(n=400, seed=0, columns=30):
    """Two columns that tell the class together, and many that tell nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    noise = {f"n{j}": [f"v{v}" for v in rng.integers(0, 5, n)] for j in range(columns)}
    y = np.where(rng.random(n) < 0.9, a ^ b, rng.integers(0, 2, n))
    return {"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], **noise}, np.array(["x", "y"])[y]


def test_nothing_of_a_row_is_in_what_is_said_of_it():
    """With labels that are drawn by lot nothing can be right: not by pairs, bins or weights that have seen the row."""
    rng = np.random.default_rng(3)
    columns, _ = made(200)
    found = score_held_out(look_at(columns, rng.integers(0, 2, 200)))
    assert found.scores.auc < 0.6
    assert found.scores.log_loss > 0.67


def test_it_is_beside_naive_bayes_and_the_class_shares():
    found = score_held_out(look_at(*made()))
    assert found.scores.accuracy > 0.9 > 0.7 > found.naive_scores.accuracy
    assert found.scores.log_loss < found.class_prior_scores.log_loss == pytest.approx(np.log(2), abs=0.01)
    assert found.scores.n == 400
    assert (np.bincount(found.sample.fold) > 130).all()


def test_a_class_that_one_fold_alone_holds_is_a_surprise_and_no_more():
    columns, y = made(90, columns=2)
    y = y.astype(object)
    y[7] = "z"
    found = score_held_out(look_at(columns, y))
    assert np.isfinite(found.log_posterior).all()
    [at] = np.flatnonzero(found.sample.row_number == 7)
    others = (
        90 if found.sample.weight is None else found.sample.weight[found.sample.fold != found.sample.fold[at]].sum()
    )
    assert found.log_posterior[at, 2] == pytest.approx(np.log(1 / (others + 1)), abs=1e-9)
    np.testing.assert_allclose(np.exp(found.log_posterior).sum(axis=1), 1.0)


def test_too_few_rows_are_refused():
    with pytest.raises(InputError) as error:
        score_held_out(look_at({"a": [1.0, 2.0, 3.0, 4.0]}, ["x", "x", "x", "y"]))
    assert error.value.value == 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_calibrated_model_says_what_its_scores_come_to(n_classes):
    """Calibration is in the weights and biases, so that every door has it and explanations still add up."""
    rng = np.random.default_rng(0)
    columns, y = made(600, columns=4)
    y = np.where(rng.random(600) < 0.2, "z", y) if n_classes == 3 else y
    data = {**columns, "y": y}
    plain, bent = (fit_model(data, "y", model="bayes", calibration=how) for how in (None, "logistic"))
    assert plain.held_out is None
    assert bent.fitted.estimator.params["calibration"] == "logistic"
    stated, said = (one.fitted.apply(Model.log_posterior, columns) for one in (plain, bent))
    moved, wanted = said - said[:, :1], stated - stated[:, :1]
    slope, _ = np.polyfit(wanted[:, 1], moved[:, 1], 1)
    assert abs(slope - 1) > 1e-3
    for c in range(1, n_classes):  # one slope for all classes, and a shift for each
        np.testing.assert_allclose(np.diff(moved[:, c]), slope * np.diff(wanted[:, c]), atol=1e-9)


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
@pytest.mark.parametrize("how", ["logistic", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_door_has_the_calibrated_probabilities(tmp_path, n_classes, how, detail):
    rng = np.random.default_rng(0)
    columns, y = made(300, columns=2)
    y = np.where(rng.random(300) < 0.2, "z", y) if n_classes == 3 else y
    model = cd.BayesClassifier(calibration=how).fit(columns, y)
    p = model.predict_proba(columns)
    assert np.abs(p - cd.BayesClassifier().fit(columns, y).predict_proba(columns)).max() > 1e-3
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.predict(columns) == model.classes_[p.argmax(axis=1)]).all()
    np.testing.assert_allclose(np.exp(model.predict_log_proba(columns)), p)
    table = model.predict_table(columns)
    np.testing.assert_allclose(table["p_x"].to_numpy(), p[:, 0])
    model.save(tmp_path / "m.candide", detail=detail)
    again = cd.load(tmp_path / "m.candide")
    np.testing.assert_allclose(again.predict_proba(columns), p, rtol=1e-12)
    assert again.calibration == how


def test_what_is_learned_again_is_not_calibrated():
    columns, y = made(300, columns=2)
    model = cd.BayesClassifier(calibration="isotonic").fit(columns, y)
    assert model.fitted_.term_weights.calibrator is not None
    assert (model + cd.BayesClassifier(like=model).fit(columns, y)).fitted_.term_weights.calibrator is None
    assert model.reweight(columns, y).fitted_.term_weights.calibrator is None


def test_calibration_mends_a_model_that_is_too_sure():
    """Log-odds three times too large: what it says of rows held out is nearer to the truth, fold by fold."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    numbers = {f"x{j}": rng.normal(0, 1, 150) + 0.25 * y for j in range(60)}
    found = score_held_out(look_at(numbers, y))
    sure = 3 * found.log_posterior
    found = replace(found, log_posterior=sure - np.logaddexp.reduce(sure, axis=1, keepdims=True))
    assert found.calibrate("logistic").scores.log_loss < found.scores.log_loss
    assert found.calibrate("isotonic").scores.calibration_error < found.scores.calibration_error


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"model": "naive"}, "logistic"),
        ({"calibration": "platt"}, "platt"),
        ({"settings": Settings(class_prior="uniform")}, "uniform"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused(given, value):
    columns, y = made(60, columns=1)
    how = {"model": "bayes", "calibration": "logistic", **given}
    with pytest.raises(InputError) as error:
        fit_model({**columns, "y": y}, "y", **how)
    assert error.value.value == value


def test_a_fit_like_another_has_held_out_figures():
    columns, y = made(1200)
    model = fit_model({**{name: c[:600] for name, c in columns.items()}, "y": y[:600]}, "y", keep_held_out=True)
    assert "held-out-like" not in [remark.code for remark in model.notes]
    rest = {**{name: c[600:] for name, c in columns.items()}, "y": y[600:]}
    alike = fit_model(rest, "y", like=model.fitted, keep_held_out=True)
    assert alike.held_out is not None
    assert alike.held_out.scores.accuracy > 0.85
    assert "held-out-like" in [remark.code for remark in alike.notes]
    assert (model.fitted + alike.fitted).counts.n_rows == 1200


@pytest.mark.parametrize("like", [True, False])
def test_a_fit_without_held_out_figures_has_a_note(like):
    columns, y = made(400)
    model = fit_model({**columns, "y": y}, "y").fitted
    few = {name: column[:6] for name, column in {**columns, "y": np.array([*"xxxxyy"])}.items()}
    found = fit_model(few, "y", like=model if like else None, keep_held_out=True)
    assert found.held_out is None
    assert "no-held-out" in [remark.code for remark in found.notes]
