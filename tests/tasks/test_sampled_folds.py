"""Held-out figures of a sample: those of a model of all rows, for rare classes too."""

import numpy as np
import pytest

import candide as cd
from candide.data.labels import Labels
from candide.data.repeated_rows import find_distinct_rows
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.engines.base import LabelledSource, open_source
from candide.engines.draw_sample import draw_class_sample
from candide.engines.planning import prepare_source
from candide.metrics.scores import Scores
from candide.model.model import Model
from candide.model.plan import make_plan
from candide.model.settings import default_settings
from candide.operations.fit import fit_model
from candide.report.summary.scores import HeldOutSummary
from candide.validation.sampled_folds import _match_proportions, _proportion_weights, can_subtract_folds


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


def test_the_figure_of_a_rare_class_is_that_of_new_rows():
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


def test_weights_make_up_for_the_rows_of_rare_classes():
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


def test_copies_do_not_stay_in_the_counts():
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
def test_the_figure_says_what_it_is_of(rows, of, text):
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
