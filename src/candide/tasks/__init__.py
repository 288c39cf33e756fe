"""Tasks: the jobs. The command line, the estimators and Python users call these and nothing else.

A model is a fitted estimator, what is fitted in it, or the path of a model file; data are whatever an engine opens.

>>> from candide.demo import rows
>>> plants, herb = rows(300, seed=0)
>>> garden = {**plants, "herb": herb}
>>> model = learn(garden, "herb").fitted
>>> round(evaluate(model, garden).accuracy, 2), predict(model, plants).num_rows
(0.96, 300)
>>> update(model, garden).fitted.census.n_rows
600
"""

from candide.tasks.adapt import adapt
from candide.tasks.check import check
from candide.tasks.compare import compare
from candide.tasks.counts import counting_query, learn_counts
from candide.tasks.diff import diff
from candide.tasks.drift import drift
from candide.tasks.evaluate import evaluate
from candide.tasks.explain import explain
from candide.tasks.export import export
from candide.tasks.judge import judge
from candide.tasks.learn import learn
from candide.tasks.predict import predict
from candide.tasks.remote import predict_remotely
from candide.tasks.update import forget, merge, slide, update, weigh
from candide.tasks.validate import cross_validate

__all__ = [
    "adapt",
    "check",
    "compare",
    "counting_query",
    "cross_validate",
    "diff",
    "drift",
    "evaluate",
    "explain",
    "export",
    "forget",
    "judge",
    "learn",
    "learn_counts",
    "merge",
    "predict",
    "predict_remotely",
    "slide",
    "update",
    "weigh",
]
