"""Scores of held-out rows, for rare classes too, and calibration on them."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.data.equal_rows import find_distinct_rows
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.engines.base import LabelledSource, open_source
from candide.engines.counting import prepare_source
from candide.engines.draw_sample import draw_class_sample
from candide.errors import InputError
from candide.fit_source import fit_model
from candide.metrics.scores import Scores
from candide.model.model import Model
from candide.model.plan import make_plan
from candide.model.settings import Settings, default_settings
from candide.report.summary.fits import HeldOutSummary
from candide.validation.held_out import _match_proportions, _proportion_weights, can_subtract_folds, score_held_out


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


def test_a_row_does_not_contribute_to_its_own_score():
    """With labels that are drawn by lot nothing can be right: not by pairs, bins or weights that have seen the row."""
    rng = np.random.default_rng(3)
    columns, _ = made(200)
    found = score_held_out(look_at(columns, rng.integers(0, 2, 200)))
    assert found.scores.auc < 0.6
    assert found.scores.log_loss > 0.67


def test_naive_bayes_and_the_class_prior_are_scored_too():
    found = score_held_out(look_at(*made()))
    assert found.scores.accuracy > 0.9 > 0.7 > found.naive_scores.accuracy
    assert found.scores.log_loss < found.class_prior_scores.log_loss == pytest.approx(np.log(2), abs=0.01)
    assert found.scores.n == 400
    assert (np.bincount(found.sample.fold) > 130).all()


def test_a_class_in_one_fold_only_has_the_probability_of_one_row():
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


def test_too_few_rows_are_an_error():
    with pytest.raises(InputError) as error:
        score_held_out(look_at({"a": [1.0, 2.0, 3.0, 4.0]}, ["x", "x", "x", "y"]))
    assert error.value.value == 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_transforms_the_scores(n_classes):
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
def test_files_and_sources_give_the_calibrated_probabilities(tmp_path, n_classes, how, detail):
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


def test_reweighting_removes_calibration():
    columns, y = made(300, columns=2)
    model = cd.BayesClassifier(calibration="isotonic").fit(columns, y)
    assert model.fitted_.term_weights.calibrator is not None
    assert (model + cd.BayesClassifier(like=model).fit(columns, y)).fitted_.term_weights.calibrator is None
    assert model.reweight(columns, y).fitted_.term_weights.calibrator is None


def test_calibration_corrects_overconfidence():
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
def test_an_impossible_calibration_is_an_error(given, value):
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


def _rows(n, seed, share=0.01, levels=300):
    """Columns of many levels, which a rare class needs many rows to learn."""
    rng, known = np.random.default_rng(seed), np.random.default_rng(99)
    y = (rng.random(n) < share).astype(int)
    columns = {}
    for j in range(5):
        p = np.exp(known.normal(size=levels))
        values = np.where(y == 1, rng.choice(levels, n, p=p / p.sum()), rng.integers(0, levels, n))
        columns[f"c{j}"] = np.char.add("l", values.astype(str))
    return columns, y


def test_scores_of_a_rare_class_are_those_of_new_rows():
    columns, y = _rows(40_000, 0)
    learned = fit_model({**columns, "y": y}, "y", keep_held_out=True)
    new, truth = _rows(60_000, 1)
    true = Scores.from_log_posterior(learned.fitted.apply(Model.log_posterior, Table.from_data(new)), truth, None)
    found = learned.held_out
    assert found.n_source_rows == 40_000
    assert np.bincount(found.sample.y).tolist()[1] == y.sum()  # all of them
    assert found.scores.auc == pytest.approx(true.auc, abs=0.03)  # .11 below where models are of the sample alone
    assert found.scores.log_loss == pytest.approx(true.log_loss, rel=0.06)
    shares = found.scores.confusion.sum(axis=1) / found.scores.confusion.sum()
    assert shares[1] == pytest.approx(y.mean(), rel=1e-9)
    assert found.naive_scores.n == pytest.approx(len(found.sample))


def test_weights_correct_for_extra_rows_of_rare_classes():
    y, shares = np.array([0] * 90 + [1] * 30), np.array([0.9, 0.1])
    seen = Sample.from_table(Table.from_data({"x": np.arange(120.0)}), y, Labels((0, 1)))
    weight = _proportion_weights(seen, shares)
    np.testing.assert_allclose(np.bincount(y, weight), 120 * shares)
    assert np.bincount(_match_proportions(seen, shares).y).tolist() == [90, 10]


def test_rare_classes_are_drawn_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(5000) < 0.01, "rare", "common")
    with open_source({"x": rng.normal(size=5000), "y": y}) as source:
        seen = draw_class_sample(LabelledSource(source, "y"), prepare_source(source, "y"), 2, rows=400)
    assert seen.labels.values == ("common", "rare")
    n = np.bincount(seen.y)
    assert n[1] == (y == "rare").sum()
    assert 380 < n[0] <= 400


def test_folds_with_copies_are_not_subtracted():
    columns, y = _rows(600, 0, share=0.5, levels=3000)
    for times in (1, 2):
        whole, labels = (
            Table.from_data({name: np.tile(column, times) for name, column in columns.items()}),
            Labels((0, 1)),
        )
        codes = np.tile(y, times)
        census = arrays.count_table(whole, codes, plan=make_plan(whole).with_levels(whole))
        seen = Sample.from_table(whole, codes, labels).take(np.arange(0, 600 * times, times + 2))
        rows = find_distinct_rows(seen.table, seen.y)
        assert can_subtract_folds(seen, rows, census, default_settings("bayes")) == (times == 1)


def test_a_class_of_one_row():
    columns, y = _rows(21_000, 0, share=0.2, levels=20)
    y = y.astype(object)
    y[17] = 2
    found = fit_model({**columns, "y": y}, "y", keep_held_out=True).held_out
    assert np.isfinite(found.scores.log_loss)
    assert (found.sample.y == 2).sum() == 1


@pytest.mark.parametrize(("rows", "of", "text"), [(20_000, 60_000, "a sample of 20,000 of 60,000"), (50, 50, "50")])
def test_the_summary_states_the_sample(rows, of, text):
    each = ({"accuracy": 0.8, "auc": 0.9, "log_loss": 0.5} for _ in range(3))
    shown = " ".join(str(HeldOutSummary(rows, 3, {"column": 2}, *each, total_rows=of)).split())
    assert f"3-fold cross-validation on {text} rows" in shown


def with_natural_repeats(n, seed):
    """Rows of which most have an equal one by chance, as in a census."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    gain = np.where(rng.random(n) < 0.9 - 0.05 * y, 0, np.round(rng.lognormal(8, 1, n), -2))
    hours = np.where(rng.random(n) < 0.5, 40, rng.integers(10, 80, n) + 5 * y)
    school = np.array(list("abcdefgh"))[np.minimum(7, rng.poisson(3 + 0.5 * y))]
    return {"gain": gain, "hours": hours, "school": school, "married": rng.random(n) < 0.4 + 0.15 * y}, y


def test_equal_rows_of_a_large_table_are_not_all_in_one_fold():
    """The held-out log-loss was .764 where new rows have .646, and calibration made that .671."""
    (X, y), (new, truth) = with_natural_repeats(30_000, 0), with_natural_repeats(20_000, 1)
    plain, calibrated = (cd.BayesClassifier(calibration=how).fit(X, y).predict_proba(new) for how in (None, "logistic"))
    at = np.arange(len(truth)), truth
    true = -np.log(plain[at]).mean()
    assert fit_model({**X, "y": y}, "y", keep_held_out=True).held_out.scores.log_loss == pytest.approx(true, rel=0.02)
    assert -np.log(calibrated[at]).mean() == pytest.approx(true, rel=0.005)
