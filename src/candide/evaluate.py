"""Evaluate: how well a model would do on rows it has not seen.

>>> from candide.demo import rows
>>> plants, herb = rows(300, seed=0)
>>> validation = cross_validate({**plants, "herb": herb}, "herb", folds=5)
>>> len(validation.folds), round(validation.total.accuracy, 2)
(5, 0.94)
"""

from typing import TYPE_CHECKING, Any

from candide.scores import METRICS, Scores, spread
from candide.tables import Validation, cross_validate

if TYPE_CHECKING:
    from candide.estimators.curves import LearningCurves, learning_curves

__all__ = ["METRICS", "LearningCurves", "Scores", "Validation", "cross_validate", "learning_curves", "spread"]


def __getattr__(name: str) -> Any:
    """What compares classifiers needs scikit-learn, and is imported when it is first asked for."""
    if name not in ("LearningCurves", "learning_curves"):
        raise AttributeError(f"module 'candide.evaluate' has no attribute {name!r}")
    from candide.estimators import curves

    return getattr(curves, name)
