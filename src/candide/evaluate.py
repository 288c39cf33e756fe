"""Evaluate: how well a model would do on rows it has not seen.

>>> from candide.demo import rows
>>> plants, herb = rows(300, seed=0)
>>> print(cross_validate({**plants, "herb": herb}, "herb", folds=5))
5 folds of 300 rows   mean      sd
accuracy            0.9367  0.0246
balanced_accuracy   0.9258  0.0305
log_loss            0.1393  0.0364
brier               0.0885  0.0259
auc                 0.9909  0.0058
calibration_error   0.0530  0.0142
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from candide import tables
from candide.engines.sources import Reading
from candide.fitted import Settings
from candide.scores import METRICS, Scores, spread
from candide.tables import Validation

if TYPE_CHECKING:
    from candide.estimators.curves import LearningCurves, learning_curves

__all__ = ["METRICS", "LearningCurves", "Scores", "Validation", "cross_validate", "learning_curves", "spread"]


def cross_validate(
    source: Any,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    class_prior: Any = "empirical",
    estimate: Any = "predictive",
    priors: Any = None,
    select: int | str | None = None,
    **reading: Any,
) -> Validation:
    """Cross-validate without refitting: count the folds apart in one pass over a source, score them in another.

    The training counts of a fold are the sum of the others. ``folds`` and ``seed`` say how rows are divided; the rest
    is as in :func:`candide.fit`.

    >>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
    >>> cross_validate(rows, "kind", estimate="mle").total.accuracy
    1.0
    """
    settings = Settings(class_prior, estimate, priors, select)
    found = tables.cross_validate(
        source,
        target,
        folds=folds,
        seed=seed,
        events=events,
        drop=drop,
        weight=weight,
        settings=settings,
        reading=Reading(**reading),
    )
    for note in found.learned.notes:
        warnings.warn(note, stacklevel=2)
    return found


def __getattr__(name: str) -> Any:
    """What compares classifiers needs scikit-learn, and is imported when it is first asked for."""
    if name not in ("LearningCurves", "learning_curves"):
        raise AttributeError(f"module 'candide.evaluate' has no attribute {name!r}")
    from candide.estimators import curves

    return getattr(curves, name)
