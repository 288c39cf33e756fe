"""Evaluate: how well a model would do on rows it has not seen.

>>> from candide.demo import rows
>>> plants, herb = rows(300, seed=0)
>>> validation = cross_validate({**plants, "herb": herb}, "herb", folds=5)
>>> len(validation.folds), round(validation.total.accuracy, 2)
(5, 0.94)
"""

from candide.scores import METRICS, Scores, spread
from candide.tables import Validation, cross_validate

__all__ = ["METRICS", "Scores", "Validation", "cross_validate", "spread"]
