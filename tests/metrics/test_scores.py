"""Scores add, metrics are attributes, and the baseline is the class prior."""

import numpy as np
import pytest

from candide.metrics.formulas import METRICS
from candide.metrics.scores import MetricAttributes, Scores, fold_statistics, score_class_prior
from candide.model.policy import DecisionRule

LOG_POSTERIOR, Y = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])


def test_scores_of_parts_add():
    halves = [Scores.from_log_posterior(LOG_POSTERIOR[rows], Y[rows]) for rows in (slice(2), slice(2, 4))]
    whole = Scores.from_log_posterior(LOG_POSTERIOR, Y)
    assert sum(halves[1:], halves[0]).metrics() == pytest.approx(whole.metrics())
    assert (whole.accuracy, round(whole.log_loss, 4)) == (0.75, 0.6456)


def test_every_metric_is_an_attribute_that_type_checkers_know():
    scores = Scores.from_log_posterior(LOG_POSTERIOR, Y)
    assert {name: getattr(scores, name) for name in METRICS} == scores.metrics()
    assert list(MetricAttributes.__annotations__) == list(METRICS)
    with pytest.raises(AttributeError, match="acuracy"):
        scores.acuracy  # noqa: B018


def test_metrics_of_decisions_are_of_the_rows_with_one():
    scores = Scores.from_log_posterior(LOG_POSTERIOR[:2], Y[:2], rule=DecisionRule(abstain_below=0.8))
    assert (scores.coverage, scores.mean_cost, scores.accuracy) == (0.5, 0.0, 1.0)


def test_statistics_are_over_the_folds_in_which_a_metric_is_defined():
    folds = [Scores.from_log_posterior(LOG_POSTERIOR[:2], np.array(y)) for y in ([0, 1], [0, 0])]
    mean, deviation = fold_statistics(folds)["accuracy"]
    assert (mean, deviation) == (0.75, pytest.approx(np.sqrt(0.125)))
    assert fold_statistics(folds)["auc"] == (1.0, 0.0)  # a fold of one class has none


def test_the_baseline_is_the_class_prior():
    baseline = score_class_prior(Scores.from_log_posterior(LOG_POSTERIOR, Y), np.array([0.25, 0.75]))
    assert (baseline.accuracy, round(baseline.log_loss, 4), baseline.auc) == (0.75, 0.5623, 0.5)
