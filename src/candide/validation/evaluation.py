"""Evaluating: a model scored on a source whose labels are known.

>>> from candide.fit_source import fit_model
>>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
>>> evaluate(fit_model(rows, "kind").fitted, rows).accuracy
1.0
"""

from functools import partial
from typing import Any

from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import sum_labelled
from candide.metrics.scores import Scores
from candide.model.policy import PolicyLike
from candide.store.models import ModelLike, load_fitted, resolve_target


def evaluate(
    model: ModelLike,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    policy: PolicyLike = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Scores:
    """Score a model on a source whose labels are known, in the column ``target`` or that which the model learned.

    Rows without a label, or with one that the model does not know, are left out, and a warning says how many.
    ``policy`` decides in the place of the model's own.
    """
    fitted = load_fitted(model).with_policy(policy)
    name = resolve_target(fitted, target)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        found = sum_labelled(
            source, fitted, name, partial(Scores.from_log_posterior, rule=fitted.decision_rule), weight
        )
    found.skipped_rows.warn(name)
    assert found.total is not None
    return found.total
