"""Tasks: the jobs. The command line, the estimators and Python users call these and nothing else.

A model is a fitted estimator, what is fitted in it, or the path of a model file; data are whatever an engine opens.

>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(300, seed=0)
>>> garden = {**plants, "herb": herb}
>>> model = fit_model(garden, "herb").fitted
>>> round(evaluate(model, garden).accuracy, 2), predict(model, plants).num_rows
(0.96, 300)
>>> update(model, garden).fitted.counts.n_rows
600
"""

from candide.decisions.prior_shift import adapt_prior
from candide.monitoring.data_checks import check_data
from candide.monitoring.drift import detect_drift
from candide.monitoring.model_diff import diff_models
from candide.operations.explain_rows import explain_rows
from candide.operations.export_model import export_model
from candide.operations.fit import fit_model
from candide.operations.fit_counts import fit_from_counts, make_counting_query
from candide.operations.predict import predict
from candide.operations.remote import predict_remotely
from candide.operations.row_errors import evaluate_rows
from candide.operations.update import forget, merge, reweight, slide_window, update
from candide.validation.comparison import compare_settings
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate

__all__ = [
    "adapt_prior",
    "check_data",
    "compare_settings",
    "cross_validate",
    "detect_drift",
    "diff_models",
    "evaluate",
    "evaluate_rows",
    "explain_rows",
    "export_model",
    "fit_from_counts",
    "fit_model",
    "forget",
    "make_counting_query",
    "merge",
    "predict",
    "predict_remotely",
    "reweight",
    "slide_window",
    "update",
]
