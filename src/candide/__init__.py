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
    from candide.api import (
        adapt_prior,
        check_data,
        compare_settings,
        cross_validate,
        describe_model,
        detect_drift,
        diff_models,
        evaluate,
        explain_rows,
        export_model,
        fit,
        fit_from_counts,
        fit_model,
        forget_rows,
        load,
        make_counting_query,
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
    from candide.estimators.dropins.categorical import CategoricalNB
    from candide.estimators.dropins.discrete import BernoulliNB, ComplementNB, MultinomialNB
    from candide.estimators.dropins.gaussian import GaussianNB
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

_MODULES = {
    "BayesClassifier": "estimators.bayes_classifier",
    "BernoulliNB": "estimators.dropins.discrete",
    "CategoricalNB": "estimators.dropins.categorical",
    "ComplementNB": "estimators.dropins.discrete",
    "GaussianBayes": "estimators.naive_bayes",
    "GaussianNB": "estimators.dropins.gaussian",
    "MultinomialNB": "estimators.dropins.discrete",
    "NaiveBayes": "estimators.naive_bayes",
    "Policy": "model.policy",
    "TextNB": "estimators.text",
}  # names that are not functions of api, and where they are defined
_SUBMODULES = ("errors", "events", "plot", "priors")


def __getattr__(name: str) -> Any:
    """Look a public name up at first use, so that `import candide` is quick and `candide.load` imports little."""
    if name not in __all__:
        raise AttributeError(f"module 'candide' has no attribute {name!r}")
    module = import_module(f"candide.{name if name in _SUBMODULES else _MODULES.get(name, 'api')}")
    globals()[name] = value = module if name in _SUBMODULES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
