"""Curves and calibration, on rows few enough to check by hand."""

import numpy as np
import pytest

from candide.metrics import curves
from candide.metrics.auc import Ranks
from candide.metrics.scores import Scores

BINS = Ranks.from_log_odds(np.array([[0.3], [2.0], [-1.0], [0.5]]), np.array([1, 1, 0, 0])).curve(0)
LOG_POSTERIOR, Y = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])


def test_points_go_from_the_highest_threshold_to_the_lowest():
    curve = curves.class_curves(BINS, "yes")["roc"]
    assert curve.x.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert curve.y.tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]
    np.testing.assert_allclose(curve.threshold, [np.inf, 0.88, 0.62, 0.57, 0.27], atol=5e-3)


def test_a_thinned_curve_keeps_its_ends():
    ramp = np.linspace(0, 1, 1001)
    thin = curves.Curve("gain", "yes", ("fraction of rows", "fraction of the class"), ramp, ramp, 1 - ramp).thin(11)
    assert (len(thin.x), thin.x.min(), thin.x.max()) == (11, 0.0, 1.0)


def test_the_coverage_curve_has_the_most_confident_rows_first():
    curve = Scores.from_log_posterior(LOG_POSTERIOR, Y).coverage_curve()
    assert curve.x.tolist() == [0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(curve.y, [1.0, 0.5, 2 / 3, 0.75])
    np.testing.assert_allclose(curve.threshold, [0.9, 0.8, 0.7, 0.6])


def test_metrics_of_a_threshold():
    threshold = curves.make_threshold("yes", 0.5, 8, 2, 10, 90)
    assert (threshold.flagged, threshold.precision, threshold.recall, threshold.f1) == (0.1, 0.8, 0.8, 0.8)
    assert threshold.false_positive_rate == pytest.approx(2 / 90)


def test_calibration_is_by_bins_of_predicted_probability():
    p, truth = np.array([0.1, 0.15, 0.8, 0.9]), np.array([False, True, True, True])
    binned = curves.Calibration.from_probabilities(p, truth, bins=2)
    np.testing.assert_allclose(binned.mean_predicted, [0.125, 0.85])
    assert (binned.observed_frequency.tolist(), binned.n.tolist()) == ([0.5, 1.0], [2, 2])


def test_the_most_probable_of_several_classes_is_assessed():
    p, truth = curves.predicted_and_observed(np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), np.array([1, 2]))
    assert (p.tolist(), truth.tolist()) == ([0.5, 0.6], [True, False])


def test_log_odds_of_a_class_are_against_all_others():
    np.testing.assert_allclose(curves.log_odds_of_class(np.log([[0.2, 0.6, 0.2]]), 1), [np.log(1.5)])


def test_rows_without_a_class_are_not_in_the_confusion_matrix():
    assert curves.confusion_matrix(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1]), 2).tolist() == [[1, 1], [0, 1]]
