"""Evaluate: how well a model would do on rows it has not seen.

>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(300, seed=0)
>>> print(cross_validate({**plants, "herb": herb}, "herb", folds=5, model="naive"))
5 folds of 300 rows        value  fold sd
accuracy                  0.9400   0.0401
balanced_accuracy         0.9318   0.0428
precision (macro)         0.9338   0.0379
f1 (macro)                0.9325   0.0452
matthews                  0.9091   0.0566
log_loss                  0.1471   0.0634
brier                     0.0919   0.0506
auc (macro)               0.9900   0.0078
weighted_auc              0.9911   0.0070
average_precision (macro) 0.9775   0.0165
calibration_error         0.0286   0.0185
"""

from typing import TYPE_CHECKING, Any

from candide.evaluate.cross import compare, cross_validate, evaluate
from candide.metrics.curves import Curve, Threshold
from candide.metrics.scores import METRICS, ClassScore, Scores, fold_statistics
from candide.validation.comparison import MetricDifference, SettingsComparison
from candide.validation.cross_validation import Validation

if TYPE_CHECKING:
    from candide.estimators.curves import LearningCurves, learning_curves

__all__ = [
    "METRICS",
    "ClassScore",
    "Curve",
    "LearningCurves",
    "MetricDifference",
    "Scores",
    "SettingsComparison",
    "Threshold",
    "Validation",
    "compare",
    "cross_validate",
    "evaluate",
    "fold_statistics",
    "learning_curves",
]


def __getattr__(name: str) -> Any:
    """What compares classifiers needs scikit-learn, and is imported when it is first asked for."""
    if name not in ("LearningCurves", "learning_curves"):
        raise AttributeError(f"module 'candide.evaluate' has no attribute {name!r}")
    from candide.estimators import curves

    return getattr(curves, name)
