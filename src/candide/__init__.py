"""Candide: naive Bayes and generative classification by counting.

Rows become tallies; tallies add; a prior turns a tally into a distribution; distributions score rows.

>>> import candide as cd
>>> X = {"colour": ["blue", "blue", "red", "red"], "size": [1.0, 1.2, 3.1, 2.9]}
>>> model = cd.NaiveBayes().fit(X, ["+", "+", "-", "-"])
>>> model.predict({"colour": ["red", None], "size": [None, 1.1]}).tolist()
['-', '+']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candide import errors, events, plot, priors
    from candide.api.fitting import (
        check_data,
        compare_settings,
        cross_validate,
        fit,
        fit_from_counts,
        fit_model,
        load,
        make_counting_query,
    )
    from candide.api.models import (
        adapt_prior,
        describe_model,
        detect_drift,
        diff_models,
        evaluate,
        explain_rows,
        export_model,
        forget_rows,
        merge_models,
        plot_model,
        predict_table,
        predict_text,
        reweight_model,
        slide_window,
        update_model,
        write_report,
    )
    from candide.estimators.bayes_classifier import BayesClassifier
    from candide.estimators.dropin_columns import CategoricalNB, GaussianNB
    from candide.estimators.dropin_discrete import BernoulliNB, ComplementNB, MultinomialNB
    from candide.estimators.naive_bayes import GaussianBayes, NaiveBayes
    from candide.estimators.text import TextNB
    from candide.model.policy import Policy

__version__ = "0.1.0"

__all__ = [
    "BayesClassifier",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianBayes",
    "GaussianNB",
    "MultinomialNB",
    "NaiveBayes",
    "Policy",
    "TextNB",
    "adapt_prior",
    "check_data",
    "compare_settings",
    "cross_validate",
    "describe_model",
    "detect_drift",
    "diff_models",
    "errors",
    "evaluate",
    "events",
    "explain_rows",
    "export_model",
    "fit",
    "fit_from_counts",
    "fit_model",
    "forget_rows",
    "load",
    "make_counting_query",
    "merge_models",
    "plot",
    "plot_model",
    "predict_table",
    "predict_text",
    "priors",
    "reweight_model",
    "slide_window",
    "update_model",
    "write_report",
]

_SUBMODULES = ("errors", "events", "plot", "priors")
_NAMES = {
    "api.fitting": "check_data compare_settings cross_validate fit fit_from_counts fit_model load make_counting_query",
    "estimators.bayes_classifier": "BayesClassifier",
    "estimators.dropin_columns": "CategoricalNB GaussianNB",
    "estimators.dropin_discrete": "BernoulliNB ComplementNB MultinomialNB",
    "estimators.naive_bayes": "GaussianBayes NaiveBayes",
    "estimators.text": "TextNB",
    "model.policy": "Policy",
}  # by module; the others are functions of api.models


def __getattr__(name: str) -> Any:
    """Look a public name up at first use, so that `import candide` is quick and `candide.load` imports little."""
    if name not in __all__:
        raise AttributeError(f"module 'candide' has no attribute {name!r}")
    modules = [module for module, names in _NAMES.items() if name in names.split()]
    path = name if name in _SUBMODULES else (modules or ["api.models"])[0]
    module = import_module(f"candide.{path}")
    globals()[name] = value = module if name in _SUBMODULES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
