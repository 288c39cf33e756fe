"""Evaluating: a model scored on a source whose labels are known.

>>> from candide.tasks.learn import learn
>>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
>>> evaluate(learn(rows, "kind").fitted, rows).accuracy
1.0
"""

from functools import partial
from typing import Any

from candide.engines.base import Watch, open_source, silent
from candide.engines.reading import Reading
from candide.model.policy import PolicyLike
from candide.tasks.models import Model, fitted_of, reading_of, target_of
from candide.tasks.scores import Scores
from candide.tasks.scoring import tallied


def evaluate(
    model: Model,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    policy: PolicyLike = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Scores:
    """Score a model on a source whose labels are known, in the column ``target`` or that which the model learned.

    Rows without a label, or with one that the model does not know, are left out, and a warning says how many.
    ``policy`` decides in the place of the model's own.
    """
    fitted = fitted_of(model).with_policy(policy)
    name = target_of(fitted, target)
    with open_source(data, reading_of(fitted, reading)) as source, watch(source, "scoring"):
        found = tallied(source, fitted, name, partial(Scores.of, rule=fitted.rule), weight)
    found.left_out.tell(name)
    assert found.total is not None
    return found.total
