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
    from candide import errors, evaluate, events, plot, priors
    from candide.estimators.bayes_classifier import BayesClassifier
    from candide.estimators.dropins.categorical import CategoricalNB
    from candide.estimators.dropins.discrete import BernoulliNB, ComplementNB, MultinomialNB
    from candide.estimators.dropins.gaussian import GaussianNB
    from candide.estimators.factory import fit, load
    from candide.estimators.naive_bayes import GaussianBayes, NaiveBayes
    from candide.estimators.text import TextNB
    from candide.model.policy import Policy

__version__ = "0.1.0"

# What is public, and where it lives. Looked up at first use, so that `import candide` stays quick and `candide.load`
# imports no more than the model needs.
_HOME = {
    "BayesClassifier": "candide.estimators.bayes_classifier",
    "BernoulliNB": "candide.estimators.dropins.discrete",
    "CategoricalNB": "candide.estimators.dropins.categorical",
    "ComplementNB": "candide.estimators.dropins.discrete",
    "GaussianBayes": "candide.estimators.naive_bayes",
    "GaussianNB": "candide.estimators.dropins.gaussian",
    "MultinomialNB": "candide.estimators.dropins.discrete",
    "NaiveBayes": "candide.estimators.naive_bayes",
    "Policy": "candide.model.policy",
    "TextNB": "candide.estimators.text",
    "errors": "candide.errors",
    "evaluate": "candide.evaluate",
    "events": "candide.events",
    "fit": "candide.estimators.factory",
    "load": "candide.estimators.factory",
    "plot": "candide.plot",
    "priors": "candide.priors",
}

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
    "errors",
    "evaluate",
    "events",
    "fit",
    "load",
    "plot",
    "priors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'candide' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if module.__name__ == f"candide.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
